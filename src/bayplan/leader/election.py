"""Leader election on a Lease: of several replicas, one schedules.

    follower ──acquired──▶ leader ──renewed in time──▶ leader
        ▲                    │ not renewed within the deadline, or another replica holds the lease
        └────────────────────┴──▶ stopped: `run` returns, for good

A lease counts as expired when this replica has observed no change of it for the lease's duration; clocks of other
machines are never compared. Leadership also ends by the local clock: `is_leader` is False from the moment the deadline
passes, even if the event loop was blocked and no callback has run yet, so a replica that resumes late binds nothing.
The deadline is shorter than the lease, so leadership ends before another replica can acquire it. A follower is notified
when the deadline of the leader has passed (`on_lease_overdue`), and can get ready while the lease runs out; and once
more a second before (`on_lease_late`), if two renewals should have come by then.

Losing the lease ends `run`; the process then exits or restarts. Cancelling `run` releases the lease at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from bayplan.leader.lease import LeaseClient, LeaseRecord, LeaseUnavailable, LostRace, Requester, micro_time
from bayplan.observe.clock import Clock

JITTER_FACTOR = 1.2

_RELEASED_LEASE_SECONDS = 1
_WATCHDOG_GRACE_SECONDS = 20.0
_LATE_SECONDS = 1.0
_TIMER_SECONDS = 0.001
"""As much too early may a timer wake."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    """`leaderElection` of the configuration, in seconds."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    name: str = "kube-scheduler"
    namespace: str = "kube-system"

    def __post_init__(self) -> None:
        if self.lease_duration < 1 or self.retry_period <= 0:
            raise ValueError("leaderElection: leaseDuration must be at least 1s and retryPeriod more than 0s")
        if self.lease_duration <= self.renew_deadline:
            raise ValueError(
                f"leaderElection.leaseDuration ({self.lease_duration:g}s) must be greater than "
                f"renewDeadline ({self.renew_deadline:g}s)"
            )
        if self.renew_deadline <= self.retry_period * JITTER_FACTOR:
            raise ValueError(
                f"leaderElection.renewDeadline ({self.renew_deadline:g}s) must be greater than "
                f"{JITTER_FACTOR:g} times retryPeriod ({self.retry_period:g}s)"
            )


def new_identity(hostname: str) -> str:
    """An identity that is unique among replicas and across restarts."""
    return f"{hostname}_{uuid.uuid4()}"


