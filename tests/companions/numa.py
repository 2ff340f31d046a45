"""A scenario of NodeResourceTopologyMatch: the sum fits, the cells do not."""

from __future__ import annotations

from typing import Any

from bayplan.plugins.community.node_resource_topology import NodeResourceTopology
from tests.companions.world import World, configuration
from tests.e2e.objects import JsonObject, node, pod

NUMA = configuration(
    "NodeResourceTopologyMatch",
    args={"NodeResourceTopologyMatch": {"scoringStrategy": {"type": "MostAllocated"}, "cacheResyncPeriodSeconds": 5}},
)


def _zone(number: int, cpu: int) -> JsonObject:
    amounts = {"cpu": str(cpu), "memory": "8Gi"}
    resources = [{"name": n, "capacity": a, "allocatable": a, "available": a} for n, a in amounts.items()]
    return {"name": f"node-{number}", "type": "Node", "resources": resources}


def topology(*cpus: int) -> JsonObject:
    attributes = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "container"}
    return {
        "attributes": [{"name": name, "value": value} for name, value in attributes.items()],
        "zones": [_zone(number, cpu) for number, cpu in enumerate(cpus)],
    }


def bound_pod(name: str, cpu: str) -> JsonObject:
    made: Any = pod(name, cpu=cpu, memory="1Gi")
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = dict(resources["requests"])
    return dict(made)


async def a_fragmented_node_is_avoided(world: World) -> None:
    """Two nodes of eight cpus; one has them in two cells of four. A pod of six goes to the other, and one more of six
    waits, saying why, until a cell is large enough."""
    await world.install(NodeResourceTopology)
    await world.api.create(node("split", cpu="8"), node("whole", cpu="8"))
    await world.put(NodeResourceTopology, "split", topology(4, 4))
    await world.put(NodeResourceTopology, "whole", topology(8))
    async with world.scheduling(NUMA):
        await world.api.create(bound_pod("first", "6"))
        await world.until_bound(1)
        assert await world.bound() == {"default/first": "whole"}
        await world.api.create(bound_pod("second", "6"))

        async def says_why() -> bool:
            return "cannot align container" in await world.message("default/second")

        await world.until(says_why, what="the pod says why it waits")
        assert len(await world.bound()) == 1
        path = f"{world.path_of(NodeResourceTopology)}/split"
        attributes = [{"name": "topologyManagerPolicy", "value": "none"}]
        await world.api.call("PATCH", path, {"attributes": attributes})
        await world.until_bound(2)
        assert (await world.bound())["default/second"] == "split"
