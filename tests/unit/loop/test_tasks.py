"""Work beside the main path: room for more, timers, and the end."""

from __future__ import annotations

import asyncio
import weakref

import pytest

from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.resources import ResourceAxis
from bayplan.cluster.shapes import ShapeTable
from bayplan.loop import tasks as module
from bayplan.loop.permit import HeldPods
from bayplan.loop.tasks import Tasks
from bayplan.observe.clock import VirtualClock
from bayplan.testing import pod

MOST = module._MOST


def _no_failures(name: str, exception: BaseException) -> None:
    raise AssertionError(name) from exception


async def test_tasks_that_only_wait_for_other_pods_do_not_keep_those_from_being_scheduled() -> None:
    """Half of a group waits for the other half: were the waiting ones counted, a large group could never be whole."""
    idle = 0
    tasks = Tasks(_no_failures, idle=lambda: idle)
    done = asyncio.Event()
    for _ in range(MOST):
        tasks.start("binding", done.wait())
    assert tasks.is_full

    idle = 1
    assert not tasks.is_full
    await tasks.wait_for_room()

    idle = 0
    waiting = asyncio.ensure_future(tasks.wait_for_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    done.set()
    await waiting
    await tasks.finish(timeout=60)


async def test_after_too_many_there_is_room_when_a_good_part_has_ended() -> None:
    tasks, ends = Tasks(_no_failures), [asyncio.Event() for _ in range(MOST)]
    for end in ends:
        tasks.start("binding", end.wait())
    waiting = asyncio.ensure_future(tasks.wait_for_room())

    for count, end in enumerate(ends[: MOST - module._FEWER], start=1):
        assert not waiting.done(), count
        end.set()
        await asyncio.sleep(0)
    await waiting

    for end in ends:
        end.set()
    await tasks.finish(timeout=60)


async def test_one_place_is_used_when_the_others_are_held_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.01)
    tasks, first, others = Tasks(_no_failures), asyncio.Event(), asyncio.Event()
    tasks.start("binding", first.wait())
    for _ in range(MOST - 1):
        tasks.start("waits for a volume", others.wait())
    waiting = asyncio.ensure_future(tasks.wait_for_room())
    await asyncio.sleep(0.03)
    assert not waiting.done()

    first.set()
    await asyncio.wait_for(waiting, 60)

    others.set()
    await tasks.finish(timeout=60)


class Errand:
    """Brief work that notes what becomes of it."""

    def __init__(
        self, name: str, log: list[str], *, waits_for: asyncio.Event | None = None, fails: bool = False
    ) -> None:
        self.name = name
        self._log = log
        self._waits_for = waits_for
        self._fails = fails

    async def run(self) -> None:
        self._log.append(f"{self.name} begins")
        if self._waits_for is not None:
            await self._waits_for.wait()
        if self._fails:
            raise ValueError("no")
        self._log.append(f"{self.name} ends")

    def abandon(self) -> None:
        if self._fails:
            raise ValueError("not even that")
        self._log.append(f"{self.name} is abandoned")


async def test_brief_work_takes_turns_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BRIEF_AT_A_TIME", 2)
    tasks, log, end = Tasks(_no_failures), [], asyncio.Event()
    for name in ("a", "b", "c"):
        tasks.start_brief(Errand(name, log, waits_for=end))
    await asyncio.sleep(0)
    assert log == ["a begins", "b begins"]
    assert len(tasks) == 3

    end.set()
    await tasks.finish(timeout=60)
    assert log == ["a begins", "b begins", "a ends", "c begins", "c ends", "b ends"]
    assert len(tasks) == 0


async def test_workers_at_rest_keep_nothing_of_what_they_did_alive() -> None:
    tasks, log = Tasks(_no_failures), []
    errand = Errand("a", log)
    gone = weakref.ref(errand)
    tasks.start_brief(errand)
    del errand
    await asyncio.sleep(0)

    assert log == ["a begins", "a ends"]
    assert gone() is None
    await tasks.finish(timeout=60)


