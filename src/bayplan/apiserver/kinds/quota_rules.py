"""Resource quotas: what an object counts for, which quotas concern it, and what exceeds them.

Pure rules. `objects.quota` charges a quota when an object is created or asks for more, and the quota controller counts
again when something goes away.
"""

from __future__ import annotations

from decimal import Decimal

from bayplan.apiserver.kinds.pod_admission import quality_of_service
from bayplan.apiserver.kinds.pod_resources import Amounts, amounts_of, container_resources, pod_resources, sum_amounts
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
DEVICE_CLAIMS = "resourceclaims.resource.k8s.io"
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
_EXISTING = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
"""Scopes that a selector can only ask to exist."""
_CLASS = ".storageclass.storage.k8s.io/"
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES = 32
"""That a request for all devices counts for."""

_MISAPPLIED = "unsupported scope applied to resource"
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_NEEDS_VALUES = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
_TAKES_NO_VALUES = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"


def validate_quota(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    causes: list[Cause] = []
    for name, amount in amounts_of(spec.get("hard")).items():
        if amount < 0:
            detail = "must be greater than or equal to 0"
            causes.append(errors.invalid_value(f"spec.hard[{name}]", spec["hard"][name], detail))
        if _is_counted(name) and amount % 1:
            causes.append(errors.invalid_value(f"spec.hard[{name}]", spec["hard"][name], "must be an integer"))
    causes += _validate_names(spec.get("hard") or {}) + _validate_scopes(spec) + _validate_selector(spec)
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


def _is_counted(name: str) -> bool:
    """Whether a resource comes in whole numbers: objects, and what is not Kubernetes' own."""
    if "/" in name:
        return "kubernetes.io/" not in name and not name.startswith("requests.")
    return name in COUNTED_BY_NAME or name in ("pods", "services.nodeports", "services.loadbalancers")


def _validate_scopes(spec: Json) -> list[Cause]:
    scopes = list(spec.get("scopes") or ())
    problems = []
    for scope in scopes:
        problems += ["unsupported scope"] if scope not in _SCOPES else [_MISAPPLIED] * _misapplied(scope, spec)
    problems += ["conflicting scopes"] * _conflicts(scopes)
    return [errors.invalid_value("spec.scopes", scopes, problem) for problem in problems]


def _misapplied(scope: str, spec: Json) -> int:
    """How many of the limited resources a known scope has nothing to do with."""
    if scope not in _SCOPES:
        return 0
    held = _HELD_BY_SCOPE.get(scope, _HELD_BY_PODS)
    return sum(_is_standard(name) and name not in held for name in spec.get("hard") or {})


def _conflicts(scopes: list[str]) -> int:
    return sum(pair <= set(scopes) for pair in _CONFLICTS)


def _validate_selector(spec: Json) -> list[Cause]:
    path, selector = "spec.scopeSelector.matchExpressions", spec.get("scopeSelector") or {}
    causes: list[Cause] = []
    for requirement in selector.get("matchExpressions") or ():
        scope, operator = str(requirement.get("scopeName", "")), str(requirement.get("operator", ""))
        if scope not in _SCOPES:
            causes.append(errors.invalid_value(f"{path}.scopeName", scope, "unsupported scope"))
        causes += [errors.invalid_value(path, _as_go_has_it(selector), _MISAPPLIED)] * _misapplied(scope, spec)
        if scope in _EXISTING and operator != "Exists":
            causes.append(errors.invalid_value(f"{path}.operator", operator, _MUST_EXIST))
        causes += _validate_values(path, operator, list(requirement.get("values") or ()))
    scopes = [str(one.get("scopeName", "")) for one in selector.get("matchExpressions") or ()]
    conflict = errors.invalid_value(path, spec.get("scopes"), "conflicting scopes")
    return causes + [conflict] * _conflicts(scopes)


def _as_go_has_it(selector: Json) -> Json:
    """A selector under the names of its Go fields, as the API server shows it."""
    names = ("ScopeName", "Operator", "Values")
    found = selector.get("matchExpressions") or ()
    return {"MatchExpressions": [{name: one.get(name[0].lower() + name[1:]) for name in names} for one in found]}


def _validate_values(path: str, operator: str, values: list[str]) -> list[Cause]:
    if operator in ("In", "NotIn"):
        return [] if values else [errors.required(f"{path}.values", _NEEDS_VALUES)]
    if operator in ("Exists", "DoesNotExist"):
        return [errors.invalid_value(f"{path}.values", values, _TAKES_NO_VALUES)] if values else []
    return [errors.invalid_value(f"{path}.operator", operator, "not a valid selector operator")]


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
    elif resource == DEVICE_CLAIMS:
        found |= _device_usage(document.get("spec") or {})
    return found


def is_charged(resource: str, subresource: str, old: Json, new: Json) -> bool:
    """Whether a change of an object may need more of a quota, or a quota that it did not need before."""
    if subresource == "resize" or (resource in ("persistentvolumeclaims", "services") and not subresource):
        return True
    return subresource in ("", "status") and scope_of(resource, old) != scope_of(resource, new)


def scope_of(resource: str, document: Json) -> object:
    """What of an object may change and with it the scopes that the object is in."""
    if resource == "pods":
        return _is_terminating(document)
    return _attribute_classes(document) if resource == "persistentvolumeclaims" else None


def counts_devices(name: str) -> bool:
    return name.endswith(_DEVICES)


def _is_terminating(pod: Json) -> bool:
    """Whether a pod ends by itself, as the scopes Terminating and NotTerminating see it."""
    return pod["spec"].get("activeDeadlineSeconds") is not None


def _pod_usage(pod: Json) -> Amounts:
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    found: Amounts = {"pods": Decimal(1)}
    for name, amount in pod_resources(pod["spec"], "requests").items():
        if name in _NATIVE:
            found[name] = amount
        if name in _NATIVE or "/" in name or name.startswith("hugepages-"):
            found[f"requests.{name}"] = amount
        if name.startswith("hugepages-"):
            found[name] = amount
    for name, amount in pod_resources(pod["spec"], "limits").items():
        if name in _NATIVE:
            found[f"limits.{name}"] = amount
    return found


def _service_usage(spec: Json) -> Amounts:
    kind, ports = spec.get("type"), spec.get("ports") or ()
    found: Amounts = {}
    if kind in ("NodePort", "LoadBalancer"):
        every = kind == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True)
        found["services.nodeports"] = Decimal(sum(1 for port in ports if every or port.get("nodePort")))
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


