"""The real kube-scheduler and ours on the same API server, claim by claim: it allocates the devices that we would.

Pods come one at a time, with claims of several kinds. Before each, the whole cluster is read back from the API; then
kube-scheduler places the pod or says why it cannot, and what it wrote is compared with what we would allocate there.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.config.loading import default_config
from bayplan.config.profiles import resolve_profiles
from bayplan.plugins.intree import default_registry
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.claim_controller import CLAIMS
from tests.e2e.clusters import Cluster
from tests.e2e.device_objects import API, DRIVER, device_class
from tests.e2e.objects import JsonObject, node, pod
from tests.e2e.test_same_decisions import EVERY_NODE, outcome, read_cluster

NODES, PODS = 6, 30


def published(dice: random.Random, name: str) -> list[JsonObject]:
    """Whole GPUs of two models on two roots, some tainted; partitions of one more GPU; a device that can be shared."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 2}
    devices: list[JsonObject] = []
    for number in range(4):
        attributes = {"model": {"string": dice.choice(["a", "b"])}, "root": {"string": f"r{number % 2}"}}
        taints = [{"key": "worn", "effect": "NoSchedule"}] if dice.random() < 0.15 else []
        devices.append({"name": f"gpu-{number}", "attributes": attributes, "taints": taints})
    for number in range(3):
        takes = [{"counterSet": "whole", "counters": {"memory": {"value": f"{dice.choice([10, 20])}Gi"}}}]
        devices.append({"name": f"part-{number}", "attributes": {"part": {"bool": True}}, "consumesCounters": takes})
    share = {"memory": {"value": "40Gi", "requestPolicy": {"default": "10Gi", "validValues": ["10Gi", "20Gi"]}}}
    devices.append({"name": "shared", "allowMultipleAllocations": True, "capacity": share})
    counters = [{"name": "whole", "counters": {"memory": {"value": "40Gi"}}}]
    base = {"driver": DRIVER, "nodeName": name, "pool": pool}
    return [
        {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{name}-{part}"}, "spec": base | more}
        for part, more in (("devices", {"devices": devices}), ("counters", {"sharedCounters": counters}))
    ]


def _asked(expression: str, **more: Any) -> JsonObject:
    return {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}], **more}


def random_claim(dice: random.Random) -> JsonObject:
    """The devices of a claim's spec."""
    whole = f'has(device.attributes["{DRIVER}"].model)'
    model = f'{whole} && device.attributes["{DRIVER}"].model == "{dice.choice("ab")}"'
    kinds: list[JsonObject] = [
        {"requests": [{"name": "r", "exactly": _asked(model, count=dice.choice([1, 1, 2]))}]},
        {
            "requests": [{"name": "r", "exactly": _asked(whole)}, {"name": "s", "exactly": _asked(whole)}],
            "constraints": [{"requests": ["r", "s"], "matchAttribute": f"{DRIVER}/root"}],
        },
        {"requests": [{"name": "r", "exactly": _asked(f'has(device.attributes["{DRIVER}"].part)')}]},
        {
            "requests": [
                {
                    "name": "r",
                    "firstAvailable": [{"name": "two", **_asked(model, count=2)}, {"name": "one", **_asked(whole)}],
                }
            ]
        },
        {
            "requests": [
                {
                    "name": "r",
                    "exactly": _asked("device.allowMultipleAllocations", capacity={"requests": {"memory": "15Gi"}}),
                }
            ]
        },
    ]
    return dice.choice(kinds)


def allocated_by_us(objects: list[KubeObject], waiting: Pod, where: str) -> tuple[JsonObject, str]:
    """By claim, what we would allocate on a node; or why nothing."""
    registry = default_registry()
    scheduler = OfflineScheduler(resolve_profiles(default_config(), registry), registry, objects, always_score=True)
    info = scheduler.info(waiting)
    decision = scheduler.decide(info, explains=True)
    if decision.scores is None or not where:
        return {}, decision.message
    plugin = scheduler.framework(info.scheduler_name).plugins["DynamicResources"]
    found = scheduler.cache.cluster.node(where)
    assert found is not None
    granted: JsonObject = plugin.grants(decision.state, info, found).get("allocations", {})
    return {key: entry["allocation"] for key, entry in granted.items()}, ""


async def allocated_by_them(api: ApiSession, name: str) -> JsonObject:
    claim = await api.call("GET", f"{CLAIMS}/{name}")
    found: JsonObject = dict(claim["status"]["allocation"])
    found.pop("allocationTimestamp", None)
    for each in found["devices"].get("results", ()):
        each.pop("shareID", None)
    return found


@pytest.mark.usefixtures("programs")
async def test_kube_scheduler_allocates_the_devices_that_we_would(cluster: Cluster, tmp_path: Path) -> None:
    dice = random.Random(5)
    settings = tmp_path / "config.yaml"
    settings.write_text(EVERY_NODE)
    differences, placed = [], 0
    async with api_session(cluster.kubeconfig) as api:
        names = [f"n{number}" for number in range(NODES)]
        slices = [each for name in names for each in published(dice, name)]
        await api.create(device_class(), *map(node, names), *slices)
        theirs = await asyncio.to_thread(cluster.start_kube_scheduler, settings)
        try:
            for number in range(PODS):
                name = f"c{number}"
                spec = {"devices": random_claim(dice)}
                body = {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}
                await api.create(body)
                before = await read_cluster(api)
                asking = pod(f"p{number}", cpu="10m", resourceClaims=[{"name": "gpu", "resourceClaimName": name}])
                await api.create(asking)
                where, why = await outcome(api, f"p{number}")
                waiting = msgspec.convert(await api.pod(f"p{number}"), Pod)
                waiting.spec.node_name = ""
                ours, reason = allocated_by_us(before, waiting, where)
                expected = {f"default/{name}": await allocated_by_them(api, name)} if where else {}
                if ours != expected or why != reason:
                    differences.append(f"{spec}\n  theirs {expected}{why}\n  ours {ours}{reason}")
                placed += bool(where)
                if not where:
                    await api.delete_pods(f"p{number}")
        finally:
            await asyncio.to_thread(theirs.stop)

    assert not differences, "\n".join(differences)
    assert placed >= 15
