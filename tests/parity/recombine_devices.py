"""New cases with devices out of the golden ones: requests, constraints, tolerations, devices and allocations of several
cases put together, with numbers bent to odd values. Everything is drawn from a seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

Case = dict[str, Any]
Json = dict[str, Any]

_AMOUNTS = ["0", "1", "1Gi", "4Gi", "5Gi", "10Gi", "1500m", "7G", "24Gi", "40Gi", "80Gi", "3333333333"]
_ATTRIBUTES = [
    "gpu.example.com/model",
    "gpu.example.com/numa",
    "resource.kubernetes.io/pcieRoot",
    "gpu.example.com/none",
]
_EFFECTS = ["NoSchedule", "NoExecute", "None"]
_EXPRESSIONS = [
    'device.attributes["gpu.example.com"].model != "l4"',
    'device.attributes["gpu.example.com"].?numa.orValue(7) < 1',
    'device.capacity["gpu.example.com"].memory.sub(quantity("1Gi")).isGreaterThan(quantity("30Gi"))',
    'device.driver.startsWith("gpu") || device.driver.contains("nic")',
    'device.attributes["gpu.example.com"].exists(k, k == "healthy")',
    'has(device.attributes["gpu.example.com"].index) && device.attributes["gpu.example.com"].index in [0, 2, 4]',
    'device.attributes["gpu.example.com"].driverVersion.compareTo(semver("1.5.0")) < 0',
]


def recombine_devices(cases: list[Case], seed: int, count: int) -> Iterator[Case]:
    dice = random.Random(seed)
    pool = _Pool([case for case in cases if case["category"].startswith("dra-")])
    for number in range(count):
        yield _make(pool, dice, f"devices-{seed}-{number:05}")


class _Pool:
    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases
        claims = [o for case in cases for o in case["objects"] if o["kind"] == "ResourceClaim"]
        self.claims = claims
        self.requests = [r for claim in claims for r in claim["spec"]["devices"].get("requests", ())]
        self.devices = [
            device
            for case in cases
            for o in case["objects"]
            if o["kind"] == "ResourceSlice"
            for device in o["spec"].get("devices", ())
        ]


def _make(pool: _Pool, dice: random.Random, name: str) -> Case:
    case = copy.deepcopy(dice.choice(pool.cases))
    case["id"] = name
    case.pop("expect", None)
    objects = case["objects"]
    _bend_devices(pool, dice, objects)
    _hold_more(pool, dice, objects)
    for claim in (o for o in objects if o["kind"] == "ResourceClaim" and not o.get("status", {}).get("allocation")):
        _rearrange(pool, dice, claim)
    if dice.random() < 0.2:
        resources = case["pod"]["spec"]["containers"][0].setdefault("resources", {})
        extended = dice.choice(["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
        for part in ("requests", "limits"):
            resources.setdefault(part, {})[extended] = str(dice.choice([1, 2, 3]))
    return case


def _rearrange(pool: _Pool, dice: random.Random, claim: Json) -> None:
    devices = claim["spec"]["devices"]
    requests = devices.setdefault("requests", [])
    if dice.random() < 0.4:
        requests += copy.deepcopy(dice.sample(pool.requests, dice.choice([1, 1, 2])))
    for number, request in enumerate(requests):
        request["name"] = f"r{number}"
        for asked in [request["exactly"]] if request.get("exactly") else request["firstAvailable"]:
            _bend_request(dice, asked)
    names = [request["name"] for request in requests]
    kept = [each for each in devices.get("constraints", ()) if not each.get("requests") and dice.random() < 0.7]
    if dice.random() < 0.25:
        kind = dice.choice(["matchAttribute", "distinctAttribute"])
        constraint: Json = {kind: dice.choice(_ATTRIBUTES)}
        if dice.random() < 0.5:
            constraint["requests"] = sorted(set(dice.choices(names, k=2)))
        kept.append(constraint)
    devices["constraints"] = kept
    devices.pop("config", None)


def _bend_request(dice: random.Random, asked: Json) -> None:
    if asked.get("allocationMode") == "ExactCount" and dice.random() < 0.3:
        asked["count"] = dice.choice([1, 2, 3, 4, 7])
    if dice.random() < 0.15:
        asked.setdefault("selectors", []).append({"cel": {"expression": dice.choice(_EXPRESSIONS)}})
    if dice.random() < 0.15:
        asked["tolerations"] = [{"operator": "Exists"}]
    if dice.random() < 0.1:
        asked["capacity"] = {"requests": {"memory": dice.choice(_AMOUNTS)}}


def _bend_devices(pool: _Pool, dice: random.Random, objects: list[Json]) -> None:
    slices = [o for o in objects if o["kind"] == "ResourceSlice" and o["spec"].get("devices")]
    for published in slices:
        devices = published["spec"]["devices"]
        if dice.random() < 0.15:
            dice.shuffle(devices)
        for device in devices:
            if dice.random() < 0.1:
                device["taints"] = [
                    {"key": "odd", "effect": dice.choice(_EFFECTS), "timeAdded": "2026-01-01T00:00:00Z"}
                ]
            if dice.random() < 0.1 and "consumesCounters" not in device:
                twin = copy.deepcopy(dice.choice(pool.devices))
                device |= {part: twin[part] for part in ("attributes", "capacity") if part in twin}
            if dice.random() < 0.05:
                device["allowMultipleAllocations"] = True
        if dice.random() < 0.03:
            published["spec"]["pool"]["resourceSliceCount"] += 1
        if dice.random() < 0.03:
            devices.append(copy.deepcopy(devices[0]))
    _agree_on_counts([o for o in objects if o["kind"] == "ResourceSlice"])


def _agree_on_counts(slices: list[Json]) -> None:
    """Slices of one generation of a pool say the same: else the answer depends on which of them is read first."""
    most: dict[tuple[str, str, int], int] = {}
    for published in slices:
        pool = _pool_of(published)
        most[pool] = max(most.get(pool, 0), published["spec"]["pool"]["resourceSliceCount"])
    for published in slices:
        published["spec"]["pool"]["resourceSliceCount"] = most[_pool_of(published)]


def _pool_of(published: Json) -> tuple[str, str, int]:
    spec = published["spec"]
    return spec["driver"], spec["pool"]["name"], spec["pool"]["generation"]


def _hold_more(pool: _Pool, dice: random.Random, objects: list[Json]) -> None:
    """Devices of this cluster that other pods have, besides those of the case."""
    slices = [o for o in objects if o["kind"] == "ResourceSlice" and o["spec"].get("devices")]
    for number in range(dice.choice([0, 0, 3, 8]) if slices else 0):
        published = dice.choice(slices)["spec"]
        device = dice.choice(published["devices"])
        claim = copy.deepcopy(dice.choice(pool.claims))
        claim["metadata"] = {
            "name": f"more-{number}",
            "namespace": "default",
            "uid": f"more-claim-{number}",
            "resourceVersion": "1",
        }
        result = {"request": "r0", "driver": published["driver"], "pool": published["pool"]["name"]}
        result["device"] = device["name"]
        if device.get("allowMultipleAllocations") and device.get("capacity"):
            result["shareID"] = f"00000000-0000-4000-8000-{number:012}"
            result["consumedCapacity"] = {name: dice.choice(_AMOUNTS) for name in device["capacity"]}
        user = {"resource": "pods", "name": f"user-{number}", "uid": f"uid-user-{number}"}
        claim["status"] = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
        objects.append(claim)
