"""Small clusters with devices, as the cases of `bayplan evaluate` have them, and what comes out of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bayplan.explain.offline.cases import evaluate_case

Json = dict[str, Any]
DRIVER = "gpu.example.com"


def device(name: str, *, capacity: Json | None = None, **fields: Any) -> Json:
    """`attributes` may hold plain values; the type of each follows from it."""
    attributes = {key: _typed(value) for key, value in fields.pop("attributes", {}).items()}
    amounts = {key: value if isinstance(value, dict) else {"value": value} for key, value in (capacity or {}).items()}
    return {"name": name, "attributes": attributes, "capacity": amounts, **fields}


def _typed(value: Any) -> Json:
    if isinstance(value, dict):
        return value
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
    return {kind: value}


def slice_of(
    *devices: Json,
    pool: str = "pool",
    name: str = "",
    node: str | None = "n",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> Json:
    where = {"nodeName": node} if node and not spec.keys() & {"allNodes", "nodeSelector"} else {}
    body = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        **where,
        **({"devices": list(devices)} if devices else {}),
        **spec,
    }
    return _object("ResourceSlice", name or f"{pool}-{driver}", body)


def counters(name: str, **values: str) -> Json:
    return {"name": name, "counters": {key.replace("_", "-"): {"value": value} for key, value in values.items()}}


def takes(counter_set: str, **values: str) -> Json:
    return {
        "counterSet": counter_set,
        "counters": {key.replace("_", "-"): {"value": value} for key, value in values.items()},
    }


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> Json:
    return _object("DeviceClass", name, {"selectors": _selectors(expressions), **spec})


def request(name: str = "r", *expressions: str, of: str = "gpu", count: int = 1, **fields: Any) -> Json:
    return {"name": name, "exactly": _asked(expressions, of, count, fields)}


def alternative(name: str, *expressions: str, of: str = "gpu", count: int = 1, **fields: Any) -> Json:
    return {"name": name, **_asked(expressions, of, count, fields)}


def first_of(name: str, *alternatives: Json) -> Json:
    return {"name": name, "firstAvailable": list(alternatives)}


def every(name: str = "r", *expressions: str, of: str = "gpu", **fields: Any) -> Json:
    return {"name": name, "exactly": _asked(expressions, of, 0, {"allocationMode": "All", **fields})}


def _asked(expressions: Sequence[str], of: str, count: int, fields: Json) -> Json:
    mode = {"allocationMode": "ExactCount", "count": count} if count else {}
    return {"deviceClassName": of, "selectors": _selectors(expressions), **mode, **fields}


def _selectors(expressions: Iterable[str]) -> list[Json]:
    return [{"cel": {"expression": each}} for each in expressions]


def claim(name: str, *requests: Json, status: Json | None = None, metadata: Json | None = None, **devices: Any) -> Json:
    made = _object("ResourceClaim", name, {"devices": {"requests": list(requests), **devices}}, namespace="default")
    made["metadata"] |= metadata or {}
    return made | ({"status": status} if status else {})


def allocated(*results: Json, node: str | None = "n", users: Sequence[str] = (), **more: Any) -> Json:
    """The status of a claim that has devices already."""
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    selector = {"nodeSelector": {"nodeSelectorTerms": [pin]}} if node else {}
    reserved = [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users]
    return {"allocation": {"devices": {"results": list(results)}, **selector}, "reservedFor": reserved, **more}


def result(name: str, *, pool: str = "pool", driver: str = DRIVER, request: str = "r", **more: Any) -> Json:
    return {"request": request, "driver": driver, "pool": pool, "device": name, **more}


def node(name: str = "n", *, labels: Json | None = None) -> Json:
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "20"}
    made = _object("Node", name, {}, api_version="v1")
    made["metadata"]["labels"] = labels or {}
    return made | {"status": {"allocatable": amounts, "capacity": amounts}}


def pod(*claims: str, requests: Json | None = None, **spec: Any) -> Json:
    body = {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": requests or {}}}],
        "resourceClaims": [{"name": f"pc{n}", "resourceClaimName": each} for n, each in enumerate(claims)],
        **spec,
    }
    return _object("Pod", "target", body, namespace="default", api_version="v1")


def _object(kind: str, name: str, spec: Json, *, namespace: str = "", api_version: str = "resource.k8s.io/v1") -> Json:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def evaluate(*objects: Json, target: Json | None = None) -> Json:
    """The result for a pod with all claims among the objects that have no allocation, on node `n` unless others are
    given."""
    kinds = {each["kind"] for each in objects}
    extra = [] if "Node" in kinds else [node()]
    if "DeviceClass" not in kinds:
        extra.append(device_class())
    names = [each["metadata"]["name"] for each in objects if each["kind"] == "ResourceClaim" and "status" not in each]
    outcome = evaluate_case({"objects": [*objects, *extra], "pod": target or pod(*names)})
    assert isinstance(outcome, dict)
    return outcome


def devices_of(outcome: Json, name: str = "c") -> list[str]:
    """`request: pool/device` of a claim, in the order of the search; empty when it was not allocated."""
    found = outcome.get("allocations", {}).get(f"default/{name}", {}).get("allocation", {}).get("devices", {})
    return [f"{each['request']}: {each['pool']}/{each['device']}" for each in found.get("results", ())]


def refusal(outcome: Json, name: str = "n") -> str:
    """Why a node was refused, or why all were."""
    return " ".join(outcome["nodes"].get(name, {}).get("reasons", ())) or str(outcome.get("message", ""))


def summary(*objects: Json) -> str:
    """What the claims without an allocation got, in one line: `a: pool/d0, b: pool/d1`; else why nothing."""
    outcome = evaluate(*objects)
    names = [each["metadata"]["name"] for each in objects if each["kind"] == "ResourceClaim" and "status" not in each]
    found = [line for name in names for line in devices_of(outcome, name)]
    return ", ".join(found) or refusal(outcome)


def held(*names: str, pool: str = "pool", **more: Any) -> Json:
    """A claim of another pod that has these devices."""
    results = [result(name, pool=pool, **more) for name in names]
    return claim(f"held-{'-'.join(names)}", request(), status=allocated(*results, users=["other"]))
