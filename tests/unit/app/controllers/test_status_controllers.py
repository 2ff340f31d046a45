"""The controllers on the embedded cluster: status follows pods, and a replica that does not lead writes nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from tests.companions.world import World, embedded_world
from tests.e2e.objects import node, pod

from bayplan.app.controllers.status_controllers import (
    PERMISSIONS,
    WATCHES,
    ControllerOptions,
    StatusControllers,
    kinds_among,
    permissions_for,
)
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup


@contextlib.asynccontextmanager
async def controlling(world: World, **options: Any) -> AsyncIterator[None]:
    given = ControllerOptions(clock=world.clock, draw=lambda: 0.5, **options)
    task = asyncio.create_task(StatusControllers(world.connect(), given).run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def status_of(world: World, kind: type[Any], name: str) -> dict[str, Any]:
    found = await world.api.call("GET", f"{world.path_of(kind)}/{name}")
    status: dict[str, Any] = found.get("status") or {}
    return status


async def until_status(world: World, kind: type[Any], name: str, **wanted: Any) -> None:
    async def holds() -> bool:
        status = await status_of(world, kind, name)
        return all(status.get(field) == value for field, value in wanted.items())

    await world.until(holds, what=f"{name} {wanted}", seconds=30)


def members(count: int) -> list[dict[str, Any]]:
    return [pod(f"p{i}", cpu="1", labels={POD_GROUP_LABEL: "g"}) for i in range(count)]


async def bind(world: World, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}
    await world.api.call("POST", f"/api/v1/namespaces/default/pods/{name}/binding", body)


async def set_phase(world: World, name: str, phase: str) -> None:
    await world.api.call("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", {"status": {"phase": phase}})


async def test_the_phase_of_a_group_follows_its_pods() -> None:
    async with embedded_world([node("n1")]) as world:
        await world.install(PodGroup, ElasticQuota)
        await world.put(PodGroup, "g", {"spec": {"minMember": 2}})
        async with controlling(world):
            await until_status(world, PodGroup, "g", phase="Pending")
            await world.api.create(*members(2))
            await until_status(world, PodGroup, "g", phase="Scheduling")
            for name in ("p0", "p1"):
                await bind(world, name)
                await set_phase(world, name, "Running")
            await until_status(world, PodGroup, "g", phase="Running", running=2)
            for name in ("p0", "p1"):
                await set_phase(world, name, "Succeeded")
            await until_status(world, PodGroup, "g", phase="Finished", running=0, succeeded=2)


async def test_what_a_quota_has_in_use_follows_its_pods_and_is_told() -> None:
    async with embedded_world([node("n1")]) as world:
        await world.install(PodGroup, ElasticQuota)
        await world.put(ElasticQuota, "q", {"spec": {"min": {"cpu": "4"}}})
        async with controlling(world):
            await until_status(world, ElasticQuota, "q", used={"cpu": "0"})
            await world.api.create(*members(1))
            await bind(world, "p0")
            await until_status(world, ElasticQuota, "q", used={"cpu": "1"})
            await world.delete("default/p0")
            await until_status(world, ElasticQuota, "q", used={"cpu": "0"})
            await world.wait(1)
        notes = [event["note"] for event in await world.api.events(reason="Synced")]
    assert "Elastic Quota default/q synced successfully" in notes


async def test_definitions_may_come_later() -> None:
    async with embedded_world([node("n1")]) as world, controlling(world):
        await world.wait(3)
        await world.install(PodGroup, ElasticQuota)
        await world.put(PodGroup, "g", {"spec": {"minMember": 2}})
        await until_status(world, PodGroup, "g", phase="Pending")


async def test_a_replica_that_does_not_lead_writes_nothing_until_it_does() -> None:
    leads = False
    async with embedded_world([node("n1")]) as world:
        await world.install(PodGroup, ElasticQuota)
        await world.put(PodGroup, "g", {"spec": {"minMember": 2}})
        async with controlling(world, is_leader=lambda: leads):
            await world.wait(5)
            assert await status_of(world, PodGroup, "g") == {}
            leads = True
            await until_status(world, PodGroup, "g", phase="Pending")


async def test_a_group_that_waits_for_two_days_is_told_of() -> None:
    async with embedded_world([node("n1")]) as world:
        await world.install(PodGroup, ElasticQuota)
        await world.put(PodGroup, "g", {"spec": {"minMember": 2}})
        world.clock.advance(49 * 3600)  # type: ignore[attr-defined]  # the embedded world's clock is virtual
        async with controlling(world):
            await until_status(world, PodGroup, "g", phase="Pending")
            await world.api.create(*members(1))
            await world.wait(2)
        notes = [event["note"] for event in await world.api.events(reason="Timeout")]
    assert notes == ["schedule time longer than 48 hours"]


def test_the_controllers_ask_for_no_more_than_they_do() -> None:
    wanted = {(rule.group, rule.resource): rule.verbs for rule in PERMISSIONS}

    assert wanted[("scheduling.x-k8s.io", "podgroups/status")] == ("patch",)
    assert wanted[("scheduling.x-k8s.io", "elasticquotas")] == ("get", "list", "watch")
    assert ("", "nodes") not in wanted


async def test_kinds_that_were_not_asked_for_are_left_alone() -> None:
    async with embedded_world([node("n1")]) as world:
        await world.install(PodGroup, ElasticQuota)
        await world.put(PodGroup, "g", {"spec": {"minMember": 2}})
        await world.put(ElasticQuota, "q", {"spec": {"min": {"cpu": "4"}}})
        async with controlling(world, kinds=(PodGroup,)):
            await until_status(world, PodGroup, "g", phase="Pending")
            await world.wait(2)

        assert await status_of(world, ElasticQuota, "q") == {}


def test_controllers_care_for_what_the_plugins_watch_and_for_all_when_they_watch_nothing_of_theirs() -> None:
    assert kinds_among([ElasticQuota, int]) == (ElasticQuota,)
    assert kinds_among([]) == WATCHES


def test_rules_are_those_of_the_kinds() -> None:
    resources = {rule.resource for rule in permissions_for([PodGroup])}

    assert resources == {"pods", "podgroups", "podgroups/status", "events"}
