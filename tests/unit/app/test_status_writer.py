"""Conditions of pods that could not be scheduled: the newest wins, and what changes nothing is not written."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from tests.unit.app.answering import Answering, answer

from bayplan.api.pod import Pod, PodCondition
from bayplan.app.status_writer import StatusWriter
from bayplan.client.writer import Writer
from bayplan.observe.clock import VirtualClock
from bayplan.testing.build import pod

OK = answer(200, {})


class Reporting(StatusWriter):
    """Knows the pods of its reports as the watch last brought them."""

    def __init__(self, writer: Writer, clock: VirtualClock) -> None:
        super().__init__(writer, clock, lambda namespace, name: self.watched.get(f"{namespace}/{name}"))
        self.watched: dict[str, Pod] = {}


@contextlib.asynccontextmanager
async def writing(clock: VirtualClock, transport: Answering) -> AsyncIterator[Reporting]:
    writer = Reporting(Writer(transport, clock=clock, draw=lambda: 0.5), clock)
    task = asyncio.create_task(writer.run())
    try:
        yield writer
    finally:
        await clock.run_for(10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def written(transport: Answering) -> list[dict[str, Any]]:
    return [msgspec.json.decode(body)["status"] for _, _, body in transport.calls if body]


def report(writer: Reporting, about: Pod, message: str = "no room", nominated: str | None = None) -> None:
    writer.watched[about.key] = about
    writer.report(about, reason="Unschedulable", message=message, nominated_node_name=nominated)


async def test_a_condition_carries_reason_message_time_and_generation() -> None:
    clock, transport = VirtualClock(), Answering(OK)
    waiting = pod("p")
    waiting.metadata.generation = 3
    async with writing(clock, transport) as writer:
        report(writer, waiting, nominated="n")

    assert written(transport) == [
        {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "no room",
                    "lastTransitionTime": "2023-11-14T22:13:20Z",
                    "observedGeneration": 3,
                }
            ],
            "nominatedNodeName": "n",
        }
    ]


async def test_what_the_api_server_has_already_is_not_written() -> None:
    clock, transport = VirtualClock(), Answering()
    waiting = pod("p", nominated="n")
    known = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
    waiting.status.conditions = [known]
    async with writing(clock, transport) as writer:
        report(writer, waiting, nominated="n")
        report(writer, waiting)

    assert transport.calls == []


async def test_a_newer_outcome_takes_the_place_of_one_that_waits_and_keeps_its_nomination() -> None:
    clock, transport = VirtualClock(), Answering(OK)
    waiting = pod("p")
    async with writing(clock, transport) as writer:
        report(writer, waiting, "first", nominated="n")
        report(writer, waiting, "second")
        assert len(writer) == 1

    assert [(c["conditions"][0]["message"], c["nominatedNodeName"]) for c in written(transport)] == [("second", "n")]


async def test_a_nomination_is_not_passed_on_to_another_pod_of_the_same_name() -> None:
    clock, transport = VirtualClock(), Answering(OK)
    async with writing(clock, transport) as writer:
        report(writer, pod("p", uid="first"), nominated="n")
        report(writer, pod("p", uid="second"))

    assert [(c["conditions"][0]["message"], c.get("nominatedNodeName")) for c in written(transport)] == [
        ("no room", None)
    ]


async def test_a_nomination_is_cleared_with_null() -> None:
    clock, transport = VirtualClock(), Answering(OK)
    async with writing(clock, transport) as writer:
        report(writer, pod("p", nominated="n"), nominated="")

    assert written(transport)[0]["nominatedNodeName"] is None


async def test_the_time_of_a_condition_that_stays_false_is_kept() -> None:
    clock, transport = VirtualClock(), Answering(OK)
    waiting = pod("p")
    before = "2020-01-01T00:00:00Z"
    known = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="old")
    known.last_transition_time = before
    waiting.status.conditions = [known]
    async with writing(clock, transport) as writer:
        report(writer, waiting)

    assert written(transport)[0]["conditions"][0]["lastTransitionTime"] == before


async def test_a_failure_of_one_write_does_not_stop_the_others() -> None:
    clock = VirtualClock()
    transport = Answering(answer(404, {}), answer(422, {}), OK)
    async with writing(clock, transport) as writer:
        for name in ("gone", "refused", "fine"):
            report(writer, pod(name))
        await clock.run_for(1)
        assert len(writer) == 0

    assert len(transport.calls) == 3


def versioned(version: str, **fields: Any) -> Pod:
    made = pod("p", uid="u-1", **fields)
    made.metadata.resource_version = version
    return made


async def test_a_condition_is_written_onto_the_version_that_was_seen_unassigned() -> None:
    clock, transport = VirtualClock(), Answering(OK)
    async with writing(clock, transport) as writer:
        report(writer, versioned("7"))

    assert [msgspec.json.decode(body or b"")["metadata"] for _, _, body in transport.calls] == [
        {"uid": "u-1", "resourceVersion": "7"}
    ]


async def test_a_pod_that_was_bound_or_replaced_while_the_report_waited_gets_none() -> None:
    clock, transport = VirtualClock(), Answering()
    async with writing(clock, transport) as writer:
        report(writer, versioned("7"))
        writer.watched["default/p"] = versioned("8", node="n")
        await clock.run_for(1)
        report(writer, versioned("9"))
        writer.watched["default/p"] = pod("p", uid="u-2")

    assert transport.calls == []


async def test_after_a_conflict_the_pod_is_read_and_a_bound_one_left_alone() -> None:
    bound = {"metadata": {"name": "p", "namespace": "default", "uid": "u-1"}, "spec": {"nodeName": "n"}}
    clock, transport = VirtualClock(), Answering(answer(409, {}), answer(200, bound))
    async with writing(clock, transport) as writer:
        report(writer, versioned("7"))

    assert [method for method, _, _ in transport.calls] == ["PATCH", "GET"]


async def test_after_a_conflict_a_pod_that_still_waits_gets_its_condition() -> None:
    annotated = {"metadata": {"name": "p", "namespace": "default", "uid": "u-1", "resourceVersion": "8"}}
    clock, transport = VirtualClock(), Answering(answer(409, {}), answer(200, annotated), OK)
    async with writing(clock, transport) as writer:
        report(writer, versioned("7"))

    assert [method for method, _, _ in transport.calls] == ["PATCH", "GET", "PATCH"]
    assert msgspec.json.decode(transport.calls[2][2] or b"")["metadata"]["resourceVersion"] == "8"
