from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.client.errors import ConnectionFailed
from bayplan.client.events import (
    SERIES_IDLE_SECONDS,
    SERIES_REFRESH_SECONDS,
    EventRecorder,
    EventSubject,
    RecorderSettings,
    event_name,
    reporting_instance,
    truncated_note,
)
from bayplan.client.retry import RetryingSender
from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock

from .support import Answers, ScriptedTransport, answer, in_turn, no_draw, refusal

POD = EventSubject("Pod", "web", "team", "u-1")
OK = answer(201, {})


class Recording:
    """A recorder under test with the requests it makes."""

    def __init__(
        self, clock: VirtualClock, answers: Answers | None = None, settings: RecorderSettings | None = None
    ) -> None:
        self.clock = clock
        self.is_busy = False
        self.transport = ScriptedTransport(answers or in_turn(OK))
        self.recorder = EventRecorder(
            RetryingSender(self.transport, clock=clock, draw=no_draw),
            clock=clock,
            instance="scheduler-host-1",
            is_busy=lambda: self.is_busy,
            settings=settings,
        )

    def failed(self, note: str = "0/3 nodes are available", pod: EventSubject = POD) -> None:
        self.recorder.record(
            pod, controller="sched", type="Warning", reason="FailedScheduling", action="Scheduling", note=note
        )

    @property
    def methods(self) -> list[str]:
        return [call.method for call in self.transport.calls]

    @contextlib.asynccontextmanager
    async def running(self, seconds: float = 0.0) -> AsyncIterator[None]:
        task = asyncio.create_task(self.recorder.run())
        await self.clock.run_for(seconds)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_an_event_is_written_with_all_that_the_api_wants(clock: VirtualClock) -> None:
    recording = Recording(clock)
    recording.recorder.record(
        POD,
        controller="default-scheduler",
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note="Successfully assigned team/web to n1",
        related=EventSubject("Node", "n1"),
    )
    assert recording.transport.calls == []

    async with recording.running():
        pass

    call = recording.transport.calls[0]
    assert (call.method, call.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/team/events")
    name = f"web.{int(clock.now() * 1e9):x}"
    assert call.json == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "team"},
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "scheduler-host-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "name": "web", "namespace": "team", "uid": "u-1"},
        "related": {"kind": "Node", "name": "n1"},
        "note": "Successfully assigned team/web to n1",
        "type": "Normal",
    }
    assert (recording.recorder.stats.recorded, recording.recorder.stats.sent) == (1, 1)


async def test_an_object_without_a_namespace_reports_in_default(clock: VirtualClock) -> None:
    recording = Recording(clock)
    recording.failed(pod=EventSubject("Node", "n1"))

    async with recording.running():
        pass

    assert recording.transport.calls[0].path == "/apis/events.k8s.io/v1/namespaces/default/events"


async def test_repetitions_become_a_series_whatever_their_note(clock: VirtualClock) -> None:
    recording = Recording(clock)
    async with recording.running():
        for number in range(5):
            recording.failed(f"attempt {number}")
            await clock.run_for(10.0)
        assert recording.methods == ["POST", "PATCH"]
        patch = recording.transport.calls[1]
        assert patch.json == {"series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:30.000000Z"}}
        assert patch.path.endswith(f"/events/{recording.transport.calls[0].json['metadata']['name']}")  # type: ignore[index]

        await clock.run_for(SERIES_IDLE_SECONDS + 60)
        assert recording.methods == ["POST", "PATCH", "PATCH"]
        assert recording.transport.calls[2].json == {
            "series": {"count": 5, "lastObservedTime": "2023-11-14T22:14:00.000000Z"}
        }
        recording.failed("after a long silence")
        await clock.run_for(1.0)

    assert recording.methods == ["POST", "PATCH", "PATCH", "POST"]


