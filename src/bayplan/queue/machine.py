"""The scheduling queue: which pod is next, which wait for what, which are being tried.

    state          holds                                   leaves for
    ------------   -------------------------------------   ------------------------------------------------------------
    ACTIVE         pods to try, in queue-sort order        IN_FLIGHT      pop
    BACKOFF        pods that failed a moment ago           ACTIVE         flush_backoff when the time is over; activate
                                                           IN_FLIGHT      pop, if ACTIVE is empty and it was a rejection
    UNSCHEDULABLE  pods that plugins rejected and no       ACTIVE         an event whose hint answers QUEUE, update,
                   event since is worth another try                       activate, five minutes (flush_unschedulable)
                                                           BACKOFF        the same, while the back-off is not over
                                                           GATED          the same, if a PreEnqueue plugin now holds it
    GATED          pods that a PreEnqueue plugin holds     as UNSCHEDULABLE, but for events only those of the holder
    IN_FLIGHT      pods popped and not settled             gone           done (bound, or not worth keeping)
                                                           the four above add_unschedulable_if_not_present

    (new) ── add, update ──▶ ACTIVE, or GATED if held            any state but IN_FLIGHT ── delete ──▶ (gone)

Every way into ACTIVE and BACKOFF runs the PreEnqueue plugins, except the way from BACKOFF to ACTIVE: they ran on the
way in. A pod is in one state at a time; it is known by `namespace/name` in the queue and by uid in flight.

No asyncio, no I/O and no thread safety: one owner calls, and time comes from the clock. Plugins are called (PreEnqueue,
queue sort, hints) and may raise without a pod being lost. Which node a pod gets is decided elsewhere.
"""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.events import ClusterEvent, EventHint
from bayplan.framework.queued import QueuedPod
from bayplan.observe.clock import Clock
from bayplan.queue.backoff import BackoffQueue, BackoffTimes
from bayplan.queue.gates import GateFailure, Gates, PreEnqueue, Releases
from bayplan.queue.heap import PodHeap, SortKey, by_priority
from bayplan.queue.in_flight import InFlight
from bayplan.queue.nominations import Nominations
from bayplan.queue.places import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    POD_ADD,
    POD_UPDATE,
    POP,
    POP_FROM_BACKOFF,
    RELOADED,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    MoveHistory,
    MoveListener,
    Place,
    Queues,
    QueueSizes,
)
from bayplan.queue.requeue import Appraisal, HintObserver, Interest, Registrations, Requeueing, Strategy
from bayplan.queue.shown_events import ShownEvents
from bayplan.queue.unschedulable import Alike, Kind, Rejector, UnschedulablePool
from bayplan.queue.update_events import pod_update_events

__all__ = ["QueuePolicy", "SchedulingQueue"]

_log = logging.getLogger(__name__)
_SET_SECONDS = 1.0
"""A clock that differs by more from what it said before was set."""
Predicate = Callable[[PodInfo], bool]


@dataclass(frozen=True, kw_only=True)
class QueuePolicy:
    """What the plugins of all profiles declare about queueing."""

    sort_key: SortKey = by_priority
    """Of the one queue-sort plugin that all profiles share; smaller goes first."""
    pre_enqueue: Mapping[str, Mapping[str, PreEnqueue]] = field(default_factory=dict)
    """Profile to plugin name to its PreEnqueue, in the order of the profile."""
    releases: Mapping[str, Mapping[str, Releases]] = field(default_factory=dict)
    """The same for PreEnqueue plugins that log the pods they release; others are called again for every pod."""
    registrations: Mapping[str, Iterable[tuple[str, EventHint]]] = field(default_factory=dict)
    """Profile to (plugin name, event it registered). A plugin without registrations gets `WILDCARD`."""

    @property
    def registrations_of_all(self) -> dict[str, Iterable[tuple[str, EventHint]]]:
        """The registrations, with an entry for each profile that is known at all."""
        return {**dict.fromkeys(self.pre_enqueue, ()), **self.registrations}


def _no_bell() -> None:
    """For a queue that is only polled."""


