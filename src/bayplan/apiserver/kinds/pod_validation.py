"""What a pod must look like; `pod_updates` says what of it may change.

Covers what scheduling and the simulated kubelets rely on, with the messages of the real API server; rules about
container runtimes are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.apiserver.kinds.content_cache import ContentCache
from bayplan.apiserver.kinds.metadata import LABEL_HINT, is_dns_label, is_subdomain, validate_label
from bayplan.apiserver.kinds.pod_updates import validate_update
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue
from bayplan.apiserver.protocol.errors import Cause
from bayplan.apiserver.protocol.quantity import BadQuantity, parse_quantity
from bayplan.apiserver.protocol.selectors import is_label_key

_verdicts: ContentCache[list[Cause]] = ContentCache()
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_NODE_OPERATORS = ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn")
_LABEL_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")


def validate_pod(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec", {})
    if old is None:
        return validate_pod_spec(spec, "spec")
    return [] if spec == old.get("spec") else validate_pod_spec(spec, "spec") + validate_update(spec, old["spec"])


def validate_pod_spec(spec: Json, path: str) -> list[Cause]:
    """All problems of a pod spec or of a template's."""
    return _verdicts.get(spec, path, lambda: _problems(spec, path))


def _problems(spec: Json, path: str) -> list[Cause]:
    causes = list(_containers(spec, path))
    if spec.get("restartPolicy") not in _RESTART_POLICIES:
        causes.append(errors.not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES))
    if spec.get("nodeName") and not is_subdomain(spec["nodeName"]):
        causes.append(errors.invalid_value(f"{path}.nodeName", spec["nodeName"], LABEL_HINT))
    for key, value in (spec.get("nodeSelector") or {}).items():
        causes += validate_label(key, value, f"{path}.nodeSelector")
    causes += _tolerations(spec.get("tolerations") or [], f"{path}.tolerations")
    causes += _spread_constraints(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")
    causes += _affinity(spec.get("affinity") or {}, f"{path}.affinity")
    causes += _gates(spec, path)
    causes += _volumes(spec.get("volumes") or [], f"{path}.volumes")
    return causes


def _containers(spec: Json, path: str) -> Iterator[Cause]:
    if not spec.get("containers"):
        yield errors.required(f"{path}.containers")
    seen: set[str] = set()
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or []):
            where = f"{path}.{group}[{index}]"
            name = container.get("name", "")
            if not name:
                yield errors.required(f"{where}.name")
            elif not is_dns_label(name):
                yield errors.invalid_value(f"{where}.name", name, LABEL_HINT)
            elif name in seen:
                yield errors.duplicate_value(f"{where}.name", name)
            seen.add(name)
            if not container.get("image"):
                yield errors.required(f"{where}.image")
            yield from _ports(container.get("ports") or [], f"{where}.ports")
            yield from _resources(container.get("resources") or {}, f"{where}.resources")


def _ports(ports: list[Json], path: str) -> Iterator[Cause]:
    for index, port in enumerate(ports):
        number = port.get("containerPort", 0)
        if not number:
            yield errors.required(f"{path}[{index}].containerPort")
        elif not 0 < number < 65536:
            detail = "must be between 1 and 65535, inclusive"
            yield errors.invalid_value(f"{path}[{index}].containerPort", number, detail)
        if port.get("protocol") not in _PROTOCOLS:
            yield errors.not_supported(f"{path}[{index}].protocol", port.get("protocol"), _PROTOCOLS)


