"""Resource quotas: what an object counts for, which quotas concern it, and what exceeds them.

Pure rules. `objects.quota` charges a quota when an object is created, and the quota controller counts again when
something goes away.
"""

from __future__ import annotations

from decimal import Decimal

from bayplan.apiserver.kinds.pod_admission import quality_of_service
from bayplan.apiserver.kinds.pod_resources import Amounts, amounts_of, container_resources, pod_resources
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause
from bayplan.apiserver.protocol.quantity import canonical_quantity

COUNTED_BY_NAME = (
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
)
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_SCOPES = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
)
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_COMPUTE = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_STORAGE = tuple(f"{kind}ephemeral-storage" for kind in ("", "requests.", "limits."))
_STANDARD = frozenset(
    (*COUNTED_BY_NAME, *_COMPUTE, *_STORAGE, "pods", "requests.storage", "services.nodeports", "services.loadbalancers")
)
_HELD_BY_PODS = frozenset(("pods", *_COMPUTE))
_HELD_BY_SCOPE = {
    "BestEffort": frozenset(("pods",)),
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
"""What a quota of one scope may limit; quotas of the other scopes limit pods."""
_CLASS = ".storageclass.storage.k8s.io/"


def validate_quota(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    causes: list[Cause] = []
    for name, amount in amounts_of(spec.get("hard")).items():
        if amount < 0:
            detail = "must be greater than or equal to 0"
            causes.append(errors.invalid_value(f"spec.hard[{name}]", spec["hard"][name], detail))
    causes += _validate_names(spec.get("hard") or {}) + _validate_scopes(spec)
    if old is not None and (old.get("spec") or {}).get("scopes") != spec.get("scopes"):
        causes.append(errors.invalid_value("spec.scopes", str(spec.get("scopes")), "field is immutable"))
    return causes


def _validate_names(hard: Json) -> list[Cause]:
    causes: list[Cause] = []
    for name in sorted(hard):
        where = f"spec.hard[{name}]"
        if "/" not in name and not _is_standard(name):
            causes.append(errors.invalid_value(where, name, "must be a standard resource type or fully qualified"))
            causes.append(errors.invalid_value(where, name, "must be a standard resource for quota"))
    return causes


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))


def _validate_scopes(spec: Json) -> list[Cause]:
    scopes = list(spec.get("scopes") or ())
    problems = []
    for scope in scopes:
        if scope not in _SCOPES:
            problems.append("unsupported scope")
            continue
        held = _HELD_BY_SCOPE.get(scope, _HELD_BY_PODS)
        limited = [name for name in spec.get("hard") or {} if _is_standard(name) and name not in held]
        problems += ["unsupported scope applied to resource"] * len(limited)
    problems += ["conflicting scopes"] * sum(pair <= set(scopes) for pair in _CONFLICTS)
    return [errors.invalid_value("spec.scopes", scopes, problem) for problem in problems]


# ---- usage


def usage(resource: str, document: Json) -> Amounts:
    """What one object counts for, by the names that quotas use."""
    found: Amounts = {f"count/{resource}": Decimal(1)}
    if resource in COUNTED_BY_NAME:
        found[resource] = Decimal(1)
    if resource == "pods":
        found |= _pod_usage(document)
    elif resource == "services":
        found |= _service_usage(document.get("spec") or {})
    elif resource == "persistentvolumeclaims":
        found |= _claim_usage(document.get("spec") or {})
    return found


def _pod_usage(pod: Json) -> Amounts:
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    found: Amounts = {"pods": Decimal(1)}
    for name, amount in pod_resources(pod["spec"], "requests").items():
        if name in _NATIVE:
            found[name] = amount
        if name in _NATIVE or "/" in name or name.startswith("hugepages-"):
            found[f"requests.{name}"] = amount
    for name, amount in pod_resources(pod["spec"], "limits").items():
        if name in _NATIVE:
            found[f"limits.{name}"] = amount
    return found


def _service_usage(spec: Json) -> Amounts:
    kind, ports = spec.get("type"), len(spec.get("ports") or ())
    found: Amounts = {}
    if kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True)):
        found["services.nodeports"] = Decimal(ports)
    if kind == "LoadBalancer":
        found["services.loadbalancers"] = Decimal(1)
    return found


def _claim_usage(spec: Json) -> Amounts:
    storage = amounts_of((spec.get("resources") or {}).get("requests")).get("storage", Decimal(0))
    found = {"requests.storage": storage}
    if spec.get("storageClassName"):
        prefix = spec["storageClassName"] + _CLASS
        found |= {f"{prefix}requests.storage": storage, f"{prefix}persistentvolumeclaims": Decimal(1)}
    return found


# ---- scopes


def concerns(quota: Json, resource: str, document: Json) -> bool:
    """Whether a quota counts an object: some scopes are about pods alone."""
    spec = quota.get("spec") or {}
    requirements = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    requirements += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not requirements:
        return True
    return resource == "pods" and all(_in_scope(requirement, document["spec"]) for requirement in requirements)


def _in_scope(requirement: Json, spec: Json) -> bool:
    scope: str = requirement["scopeName"]
    if scope in ("Terminating", "NotTerminating"):
        return bool((spec.get("activeDeadlineSeconds") is not None) == (scope == "Terminating"))
    if scope in ("BestEffort", "NotBestEffort"):
        return (quality_of_service(spec) == "BestEffort") == (scope == "BestEffort")
    if scope == "CrossNamespacePodAffinity":
        return _crosses_namespaces(spec)
    if scope != "PriorityClass":
        return False
    name, values = str(spec.get("priorityClassName", "")), list(requirement.get("values") or ())
    operator = str(requirement.get("operator"))
    if operator in ("Exists", "DoesNotExist"):
        return bool(name) == (operator == "Exists")
    return (name in values) == (operator == "In")


def _crosses_namespaces(spec: Json) -> bool:
    affinity = spec.get("affinity") or {}
    terms: list[Json] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(kind) or {}
        terms += found.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = found.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [one.get("podAffinityTerm") or {} for one in preferred]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)


# ---- bounds


def problem_with(quota: Json, resource: str, document: Json, wanted: Amounts) -> str:
    """Why a quota refuses an object, or nothing."""
    name = quota["metadata"]["name"]
    hard = amounts_of((quota.get("spec") or {}).get("hard"))
    if resource == "pods" and (missing := _unspecified(hard, document["spec"])):
        return f"failed quota: {name}: must specify {missing}"
    used = amounts_of((quota.get("status") or {}).get("used"))
    over = [one for one in sorted(hard) if wanted.get(one) and used.get(one, Decimal(0)) + wanted[one] > hard[one]]
    if not over:
        return ""
    listed = [
        ",".join(f"{one}={shown(amounts.get(one, Decimal(0)))}" for one in over) for amounts in (wanted, used, hard)
    ]
    return f"exceeded quota: {name}, requested: {listed[0]}, used: {listed[1]}, limited: {listed[2]}"


def _unspecified(hard: Amounts, spec: Json) -> str:
    """Containers that do not state what a quota bounds."""
    found = []
    for name in sorted(hard):
        which, _, resource = (
            name.partition(".") if name.startswith(("requests.", "limits.")) else ("requests", "", name)
        )
        if resource not in ("cpu", "memory"):
            continue
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        silent = sorted(one["name"] for one in containers if resource not in container_resources(one, which))
        if silent and resource not in amounts_of((spec.get("resources") or {}).get(which)):
            found.append(f"{name} for: {','.join(silent)}")
    return "; ".join(found)


def shown(amount: Decimal) -> str:
    return canonical_quantity(format(amount, "f"))
