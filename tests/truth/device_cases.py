"""Generated clusters with devices: a subject that claims some, and what keeps them from it or lets it have them."""

from __future__ import annotations

import random
from typing import Any

from tests.truth.documents import Case, JsonObject, pod

__all__ = ["DEVICE_CAUSES", "DRIVER"]

DRIVER = "gpu.example.com"
_API = "resource.k8s.io/v1"
_LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'


def _device(name: str, *, model: str = "h100", memory: str = "80Gi", **more: Any) -> JsonObject:
    return {
        "name": name,
        "attributes": {"model": {"string": model}, "root": {"string": more.pop("root", "pci0")}},
        "capacity": {"memory": {"value": memory}},
        **more,
    }


def _publish(case: Case, node: str, devices: list[JsonObject], **spec: Any) -> None:
    pool = {"name": node, "generation": 1, "resourceSliceCount": spec.pop("slices", 1)}
    body = {"driver": DRIVER, "nodeName": node, "pool": pool, **spec, **({"devices": devices} if devices else {})}
    name = f"{node}-{'counters' if 'sharedCounters' in spec else 'gpu'}"
    case.objects.append({"apiVersion": _API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": body})


def _claim(name: str, request: JsonObject, **devices: Any) -> JsonObject:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **request}
    return {
        "apiVersion": _API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}], **devices}},
    }


def _subject_claims(case: Case, request: JsonObject, **devices: Any) -> None:
    """The class, a claim of the subject, and the subject."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    case.objects.append(
        {"apiVersion": _API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}
    )
    case.objects.append(_claim("wanted", request, **devices))
    case.pods.append(pod("subject", cpu="50m", resourceClaims=[{"name": "gpus", "resourceClaimName": "wanted"}]))


def _take(case: Case, node: str, *names: str, **more: Any) -> None:
    """Devices of a node that a claim of a running pod has."""
    user = f"uses-{node}"
    results = [{"request": "gpus", "driver": DRIVER, "pool": node, "device": name, **more} for name in names]
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    taken = _claim(f"taken-{node}", {"count": len(names)})
    taken["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    taken["status"] = {
        "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [pin]}},
        "reservedFor": [{"resource": "pods", "name": user, "uid": f"uid-{user}"}],
    }
    case.objects.append(taken)
    running = pod(user, cpu="50m", node=node, resourceClaims=[{"name": "gpus", "resourceClaimName": f"taken-{node}"}])
    running["metadata"]["uid"] = f"uid-{user}"
    case.pods.append(running)


def _names(case: Case) -> list[str]:
    del case.nodes[3:]
    case.pods.clear()
    return [node["metadata"]["name"] for node in case.nodes]


def _fit(chance: random.Random, case: Case) -> None:
    for node in _names(case):
        _publish(case, node, [_device(f"gpu-{n}") for n in range(2)])
    _take(case, "node-0", "gpu-0")
    _subject_claims(case, {"count": 2})


def _taken(chance: random.Random, case: Case) -> None:
    for node in _names(case)[:2]:
        _publish(case, node, [_device(f"gpu-{n}") for n in range(3)])
        _take(case, node, *chance.sample(["gpu-0", "gpu-1", "gpu-2"], chance.randint(1, 2)))
    _subject_claims(case, {"count": 3})


def _refused(chance: random.Random, case: Case) -> None:
    """Small ones, other models, tainted ones, and a pool of which a slice is missing."""
    taints = [{"key": "broken", "value": "yes", "effect": "NoSchedule"}]
    kinds = [{"memory": "16Gi"}, {"model": "l4"}, {"taints": taints}]
    for number, node in enumerate(_names(case)):
        devices = [_device(f"gpu-{n}", **kinds[(n + number) % 3]) for n in range(3)]
        _publish(case, node, devices, slices=chance.choice((1, 1, 2)) if number else 1)
    model = f'device.attributes["{DRIVER}"].model == "h100"'
    _subject_claims(case, {"selectors": [{"cel": {"expression": f"{model} && ({_LARGE})"}}]})


def _split(chance: random.Random, case: Case) -> None:
    for node in _names(case):
        _publish(case, node, [_device(f"gpu-{n}", root=f"pci{n}") for n in range(chance.randint(2, 3))])
    _subject_claims(case, {"count": 2}, constraints=[{"requests": ["gpus"], "matchAttribute": f"{DRIVER}/root"}])


def _short(chance: random.Random, case: Case) -> None:
    """Partitions of one GPU whose memory another claim has taken, or a shared device without room."""
    is_partitioned = chance.random() < 0.5
    for node in _names(case):
        if is_partitioned:
            counters = [{"name": "gpu", "counters": {"memory": {"value": "40Gi"}}}]
            takes = [{"counterSet": "gpu", "counters": {"memory": {"value": "30Gi"}}}]
            _publish(case, node, [], sharedCounters=counters, slices=2)
            _publish(case, node, [_device(f"part-{n}", consumesCounters=takes) for n in range(2)], slices=2)
            _take(case, node, "part-0")
        else:
            _publish(case, node, [_device("shared", memory="40Gi", allowMultipleAllocations=True)])
            share = {"shareID": "0000-1111-2222-3333-444444444444", "consumedCapacity": {"memory": "30Gi"}}
            _take(case, node, "shared", **share)
    wanted: JsonObject = {} if is_partitioned else {"capacity": {"requests": {"memory": "20Gi"}}}
    _subject_claims(case, wanted)


DEVICE_CAUSES = {
    "devices fit": _fit,
    "devices taken": _taken,
    "devices refused": _refused,
    "devices split": _split,
    "devices short": _short,
}
