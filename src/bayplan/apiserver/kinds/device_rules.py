"""Defaults and validation of claims, templates, slices and classes of devices (`resource.k8s.io/v1`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.apiserver.kinds.kind import Admission
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause
from bayplan.cel import CompileError
from bayplan.cel.devices import MAX_COST, MAX_LENGTH, compile_selector

_GROUP = "resource.k8s.io"
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
_MOST_LISTED, _MOST_ALTERNATIVES, _MOST_CONSUMERS = 32, 8, 256
_MOST_DEVICES, _MOST_COMPLEX_DEVICES = 128, 64
_MOST_COUNTER_SETS, _MOST_COUNTERS, _MOST_TAINTS = 8, 32, 16
_MODES = ("All", "ExactCount")
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_VALUES = ("bool", "int", "string", "version")


# ---- defaults


def default_claim(document: Json) -> None:
    _default_requests(document.get("spec") or {})


def default_template(document: Json) -> None:
    _default_requests((document.get("spec") or {}).get("spec") or {})


def _default_requests(spec: Json) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for asked in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if asked:
                asked["allocationMode"] = asked.get("allocationMode") or "ExactCount"
                if asked["allocationMode"] == "ExactCount" and not asked.get("count"):
                    asked["count"] = 1
                for toleration in asked.get("tolerations") or ():
                    toleration["operator"] = toleration.get("operator") or "Equal"


def admit_slice(document: Json, old: Json | None, admission: Admission) -> None:
    """A taint without a time gets the present one."""
    for device in (document.get("spec") or {}).get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", admission.now())


def admit_claim(document: Json, old: Json | None, admission: Admission) -> None:
    if old is None:
        _admit_admin_access(document.get("spec") or {}, "spec", document, admission)


def admit_template(document: Json, old: Json | None, admission: Admission) -> None:
    if old is None:
        _admit_admin_access((document.get("spec") or {}).get("spec") or {}, "spec.spec", document, admission)


def _admit_admin_access(spec: Json, path: str, document: Json, admission: Admission) -> None:
    """Access to devices that others use is for namespaces that an administrator marked."""
    namespace = admission.find("namespaces", "", document["metadata"].get("namespace", "")) or {}
    if ((namespace.get("metadata") or {}).get("labels") or {}).get(ADMIN_ACCESS) == "true":
        return
    for number, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            where = f"{path}.devices.requests[{number}].exactly.adminAccess"
            detail = f"admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
            name = document["metadata"].get("name", "")
            raise errors.invalid(document["kind"], name, [errors.forbidden_field(where, detail)], group=_GROUP)


# ---- claims


def validate_claim(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    causes = _claim_spec(spec, "spec") if old is None else _unchanged(spec, old)
    status = document.get("status") or {}
    causes += _too_many(status.get("reservedFor") or (), _MOST_CONSUMERS, "status.reservedFor")
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    causes += _too_many(results, _MOST_LISTED, "status.allocation.devices.results")
    if old is not None:
        before = (old.get("status") or {}).get("allocation")
        after = status.get("allocation")
        if before and after and _without_time(before) != _without_time(after):
            causes.append(errors.invalid_value("status.allocation", "", "field is immutable"))
    return causes


def _without_time(allocation: Json) -> Json:
    return {name: value for name, value in allocation.items() if name != "allocationTimestamp"}


def validate_template(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    return _claim_spec(spec.get("spec") or {}, "spec.spec") if old is None else _unchanged(spec, old)


def _unchanged(spec: Json, old: Json) -> list[Cause]:
    """What is stored was valid when it was created, and does not change."""
    is_same = spec == (old.get("spec") or {})
    return [] if is_same else [errors.invalid_value("spec", "", "field is immutable")]


def _claim_spec(spec: Json, path: str) -> list[Cause]:
    devices, where = spec.get("devices") or {}, f"{path}.devices"
    requests = devices.get("requests") or ()
    causes = _too_many(requests, _MOST_LISTED, f"{where}.requests")
    causes += _too_many(devices.get("constraints") or (), _MOST_LISTED, f"{where}.constraints")
    causes += _too_many(devices.get("config") or (), _MOST_LISTED, f"{where}.config")
    names: set[str] = set()
    for number, request in enumerate(requests):
        place = f"{where}.requests[{number}]"
        if request.get("name") in names:
            causes.append(errors.duplicate_value(f"{place}.name", request.get("name")))
        names.add(str(request.get("name", "")))
        names |= {f"{request.get('name')}/{each.get('name')}" for each in request.get("firstAvailable") or ()}
        causes += _request(request, place)
    for number, constraint in enumerate(devices.get("constraints") or ()):
        causes += _constraint(constraint, names, f"{where}.constraints[{number}]")
    for number, config in enumerate(devices.get("config") or ()):
        causes += _known_requests(config.get("requests") or (), names, f"{where}.config[{number}].requests")
    return causes


def _request(request: Json, path: str) -> list[Cause]:
    causes = [] if request.get("name") else [errors.required(f"{path}.name")]
    exactly, listed = request.get("exactly"), request.get("firstAvailable") or ()
    if exactly is None and not listed:
        return [*causes, errors.required(path, "exactly one of `exactly` or `firstAvailable` is required")]
    if exactly is not None and listed:
        detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        return [*causes, errors.invalid_value(path, "", detail)]
    causes += _too_many(listed, _MOST_ALTERNATIVES, f"{path}.firstAvailable")
    if exactly is not None:
        causes += _asked(exactly, f"{path}.exactly")
    for number, each in enumerate(listed):
        causes += _asked(each, f"{path}.firstAvailable[{number}]")
        if not each.get("name"):
            causes.append(errors.required(f"{path}.firstAvailable[{number}].name"))
    return causes


def _asked(asked: Json, path: str) -> list[Cause]:
    causes = [] if asked.get("deviceClassName") else [errors.required(f"{path}.deviceClassName")]
    mode, count = asked.get("allocationMode"), asked.get("count") or 0
    if mode not in _MODES:
        causes.append(errors.not_supported(f"{path}.allocationMode", mode, _MODES))
    elif mode == "ExactCount" and count <= 0:
        causes.append(errors.invalid_value(f"{path}.count", count, "must be greater than zero"))
    elif mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        causes.append(errors.invalid_value(f"{path}.count", count, detail))
    causes += _too_many(asked.get("tolerations") or (), _MOST_TAINTS, f"{path}.tolerations")
    return causes + _selectors(asked.get("selectors") or (), f"{path}.selectors")


def _constraint(constraint: Json, names: set[str], path: str) -> list[Cause]:
    causes = _known_requests(constraint.get("requests") or (), names, f"{path}.requests")
    given = [field for field in ("matchAttribute", "distinctAttribute") if constraint.get(field)]
    if not given:
        causes.append(errors.required(path, "exactly one of `matchAttribute` or `distinctAttribute` is required"))
    causes += [
        errors.invalid_value(f"{path}.{field}", constraint[field], "must include a domain")
        for field in given
        if "/" not in str(constraint[field])
    ]
    return causes


def _known_requests(given: Sequence[str], names: set[str], path: str) -> list[Cause]:
    return [
        errors.invalid_value(f"{path}[{number}]", name, "must be the name of a request in the claim")
        for number, name in enumerate(given)
        if name not in names
    ]


def _selectors(selectors: Sequence[Json], path: str) -> list[Cause]:
    causes = _too_many(selectors, _MOST_LISTED, path)
    for number, selector in enumerate(selectors):
        where = f"{path}[{number}].cel"
        expression = (selector.get("cel") or {}).get("expression")
        if expression is None:
            causes.append(errors.required(where))
        elif len(expression) > MAX_LENGTH:
            causes.append(errors.too_long(f"{where}.expression", MAX_LENGTH))
        else:
            causes += _expression(str(expression), f"{where}.expression")
    return causes


def _expression(expression: str, path: str) -> list[Cause]:
    try:
        cost = compile_selector(expression, is_new=True).max_cost
    except CompileError as error:
        return [errors.invalid_value(path, expression, str(error))]
    if cost > MAX_COST:
        return [errors.forbidden_field(path, "too complex, exceeds cost limit")]
    return []


# ---- classes and slices


def validate_class(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    causes = _selectors(spec.get("selectors") or (), "spec.selectors")
    return causes + _too_many(spec.get("config") or (), _MOST_LISTED, "spec.config")


def validate_slice(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    devices, counters = spec.get("devices") or (), spec.get("sharedCounters") or ()
    causes = [] if spec.get("driver") else [errors.required("spec.driver")]
    causes += _pool(spec.get("pool") or {})
    causes += _node_choice(spec, "spec", ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"))
    if devices and counters:
        causes.append(errors.invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    is_complex = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    causes += _too_many(devices, _MOST_COMPLEX_DEVICES if is_complex else _MOST_DEVICES, "spec.devices")
    causes += _too_many(counters, _MOST_COUNTER_SETS, "spec.sharedCounters")
    for number, each in enumerate(counters):
        causes += _too_many(each.get("counters") or (), _MOST_COUNTERS, f"spec.sharedCounters[{number}].counters")
    names: set[str] = set()
    for number, device in enumerate(devices):
        path = f"spec.devices[{number}]"
        if device.get("name") in names:
            causes.append(errors.duplicate_value(f"{path}.name", device.get("name")))
        names.add(str(device.get("name", "")))
        causes += _device(device, path, is_chosen_by_device=bool(spec.get("perDeviceNodeSelection")))
    if old is not None and (old.get("spec") or {}).get("driver") != spec.get("driver"):
        causes.append(errors.invalid_value("spec.driver", spec.get("driver"), "field is immutable"))
    return causes


def _pool(pool: Json) -> list[Cause]:
    causes = [] if pool.get("name") else [errors.required("spec.pool.name")]
    if (pool.get("resourceSliceCount") or 0) <= 0:
        detail = "must be greater than zero"
        causes.append(errors.invalid_value("spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0), detail))
    if (pool.get("generation") or 0) < 0:
        detail = "must be greater than or equal to zero"
        causes.append(errors.invalid_value("spec.pool.generation", pool.get("generation"), detail))
    return causes


def _node_choice(given: Json, path: str, fields: Sequence[str]) -> list[Cause]:
    made = [field for field in fields if given.get(field)]
    wanted = ", ".join(f"`{field}`" for field in fields)
    if not made:
        return [errors.required(path, f"exactly one of {wanted} is required")]
    return [] if len(made) == 1 else [errors.invalid_value(path, "", f"exactly one of {wanted} is required")]


def _device(device: Json, path: str, *, is_chosen_by_device: bool) -> list[Cause]:
    causes = [] if device.get("name") else [errors.required(f"{path}.name")]
    if is_chosen_by_device:
        causes += _node_choice(device, path, ("nodeName", "nodeSelector", "allNodes"))
    attributes = device.get("attributes") or {}
    if len(attributes) + len(device.get("capacity") or {}) > _MOST_LISTED:
        causes.append(errors.too_many(path, len(attributes) + len(device.get("capacity") or {}), _MOST_LISTED))
    for name, attribute in attributes.items():
        given = [field for field in _VALUES if field in attribute]
        if len(given) != 1:
            detail = "exactly one value must be specified"
            causes.append(errors.invalid_value(f"{path}.attributes[{name}]", "", detail))
    causes += _too_many(device.get("taints") or (), _MOST_TAINTS, f"{path}.taints")
    for number, taint in enumerate(device.get("taints") or ()):
        if taint.get("effect") not in _EFFECTS:
            causes.append(errors.not_supported(f"{path}.taints[{number}].effect", taint.get("effect"), _EFFECTS))
    return causes


def _too_many(items: Iterable[object], most: int, path: str) -> list[Cause]:
    count = len(list(items))
    return [errors.too_many(path, count, most)] if count > most else []