async def test_brief_work_that_comes_when_all_others_have_just_ended_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task that did the last one is over, and nobody was told yet."""
    monkeypatch.setattr(module, "_BRIEF_AT_A_TIME", 1)
    tasks, log = Tasks(_no_failures), []

    class Last(Errand):
        async def run(self) -> None:
            await super().run()
            asyncio.get_running_loop().call_soon(tasks.start_brief, Errand("late", log))

    tasks.start_brief(Last("last", log))
    for _ in range(5):
        await asyncio.sleep(0)
    assert log[-1] == "late ends"


async def test_brief_work_that_fails_is_reported_by_name_and_the_next_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_BRIEF_AT_A_TIME", 1)
    failures: list[tuple[str, str]] = []
    log: list[str] = []
    tasks = Tasks(lambda name, exception: failures.append((name, str(exception))))
    tasks.start_brief(Errand("bad", log, fails=True))
    tasks.start_brief(Errand("good", log))
    await tasks.finish(timeout=60)

    assert failures == [("bad", "no")]
    assert log[-1] == "good ends"


async def test_brief_work_that_is_cancelled_by_others_does_not_take_the_rest_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_BRIEF_AT_A_TIME", 1)
    tasks, log = Tasks(_no_failures), []

    class Cancelled(Errand):
        async def run(self) -> None:
            raise asyncio.CancelledError

    tasks.start_brief(Cancelled("a", log))
    tasks.start_brief(Errand("b", log))
    await tasks.finish(timeout=60)

    assert log == ["b begins", "b ends"]
    assert len(tasks) == 0


async def test_brief_work_counts_when_the_scheduler_looks_for_room() -> None:
    tasks, end = Tasks(_no_failures), asyncio.Event()
    for number in range(MOST):
        tasks.start_brief(Errand(str(number), [], waits_for=end))
    assert tasks.is_full

    waiting = asyncio.ensure_future(tasks.wait_for_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    end.set()
    await asyncio.wait_for(waiting, 60)
    await tasks.finish(timeout=60)


async def test_at_the_end_brief_work_whose_turn_has_not_come_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BRIEF_AT_A_TIME", 1)
    failures: list[tuple[str, str]] = []
    log: list[str] = []
    tasks = Tasks(lambda name, exception: failures.append((name, str(exception))))
    tasks.start_brief(Errand("a", log, waits_for=asyncio.Event()))
    tasks.start_brief(Errand("b", log, fails=True))
    tasks.start_brief(Errand("c", log))
    await asyncio.sleep(0)
    await tasks.finish(timeout=0)

    assert log == ["a begins", "c is abandoned"]
    assert failures == [("b", "not even that")]
    assert len(tasks) == 0


async def test_a_timer_calls_back_when_its_time_has_come() -> None:
    clock, called = VirtualClock(), []
    tasks = Tasks(_no_failures)
    tasks.call_later(5, lambda: called.append(clock.monotonic()), clock=clock)
    await clock.run_for(4.9)
    assert called == []

    await clock.run_for(0.2)
    assert called == [5]


async def test_the_end_does_not_wait_for_timers() -> None:
    clock, called = VirtualClock(), []
    tasks = Tasks(_no_failures)
    tasks.call_later(3600, lambda: called.append(1), clock=clock)
    await tasks.finish(timeout=0.1)

    assert called == []
    assert len(tasks) == 0


async def test_a_timer_that_fails_is_reported() -> None:
    clock, failures = VirtualClock(), []
    tasks = Tasks(lambda name, exception: failures.append((name, str(exception))))

    def fail() -> None:
        raise ValueError("no")

    tasks.call_later(1, fail, clock=clock)
    await clock.run_for(2)
    assert failures == [("timer", "no")]


async def test_waiting_pods_say_that_they_were_rejected_before_their_place_is_free() -> None:
    room = HeldPods(VirtualClock())
    shapes = ShapeTable(ResourceAxis())
    held = {}
    for name in ("allowed", "rejected", "open"):
        manifest = pod(name)
        held[name] = room.hold(PodInfo(manifest, shapes.shape_of(manifest)), "n1", {"Gang": 60.0})
    held["allowed"].allow("Gang")
    held["rejected"].reject("Gang", "no room")
    assert {name: each.is_rejected for name, each in held.items()} == {
        "allowed": False,
        "rejected": True,
        "open": False,
    }

    room.reject_all("the scheduler stops")
    assert {name: each.is_rejected for name, each in held.items()} == {"allowed": False, "rejected": True, "open": True}