async def test_a_series_that_goes_on_is_refreshed_every_half_hour(clock: VirtualClock) -> None:
    recording = Recording(clock)
    async with recording.running():
        for _ in range(int(SERIES_REFRESH_SECONDS // 60) + 2):
            recording.failed()
            await clock.run_for(60.0)

    assert recording.methods == ["POST", "PATCH", "PATCH"]
    assert recording.transport.calls[2].json["series"]["count"] == 31  # type: ignore[index]


async def test_repetitions_before_the_first_was_written_travel_with_it(clock: VirtualClock) -> None:
    recording = Recording(clock)
    for _ in range(3):
        recording.failed()

    async with recording.running():
        pass

    assert recording.methods == ["POST"]
    assert recording.transport.calls[0].json["series"]["count"] == 3  # type: ignore[index]


async def test_a_repetition_while_the_first_is_on_its_way_is_patched_afterwards(clock: VirtualClock) -> None:
    release = asyncio.Event()

    async def slow() -> Response:
        await release.wait()
        return OK

    recording = Recording(clock, lambda call: slow())
    recording.failed()
    async with recording.running():
        recording.failed()
        await clock.run_for(0.1)
        assert recording.methods == ["POST"]
        release.set()
        await clock.run_for(0.1)

    assert recording.methods == ["POST", "PATCH"]


async def test_different_things_are_different_events(clock: VirtualClock) -> None:
    recording = Recording(clock)
    recording.failed()
    recording.failed(pod=EventSubject("Pod", "web", "team", "u-2"))
    recording.recorder.record(POD, controller="other", type="Warning", reason="R", action="A", note="")

    async with recording.running():
        pass

    names = [call.json["metadata"]["name"] for call in recording.transport.calls]  # type: ignore[index]
    assert recording.methods == ["POST"] * 3
    assert len(set(names)) == 3


async def test_a_forgotten_event_is_created_again_with_its_count(clock: VirtualClock) -> None:
    recording = Recording(clock, in_turn(OK, refusal(404, "NotFound"), OK))
    async with recording.running():
        recording.failed()
        await clock.run_for(1.0)
        recording.failed()
        await clock.run_for(1.0)

    assert recording.methods == ["POST", "PATCH", "POST"]
    assert recording.transport.calls[2].json["series"]["count"] == 2  # type: ignore[index]


async def test_an_event_that_exists_already_was_written_by_an_earlier_attempt(clock: VirtualClock) -> None:
    recording = Recording(
        clock, in_turn(ConnectionFailed("reset", may_have_been_processed=True), refusal(409, "AlreadyExists"))
    )
    recording.failed()
    async with recording.running(1.0):
        pass

    assert recording.methods == ["POST", "POST"]
    assert (recording.recorder.stats.sent, recording.recorder.stats.failed) == (1, 0)


async def test_a_refused_event_is_counted_and_the_next_one_starts_afresh(clock: VirtualClock) -> None:
    recording = Recording(clock, in_turn(refusal(403, "Forbidden"), OK))
    async with recording.running():
        recording.failed()
        await clock.run_for(1.0)
        recording.failed()
        await clock.run_for(1.0)

    assert recording.methods == ["POST", "POST"]
    assert (recording.recorder.stats.sent, recording.recorder.stats.failed) == (1, 1)


async def test_forbidden_events_are_complained_of_once(clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    recording = Recording(clock, in_turn(refusal(403, "Forbidden")))
    async with recording.running():
        for _ in range(3):
            recording.failed()
            await clock.run_for(1.0)

    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["events cannot be written: no (403 Forbidden); grant create and patch on events of events.k8s.io"]


async def test_what_cannot_repeat_is_not_remembered(clock: VirtualClock) -> None:
    recording = Recording(clock)
    for _ in range(2):
        recording.recorder.record(
            POD, controller="s", type="Normal", reason="Scheduled", action="Binding", note="n", can_repeat=False
        )
    async with recording.running(1.0):
        pass

    assert recording.methods == ["POST", "POST"]
    assert len(recording.recorder._series) == 0


async def test_events_wait_for_bindings_then_trickle_then_flow(clock: VirtualClock) -> None:
    async def slow() -> Response:
        await clock.sleep(1.0)
        return OK

    recording = Recording(clock, lambda call: slow(), RecorderSettings(hold_seconds=5.0, max_in_flight=4))
    recording.is_busy = True
    for number in range(10):
        recording.failed(pod=EventSubject("Pod", f"web-{number}", "team"))
    async with recording.running(4.9):
        assert len(recording.transport.calls) == 0
        await clock.run_for(2.5)
        assert len(recording.transport.calls) == 3
        recording.is_busy = False
        await clock.run_for(0.8)
        assert len(recording.transport.calls) == 7
        await clock.run_for(2.0)

    assert len(recording.transport.calls) == 10


async def test_events_keep_up_with_bindings_that_never_end(clock: VirtualClock) -> None:
    """One at a time would be one a second: a load of two a second would fill the queue, and the rest be dropped."""

    async def slow() -> Response:
        await clock.sleep(1.0)
        return OK

    recording = Recording(clock, lambda call: slow(), RecorderSettings(hold_seconds=5.0, queue_size=100))
    recording.is_busy = True
    waiting = []
    async with recording.running():
        for number in range(1000):
            recording.failed(pod=EventSubject("Pod", f"web-{number}", "team"))
            await clock.run_for(0.5)
            waiting.append(recording.recorder.waiting)

    assert recording.recorder.stats.dropped == 0
    assert max(waiting) < 40
    assert max(waiting[500:]) <= max(waiting[:500])


async def test_a_recorder_that_holds_nothing_back_sends_while_bindings_are_under_way(clock: VirtualClock) -> None:
    recording = Recording(clock, settings=RecorderSettings(hold_seconds=0.0))
    recording.is_busy = True
    recording.failed()
    async with recording.running():
        pass

    assert recording.methods == ["POST"]


async def test_a_full_queue_drops_and_counts(clock: VirtualClock) -> None:
    recording = Recording(clock, settings=RecorderSettings(queue_size=3))
    for number in range(5):
        recording.failed(pod=EventSubject("Pod", f"web-{number}", "team"))

    assert recording.recorder.waiting == 3
    assert recording.recorder.stats.dropped == 2


async def test_only_so_many_series_are_remembered(clock: VirtualClock) -> None:
    recording = Recording(clock, settings=RecorderSettings(series_size=2))
    async with recording.running():
        for name in ("a", "b", "c", "a"):
            recording.failed(pod=EventSubject("Pod", name, "team"))
            await clock.run_for(1.0)

    assert recording.methods == ["POST"] * 4


async def test_what_is_left_at_the_end_can_be_sent_within_a_limit(clock: VirtualClock) -> None:
    async def never() -> Response:
        await asyncio.Event().wait()
        return OK

    recording = Recording(clock)
    recording.failed()
    await recording.recorder.drain(timeout=60.0)
    assert recording.methods == ["POST"]

    stuck = Recording(clock, lambda call: never())
    for name in ("a", "b"):
        stuck.failed(pod=EventSubject("Pod", name, "team"))
    async with stuck.running():
        pass
    await stuck.recorder.drain(timeout=0.02)
    assert stuck.recorder.stats.dropped == 2
    assert stuck.recorder.waiting == 0


@given(st.text(max_size=2000))
def test_a_note_is_cut_to_1024_bytes_of_whole_characters(note: str) -> None:
    cut = truncated_note(note)

    assert len(cut.encode("utf-8", "replace")) <= 1024
    if len(note.encode("utf-8", "replace")) <= 1024:
        assert cut == note
    else:
        assert cut.endswith(" ...")
        assert note.startswith(cut[: -len(" ...")])


def test_a_note_of_plain_letters_uses_the_room_it_has() -> None:
    assert truncated_note("x" * 1024) == "x" * 1024
    assert truncated_note("x" * 1025) == "x" * 1020 + " ..."


def test_names_of_events_fit_into_names_of_objects() -> None:
    assert event_name("web", 0x17A) == "web.17a"
    assert len(event_name("x" * 253, 0x17A0000000000000)) == 253
    assert event_name("x" * 235 + "-.y", 0x17A0000000000000) == "x" * 235 + ".17a0000000000000"


@pytest.mark.parametrize(("host", "expected"), [("h", "sched-h"), ("h" * 200, "sched-" + "h" * 122)])
def test_the_reporting_instance_is_controller_and_host_within_128(host: str, expected: str) -> None:
    assert reporting_instance("sched", host) == expected


async def test_the_series_of_an_object_that_is_gone_are_written_and_forgotten(clock: VirtualClock) -> None:
    recording = Recording(clock)
    other = EventSubject("Pod", "api", "team", "u-2")
    async with recording.running():
        for pod in (POD, other):
            recording.failed(pod=pod)
        await clock.run_for(1)
        for _ in range(3):
            recording.failed()
        await clock.run_for(1)
        assert recording.methods == ["POST", "POST", "PATCH"]

        recording.recorder.forget(POD.uid)
        recording.recorder.forget("never seen")
        await clock.run_for(1)
        assert recording.methods == ["POST", "POST", "PATCH", "PATCH"]
        assert b'"count":4' in (recording.transport.calls[-1].body or b"")

        recording.failed()
        recording.failed(pod=other)
        await clock.run_for(1)
        assert recording.methods[4:] == ["POST", "PATCH"], "a new event of the one, a series of the other"
