"""What becomes of a pod whose attempt failed: where it goes, and what people read."""

from __future__ import annotations

import asyncio

from tests.unit.loop.kit import Loop, node, pod, refusal, running

from bayplan.api.pod import PodCondition
from bayplan.queue import Place


async def test_a_rejected_pod_waits_with_its_reasons_in_event_and_condition() -> None:
    loop = Loop([node("n", cpu=1)])
    async with running(loop):
        loop.put(pod("p", cpu="2"))
        await loop.settle(1)
        assert loop.queue.place_of("default/p") is Place.UNSCHEDULABLE
        condition = loop.transport.patches("p")[0]["conditions"][0]
        event = loop.transport.events("FailedScheduling")[0]

    assert condition["type"] == "PodScheduled"
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert event["note"] == condition["message"]
    assert (event["type"], event["action"]) == ("Warning", "Scheduling")


async def test_the_same_failure_twice_is_written_once() -> None:
    loop = Loop([node("n", cpu=1)])
    async with running(loop):
        loop.put(pod("p", cpu="2"))
        await loop.settle()
        message = loop.transport.patches("p")[0]["conditions"][0]["message"]
        known = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
        loop.change("p", status_conditions=[known])
        loop.queue.activate([loop.queue.get("default/p").info])
        await loop.settle()
        assert loop.queue.get("default/p").attempts == 2

    assert len(loop.transport.patches("p")) == 1


async def test_a_pod_that_was_bound_or_deleted_in_the_meantime_does_not_come_back() -> None:
    loop = Loop([node("n", cpu=2)])
    loop.transport.hold = asyncio.Event()
    loop.transport.answer = lambda call: refusal(409, "Conflict") if call.path.endswith("/binding") else None
    async with running(loop):
        loop.put(pod("elsewhere", cpu="1"), pod("gone", cpu="1"))
        await loop.settle()
        loop.change("elsewhere", spec_node_name="n")
        loop.drop(loop.told("gone"))
        loop.transport.hold.set()
        await loop.settle(3)
        assert loop.queue.sizes == (0, 0, 0, 0, 0)

    assert [info.name for info in loop.live.cache.pods()] == ["elsewhere"]


async def test_a_successor_of_the_same_name_is_not_mistaken_for_the_pod_that_failed() -> None:
    loop = Loop([node("n", cpu=1)])
    loop.transport.hold = asyncio.Event()
    loop.transport.answer = lambda call: (
        refusal(409, "Conflict") if call.path.endswith("/binding") and call.body["metadata"]["uid"] == "old" else None
    )
    async with running(loop):
        loop.put(pod("p", cpu="1", uid="old"))
        await loop.settle()
        loop.put(pod("p", cpu="1", uid="new"))
        loop.transport.hold.set()
        await loop.settle(3)
        assert loop.live.cache.is_assumed("new")

    assert loop.transport.patches("p") == []


async def test_a_pod_that_changes_while_it_is_tried_comes_back_in_its_new_version() -> None:
    loop = Loop([node("n", cpu=1)])
    loop.transport.hold = asyncio.Event()
    loop.transport.answer = lambda call: refusal(409, "Conflict") if call.path.endswith("/binding") else None
    async with running(loop):
        loop.put(pod("p", cpu="1"))
        await loop.settle()
        loop.change("p", metadata_labels={"version": "2"})
        loop.transport.hold.set()
        await loop.settle(0.1)
        assert loop.queue.get("default/p").info.labels == {"version": "2"}