def _device_usage(spec: Json) -> Amounts:
    """Devices by class; of alternatives, the most that may be allocated of each class."""
    found: Amounts = {}
    for request in (spec.get("devices") or {}).get("requests") or ():
        most: Amounts = {}
        for one in request.get("firstAvailable") or [request.get("exactly") or {}]:
            if one.get("deviceClassName"):
                name = one["deviceClassName"] + _DEVICES
                count = _MOST_DEVICES if one.get("allocationMode") == "All" else one.get("count", 1)
                most[name] = max(most.get(name, Decimal(0)), Decimal(count))
        found = sum_amounts(found, most)
    return found


# ---- scopes


def concerns(quota: Json, resource: str, document: Json) -> bool:
    """Whether a quota counts an object: scopes are about pods, one is about claims for volumes."""
    spec = quota.get("spec") or {}
    requirements = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    requirements += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not requirements:
        return True
    if resource == "persistentvolumeclaims":
        return all(_claim_in_scope(requirement, document) for requirement in requirements)
    return resource == "pods" and all(_in_scope(requirement, document) for requirement in requirements)


def _in_scope(requirement: Json, pod: Json) -> bool:
    scope, spec = str(requirement["scopeName"]), pod["spec"]
    if scope in ("Terminating", "NotTerminating"):
        return _is_terminating(pod) == (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return (quality_of_service(spec) == "BestEffort") == (scope == "BestEffort")
    if scope == "CrossNamespacePodAffinity":
        return _crosses_namespaces(spec)
    return scope == "PriorityClass" and _selects(requirement, str(spec.get("priorityClassName", "")))


def _claim_in_scope(requirement: Json, claim: Json) -> bool:
    if requirement["scopeName"] != "VolumeAttributesClass":
        return False
    return any(_selects(requirement, name) for name in _attribute_classes(claim) or [""])


def _attribute_classes(claim: Json) -> list[str]:
    """The classes that a claim names: the one that is wanted, the one that it has, and the one it is changed to."""
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    found = {spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target}
    return sorted(str(name) for name in found if name)


def _selects(requirement: Json, name: str) -> bool:
    """Whether a requirement of a scope is met by the name of a class, empty where there is none."""
    operator = str(requirement.get("operator"))
    if operator in ("Exists", "DoesNotExist"):
        return bool(name) == (operator == "Exists")
    return (name in (requirement.get("values") or ())) == (operator == "In")


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
    """Containers that do not state what a quota bounds, unless the pod does as a whole."""
    if any((spec.get("resources") or {}).get(which) for which in ("requests", "limits")):
        return ""
    found = []
    for name in sorted(hard):
        which, _, resource = (
            name.partition(".") if name.startswith(("requests.", "limits.")) else ("requests", "", name)
        )
        if resource not in ("cpu", "memory"):
            continue
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        silent = sorted(one["name"] for one in containers if resource not in container_resources(one, which))
        if silent:
            found.append(f"{name} for: {','.join(silent)}")
    return "; ".join(found)


def shown(amount: Decimal) -> str:
    return canonical_quantity(format(amount, "f"))
