"""Waiting for the copy of the cluster: for ever for what is needed, for a while for what may not be read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tests.unit.app.answering import Answering, answer

from bayplan.api.kinds import KINDS, kind_of
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.storage import CSINode
from bayplan.app.watching import Watching, served_kinds
from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock

FORBIDDEN = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "you may not list this"}


class ByPath(Answering):
    """Lists are empty, except for paths that are refused."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = set(refused)

    async def request(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **_: object) -> Response:  # type: ignore[override]
        if path in self.refused:
            return answer(403, FORBIDDEN)
        return answer(200, {"metadata": {"resourceVersion": "1"}, "items": []})


def watching(transport: Answering, clock: VirtualClock, *kinds: type) -> Watching:
    return Watching(
        transport, [kind_of(k) for k in kinds], lambda kind: lambda old, new: None, clock=clock, draw=lambda: 0.5
    )


async def outcome(made: Watching, clock: VirtualClock, seconds: float) -> list[str] | None:
    """What was left out, or None if it still waits after that time."""
    running = asyncio.create_task(made.run())
    waiting = asyncio.create_task(made.wait_until_synced())
    await clock.run_for(seconds)
    result = waiting.result() if waiting.done() else None
    for task in (running, waiting):
        task.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
    return result


async def test_everything_that_may_be_read_is_waited_for() -> None:
    clock = VirtualClock()
    made = watching(ByPath(), clock, Node, Pod, CSINode)

    assert await outcome(made, clock, 1) == []
    assert made.is_synced


async def test_a_kind_that_may_not_be_read_is_left_out_after_a_while() -> None:
    clock = VirtualClock()
    made = watching(ByPath(kind_of(CSINode).path), clock, Node, Pod, CSINode)

    assert await outcome(made, clock, 5) is None
    assert made.unsynced()[0].startswith("/apis/storage.k8s.io/v1/csinodes (you may not list this (403 Forbidden)")
    assert await outcome(made, clock, 15) == ["/apis/storage.k8s.io/v1/csinodes"]
    assert made.is_synced


async def test_a_refusal_that_ends_in_time_leaves_nothing_out() -> None:
    clock = VirtualClock()
    transport = ByPath(kind_of(CSINode).path, kind_of(Pod).path)
    made = watching(transport, clock, Node, Pod, CSINode)
    running = asyncio.create_task(made.run())
    waiting = asyncio.create_task(made.wait_until_synced())
    await clock.run_for(3)
    transport.refused.clear()
    await clock.run_for(10)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert waiting.result() == []


async def test_nodes_and_pods_are_never_done_without() -> None:
    clock = VirtualClock()
    made = watching(ByPath(kind_of(Pod).path), clock, Node, Pod)

    assert await outcome(made, clock, 120) is None


async def test_only_kinds_that_are_served_are_asked_for() -> None:
    core = answer(200, {"resources": [{"name": "pods"}, {"name": "nodes"}, {"name": "pods/status"}]})
    transport = Answering(core, *[answer(404, {})] * 20)
    kinds = await served_kinds(transport, KINDS)

    assert {kind.plural for kind in kinds} == {"pods", "nodes"}
