"""The decision record: what was decided in each attempt, on what, and what became of it.

`DecisionRecorder` listens to the loop and keeps the last few thousand attempts. It is on the path of every pod, so it
does two things. Always: who, when, which cluster, how long in the queue and why, how many nodes each filter was the
first to reject, ties, total, how long it took and the outcome; about a microsecond, put into words when somebody reads
it. When it can afford it: reasons with samples, the names of ties, and the scores of the best nodes by plugin (raw,
normalised, weighted).
What it can afford is a share of the time that passes, so at ten pods a second every record is complete and at ten
thousand a second some are not (`is_complete` says which). Attempts that fail are always complete.

Nothing here holds on to columns, nodes or pods; a record is plain data that can be written to a file as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from bayplan.cluster.state import ClusterState
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.call import FilterCall
from bayplan.framework.status import Status
from bayplan.framework.times import PluginTimes
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer
from bayplan.loop.scored_nodes import EXTENDER, ScoredNode, best_nodes, tied_nodes
from bayplan.observe.clock import Clock

__all__ = [
    "KEPT_DECISIONS",
    "DecisionRecord",
    "DecisionRecorder",
    "PluginTook",
    "Refused",
    "phases_of",
    "refused_nodes",
]

KEPT_DECISIONS = 10_000
UNDER_WAY = "under way"
_SHARE_OF_TIME = 0.005
_BURST_SECONDS = 2.0
_MOST_OPEN = 4096
_SAMPLE = 3
_MOST_GROUPS = 16
_MOST_VICTIMS = 32
_LONGEST_TEXT = 2048

Story = tuple[tuple[float, str, str], ...]


class Refused(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Nodes that one plugin refused for the same reasons."""

    plugin: str
    code: str
    reasons: tuple[str, ...]
    count: int
    sample: tuple[str, ...] = ()
    """Names of some of them."""


class PluginTook(msgspec.Struct, frozen=True, rename="camel", gc=False):
    plugin: str
    point: str
    """As in metrics: PreFilter, Filter, Score, ..."""
    seconds: float