class SchedulingQueue:
    """See the module. Methods that move a pod return its new place."""

    def __init__(
        self,
        clock: Clock,
        policy: QueuePolicy,
        *,
        nominations: Nominations,
        times: BackoffTimes | None = None,
        on_ready: Callable[[], None] = _no_bell,
        hint_observer: HintObserver | None = None,
        on_move: MoveListener | None = None,
        on_gate_failure: GateFailure | None = None,
    ) -> None:
        self._clock = clock
        self._ahead = clock.now() - clock.monotonic()
        self._on_gate_failure = on_gate_failure
        self._times = times or BackoffTimes()
        self._on_ready = on_ready
        self._hint_observer = hint_observer
        self._use(policy)
        self._in_flight = InFlight()
        self._history = MoveHistory(clock.now, on_move)
        self.nominations = nominations
        self.scheduling_cycle = 0
        """How many pods were popped."""

    def _use(self, policy: QueuePolicy) -> None:
        self._gates = Gates(policy.pre_enqueue, policy.releases, on_failure=self._on_gate_failure)
        self._registrations = Registrations(policy.registrations_of_all)
        self._requeueing = Requeueing(
            self._registrations, monotonic=self._clock.monotonic, observer=self._hint_observer
        )
        self._active = PodHeap(policy.sort_key, fallback=by_priority)
        self._backoff = BackoffQueue(self._times, policy.sort_key)
        self._pool = UnschedulablePool(self._registrations.profiles)
        self._shown = ShownEvents(self._pool)
        self._queues = Queues(self._active, self._backoff, self._pool)

    def adopt(self, policy: QueuePolicy) -> None:
        """Replace the policy. Pods that the old plugins rejected are tried again, as the new ones may accept them."""
        places = self._queues.by_place()
        self._use(policy)
        for place, pods in places.items():
            for queued in pods:
                self._enter(Place.BACKOFF if place is Place.BACKOFF else Place.ACTIVE, queued, RELOADED)

    # What comes from the API server.

    def add(self, info: PodInfo) -> Place:
        """Add an unassigned pod. One that is known already counts as an update."""
        if info.uid in self._in_flight or self._queues.get(info.key) is not None:
            return self.update(None, info)
        return self._admit(info, POD_ADD)

    def update(self, old: PodInfo | None, new: PodInfo) -> Place:
        """Update an unassigned pod. One that is not known is added."""
        if new.uid in self._in_flight:
            # A failed attempt reads the latest version anyway; only the event must not be lost.
            for event in _events(old, new):
                self._in_flight.record(event, old, new)
            return Place.IN_FLIGHT
        queued = self._queues.get(new.key)
        if queued is not None and queued.uid != new.uid:
            self.delete(queued.info)
            queued = None
        if queued is None:
            return self._admit(new, POD_UPDATE)
        old = old if old is not None and old.uid == new.uid else queued.info
        self.nominations.update(old, new)
        if self._pool.get(new.key) is None:
            return self._replace(queued, new)
        return self._reconsider(queued, old, new)

    def delete(self, info: PodInfo) -> None:
        """Remove a pod that is deleted or bound. A pod in flight is settled by the attempt that popped it."""
        self.nominations.delete(info)
        queued = self._queues.get(info.key)
        if queued is not None and queued.uid == info.uid:
            self._queues.remove(info.key)

    def move_all(
        self,
        event: ClusterEvent,
        *,
        old: Any = None,
        new: Any = None,
        predicate: Predicate | None = None,
    ) -> int:
        """Wake the pods that a change in the cluster may help; the number of pods that left the pool.

        Changed pods are given as PodInfo, everything else as the API object. `predicate` limits which pods may be
        woken; for pods in flight the event is recorded in any case.
        """
        if not len(self._pool) and not len(self._in_flight):
            return 0
        if event.is_wildcard:
            candidates = [queued for queued in self._pool if predicate is None or predicate(queued.info)]
            woken = self._wake(candidates, event, old, new) if candidates else 0
        else:
            interest = self._registrations.interest_in(event)
            if not interest.rejectors:
                return 0
            worthy = self._worth_waking(interest, event, old, new, predicate) if len(self._pool) else ()
            woken = self._wake_all(worthy, event) if worthy else 0
        self._in_flight.record(event, old, new)
        return woken

    # The scheduling loop.

    def pop(self) -> QueuedPod | None:
        """The next pod to try, now in flight until `done` or `add_unschedulable_if_not_present`; None if none is due.

        With nothing active, the rejected pod whose back-off ends first is taken early: an idle scheduler may try.
        """
        while True:
            queued, cause = self._active.pop(), POP
            if queued is None:
                queued, cause = self._backoff.pop_early(), POP_FROM_BACKOFF
            if queued is None:
                return None
            if self._in_flight.begin(queued.info.uid):
                break
            _log.error(
                "pod `%s` is dropped from the queue: a pod with its uid `%s` is being scheduled\n"
                "hint: two pods must not share a uid; delete one of them and create it again",
                queued.key,
                queued.uid,
            )
        if cause is POP_FROM_BACKOFF:
            self.incoming[Place.ACTIVE.value, cause] += 1
        queued.attempts += 1
        self.scheduling_cycle += 1
        self._history.popped(queued, cause)
        return queued

    def take(self, key: str) -> QueuedPod | None:
        """The pod of that `namespace/name`, wherever it waits, now in flight: an order that was recorded elsewhere."""
        queued = self._queues.get(key)
        if queued is None or not self._in_flight.begin(queued.uid):
            return None
        self._queues.remove(key)
        queued.attempts += 1
        self.scheduling_cycle += 1
        self._history.popped(queued, POP)
        return queued

    def done(self, uid: str) -> None:
        """Settle a pod in flight. Without effect for one that is settled already or was never popped."""
        self._in_flight.end(uid)

    def add_unschedulable_if_not_present(
        self,
        queued: QueuedPod,
        *,
        unschedulable_plugins: Iterable[str] = (),
        pending_plugins: Iterable[str] = (),
        info: PodInfo | None = None,
    ) -> Place:
        """Requeue a popped pod after a failed attempt, rejected by these plugins; none of them stands for an error.

        `info` is its latest version. Where the pod goes depends on what happened while it was in flight.
        """
        present = self._queues.place_of(queued.key)
        if present is not None:
            _log.error("pod `%s` came back from scheduling but is in the %s queue already", queued.key, present.value)
            self.done(queued.uid)
            return present
        if info is not None:
            queued.info = info
        queued.unschedulable_plugins = frozenset(unschedulable_plugins)
        queued.pending_plugins = frozenset(pending_plugins)
        strategy = Strategy.AFTER_BACKOFF
        if queued.rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
            strategy = self._requeueing.after_all(queued, self._in_flight.events_since(queued.uid))
        else:
            queued.consecutive_errors += 1
        queued.timestamp = now = self._now()
        queued.backoff_expiration = queued.flushed_at = None
        place = self._requeue(queued, strategy, SCHEDULE_ATTEMPT_FAILURE, now)
        self.done(queued.uid)
        return place

    def activate(self, infos: Iterable[PodInfo]) -> None:
        """Move these pods to the active queue. One in flight skips the pool if it fails."""
        for info in infos:
            if (queued := self._pool.remove(info.key)) is not None:
                _mark_woken(queued, FORCE_ACTIVATE)
                self._enter(Place.ACTIVE, queued, FORCE_ACTIVATE.name)
            elif (queued := self._backoff.remove(info.key)) is not None:
                _mark_woken(queued, FORCE_ACTIVATE)
                self._enter_active(queued, FORCE_ACTIVATE.name)
            elif info.uid in self._in_flight:
                self._in_flight.record(FORCE_ACTIVATE, None, info)

    # The timers.

    def flush_backoff(self) -> int:
        """Activate every pod whose back-off is over; the number of them."""
        completed = self._backoff.pop_completed(self._now())
        for queued in completed:
            self._enter_active(queued, BACKOFF_COMPLETE)
        return len(completed)

    def flush_unschedulable(self) -> int:
        """Requeue every pod that has been in the pool for too long; the number of pods that left it."""
        now = self._now()
        longest = self._times.max_in_unschedulable_seconds
        overdue = [queued for queued in self._pool if now - max(queued.timestamp, queued.flushed_at or 0.0) > longest]
        if not overdue:
            return 0
        for queued in overdue:
            queued.flushed_at = now
        woken = self._wake(overdue, UNSCHEDULABLE_TIMEOUT, None, None)
        self._pool.flushed.update(queued.key for queued in overdue if self._pool.get(queued.key) is queued)
        self._in_flight.record(UNSCHEDULABLE_TIMEOUT, None, None)
        return woken

    def _now(self) -> float:
        """The time. If the clock of the machine was set, what was noted before moves along: a pod waits for as long as
        it was to wait, and not an hour longer because the clock was an hour ahead when it failed."""
        now = self._clock.now()
        ahead = now - self._clock.monotonic()
        if abs(ahead - self._ahead) > _SET_SECONDS:
            self._queues.move_times(ahead - self._ahead)
            self._ahead = ahead
        return now

    # State.

    def get(self, key: str) -> QueuedPod | None:
        """The pod of that `namespace/name`, if it waits in any queue."""
        return self._queues.get(key)

    def place_of(self, key: str) -> Place | None:
        """Where the pod of that `namespace/name` waits; None for pods in flight and unknown ones."""
        return self._queues.place_of(key)

    def is_in_flight(self, uid: str) -> bool:
        return uid in self._in_flight

    @property
    def sizes(self) -> QueueSizes:
        pool, gated = len(self._pool), self._pool.gated
        return QueueSizes(len(self._active), len(self._backoff), pool - gated, gated, len(self._in_flight))

    @property
    def incoming(self) -> Counter[tuple[str, str]]:
        """(queue, cause) to how many pods entered; for `queue_incoming_pods_total`."""
        return self._history.incoming

    def pending_pods(self) -> dict[Place, list[QueuedPod]]:
        """Every waiting pod by place; the order within a place is not the order of leaving."""
        return self._queues.by_place()

    def rejections(self) -> dict[tuple[str, str], int]:
        """(plugin, profile) to how many waiting pods it rejected; for `unschedulable_pods`."""
        return self._queues.rejections()

    def in_flight_events(self) -> dict[str, int]:
        """Event name to how many are kept for pods in flight; `PodPopped` counts those pods."""
        return {**self._in_flight.count_by_event(), "PodPopped": len(self._in_flight)}

    # The moves.

    def _admit(self, info: PodInfo, cause: str) -> Place:
        place = self._enter(Place.ACTIVE, QueuedPod(info, self._now()), cause)
        if place is Place.ACTIVE:
            self.nominations.add(info)
        return place

    def _replace(self, queued: QueuedPod, new: PodInfo) -> Place:
        """Put a changed copy into the heap that the pod is in."""
        changed = copy.copy(queued)
        changed.info = new
        if new.key in self._active:
            self._active.push(changed)
            return Place.ACTIVE
        self._backoff.push(changed)
        return Place.BACKOFF

    def _reconsider(self, queued: QueuedPod, old: PodInfo, new: PodInfo) -> Place:
        """Requeue a waiting pod if a change of the pod itself may help it."""
        self._pool.update(queued, new)
        for event in _events(old, new):
            if self._wake([queued], event, old, new):
                return Place.ACTIVE if new.key in self._active else Place.BACKOFF
        return Place.GATED if queued.gating_plugin else Place.UNSCHEDULABLE

    def _worth_waking(
        self, interest: Interest, event: ClusterEvent, old: Any, new: Any, predicate: Predicate | None
    ) -> list[_Worthy]:
        """The pods that the event may help, in order of rejectors and arrival."""
        appraisal = self._requeueing.appraise(event, old=old, new=new)
        likeness = self._shown.likeness(interest, event, old, new)
        worthy: list[_Worthy] = []
        helped: dict[Rejector, list[Kind]] = {}
        for rejector, kinds in self._pool.rejected_by(interest.rejectors, self._shown.before(likeness)):
            found: list[_Worthy] = []
            for kind, alike in kinds.items():
                answers = self._worthy_among(alike, interest, appraisal, predicate)
                if answers is not None:
                    helped.setdefault(rejector, []).append(kind)
                    found += answers
            worthy += sorted(found, key=lambda one: self._pool.arrival(one[0]))
        self._shown.note(likeness, helped)
        return worthy

    def _worthy_among(
        self, alike: Alike, interest: Interest, appraisal: Appraisal, predicate: Predicate | None
    ) -> list[_Worthy] | None:
        """The same among pods that wait alike, with one call of each hint for all of them where the hint allows it;
        None where the event helps none of them."""
        first = next(iter(alike.values()), None)
        # A plugin may call back into the queue, so that no pod is left.
        if first is None or not interest.includes_holder_of(first):
            return None
        shared = appraisal.of_alike(alike)
        if shared is Strategy.SKIP:
            return None
        pods = self._gates.worth_asking(first, alike, self._pool)
        answers = [(q, shared or appraisal(q)) for q in pods if predicate is None or predicate(q.info)]
        return [answer for answer in answers if answer[1] is not Strategy.SKIP]

    def _wake(self, candidates: Iterable[QueuedPod], event: ClusterEvent, old: Any, new: Any) -> int:
        """Requeue those that the event may help; the number of pods that left the pool."""
        appraisal = self._requeueing.appraise(event, old=old, new=new)
        answers = [(queued, appraisal(queued)) for queued in candidates]
        return self._wake_all([answer for answer in answers if answer[1] is not Strategy.SKIP], event)

    def _wake_all(self, worthy: Iterable[_Worthy], event: ClusterEvent) -> int:
        woken, now = 0, self._now()
        for queued, strategy in worthy:
            # A plugin may call back into the queue, so that a pod has left the pool by now.
            if self._pool.get(queued.key) is not queued:
                continue
            _mark_woken(queued, event)
            self._pool.flushed.discard(queued.key)
            if queued.gating_plugin and self._gates.still_hold(queued):
                continue
            self._pool.remove(queued.key)
            woken += self._requeue(queued, strategy, event.name, now) in _LEFT_THE_POOL
        return woken

    def _requeue(self, queued: QueuedPod, strategy: Strategy, cause: str, now: float) -> Place:
        if strategy is Strategy.SKIP:
            return self._park(queued, cause)
        if strategy is Strategy.AFTER_BACKOFF and self._times.is_backing_off(queued, now):
            return self._enter(Place.BACKOFF, queued, cause)
        return self._enter(Place.ACTIVE, queued, cause)

    def _enter(self, place: Place, queued: QueuedPod, cause: str) -> Place:
        """Into the active or the back-off queue, if no PreEnqueue plugin holds the pod."""
        if self._gates.hold(queued):
            return self._park(queued, cause)
        if place is Place.ACTIVE:
            return self._enter_active(queued, cause)
        self._backoff.push(queued)
        self._on_ready()
        return self._history.entered(queued, Place.BACKOFF, cause)

    def _enter_active(self, queued: QueuedPod, cause: str) -> Place:
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._now()
        self._active.push(queued)
        self._on_ready()
        return self._history.entered(queued, Place.ACTIVE, cause)

    def _park(self, queued: QueuedPod, cause: str) -> Place:
        self._pool.add(queued)
        return self._history.entered(queued, Place.GATED if queued.gating_plugin else Place.UNSCHEDULABLE, cause)


_Worthy = tuple[QueuedPod, Strategy]
_LEFT_THE_POOL = (Place.ACTIVE, Place.BACKOFF)


def _mark_woken(queued: QueuedPod, event: ClusterEvent) -> None:
    queued.last_event = event.name
    if event is not UNSCHEDULABLE_TIMEOUT:
        queued.flushed_at = None


def _events(old: PodInfo | None, new: PodInfo) -> list[ClusterEvent]:
    """The update events; an unknown old version compares as equal, which is the general update."""
    return pod_update_events(new.pod if old is None else old.pod, new.pod)
