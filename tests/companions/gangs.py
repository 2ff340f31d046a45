"""Scenarios of Coscheduling: groups that are placed whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup
from tests.companions.world import World, configuration
from tests.e2e.objects import JsonObject, node, pod

GANGS = configuration("Coscheduling", disabled=["PrioritySort"])
HASTY = configuration(
    "Coscheduling",
    disabled=["PrioritySort"],
    args={"Coscheduling": {"permitWaitingTimeSeconds": 3, "podGroupRejectPercentage": 0}},
)

PATIENT = configuration(
    "Coscheduling", disabled=["PrioritySort"], args={"Coscheduling": {"podGroupRejectPercentage": 100}}
)


def places(count: int) -> list[JsonObject]:
    """Nodes with room for one pod each."""
    return [node(f"n{i:02}", cpu="1") for i in range(count)]


def member(group: str, name: str) -> JsonObject:
    return pod(name, cpu="1", labels={POD_GROUP_LABEL: group})


async def gang(world: World, name: str, size: int, *, pods: Iterable[str] | None = None, minimum: int = 0) -> None:
    """A group and its pods."""
    await world.put(PodGroup, name, {"spec": {"minMember": minimum or size}})
    names = [f"{name}-{i}" for i in range(size)] if pods is None else pods
    await world.api.create(*(member(name, each) for each in names))


async def sixteen_with_room_for_fifteen(world: World) -> None:
    """Nobody is bound, and anybody can read why; one more node, and all are."""
    await world.install(PodGroup)
    await world.api.create(*places(15))
    async with world.scheduling(HASTY):
        await gang(world, "sixteen", 16)
        await world.until(lambda: _says(world, "Insufficient cpu"), what="somebody says why")
        await world.wait(8)
        assert await world.bound() == {}
        messages = [await world.message(f"default/sixteen-{i}") for i in range(16)]
        assert all(messages), messages
        assert any("PodGroup default/sixteen gets rejected due to Pod" in m or "failed recently" in m for m in messages)
        await world.api.create(node("n15", cpu="1"))
        await world.until_bound(16)


async def _says(world: World, text: str) -> bool:
    return any([text in await world.message(key) for key in await world.pods()])


async def sixteen_with_room_for_sixteen(world: World) -> None:
    await world.install(PodGroup)
    await world.api.create(*places(16))
    async with world.scheduling(GANGS):
        await gang(world, "sixteen", 16)
        await world.until_bound(16)


async def two_gangs_for_ten_places(world: World, *, seed: int) -> None:
    """Two groups of eight, created in any order, members deleted and made anew at any time: one is whole, then the
    other, and at no time has each of them some of its pods bound and not all."""
    rng = Random(seed)
    await world.install(PodGroup)
    await world.api.create(*places(10))
    async with world.scheduling(GANGS, seed=seed):
        for name in ("red", "blue"):
            await world.put(PodGroup, name, {"spec": {"minMember": 8}})
        members = [(group, f"{rng.randrange(1000):03}-{group}-{i}") for group in ("red", "blue") for i in range(8)]
        rng.shuffle(members)
        await _create_with_losses(world, members, rng)
        first = await _one_is_whole(world)
        assert first in ("red", "blue")
        await world.delete(*[key for key in await world.pods() if f"-{first}-" in key])
        await world.until_bound(8)
        assert {key.split("-")[1] for key in await world.bound()} == {"red", "blue"} - {first}


async def _create_with_losses(world: World, members: list[tuple[str, str]], rng: Random) -> None:
    """Create the pods a few at a time; now and then one that has no node is deleted and made anew."""
    while members:
        batch = [members.pop() for _ in range(min(len(members), rng.randint(1, 5)))]
        await world.api.create(*(member(group, name) for group, name in batch))
        await world.wait(rng.choice((0.0, 0.01, 0.3)))
        await _check_halves(world)
        waiting = [key for key, each in (await world.pods()).items() if not each["spec"].get("nodeName")]
        if waiting and rng.random() < 0.4:
            key = rng.choice(waiting)
            await world.delete(key)
            name = key.removeprefix("default/")
            members.append((name.split("-")[1], name))


async def _one_is_whole(world: World) -> str:
    async def whole() -> bool:
        await _check_halves(world)
        return len(await world.bound()) >= 8

    await world.until(whole, what="one group whole")
    groups = [key.split("-")[1] for key in await world.bound()]
    return groups[0]


async def _check_halves(world: World) -> None:
    groups = [key.split("-")[1] for key in await world.bound()]
    counts = {group: groups.count(group) for group in ("red", "blue")}
    assert min(counts.values()) == 0, f"both groups have pods bound: {counts}"


async def a_finished_member_does_not_count(world: World) -> None:
    """A group of three of which one pod is done needs another third before anybody else is bound."""
    await world.install(PodGroup)
    await world.api.create(*places(4))
    async with world.scheduling(GANGS):
        await gang(world, "three", 3, pods=["done", "first"])
        await world.finish("default/done")
        await world.api.create(member("three", "second"))
        await world.until(lambda: _says(world, "cannot find enough sibling pods"), what="the two others wait")
        assert await world.bound() == {}
        await world.api.create(member("three", "third"))
        await world.until_bound(3)


BACKED_OFF = configuration(
    "Coscheduling",
    disabled=["PrioritySort"],
    args={"Coscheduling": {"permitWaitingTimeSeconds": 20, "podGroupBackoffSeconds": 3, "podGroupRejectPercentage": 0}},
)


async def a_group_that_failed_lets_another_go_first(world: World) -> None:
    """A group of three on two places fails and is left alone for a while; a smaller one that came later is placed, and
    the first one follows, back-off over, when there is room."""
    await world.install(PodGroup)
    await world.api.create(*places(2))
    async with world.scheduling(BACKED_OFF):
        await gang(world, "large", 3)
        await world.until(lambda: _says(world, "podGroup default/large failed recently"), what="it fails")
        await gang(world, "small", 2)
        await world.until_bound(2)
        assert {key.split("/")[1].split("-")[0] for key in await world.bound()} == {"small"}
        await world.api.create(*(node(f"more{i}", cpu="1") for i in range(3)))
        await world.until_bound(5)


async def killed_with_half_a_gang_waiting(world: World) -> None:
    """A scheduler that dies while pods wait at Permit leaves nothing bound, neither then nor after a restart."""
    await world.install(PodGroup)
    await world.api.create(*places(15))
    await world.put(PodGroup, "half", {"spec": {"minMember": 16}})
    last = member("half", "half-15")
    last["spec"]["nodeSelector"] = {"gpu": "yes"}
    live, task = await world.start_scheduler(PATIENT)
    await world.api.create(last, *(member("half", f"half-{i}") for i in range(15)))

    async def most_wait() -> bool:
        return len(live.held_pods) == 15

    await world.until(most_wait, what="fifteen pods wait at Permit")
    await world.kill(task)
    assert await world.bound() == {}
    async with world.scheduling(PATIENT):
        await world.wait(5)
        assert await world.bound() == {}
        await world.api.create(node("gpu", cpu="1", labels={"gpu": "yes"}))
        await world.until_bound(16)
