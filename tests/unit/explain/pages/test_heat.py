"""How full nodes are, of any resource that one of them offers."""

from __future__ import annotations

from tests.unit.explain.stage import raw_pod, staged

from bayplan.explain.pages.heat import HeatMaps


async def test_a_map_is_of_the_resource_that_is_asked_for() -> None:
    async with staged(3) as stage:
        await stage.create(*(raw_pod(f"web-{i}", cpu="2") for i in range(3)))
        await stage.settled(bound=3)
        maps, live = HeatMaps(), stage.local.live
        cpu, pods, unknown = maps.of(live, "cpu"), maps.of(live, "pods"), maps.of(live, "example.com/none")

    assert sorted(cpu.names) == ["node-1", "node-2", "node-3"]
    assert sum(cpu.requested) == 6000 == cpu.resources["cpu"][0]
    assert sum(pods.requested) == 3 and pods.resource == "pods"
    assert unknown.resource == "cpu"
    assert sum(cpu.buckets) == 3
    assert cpu.fill == [used * 100 // there for used, there in zip(cpu.requested, cpu.allocatable, strict=True)]


async def test_new_nodes_appear_and_cordoned_ones_are_marked() -> None:
    async with staged(1) as stage:
        maps, live = HeatMaps(), stage.local.live
        before = maps.of(live, "cpu").names
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "10", "example.com/gpu": "2"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}, "spec": {"unschedulable": True}}
        await stage.create({**node, "status": {"capacity": amounts, "allocatable": amounts}})
        await stage.until(lambda: len(live.cache.cluster.nodes) == 2)
        after = maps.of(live, "example.com/gpu")

    assert before == ["node-1"]
    assert set(after.names) == {"node-1", "late"}
    assert [after.names[place] for place in after.unschedulable] == ["late"]
    assert dict(zip(after.names, after.fill, strict=True)) == {"node-1": -1, "late": 0}
    assert after.resources["example.com/gpu"] == (0, 2)