class DecisionRecord(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """One attempt. Times are seconds since the epoch."""

    number: int
    time: float
    pod: str
    uid: str
    profile: str
    attempt: int = 1
    generation: int = 0
    """Of the cluster that was decided on."""
    seconds: float = 0.0
    """How long the decision took."""
    node_count: int = 0
    feasible: int = 0
    rejected: tuple[tuple[str, int], ...] = ()
    """(filter, how many nodes it was the first to reject), in the order of the filters."""
    node: str = ""
    total: int = 0
    ties: int = 0
    """How many nodes had the highest total; one of several is drawn by the seeded tie-break."""
    tied: tuple[str, ...] = ()
    """Names of some of them, where there are several."""
    story: Story = ()
    """(time, queue entered, cause) up to this attempt."""
    woken_by: str = ""
    is_complete: bool = False
    refused: tuple[Refused, ...] = ()
    best: tuple[ScoredNode, ...] = ()
    """The chosen node first, then the others by total."""
    message: str = ""
    nominated: str = ""
    victims: tuple[str, ...] = ()
    phases: tuple[tuple[str, float], ...] = ()
    """(extension point, seconds) in the order in which they ran; of complete and of measured attempts."""
    times: tuple[PluginTook, ...] = ()
    """By plugin, in cycles that are measured, one of ten at most. Plugins whose remembered answers were used took no
    time."""
    outcome: str = UNDER_WAY
    """under way, bound, unschedulable, or error"""
    outcome_seconds: float = 0.0
    """From the start of the attempt to its outcome."""
    error: str = ""


class _Details(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is noted when it can be afforded."""

    refused: tuple[Refused, ...] = ()
    best: tuple[ScoredNode, ...] = ()
    tied: tuple[str, ...] = ()
    message: str = ""
    nominated: str = ""
    victims: tuple[str, ...] = ()


class _Noted(msgspec.Struct, gc=False):
    """An attempt as it is noted down: positional and without words, because this is made for every pod."""

    number: int
    time: float
    namespace: str
    name: str
    uid: str
    profile: str
    attempt: int
    story: Story
    woken_by: str
    seconds: float
    generation: int
    node_count: int
    feasible: int
    node: str
    total: int
    ties: int
    filters: Sequence[FilterCall]
    rank_counts: Sequence[int]
    marks: Sequence[tuple[str, float]]
    times: PluginTimes | None
    details: _Details | None
    outcome: str = UNDER_WAY
    outcome_seconds: float = 0.0
    error: str = ""

    def record(self) -> DecisionRecord:
        details = self.details or _Details()
        return DecisionRecord(
            number=self.number,
            time=self.time,
            pod=f"{self.namespace}/{self.name}",
            uid=self.uid,
            profile=self.profile,
            attempt=self.attempt,
            generation=self.generation,
            seconds=self.seconds,
            node_count=self.node_count,
            feasible=self.feasible,
            rejected=self.rejected(),
            node=self.node,
            total=self.total,
            ties=self.ties,
            tied=details.tied,
            story=self.story,
            woken_by=self.woken_by,
            is_complete=self.details is not None,
            refused=details.refused,
            best=details.best,
            message=details.message or self.error,
            nominated=details.nominated,
            victims=details.victims,
            phases=phases_of(self.marks),
            times=self._times(),
            outcome=self.outcome,
            outcome_seconds=self.outcome_seconds,
            error=self.error,
        )

    def rejected(self) -> tuple[tuple[str, int], ...]:
        sums = {call.name: self._count(call.rank) for call in self.filters if self._count(call.rank)}
        for group in self.details.refused if self.details is not None else ():
            if not self.rank_counts or group.plugin == EXTENDER:
                sums[group.plugin] = sums.get(group.plugin, 0) + group.count
        return tuple(sums.items())

    def _count(self, rank: int) -> int:
        return self.rank_counts[rank] if rank < len(self.rank_counts) else 0

    def _times(self) -> tuple[PluginTook, ...]:
        found = self.times.all() if self.times is not None else ()
        return tuple(PluginTook(time.plugin, time.point, time.seconds) for time in found)


def phases_of(marks: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """From when each extension point ended to how long it took."""
    return tuple((phase, ended - began) for (_, began), (phase, ended) in pairwise(marks))


class DecisionRecorder(Observer):
    """Keeps the last decisions. One for all profiles; survives reloads."""

    def __init__(
        self,
        clock: Clock,
        *,
        keep: int = KEPT_DECISIONS,
        share_of_time: float = _SHARE_OF_TIME,
    ) -> None:
        self._now, self._monotonic = clock.now, clock.monotonic
        self.cluster = ClusterState()
        """The one that is decided on, for its generation; replaced once the scheduler is built."""
        self._noted: deque[_Noted] = deque(maxlen=keep)
        self._open: dict[str, _Noted] = {}
        self._share = share_of_time
        self._affordable_at = 0.0
        self.count = 0
        """How many attempts there were."""
        self.bound_count = self.failed_count = 0
        self.plugin_errors: dict[str, int] = {}
        """By plugin, how often it raised."""
        self.latencies: deque[float] = deque(maxlen=4096)
        """Seconds from the start of an attempt to its binding, of the last pods that were bound."""
        self.on_settled: list[Callable[[DecisionRecord], None]] = []
        """Told about each attempt once its outcome is known; must be quick and must not raise."""

    # What readers ask

    def __len__(self) -> int:
        return len(self._noted)

    def __iter__(self) -> Iterator[DecisionRecord]:
        """Newest first."""
        return (noted.record() for noted in reversed(self._noted))

    def of_pod(self, key: str, *, most: int = 50) -> list[DecisionRecord]:
        """The attempts of one `namespace/name`, newest first."""
        namespace, _, name = key.rpartition("/")
        return self._found(lambda noted: noted.name == name and noted.namespace == namespace, most)

    def of_node(self, name: str, *, most: int = 50) -> list[DecisionRecord]:
        """The attempts that chose a node, newest first."""
        return self._found(lambda noted: noted.node == name, most)

    def latest(self, most: int) -> list[DecisionRecord]:
        """Newest first."""
        return self._found(lambda noted: True, most)

    def _found(self, wanted: Callable[[_Noted], bool], most: int) -> list[DecisionRecord]:
        found: list[DecisionRecord] = []
        for noted in reversed(self._noted):
            if len(found) == most:
                break
            if wanted(noted):
                found.append(noted.record())
        return found

    def rejections(self) -> dict[str, int]:
        """By filter, how many nodes it was the first to reject in the attempts that are kept."""
        sums: dict[str, int] = {}
        for noted in self._noted:
            for plugin, count in noted.rejected():
                sums[plugin] = sums.get(plugin, 0) + count
        return sums

    def plugin_times(self) -> dict[tuple[str, str], tuple[int, float]]:
        """(plugin, extension point) to (cycles in which it was timed, seconds in all), of the attempts kept."""
        sums: dict[tuple[str, str], tuple[int, float]] = {}
        for noted in self._noted:
            for time in noted.times.all() if noted.times is not None else ():
                count, seconds = sums.get((time.plugin, time.point), (0, 0.0))
                sums[time.plugin, time.point] = (count + 1, seconds + time.seconds)
        return sums

    # What the loop tells

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        marks, outcome, node = decision.marks, decision.outcome, decision.node_name
        info, at = queued.info, marks[-1][1] if marks else self._monotonic()
        details: _Details | None = None
        if not node:
            details = _failure_details(decision)
        elif at >= self._affordable_at:
            details = self._complete(decision, at)
        filters: Sequence[FilterCall] = ()
        counts: Sequence[int] = ()
        if outcome is not None and outcome.passing is None and decision.plan is not None:
            filters, counts = decision.plan.filters, decision.plan.evaluation.rank_counts
        times = decision.state.times
        self.count += 1
        # What is kept costs more than the keeping, by the memory that the next decision must do without: numbers and
        # what lives on anyway, but neither the decision nor, in most cycles, its marks.
        noted = _Noted(
            self.count,
            self._now(),
            info.namespace,
            info.name,
            info.uid,
            info.scheduler_name,
            queued.attempts,
            tuple(queued.story),
            queued.last_event,
            seconds,
            self.cluster.generation,
            decision.evaluated_nodes,
            decision.feasible_nodes,
            node,
            decision.total,
            decision.ties,
            filters,
            counts,
            marks if times is not None or details is not None else (),
            times,
            details,
        )
        self._noted.append(noted)
        self._open[info.uid] = noted
        if len(self._open) > _MOST_OPEN:
            # Bindings that were cancelled never tell how they ended.
            del self._open[next(iter(self._open))]

    def _complete(self, decision: Decision, at: float) -> _Details:
        began = self._monotonic()
        details = _Details(
            refused=tuple(refused_nodes(decision)), best=tuple(best_nodes(decision)), tied=tuple(tied_nodes(decision))
        )
        took = self._monotonic() - began
        # What was not spent in quiet times is there for a burst, up to a limit.
        self._affordable_at = max(self._affordable_at, at - _BURST_SECONDS) + took / self._share
        return details

    def attempt_failed(self, queued: QueuedPod, status: Status, seconds: float) -> None:
        self.failed_count += 1
        noted = self._open.pop(queued.uid, None)
        if noted is None:
            return
        noted.outcome = "unschedulable" if status.is_rejected else "error"
        if not status.is_rejected or noted.node:
            noted.error = _short(status.message)
        self._settle(noted, seconds)

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        self.bound_count += 1
        self.latencies.append(seconds)
        noted = self._open.pop(queued.info.uid, None)
        if noted is not None:
            noted.outcome = "bound"
            self._settle(noted, seconds)

    def plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        self.plugin_errors[plugin] = self.plugin_errors.get(plugin, 0) + 1

    def _settle(self, noted: _Noted, seconds: float) -> None:
        noted.outcome_seconds = seconds
        if self.on_settled:
            record = noted.record()
            for listener in self.on_settled:
                listener(record)


def _failure_details(decision: Decision) -> _Details:
    nomination = decision.nomination
    nominated = (nomination.nominated_node_name or "") if nomination is not None else ""
    victims = nomination.victims[:_MOST_VICTIMS] if nomination is not None else ()
    return _Details(
        refused=tuple(refused_nodes(decision)),
        message=_short(decision.message),
        nominated=nominated,
        victims=tuple(victim.key for victim in victims),
    )


def refused_nodes(decision: Decision, *, most: int | None = _MOST_GROUPS) -> list[Refused]:
    """The rejected nodes by status, most nodes first. Ask before the next decision."""
    plan, diagnosis = decision.plan, decision.diagnosis
    if plan is None:
        return []
    groups = diagnosis.groups if diagnosis is not None else decision.rejected_groups()
    table = plan.evaluation.table
    found = [
        Refused(
            status.plugin,
            status.code.label,
            tuple(map(_short, status.reasons)),
            len(rows),
            tuple(table.at(row).name for row in rows[:_SAMPLE].tolist()),
        )
        for status, rows in groups
    ]
    absent = diagnosis.absent if diagnosis is not None else decision.absent
    left_out = len(table) - sum(group.count for group in found) - decision.feasible_nodes
    if absent is not None and left_out > 0:
        found.append(Refused(absent.plugin, absent.code.label, tuple(map(_short, absent.reasons)), left_out))
    return sorted(found, key=lambda group: -group.count)[:most]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
