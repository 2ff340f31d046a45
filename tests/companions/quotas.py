"""Scenarios of CapacityScheduling: what is lent comes back, and nobody loses what is guaranteed."""

from __future__ import annotations

import json

from bayplan.framework.resources import resource_info
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from tests.companions.world import World
from tests.e2e.objects import JsonObject, node, pod

CAPACITY = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
profiles:
- plugins:
    multiPoint:
      enabled: [{name: CapacityScheduling}]
    postFilter:
      enabled: [{name: CapacityScheduling}]
      disabled: [{name: "*"}]
"""
GUARANTEED = 4


async def _namespace(world: World, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await world.api.call("POST", "/api/v1/namespaces", body, allow=[409])


def _pods(namespace: str, count: int) -> list[JsonObject]:
    return [pod(f"{namespace}-{i}", cpu="1") for i in range(count)]


async def _counts(world: World) -> dict[str, int]:
    keys = list(await world.bound())
    return {name: sum(key.startswith(f"{name}/") for key in keys) for name in ("lender", "borrower", "bystander")}


async def set_up(world: World) -> None:
    """Three namespaces with a quota each, and room for what they guarantee."""
    await world.install(ElasticQuota)
    for name in ("lender", "borrower", "bystander"):
        await _namespace(world, name)
        await world.put(ElasticQuota, "quota", {"spec": {"min": {"cpu": GUARANTEED}}}, namespace=name)
    await world.api.create(*(node(f"n{i}", cpu="4") for i in range(3)))


async def lend(world: World, *, wanted: int = 10) -> None:
    """The borrower takes what the lender leaves idle."""
    await world.api.create(*_pods("bystander", GUARANTEED), namespace="bystander")
    await world.until_bound(GUARANTEED)
    await world.api.create(*_pods("borrower", wanted), namespace="borrower")
    await world.until_bound(3 * GUARANTEED)
    assert await _counts(world) == {"lender": 0, "borrower": 8, "bystander": 4}


async def ask_back(world: World) -> None:
    await world.api.create(*_pods("lender", GUARANTEED), namespace="lender")


async def see_given_back(world: World, *, seconds: float = 60.0) -> None:
    async def lender_is_whole() -> bool:
        counts = await _counts(world)
        assert counts["bystander"] == GUARANTEED, counts
        assert counts["borrower"] >= GUARANTEED, counts
        return counts["lender"] == GUARANTEED

    await world.until(lender_is_whole, what="the lender has its own back", seconds=seconds)
    await world.wait(3)
    assert await _counts(world) == {"lender": 4, "borrower": 4, "bystander": 4}


async def borrowed_quota_is_reclaimed(world: World) -> None:
    """The borrower takes what the lender leaves idle; when the lender comes, the borrower goes back to its min and no
    further, and a third namespace within its min is left alone."""
    await set_up(world)
    async with world.scheduling(CAPACITY):
        await lend(world)
        await ask_back(world)
        await see_given_back(world)


async def what_is_no_quantity_is_refused(world: World) -> None:
    """By the API server, which knows the definition, in every notation but those of Kubernetes."""
    await world.install(ElasticQuota)
    info = resource_info(ElasticQuota)
    for number, (amount, status) in enumerate([("banana", 422), ("1.5", 201), ("2Gi", 201), (3, 201), ("-", 422)]):
        body = {
            "apiVersion": info.api_version,
            "kind": info.kind,
            "metadata": {"name": f"q{number}"},
            "spec": {"min": {"cpu": amount}},
        }
        answer = await world.transport.request("POST", world.path_of(ElasticQuota), body=json.dumps(body).encode())
        assert answer.status == status, (amount, answer.body)
