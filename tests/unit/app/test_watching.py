"""Waiting for the copy of the cluster: for what decisions read, as long as it takes, saying so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs
from tests.unit.app.answering import Answering, answer

from bayplan.api.devices import ResourceClaim
from bayplan.api.kinds import KINDS, kind_of
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.storage import CSINode, PersistentVolume
from bayplan.api.workload import PodDisruptionBudget, PriorityClass
from bayplan.app.watching import Watching, served_kinds
from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock
from bayplan.testing.build import pod

FORBIDDEN = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "you may not list this"}


class ByPath(Answering):
    """Lists are empty, except for paths that are refused."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = set(refused)
        self.refusal = answer(403, FORBIDDEN)

    async def request(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **_: object) -> Response:  # type: ignore[override]
        if path in self.refused:
            return self.refusal
        return answer(200, {"metadata": {"resourceVersion": "1"}, "items": []})


class Silent(ByPath):
    """Lists are empty, and watches have nothing to say."""

    @asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._nothing()

    async def _nothing(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""


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


async def test_what_another_leader_wrote_is_read_again_unless_it_was_read_since() -> None:
    clock = VirtualClock()
    made = watching(ByPath(), clock, Node, Pod, ResourceClaim)
    running = asyncio.create_task(made.run())
    await clock.run_for(1)
    before = dict(_lists(made))
    await made.catch_up(-1.0)
    assert _lists(made) == before

    catching_up = asyncio.create_task(made.catch_up(clock.monotonic()))
    await clock.run_for(1)
    await catching_up
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert _lists(made) == {Node: before[Node], Pod: before[Pod] + 1, ResourceClaim: before[ResourceClaim] + 1}


async def test_what_is_read_ahead_is_not_read_twice() -> None:
    clock = VirtualClock()
    made = watching(ByPath(), clock, Node, Pod, ResourceClaim)
    running = asyncio.create_task(made.run())
    await clock.run_for(1)
    before, led_until = dict(_lists(made)), clock.monotonic()
    await clock.run_for(0.1)
    made.refresh()
    await clock.run_for(1)
    await made.catch_up(led_until)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert _lists(made) == {Node: before[Node], Pod: before[Pod] + 1, ResourceClaim: before[ResourceClaim] + 1}


@pytest.mark.parametrize(
    ("shown", "is_expected"),
    [
        (pod("p", uid="1"), True),
        (pod("p", uid="1", node="n"), False),
        (pod("p", uid="2"), False),
        (None, False),
    ],
    ids=["as it was", "bound", "another pod of its name", "gone"],
)
async def test_a_binding_is_expected_on_the_watch_unless_it_was_there_before_its_answer(
    shown: Pod | None, is_expected: bool
) -> None:
    """A watch that has nothing more to show is not taken for dead, and all pods listed again."""
    clock = VirtualClock()
    made = watching(Silent(), clock, Pod)
    running = asyncio.create_task(made.run())
    await clock.run_for(1)
    if shown is not None:
        made.reflectors[Pod].replica.keep(shown)
    made.expect_bound("default", "p", uid="1")
    await clock.run_for(20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert (made.reflectors[Pod].stats.lists > 1) == is_expected


def _lists(made: Watching) -> dict[type, int]:
    return {kind: reflector.stats.lists for kind, reflector in made.reflectors.items()}


@pytest.mark.parametrize("kind", [Node, Pod, CSINode, PersistentVolume, PodDisruptionBudget, ResourceClaim])
async def test_a_kind_that_decisions_read_is_never_done_without(kind: type) -> None:
    clock = VirtualClock()
    made = watching(ByPath(kind_of(kind).path), clock, *dict.fromkeys((Node, Pod, kind)))
    with capture_logs() as lines:
        assert await outcome(made, clock, 105) is None

    assert not made.is_synced
    assert made.unsynced()[0].startswith(f"{kind_of(kind).path} (you may not list this (403 Forbidden)")
    errors = [line for line in lines if line["log_level"] == "error"]
    assert len(errors) == 4  # after ten seconds, then every thirty
    assert errors[0]["missing"] == [kind_of(kind).path]
    assert "grant get, list and watch" in errors[0]["hint"]


async def test_a_kind_for_explanations_only_is_done_without_at_once() -> None:
    clock = VirtualClock()
    made = watching(ByPath(kind_of(PriorityClass).path), clock, Node, Pod, PriorityClass)

    assert await outcome(made, clock, 1) == ["/apis/scheduling.k8s.io/v1/priorityclasses"]
    assert made.is_synced


async def test_a_server_that_is_slow_is_named_with_its_last_word() -> None:
    clock = VirtualClock()
    transport = ByPath(kind_of(Pod).path)
    transport.refusal = answer(500, {"kind": "Status", "code": 500, "message": "etcd is away"})
    made = watching(transport, clock, Node, Pod)
    with capture_logs() as lines:
        assert await outcome(made, clock, 12) is None

    (line,) = [line for line in lines if line["event"].startswith("nothing is scheduled yet")]
    assert "etcd is away" in line["waiting_for"][0]


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


async def test_only_kinds_that_are_served_are_asked_for() -> None:
    core = answer(200, {"resources": [{"name": "pods"}, {"name": "nodes"}, {"name": "pods/status"}]})
    transport = Answering(core, *[answer(404, {})] * 20)
    kinds = await served_kinds(transport, KINDS)

    assert {kind.plural for kind in kinds} == {"pods", "nodes"}