def _resources(resources: Json, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, quantities in (("limits", limits), ("requests", requests)):
        for name, text in quantities.items():
            yield from _quantity(name, text, f"{path}.{group}", known=group)
    for name, text in requests.items():
        if name in limits and _value(text) > _value(limits[name]):
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            yield errors.invalid_value(f"{path}.requests", text, detail)


def _quantity(name: str, text: JsonValue, path: str, *, known: str) -> Iterator[Cause]:
    if not is_label_key(name):
        yield errors.invalid_value(f"{path}[{name}]", name, "must be a standard resource type or fully qualified")
    try:
        value = parse_quantity(str(text))
    except BadQuantity as problem:
        yield errors.invalid_value(f"{path}[{name}]", text, str(problem))
        return
    if value < 0:
        yield errors.invalid_value(f"{path}[{name}]", text, "must be greater than or equal to 0")
    if "/" not in name and name not in ("cpu", "memory", "ephemeral-storage") and not name.startswith("hugepages-"):
        detail = "must be a standard resource type or fully qualified"
        yield errors.invalid_value(f"{path}[{name}]", name, detail)


def _value(text: JsonValue) -> JsonValue:
    try:
        return parse_quantity(str(text))
    except BadQuantity:
        return 0


def _tolerations(tolerations: list[Json], path: str) -> list[Cause]:
    causes = []
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator, effect = toleration.get("key", ""), toleration.get("operator", ""), toleration.get("effect", "")
        if key and not is_label_key(key):
            causes.append(errors.invalid_value(f"{where}.key", key, "must be a label key"))
        if not key and operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            causes.append(errors.invalid_value(f"{where}.operator", operator, detail))
        if operator not in ("", "Equal", "Exists", "Lt", "Gt"):
            causes.append(errors.not_supported(f"{where}.operator", operator, ["Equal", "Exists"]))
        if operator == "Exists" and toleration.get("value"):
            detail = "value must be empty when `operator` is 'Exists'"
            causes.append(errors.invalid_value(f"{where}.operator", toleration["value"], detail))
        if effect and effect not in _EFFECTS:
            causes.append(errors.not_supported(f"{where}.effect", effect, _EFFECTS))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(errors.invalid_value(f"{where}.effect", effect, detail))
    return causes


def _spread_constraints(constraints: list[Json], path: str) -> list[Cause]:
    causes = []
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            causes.append(
                errors.invalid_value(f"{where}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
            )
        if not constraint.get("topologyKey"):
            causes.append(errors.required(f"{where}.topologyKey", "can not be empty"))
        action = constraint.get("whenUnsatisfiable")
        if action not in _WHEN_UNSATISFIABLE:
            causes.append(errors.not_supported(f"{where}.whenUnsatisfiable", action, _WHEN_UNSATISFIABLE))
        minimum = constraint.get("minDomains")
        if minimum is not None and minimum <= 0:
            causes.append(errors.invalid_value(f"{where}.minDomains", minimum, "must be greater than zero"))
        causes += validate_selector(constraint.get("labelSelector"), f"{where}.labelSelector")
    return causes


def validate_selector(selector: Json | None, path: str) -> list[Cause]:
    """Problems of a LabelSelector object."""
    causes = []
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        causes += validate_label(key, value, f"{path}.matchLabels")
    for index, expression in enumerate((selector or {}).get("matchExpressions") or []):
        where, operator = f"{path}.matchExpressions[{index}]", expression.get("operator")
        if operator not in _LABEL_OPERATORS:
            causes.append(errors.invalid_value(f"{where}.operator", operator, "not a valid selector operator"))
        elif operator in ("In", "NotIn") and not expression.get("values"):
            causes.append(errors.required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist") and expression.get("values"):
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(errors.forbidden_field(f"{where}.values", detail))
        if not is_label_key(expression.get("key", "")):
            causes.append(errors.invalid_value(f"{where}.key", expression.get("key", ""), "must be a label key"))
    return causes


def _affinity(affinity: Json, path: str) -> list[Cause]:
    causes: list[Cause] = []
    node = affinity.get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    here = f"{path}.nodeAffinity"
    if required is not None and not required.get("nodeSelectorTerms"):
        where = f"{here}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        causes.append(errors.required(where, "must have at least one node selector term"))
    for index, term in enumerate((required or {}).get("nodeSelectorTerms") or []):
        where = f"{here}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
        causes += _node_term(term, where)
    for index, preferred in enumerate(node.get("preferredDuringSchedulingIgnoredDuringExecution") or []):
        where = f"{here}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        causes += _weight(preferred, where) + _node_term(preferred.get("preference") or {}, f"{where}.preference")
    for name in ("podAffinity", "podAntiAffinity"):
        causes += _pod_affinity(affinity.get(name) or {}, f"{path}.{name}")
    return causes


def _node_term(term: Json, path: str) -> list[Cause]:
    causes = []
    for index, expression in enumerate(term.get("matchExpressions") or []):
        where, operator = f"{path}.matchExpressions[{index}]", expression.get("operator")
        values = expression.get("values") or []
        if operator not in _NODE_OPERATORS:
            causes.append(errors.invalid_value(f"{where}.operator", operator, "not a valid selector operator"))
        elif operator in ("In", "NotIn") and not values:
            causes.append(errors.required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Gt", "Lt") and len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            causes.append(errors.required(f"{where}.values", detail))
        if not is_label_key(expression.get("key", "")):
            causes.append(errors.invalid_value(f"{where}.key", expression.get("key", ""), "must be a label key"))
    return causes


def _weight(preferred: Json, path: str) -> list[Cause]:
    weight = preferred.get("weight", 0)
    return [] if 1 <= weight <= 100 else [errors.invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_affinity(affinity: Json, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, term in enumerate(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []):
        causes += _pod_term(term, f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{index}]")
    for index, preferred in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []):
        where = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        causes += _weight(preferred, where) + _pod_term(
            preferred.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm"
        )
    return causes


def _pod_term(term: Json, path: str) -> list[Cause]:
    causes = [] if term.get("topologyKey") else [errors.required(f"{path}.topologyKey", "can not be empty")]
    return causes + validate_selector(term.get("labelSelector"), f"{path}.labelSelector")


def _gates(spec: Json, path: str) -> list[Cause]:
    gates = spec.get("schedulingGates") or []
    causes = [
        errors.invalid_value(f"{path}.schedulingGates[{index}]", gate.get("name", ""), "must be a label key")
        for index, gate in enumerate(gates)
        if not is_label_key(gate.get("name", ""))
    ]
    if gates and spec.get("nodeName"):
        causes.append(
            errors.forbidden_field(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")
        )
    return causes


def _volumes(volumes: list[Json], path: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name", "")
        if not name:
            causes.append(errors.required(f"{path}[{index}].name"))
        elif name in seen:
            causes.append(errors.duplicate_value(f"{path}[{index}].name", name))
        seen.add(name)
    return causes
