"""Records Kubernetes Events, with lower priority than all other writes.

`record` only queues the event. `run` sends the queue: while many bindings are in flight events wait, and after
`hold_seconds` they are sent one at a time, and more at a time the longer they have waited, so that they keep up under a
load that never ends; otherwise several are sent at once. The queue is bounded; what does not fit is dropped and
counted, because bindings matter more than events.

Isomorphic events (all alike but for the note) become a series, as in client-go: the first is created, the second
patches the count to 2, and later ones only count here until a refresh every half hour, or six minutes of silence,
write the total.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from bayplan.client.errors import AlreadyExists, ClientError, Forbidden, NotFound
from bayplan.client.resources import ResourceType
from bayplan.client.retry import RetryingSender, RetryPolicy, WriteRequest
from bayplan.client.transport import MERGE_PATCH
from bayplan.observe.clock import Clock

NOTE_LIMIT_BYTES = 1024
NAME_LIMIT = 253
SERIES_IDLE_SECONDS = 360.0
SERIES_REFRESH_SECONDS = 1800.0

_EVENTS = ResourceType("events.k8s.io", "v1", "events")
_POLICY = RetryPolicy(attempts=3)
_TRUNCATION = " ..."
_HOUSEKEEPING_SECONDS = 30.0
_BUSY_CHECK_SECONDS = 0.05

_log = logging.getLogger(__name__)


class EventSubject(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The object that an event is about. Events with equal references form one series."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"


class _Meta(msgspec.Struct):
    name: str
    namespace: str


class _Series(msgspec.Struct, rename="camel"):
    count: int
    last_observed_time: str


class _Event(msgspec.Struct, rename="camel"):
    """events.k8s.io/v1 Event, the fields a reporter sets."""

    metadata: _Meta
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: EventSubject
    note: str
    type: str
    related: EventSubject | msgspec.UnsetType = msgspec.UNSET
    series: _Series | msgspec.UnsetType = msgspec.UNSET
    api_version: str = "events.k8s.io/v1"
    kind: str = "Event"


class _SeriesPatch(msgspec.Struct):
    series: _Series


class _SeriesKey(msgspec.Struct, frozen=True, gc=False):
    controller: str
    type: str
    reason: str
    action: str
    regarding: EventSubject
    related: EventSubject | None


class _Recorded(msgspec.Struct, gc=False):
    """An event that was created or will be, and its number of occurrences since. It is rendered when it is sent."""

    key: _SeriesKey
    note: str
    nanos: int
    """The time of the first occurrence; unique, so the name is derived from it."""
    seen_at: float
    written_at: float
    count: int = 1
    written_count: int = 1
    is_created: bool = False


class _Job(msgspec.Struct, frozen=True, gc=False):
    """One write to make: create the event, or patch its series."""

    recorded: _Recorded
    is_patch: bool
    noted_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSettings:
    """`hold_seconds`: how long events wait for bindings before one at a time goes regardless, and how much later they
    must be for each one more."""

    queue_size: int = 10_000
    series_size: int = 20_000
    hold_seconds: float = 5.0
    max_in_flight: int = 16


@dataclass(slots=True)
class RecorderStats:
    recorded: int = 0
    sent: int = 0
    dropped: int = 0
    failed: int = 0


class EventRecorder:
    """Queues events and writes them later. `is_busy` tells whether more important writes are in flight."""

    def __init__(
        self,
        sender: RetryingSender,
        *,
        clock: Clock,
        instance: str,
        is_busy: Callable[[], bool],
        settings: RecorderSettings | None = None,
    ) -> None:
        self._sender = sender
        self._clock = clock
        self._instance = instance
        self._is_busy = is_busy
        self._settings = settings or RecorderSettings()
        self._jobs: deque[_Job] = deque()
        self._series: dict[_SeriesKey, _Recorded] = {}
        self._keys_of: dict[str, list[_SeriesKey]] = {}
        """Of the series about an object, by its uid."""
        self._has_jobs = asyncio.Event()
        self._last_nanos = 0
        self._is_forbidden = False
        self._in_flight: set[asyncio.Task[None]] = set()
        self.stats = RecorderStats()

    @property
    def waiting(self) -> int:
        """Events that are queued and not yet sent."""
        return len(self._jobs) + len(self._in_flight)

    def record(
        self,
        regarding: EventSubject,
        *,
        controller: str,
        type: str,
        reason: str,
        action: str,
        note: str,
        related: EventSubject | None = None,
        can_repeat: bool = True,
    ) -> None:
        """Queue an event. Never waits and never raises when the queue is full. Events that cannot recur start no
        series."""
        self.stats.recorded += 1
        now = self._clock.monotonic()
        key = _SeriesKey(controller, type, reason, action, regarding, related)
        known = self._series.get(key) if can_repeat else None
        if known is not None and now - known.seen_at < SERIES_IDLE_SECONDS:
            self._count(known, now)
            return
        recorded = _Recorded(key, note, self._new_nanos(), now, now)
        if self._enqueue(_Job(recorded, False, now)) and can_repeat:
            self._remember(key, recorded)

    def forget(self, uid: str) -> None:
        """An object is gone: nothing will happen to it again. What its series count is written."""
        for key in list(self._keys_of.get(uid, ())):
            recorded = self._series[key]
            if recorded.is_created and recorded.count > recorded.written_count:
                self._enqueue_patch(recorded, self._clock.monotonic())
            self._drop(key)

    async def run(self) -> None:
        """Send queued events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._refresh_series(), name="event series")
            while True:
                await self._has_jobs.wait()
                await self._wait_for_quiet()
                self._start_next(tasks)

    async def drain(self, *, timeout: float) -> None:
        """Send what is left, for at most `timeout` seconds. For use after `run` was cancelled."""
        try:
            async with asyncio.timeout(timeout):
                while self._jobs:
                    await self._send(self._jobs.popleft())
        except TimeoutError:
            self.stats.dropped += len(self._jobs)
            self._jobs.clear()

    # series

    def _count(self, known: _Recorded, now: float) -> None:
        known.count += 1
        known.seen_at = now
        # Until the event exists there is nothing to patch; its creation takes the count along.
        if known.count == 2 and known.is_created:
            self._enqueue_patch(known, now)

    def _remember(self, key: _SeriesKey, recorded: _Recorded) -> None:
        if key in self._series:
            self._drop(key)
        if len(self._series) >= self._settings.series_size:
            self._drop(next(iter(self._series)))
        self._series[key] = recorded
        self._keys_of.setdefault(key.regarding.uid, []).append(key)

    def _drop(self, key: _SeriesKey) -> None:
        if self._series.pop(key, None) is None:
            return
        keys = self._keys_of[key.regarding.uid]
        keys.remove(key)
        if not keys:
            del self._keys_of[key.regarding.uid]

    async def _refresh_series(self) -> None:
        while True:
            await self._clock.sleep(_HOUSEKEEPING_SECONDS)
            now = self._clock.monotonic()
            for key, recorded in list(self._series.items()):
                is_over = now - recorded.seen_at >= SERIES_IDLE_SECONDS
                has_more = recorded.count > recorded.written_count
                if has_more and (is_over or now - recorded.written_at >= SERIES_REFRESH_SECONDS):
                    self._enqueue_patch(recorded, now)
                if is_over:
                    self._drop(key)

    def _enqueue_patch(self, recorded: _Recorded, now: float) -> None:
        if self._enqueue(_Job(recorded, is_patch=True, noted_at=now)):
            recorded.written_count = recorded.count
            recorded.written_at = now

    # sending

    def _enqueue(self, job: _Job) -> bool:
        if len(self._jobs) >= self._settings.queue_size:
            self.stats.dropped += 1
            return False
        self._jobs.append(job)
        self._has_jobs.set()
        return True

    async def _wait_for_quiet(self) -> None:
        """Return when the next event may be sent: a slot is free and no more important write is in flight."""
        while self._jobs:
            places = self._places()
            if len(self._in_flight) < places:
                return
            if places == 0:
                await self._clock.sleep(_BUSY_CHECK_SECONDS)
            else:
                await asyncio.wait(set(self._in_flight), return_when=asyncio.FIRST_COMPLETED)

    def _places(self) -> int:
        """How many events may be in flight now. Under a steady load it settles where the send rate equals the arrival
        rate."""
        settings = self._settings
        if settings.hold_seconds <= 0 or not self._is_busy():
            return settings.max_in_flight
        seconds_late = self._clock.monotonic() - self._jobs[0].noted_at
        return min(int(seconds_late / settings.hold_seconds), settings.max_in_flight)

    def _start_next(self, tasks: asyncio.TaskGroup) -> None:
        if self._jobs:
            task = tasks.create_task(self._send(self._jobs.popleft()), name="event")
            self._in_flight.add(task)
            task.add_done_callback(self._in_flight.discard)
        if not self._jobs:
            self._has_jobs.clear()

    async def _send(self, job: _Job) -> None:
        try:
            await self._write(job)
            self.stats.sent += 1
        except asyncio.CancelledError:
            # Whether it was written is unknown. Both writes can be repeated, so `drain` will.
            self._jobs.appendleft(job)
            raise
        except (ClientError, ValueError) as error:
            self.stats.failed += 1
            if not job.is_patch:
                self._drop(job.recorded.key)
            self._complain(job, error)

    def _complain(self, job: _Job, error: Exception) -> None:
        """Log a warning once when events are forbidden, which needs a change of RBAC; log other failures at debug
        level."""
        _log.debug("an event about %s was not written: %s", job.recorded.key.regarding.name, error)
        if isinstance(error, Forbidden) and not self._is_forbidden:
            self._is_forbidden = True
            _log.warning("events cannot be written: %s; grant create and patch on events of events.k8s.io", error)

    async def _write(self, job: _Job) -> None:
        if not job.is_patch:
            await self._create(job.recorded)
            return
        event = self._event(job.recorded)
        request = WriteRequest(
            method="PATCH",
            path=_EVENTS.path(event.metadata.namespace, event.metadata.name),
            body=msgspec.json.encode(_SeriesPatch(self._series_of(job.recorded))),
            content_type=MERGE_PATCH,
        )
        outcome = await self._sender.send(request, _POLICY)
        if isinstance(outcome.error, NotFound):
            # The server deletes events after an hour. The series continues under the same name.
            await self._create(job.recorded)
        elif outcome.error is not None:
            raise outcome.error

    async def _create(self, recorded: _Recorded) -> None:
        event = self._event(recorded)
        recorded.written_count = recorded.count
        if recorded.count > 1:
            event = msgspec.structs.replace(event, series=self._series_of(recorded))
        request = WriteRequest(
            method="POST", path=_EVENTS.path(event.metadata.namespace), body=msgspec.json.encode(event)
        )
        outcome = await self._sender.send(request, _POLICY)
        if outcome.error is not None and not isinstance(outcome.error, AlreadyExists):
            raise outcome.error
        recorded.is_created = True
        if recorded.written_count == 1 < recorded.count:
            self._enqueue_patch(recorded, self._clock.monotonic())

    def _series_of(self, recorded: _Recorded) -> _Series:
        seen_ago = self._clock.monotonic() - recorded.seen_at
        return _Series(recorded.count, _micro_time(self._clock.now() - seen_ago))

    def _new_nanos(self) -> int:
        """The time, made unique: two events of one name would be taken for one."""
        self._last_nanos = max(int(self._clock.now() * 1_000_000_000), self._last_nanos + 1)
        return self._last_nanos

    def _event(self, recorded: _Recorded) -> _Event:
        key, nanos = recorded.key, recorded.nanos
        return _Event(
            metadata=_Meta(event_name(key.regarding.name, nanos), key.regarding.namespace or "default"),
            event_time=_micro_time(nanos / 1_000_000_000),
            reporting_controller=key.controller,
            reporting_instance=self._instance,
            action=key.action,
            reason=key.reason,
            regarding=key.regarding,
            related=key.related or msgspec.UNSET,
            note=truncated_note(recorded.note),
            type=key.type,
        )


def event_name(regarding: str, nanos: int) -> str:
    """`<name>.<time in hex>`, as other Kubernetes components do, within the length of an object's name."""
    suffix = f".{nanos:x}"
    return regarding[: NAME_LIMIT - len(suffix)].rstrip(".-") + suffix


def truncated_note(note: str) -> str:
    """At most 1024 bytes of UTF-8, with a mark where something is missing, never half a character."""
    raw = note.encode("utf-8", "replace")
    if len(raw) <= NOTE_LIMIT_BYTES:
        return note
    return raw[: NOTE_LIMIT_BYTES - len(_TRUNCATION)].decode("utf-8", "ignore") + _TRUNCATION


def reporting_instance(controller: str, hostname: str) -> str:
    """The reporter's own name as kube-scheduler makes it, within the 128 characters that the API allows."""
    return f"{controller}-{hostname}"[:128]


def _micro_time(now: float) -> str:
    return datetime.fromtimestamp(now, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
