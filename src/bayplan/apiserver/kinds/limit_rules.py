"""LimitRange and RuntimeClass: their own rules, and what they do to pods and claims on creation."""

from __future__ import annotations

from decimal import Decimal

from bayplan.apiserver.kinds.kind import Admission
from bayplan.apiserver.kinds.pod_resources import Amounts, amounts_of, container_resources, pod_resources
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause
from bayplan.apiserver.protocol.quantity import canonical_quantity

RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


# ---- limit ranges


def default_limit_range(document: Json) -> None:
    """Defaults of containers follow from each other: limits from maxima, requests from limits and minima."""
    for item in document.get("spec", {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        limits = (item.get("max") or {}) | (item.get("default") or {})
        requests = (item.get("min") or {}) | limits | (item.get("defaultRequest") or {})
        item |= ({"default": limits} if limits else {}) | ({"defaultRequest": requests} if requests else {})


def validate_limit_range(document: Json, old: Json | None) -> list[Cause]:
    causes: list[Cause] = []
    for index, item in enumerate(document.get("spec", {}).get("limits") or ()):
        path = f"spec.limits[{index}]"
        if not item.get("type"):
            causes.append(errors.required(f"{path}.type"))
        elif "/" not in item["type"] and item["type"] not in _TYPES:
            causes.append(
                errors.invalid_value(f"{path}.type", item["type"], "must be a standard limit type or fully qualified")
            )
        low, high = amounts_of(item.get("min")), amounts_of(item.get("max"))
        for name in sorted(set(low) & set(high)):
            if low[name] > high[name]:
                detail = f"min value {item['min'][name]} is greater than max value {item['max'][name]}"
                causes.append(errors.invalid_value(f"{path}.min[{name}]", item["min"][name], detail))
    return causes


def limit_items(namespace: str, admission: Admission) -> list[Json]:
    """The limits that hold in a namespace."""
    if not admission.store.count("limitranges"):
        return []
    ranges = [one for one in admission.all("limitranges") if one["metadata"]["namespace"] == namespace]
    return [item for one in ranges for item in one.get("spec", {}).get("limits") or ()]


def apply_limits_to_pod(document: Json, admission: Admission) -> None:
    """Give containers the default requests and limits of the namespace, and refuse a pod beyond its bounds."""
    if not admission.store.count("limitranges"):
        return
    items = limit_items(document["metadata"].get("namespace", ""), admission)
    spec = document["spec"]
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    for item in (item for item in items if item.get("type") == "Container"):
        for container in containers:
            _fill(container, "limits", item.get("default") or {})
            _fill(container, "requests", item.get("defaultRequest") or {})
    problems: list[str] = []
    for item in items:
        if item.get("type") == "Container":
            for container in containers:
                asked = (container_resources(container, "requests"), container_resources(container, "limits"))
                problems += _problems(item, *asked)
        elif item.get("type") == "Pod":
            problems += _problems(item, pod_resources(spec, "requests"), pod_resources(spec, "limits"))
    _refuse("pods", document, problems)


def apply_limits_to_claim(document: Json, admission: Admission) -> None:
    requests = amounts_of((document["spec"].get("resources") or {}).get("requests"))
    problems: list[str] = []
    for item in limit_items(document["metadata"].get("namespace", ""), admission):
        if item.get("type") == "PersistentVolumeClaim":
            problems += _problems(
                {"type": item["type"], "min": item.get("min"), "max": item.get("max")}, requests, requests
            )
    _refuse("persistentvolumeclaims", document, problems)


def _fill(container: Json, which: str, defaults: Json) -> None:
    resources = container.setdefault("resources", {})
    merged = defaults | (resources.get(which) or {})
    if merged:
        resources[which] = merged


def _refuse(resource: str, document: Json, problems: list[str]) -> None:
    if problems:
        listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise errors.forbidden(resource, document["metadata"].get("name", ""), listed)


def _problems(item: Json, requests: Amounts, limits: Amounts) -> list[str]:
    kind, found = item["type"], []
    for name, text in sorted((item.get("min") or {}).items()):
        low = amounts_of({name: text})[name]
        told = f"minimum {name} usage per {kind} is {text}"
        if name not in requests:
            found.append(f"{told}.  No request is specified")
        elif requests[name] < low:
            found.append(f"{told}, but request is {_shown(requests[name])}")
        elif name in limits and limits[name] < low:
            found.append(f"{told}, but limit is {_shown(limits[name])}")
    for name, text in sorted((item.get("max") or {}).items()):
        high = amounts_of({name: text})[name]
        told = f"maximum {name} usage per {kind} is {text}"
        if name not in limits:
            found.append(f"{told}.  No limit is specified")
        elif limits[name] > high:
            found.append(f"{told}, but limit is {_shown(limits[name])}")
        elif requests.get(name, high) > high:
            found.append(f"{told}, but request is {_shown(requests[name])}")
    for name, text in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        found += _ratio_problems(kind, name, text, requests, limits)
    return found


def _ratio_problems(kind: str, name: str, text: str, requests: Amounts, limits: Amounts) -> list[str]:
    told = f"{name} max limit to request ratio per {kind} is {text}"
    if not requests.get(name):
        return [f"{told}, but no request is specified or request is 0"]
    if not limits.get(name):
        return [f"{told}, but no limit is specified or limit is 0"]
    ratio = limits[name] / requests[name]
    return [f"{told}, but provided ratio is {ratio:f}"] if ratio > amounts_of({name: text})[name] else []


def _shown(amount: Decimal) -> str:
    """As a quantity of the object would be written."""
    is_binary = amount >= 1024 and amount % 1024 == 0
    return canonical_quantity(f"{int(amount / 1024)}Ki" if is_binary else format(amount, "f"))


# ---- runtime classes


def validate_runtime_class(document: Json, old: Json | None) -> list[Cause]:
    if not document.get("handler"):
        return [errors.required("handler")]
    if old is not None and old.get("handler") != document["handler"]:
        return [errors.invalid_value("handler", document["handler"], "field is immutable")]
    return []


def apply_runtime_class(document: Json, admission: Admission) -> None:
    """Give a pod the overhead, the node selector and the tolerations of its runtime class."""
    spec = document["spec"]
    wanted = spec.get("runtimeClassName")
    if not wanted and not spec.get("overhead"):
        return
    name = document["metadata"].get("name", "")
    found: Json = {}
    if wanted:
        known = admission.find(RUNTIME_CLASSES, "", wanted)
        if known is None:
            raise errors.forbidden("pods", name, f'pod rejected: RuntimeClass "{wanted}" not found')
        found = known
    overhead = (found.get("overhead") or {}).get("podFixed")
    if spec.get("overhead") and not overhead:
        problem = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise errors.forbidden("pods", name, problem)
    if overhead:
        if spec.get("overhead") and spec["overhead"] != overhead:
            problem = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise errors.forbidden("pods", name, problem)
        spec["overhead"] = dict(overhead)
    _apply_scheduling(spec, name, found.get("scheduling") or {})


def _apply_scheduling(spec: Json, name: str, scheduling: Json) -> None:
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            problem = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
            raise errors.forbidden("pods", name, f"{problem}pod.spec.nodeSelector[{key}] = {selector[key]}")
    if scheduling.get("nodeSelector"):
        spec["nodeSelector"] = selector | scheduling["nodeSelector"]
    tolerations = spec.get("tolerations") or []
    added = [one for one in scheduling.get("tolerations") or () if one not in tolerations]
    if added:
        spec["tolerations"] = [*tolerations, *added]
