"""A scenario of NodeResourceTopologyMatch: the sum fits, the cells do not."""

from __future__ import annotations

from typing import Any

from bayplan.plugins.community.node_resource_topology_match.fingerprint import fingerprint, xxh64
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology
from bayplan.plugins.community.node_resource_topology_match.placement import METADATA_ATTRIBUTE, VECTOR_ATTRIBUTE
from tests.companions.world import World, configuration
from tests.e2e.objects import JsonObject, node, pod

NUMA = configuration(
    "NodeResourceTopologyMatch",
    args={"NodeResourceTopologyMatch": {"scoringStrategy": {"type": "MostAllocated"}, "cacheResyncPeriodSeconds": 5}},
)


_SCHEDULING = "scheduling.k8s.io/v1"
EVICTING = configuration(
    "NodeResourceTopologyMatch",
    args={"NodeResourceTopologyMatch": {"cacheResyncPeriodSeconds": 1, "preemptionMode": "Enabled"}},
)


def _zone(number: int, cpu: int, *, free: int | None = None, vector: str = "") -> JsonObject:
    amounts = {"cpu": (cpu, cpu if free is None else free), "memory": ("8Gi", "4Gi" if free is not None else "8Gi")}
    resources = [
        {"name": name, "capacity": all_of_it, "allocatable": all_of_it, "available": left}
        for name, (all_of_it, left) in amounts.items()
    ]
    attributes = [{"name": VECTOR_ATTRIBUTE, "value": vector}] if vector else []
    return {"name": f"node-{number}", "type": "Node", "resources": resources, "attributes": attributes}


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


def _agents_view(where: dict[str, int]) -> JsonObject:
    """Two cells of four cpus, as an agent sees them when pods of three cpus run on them: who is where, and a
    fingerprint of all of them."""
    order = sorted(where, key=lambda name: xxh64(f"default\0{name}\0main".encode()))
    vector = "".join(
        chr(0x21 + (0 if place == 0 else place + 1)) for place, name in enumerate(order) if where[name] == 1
    )
    cells = [3 * sum(cell == number for cell in where.values()) for number in (0, 1)]
    attributes = {
        "topologyManagerPolicy": "single-numa-node",
        "nodeTopologyPodsFingerprint": fingerprint(("default", name) for name in where),
        METADATA_ATTRIBUTE: f"npv0v001::ve=leb89::cc={len(where)}::nn=2::bn=0",
    }
    return {
        "attributes": [{"name": name, "value": value} for name, value in attributes.items()],
        "zones": [_zone(0, 4, free=4 - cells[0]), _zone(1, 4, free=4 - cells[1], vector=vector)],
    }


async def a_victim_makes_its_cell_fit(world: World) -> None:
    """Two pods of three cpus hold a cell of four each. A pod of four that is more important finds that sending one of
    them away is enough, and takes its cell; the other one stays, though the agent has not spoken yet."""
    await world.install(NodeResourceTopology)
    await world.api.create(node("n1", cpu="8"))
    urgency = {"apiVersion": _SCHEDULING, "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    await world.api.call("POST", f"/apis/{_SCHEDULING}/priorityclasses", urgency, allow=[409])
    running = {"one": 0, "two": 1}
    for name in running:
        made = bound_pod(name, "3")
        made["spec"]["nodeName"] = "n1"
        await world.api.create(made)
        await world.run("default/" + name)
    await world.put(NodeResourceTopology, "n1", _agents_view(running))
    async with world.scheduling(EVICTING):
        urgent = bound_pod("urgent", "4")
        urgent["spec"]["priorityClassName"] = "urgent"
        await world.api.create(urgent)

        async def is_placed() -> bool:
            return "default/urgent" in await world.bound()

        await world.until(is_placed, what="the urgent pod has a node")
        await world.wait(2)
        left = running.keys() & {key.removeprefix("default/") for key in await world.pods()}
        assert len(left) == 1, left