class LeaderElector:
    """One candidate. `run` until it returns; ask `is_leader` before every write."""

    def __init__(
        self,
        requester: Requester,
        *,
        identity: str,
        clock: Clock,
        draw: Callable[[], float],
        on_started_leading: Callable[[], None],
        on_stopped_leading: Callable[[], None],
        on_new_leader: Callable[[str], None] = lambda identity: None,
        on_lease_late: Callable[[], None] = lambda: None,
        on_lease_overdue: Callable[[], None] = lambda: None,
        settings: ElectionSettings | None = None,
    ) -> None:
        self._settings = settings or ElectionSettings()
        self._lease = LeaseClient(requester, namespace=self._settings.namespace, name=self._settings.name)
        self._identity = identity
        self._clock = clock
        self._draw = draw
        self._on_started_leading = on_started_leading
        self._on_stopped_leading = on_stopped_leading
        self._on_new_leader = on_new_leader
        self._on_lease_late = on_lease_late
        self._on_lease_overdue = on_lease_overdue
        self._late = self._overdue = ("", "")
        """The last renewal, holder and time, that no other followed in time."""
        self._observed: LeaseRecord | None = None
        self._observed_at = 0.0
        self._is_leading = False
        self._leads_until = 0.0
        self._free_since = math.inf
        self._leader = ""
        self._last_problem = ""

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads now, by its own clock."""
        return self._is_leading and self._clock.monotonic() < self._leads_until

    @property
    def free_since(self) -> float:
        """Once this replica leads: since when no other replica can have led, by the monotonic clock."""
        return self._free_since

    @property
    def leader(self) -> str:
        """The holder of the lease when it was last read; empty when there was none."""
        return self._leader

    @property
    def is_healthy(self) -> bool:
        """False when this replica holds a lease that expired 20 s ago: its renewal is stuck."""
        expired_for = self._clock.monotonic() - (self._observed_at + self._settings.lease_duration)
        return not self._is_leading or expired_for <= _WATCHDOG_GRACE_SECONDS

    async def look(self) -> None:
        """Read the lease once, to know from now on how long it has been free."""
        try:
            found = await self._lease.get(timeout=self._settings.renew_deadline)
        except LeaseUnavailable as error:
            self._complain(str(error))
        else:
            self._observe(found or LeaseRecord())

    async def run(self) -> None:
        """Wait to become leader, lead, and return when leadership is lost."""
        try:
            await self._acquire()
            await self._hold()
        except asyncio.CancelledError:
            was_leading = self._is_leading
            self._stop_leading("cancelled")
            if was_leading:
                await self._release()
            raise
        self._stop_leading("lease lost")

    async def _acquire(self) -> None:
        _log.info("attempting to acquire leader lease %s as %s", self._lease.label, self._identity)
        while not await self._try_to_lead(timeout=self._settings.renew_deadline):
            self._note_overdue()
            retry_seconds = self._settings.retry_period * (1.0 + JITTER_FACTOR * self._draw())
            await self._clock.sleep(min(retry_seconds, self._seconds_to_look()))
        self._is_leading = True
        _log.info("successfully acquired lease %s", self._lease.label)
        self._on_started_leading()

    def _seconds_to_look(self) -> float:
        """Until the leader is late, its deadline passes or its lease expires unless it is renewed: looking then, and
        not up to two periods later, is what makes a failover short. Infinite when it is not held, or has expired
        already."""
        record, now = self._observed, self._clock.monotonic()
        if record is None or not self._is_held_by_another(record):
            return math.inf
        moments = (self._late_after(record), self._led_for(record), record.duration_seconds)
        ends = (self._observed_at + seconds for seconds in moments)
        return min(end for end in ends if end > now) - now + _TIMER_SECONDS

    def _late_after(self, record: LeaseRecord) -> float:
        return max(self._led_for(record) - _LATE_SECONDS, 2 * self._settings.retry_period)

    def _led_for(self, record: LeaseRecord) -> float:
        """For how long its holder may write after a renewal: up to its deadline, which is known where it has the
        settings of this replica; else as long as the lease lasts."""
        if not record.holder:
            return 0.0
        is_alike = record.duration_seconds == math.ceil(self._settings.lease_duration)
        return self._settings.renew_deadline if is_alike else record.duration_seconds

    def _note_overdue(self) -> None:
        """Once for every renewal that the leader owes."""
        record = self._observed
        if record is None or not self._is_held_by_another(record):
            return
        renewal, seconds = (record.holder, record.renewed), self._clock.monotonic() - self._observed_at
        if renewal != self._overdue and seconds >= self._led_for(record):
            self._overdue = renewal
            self._on_lease_overdue()
        elif renewal not in (self._late, self._overdue) and seconds >= self._late_after(record):
            self._late = renewal
            self._on_lease_late()

    async def _hold(self) -> None:
        """Renew until the deadline passes without success, or another replica holds the lease."""
        while self.is_leader:
            await self._clock.sleep(min(self._settings.retry_period, self._time_left()))
            left = self._time_left()
            if left <= 0:
                return
            renewal = asyncio.create_task(self._try_to_lead(timeout=left), name="lease renewal")
            deadline = asyncio.create_task(self._clock.sleep(left), name="lease deadline")
            try:
                await asyncio.wait([renewal, deadline], return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _cancel(renewal, deadline)
            if not renewal.cancelled():
                renewal.result()
            if self._leader != self._identity:
                return

    def _time_left(self) -> float:
        return self._leads_until - self._clock.monotonic()

    async def _try_to_lead(self, *, timeout: float) -> bool:
        """One attempt to acquire or renew; True when the lease is ours, freshly written."""
        started = self._clock.monotonic()
        try:
            written = await self._write_if_free(timeout)
        except LeaseUnavailable as error:
            self._complain(str(error))
            return False
        if written is None:
            return False
        self._observe(written)
        # The lease runs from before the request was sent: the server may have written it at any time since.
        self._leads_until = started + self._settings.renew_deadline
        self._last_problem = ""
        return True

    async def _write_if_free(self, timeout: float) -> LeaseRecord | None:
        if self._is_leading and self._observed is not None:
            renewed = await self._lease.replace(self._ours(self._observed), onto=self._observed, timeout=timeout)
            if not isinstance(renewed, LostRace):
                return renewed
        found = await self._lease.get(timeout=timeout)
        if found is None and self._observed is not None and self._is_held_by_another(self._observed):
            # Somebody deleted it. Its holder may lead until its deadline, and makes it anew if it does.
            return None
        if not self._is_leading:
            self._observe(found or LeaseRecord())
            self._free_since = self._observed_at + (self._led_for(found) if found else 0.0)
        if found is None:
            created = await self._lease.create(self._ours(LeaseRecord()), timeout=timeout)
            return None if isinstance(created, LostRace) else created
        self._observe(found)
        if self._is_held_by_another(found):
            return None
        replaced = await self._lease.replace(self._ours(found), onto=found, timeout=timeout)
        return None if isinstance(replaced, LostRace) else replaced

    def _is_held_by_another(self, record: LeaseRecord) -> bool:
        if not record.holder or record.holder == self._identity:
            return False
        return self._clock.monotonic() < self._observed_at + record.duration_seconds

    def _observe(self, record: LeaseRecord) -> None:
        """Note the lease; the time of a record that has not changed since is the time it was first seen."""
        seen = self._observed
        if seen is None or (seen.holder, seen.renewed) != (record.holder, record.renewed):
            self._observed_at = self._clock.monotonic()
        self._observed = record
        if record.holder != self._leader:
            self._leader = record.holder
            self._on_new_leader(record.holder)

    def _ours(self, previous: LeaseRecord) -> LeaseRecord:
        now = micro_time(self._clock.now())
        is_renewal = previous.holder == self._identity
        is_first = previous.raw is None
        return LeaseRecord(
            holder=self._identity,
            duration_seconds=math.ceil(self._settings.lease_duration),
            acquired=previous.acquired if is_renewal and previous.acquired else now,
            renewed=now,
            transitions=previous.transitions + (0 if is_renewal or is_first else 1),
        )

    def _stop_leading(self, why: str) -> None:
        if not self._is_leading:
            return
        self._is_leading = False
        self._leads_until = 0.0
        _log.warning("stopped leading %s: %s", self._lease.label, why)
        self._on_stopped_leading()

    async def _release(self) -> None:
        """Release the lease, so that the next replica need not wait for it to expire."""
        if self._observed is None or self._observed.holder != self._identity:
            return
        now = micro_time(self._clock.now())
        freed = LeaseRecord(
            holder="",
            duration_seconds=_RELEASED_LEASE_SECONDS,
            acquired=now,
            renewed=now,
            transitions=self._observed.transitions,
        )
        seconds = self._settings.retry_period
        try:
            released = await self._lease.replace(freed, onto=self._observed, timeout=seconds)
            if isinstance(released, LostRace):
                # A renewal was under way when this replica was stopped, and was written.
                found = await self._lease.get(timeout=seconds)
                if found is not None and found.holder == self._identity:
                    await self._lease.replace(freed, onto=found, timeout=seconds)
        except LeaseUnavailable as error:
            _log.warning("the lease could not be released; other replicas wait for it to expire: %s", error)

    def _complain(self, problem: str) -> None:
        level = logging.WARNING if problem != self._last_problem else logging.DEBUG
        self._last_problem = problem
        _log.log(level, "%s", problem)


async def _cancel(*tasks: asyncio.Task[bool] | asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
