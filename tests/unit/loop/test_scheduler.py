"""The loop itself: fair to the event loop, not further ahead than bindings, ended in order."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.loop.kit import Loop, node, pod, running

from bayplan.loop import tasks


async def test_higher_priority_is_scheduled_first() -> None:
    loop = Loop([node("n", cpu=1)])
    loop.put(*(pod(f"p{i}", cpu="1", priority=i) for i in range(5)))
    async with running(loop):
        await loop.settle()

    assert loop.transport.bindings == {"p4": "n"}


async def test_it_waits_when_many_bindings_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_MOST", 3)
    loop = Loop([node("n", cpu=64)])
    loop.transport.hold = asyncio.Event()
    loop.put(*(pod(f"p{i}", cpu="1") for i in range(10)))
    async with running(loop):
        await loop.settle()
        assert len(loop.live.tasks) == 3
        assert loop.queue.sizes.active == 7
        loop.transport.hold.set()
        await loop.settle()

    assert len(loop.transport.bindings) == 10


async def test_a_closed_scheduler_takes_no_more_pods() -> None:
    loop = Loop([node("n")])
    run = asyncio.create_task(loop.live.scheduler.run())
    await loop.settle()
    loop.live.scheduler.close()
    loop.put(pod("p"))
    await asyncio.wait_for(run, 60)

    assert loop.transport.bindings == {}
    assert loop.queue.sizes.active == 1
