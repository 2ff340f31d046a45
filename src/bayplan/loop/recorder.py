"""The recorder: keeps what was decided in every attempt, and what became of it.

`DecisionRecorder` listens to the loop. It is on the path of every pod, so it notes numbers and things that live on
anyway, a few microseconds a pod at any rate of scheduling, and makes a `DecisionRecord` of a note when it is
read. What is kept is bounded by memory; the oldest attempts are dropped first, and counted.

A note holds on to no column, node or pod. Numbers and groups that many attempts share are kept once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec

from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.plugin import PostFilterResult
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.filtering import FilterOutcome
from bayplan.framework.runtime.node_calls import FilterCall
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.loop.notes import Failure, Note, Restored
from bayplan.loop.observer import Observer
from bayplan.loop.points import NOTHING_SCORED, leading_pair
from bayplan.loop.record import (
    UNDER_WAY,
    CandidateKey,
    DecisionRecord,
    PermitWait,
    Preemption,
    Refused,
    Victim,
)
from bayplan.observe.clock import Clock

__all__ = ["DEFAULT_MEMORY_BYTES", "DecisionRecorder", "preemption_of", "refused_nodes"]

DEFAULT_MEMORY_BYTES = 64 * 2**20
_NOTE_BYTES = 820
"""Of an attempt without its strings, its history and what it does not share; `bench.recorder` measures it."""
_STEP_BYTES = 96
_MOST_SHARED_BYTES = 8 * 2**20
_SAMPLE = 3
_MOST_GROUPS = 16
_LONGEST_TEXT = 2048
_MOST_REASONS = 32
"""Of one group of nodes: a pod may ask for a thousand resources that no node has."""
_RECENT = 5_000
"""So many of the newest attempts are summed up."""

T = TypeVar("T", bound=Hashable)


class DecisionRecorder(Observer):
    """Keeps the last decisions. One for all profiles; survives reloads."""

    def __init__(self, clock: Clock, *, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self._now, self._monotonic = clock.now, clock.monotonic
        self.cluster = ClusterState()
        """The one that is decided on; replaced once the scheduler is built."""
        self._notes: deque[Note | Restored] = deque()
        self._memory_bytes = memory_bytes
        self.bytes_kept = 0
        self.dropped = 0
        """Attempts that had to make room for newer ones."""
        self._open: dict[str, Note] = {}
        """By the uid of the pod; bindings that were cancelled never say how they ended, and go with their notes."""
        self._shared: dict[Any, Any] = {}
        self._shared_bytes = 0
        self._preempting: dict[str, Preemption] = {}
        """By the uid of a pod that preempted and has no node yet."""
        self._victims: dict[str, Note | Restored] = {}
        """By `namespace/name` of a victim, the attempt that it had to leave for."""
        self.count = 0
        """How many attempts there were."""
        self.bound_count = self.failed_count = 0
        self.plugin_errors: dict[str, int] = {}
        """By plugin, how often it raised."""
        self.latencies: deque[float] = deque(maxlen=4096)
        """Seconds from the start of an attempt to its binding, of the last pods that were bound."""
        self.on_settled: list[Callable[[DecisionRecord], None]] = []
        """Called with each attempt once its outcome is known; must be quick and must not raise."""

    # Reading

    def __len__(self) -> int:
        return len(self._notes)

    def __iter__(self) -> Iterator[DecisionRecord]:
        """Newest first."""
        return (note.record() for note in reversed(self._notes))

    @property
    def under_way(self) -> int:
        """Attempts that are kept and whose outcome is not known yet."""
        return len(self._open)

    def of_pod(self, key: str, *, uid: str = "", most: int = 50) -> list[DecisionRecord]:
        """The attempts of one `namespace/name`, newest first; with a uid, of that pod and of no other of its name."""
        namespace, _, name = key.rpartition("/")
        return self._found(
            lambda note: note.name == name and note.namespace == namespace and uid in ("", note.uid), most
        )

    def of_node(self, name: str, *, most: int = 50) -> list[DecisionRecord]:
        """The attempts that chose a node, newest first."""
        return self._found(lambda note: note.node == name, most)

    def latest(self, most: int) -> list[DecisionRecord]:
        """Newest first."""
        return self._found(lambda note: True, most)

    def newest(self, most: int | None = None) -> list[Note | Restored]:
        """Attempts as they are kept, newest first; all of them without a limit."""
        return list(islice(reversed(self._notes), most))

    def preempted_for(self, key: str) -> DecisionRecord | None:
        """The attempt for which the pod with this `namespace/name` had to leave, while it is kept."""
        note = self._victims.get(key)
        return None if note is None else note.record()

    def preemption_by(self, uid: str) -> Preemption | None:
        """What a pod without a node preempted, if it did."""
        return self._preempting.get(uid)

    def _found(self, wanted: Callable[[Note | Restored], bool], most: int) -> list[DecisionRecord]:
        return [note.record() for note in islice((n for n in reversed(self._notes) if wanted(n)), most)]

    def rejections(self) -> dict[str, int]:
        """By filter, how many nodes it was the first to reject in the newest attempts."""
        sums: dict[str, int] = {}
        for note in islice(reversed(self._notes), _RECENT):
            for plugin, count in note.rejected().items():
                sums[plugin] = sums.get(plugin, 0) + count
        return sums

    def plugin_times(self) -> dict[tuple[str, str], tuple[int, float]]:
        """(plugin, extension point) to (cycles in which it was timed, seconds in all), of the newest attempts."""
        sums: dict[tuple[str, str], tuple[int, float]] = {}
        for note in islice(reversed(self._notes), _RECENT):
            for time in note.times.all() if isinstance(note, Note) and note.times is not None else ():
                count, seconds = sums.get((time.plugin, time.point), (0, 0.0))
                sums[time.plugin, time.point] = (count + 1, seconds + time.seconds)
        return sums

    def restore(self, records: Iterable[DecisionRecord]) -> None:
        """Keep attempts of an earlier process, given oldest first, as the oldest ones."""
        for record in records:
            namespace, _, name = record.pod.rpartition("/")
            size = 2 * len(msgspec.msgpack.encode(record)) + _NOTE_BYTES
            restored = Restored(record, namespace, name, record.node, size)
            self._notes.append(restored)
            self._victims.update((victim.pod, restored) for victim in record.victims)
            if record.outcome == "bound":
                self._preempting.pop(record.uid, None)
            elif record.preemption is not None:
                self._preempting[record.uid] = record.preemption
            self.bytes_kept += size
            self._make_room()

    # Observing the loop

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        info, plan, outcome, node = queued.info, decision.plan, decision.outcome, decision.node_name
        nodes = looked_at = decision.evaluated_nodes
        filters: Sequence[FilterCall] = ()
        counts: Sequence[int] = ()
        pair = NOTHING_SCORED
        if plan is not None:
            filters = plan.outline.filters
            if decision.tied is not None:
                pair = leading_pair(decision, plan)
        if outcome is None:
            nodes = len(self.cluster.nodes)
            if node and node == info.nominated_node_name:
                looked_at = 0
        else:
            counts = outcome.first_rejections()
            if outcome.passing is not None and outcome.overrides:
                counts = _with_overrides(counts, outcome, filters)
        failure, failure_size = (None, 0) if node and not decision.refused else self._failure(decision)
        times, history = decision.state.times, tuple(queued.history)
        size = _NOTE_BYTES + failure_size + len(info.name) + len(info.uid) + _STEP_BYTES * len(history)
        fitting = feasible = decision.feasible_nodes
        if outcome is not None and outcome.count != feasible:
            fitting = decision.fitting_nodes
        number = self.count = self.count + 1
        # Memory that is kept displaces data of the next decision from the processor's caches, which costs more time
        # than the note itself. So a note holds numbers and objects that live on anyway, but neither the decision nor,
        # in most cycles, its marks.
        note = Note(
            number,
            self._now(),
            info.namespace,
            info.name,
            info.uid,
            info.shape.spec.scheduler_name,
            queued.attempts,
            history,
            queued.last_event,
            seconds,
            self.cluster.generation,
            nodes,
            looked_at,
            fitting,
            node,
            decision.total,
            decision.ties,
            filters,
            counts,
            *pair,
            failure,
            decision.marks if times is not None or failure is not None else (),
            times,
            size,
        )
        if fitting != feasible and node:
            note.scored = feasible
        self._notes.append(note)
        self.bytes_kept += size
        if self.bytes_kept > self._memory_bytes:
            self._make_room()
        if failure is not None or self._preempting:
            self._note_preemption(note, queued, decision)
        self._open[info.uid] = note

    def _make_room(self) -> None:
        while self.bytes_kept > self._memory_bytes and len(self._notes) > 1:
            old = self._notes.popleft()
            self.bytes_kept -= old.size
            self.dropped += 1
            if old.outcome == UNDER_WAY and self._open.get(old.uid) is old:
                del self._open[old.uid]
            if old.preemption is not None:
                self._forget_preemption(old, old.preemption)

    def _forget_preemption(self, old: Note | Restored, preemption: Preemption) -> None:
        for victim in preemption.victims:
            if self._victims.get(victim.pod) is old:
                del self._victims[victim.pod]
        if self._preempting.get(old.uid) is preemption:
            del self._preempting[old.uid]

    def _share(self, value: T, size: int) -> tuple[T, int]:
        """The same value as others have, kept once; and how much more is kept because of it."""
        found: T | None = self._shared.get(value)
        if found is not None:
            return found, 0
        if self._shared_bytes + size > _MOST_SHARED_BYTES:
            self._shared.clear()
            self._shared_bytes = 0
        self._shared[value] = value
        self._shared_bytes += size
        return value, size

    def _failure(self, decision: Decision) -> tuple[Failure, int]:
        nomination, diagnosis = decision.nomination, decision.diagnosis
        failure = Failure(
            refused=tuple(map(_brief, refused_nodes(decision))),
            message=_short(decision.message),
            post_filter=_short(diagnosis.post_filter_message) if diagnosis is not None else "",
            nominated=(nomination.nominated_node_name or "") if nomination is not None else "",
        )
        texts = [failure.message, failure.post_filter]
        for group in failure.refused:
            texts += (*group.reasons, *group.sample)
        return self._share(failure, sum(map(_size_of_text, texts)) + _STEP_BYTES * (1 + len(failure.refused)))

    def _note_preemption(self, note: Note, queued: QueuedPod, decision: Decision) -> None:
        found = preemption_of(decision.nomination, attempt=queued.attempts, time=note.time)
        if found is not None:
            note.preemption = self._preempting[queued.uid] = found
            for victim in found.victims:
                self._victims[victim.pod] = note
            extra = 200 * (len(found.victims) + 1)
            note.size += extra
            self.bytes_kept += extra
        elif note.node:
            # An attempt that then chooses the node also carries the preemption that freed it.
            earlier = self._preempting.get(queued.uid)
            note.preemption = earlier if earlier is not None and earlier.node == note.node else None

    def held_at_permit(self, info: PodInfo, node_name: str, timeouts: Mapping[str, float]) -> None:
        note = self._open.get(info.uid)
        if note is not None:
            note.permit = PermitWait(plugins=dict(timeouts))

    def left_permit(self, info: PodInfo, result: str, seconds: float) -> None:
        note = self._open.get(info.uid)
        if note is not None and note.permit is not None:
            note.permit = PermitWait(plugins=note.permit.plugins, seconds=seconds, result=result)

    def refused_after_choice(self, info: PodInfo, node_name: str, point: str, status: Status) -> None:
        note = self._open.get(info.uid)
        if note is not None:
            note.stopped_at, note.stopped_by = point, status.plugin

    def attempt_failed(self, queued: QueuedPod, status: Status, seconds: float) -> None:
        self.failed_count += 1
        note = self._open.pop(queued.uid, None)
        if note is None:
            return
        note.outcome = "unschedulable" if status.is_rejected else "error"
        if not status.is_rejected or note.node:
            text = _short(status.message)
            note.error, size = self._share(text, _size_of_text(text))
            note.size += size
            self.bytes_kept += size
        self._settle(note, seconds)

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        self.bound_count += 1
        self.latencies.append(seconds)
        if self._preempting:
            self._preempting.pop(queued.uid, None)
        note = self._open.pop(queued.info.uid, None)
        if note is not None:
            note.outcome, note.outcome_seconds = "bound", seconds
            if self.on_settled:
                self._settle(note, seconds)

    def plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        self.plugin_errors[plugin] = self.plugin_errors.get(plugin, 0) + 1

    def _settle(self, note: Note, seconds: float) -> None:
        note.outcome_seconds = seconds
        if self.on_settled:
            record = note.record()
            for listener in self.on_settled:
                listener(record)


def _with_overrides(counts: Sequence[int], outcome: FilterOutcome, filters: Sequence[FilterCall]) -> list[int]:
    """First rejections by rank, those because of nominated pods included."""
    ranks = {call.name: call.rank for call in filters}
    found = [*counts, *(0 for _ in range(len(counts), max(ranks.values(), default=0) + 1))]
    for status, rows in outcome.overrides:
        rank = ranks.get(status.plugin)
        if rank is not None:
            found[rank] += len(rows)
    return found


def preemption_of(result: PostFilterResult | None, *, attempt: int = 0, time: float = 0.0) -> Preemption | None:
    """What PostFilter decided; None where no pod is evicted."""
    if result is None or not result.nominated_node_name or not result.victims:
        return None
    return Preemption(
        node=result.nominated_node_name,
        victims=tuple(Victim(pod=victim.key, uid=victim.uid, priority=victim.priority) for victim in result.victims),
        victim_count=len(result.victims),
        candidates=result.candidates,
        keys=tuple(CandidateKey(key=key, value=value, left=left) for key, value, left in result.keys),
        attempt=attempt,
        time=time,
    )


def refused_nodes(decision: Decision, *, most: int | None = _MOST_GROUPS) -> list[Refused]:
    """The rejected nodes by status, most nodes first. To be read before the next decision."""
    plan, diagnosis = decision.plan, decision.diagnosis
    if plan is None:
        return []
    groups = diagnosis.groups if diagnosis is not None else decision.rejected_groups()
    table = plan.evaluation.table
    found = [
        Refused(
            plugin=status.plugin,
            code=status.code.label,
            reasons=tuple(map(_short, status.reasons)),
            count=len(rows),
            sample=tuple(table.at(row).name for row in rows[:_SAMPLE].tolist()),
        )
        for status, rows in groups
    ]
    absent = diagnosis.absent if diagnosis is not None else decision.absent
    left_out = len(table) - sum(group.count for group in found) - decision.feasible_nodes
    if absent is not None and left_out > 0:
        reasons = tuple(map(_short, absent.reasons))
        found.append(Refused(plugin=absent.plugin, code=absent.code.label, reasons=reasons, count=left_out))
    return sorted(found, key=lambda group: -group.count)[:most]


def _brief(group: Refused) -> Refused:
    left_out = len(group.reasons) - _MOST_REASONS
    if left_out <= 0:
        return group
    reasons = (*group.reasons[:_MOST_REASONS], f"and for {left_out:,} more reasons")
    return msgspec.structs.replace(group, reasons=reasons)


def _size_of_text(text: str) -> int:
    return 2 * len(text) + 50


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
