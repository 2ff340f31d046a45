"""kube-scheduler's metrics: events of the loop are counted as they happen, states are read at scrape time.

`SchedulerMetrics` listens to the loop. It is on the path of every pod, so it holds on to the numbers it adds to and
leaves naming to the scrape: which plugins ran is noted as a count per plan, not per plugin. `register_live` reads
queue and cache sizes at scrape time from the current scheduler; a replica on standby has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from bayplan.app.live import LiveScheduler
from bayplan.framework.metrics import metric_readings
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import defines
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.outline import Outline
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer
from bayplan.observe import component_metrics as component
from bayplan.observe import scheduler_metrics as scheduler
from bayplan.observe.clock import Clock
from bayplan.observe.metrics import Counter, Family, Histogram, Metric, MetricKind, MetricsRegistry, Values

__all__ = ["Current", "SchedulerMetrics", "register_leadership", "register_live", "register_self"]

Current = Callable[[], LiveScheduler | None]
"""The current scheduler, if any."""

_MOST_NOTED = 128
_MOST_ATTEMPTS = 15
_ATTEMPT_LABELS = ("0", *(str(attempts) for attempts in range(1, _MOST_ATTEMPTS)), f"{_MOST_ATTEMPTS}+")


class SchedulerMetrics(Observer):
    """Give it to the loop as an observer, and its `hint_asked` to the queue."""

    def __init__(self, registry: MetricsRegistry, clock: Clock, *, gates: Iterable[str] = ()) -> None:
        self._now = clock.now
        self._attempts = registry.counter(scheduler.SCHEDULE_ATTEMPTS)
        self._attempt_seconds = registry.histogram(scheduler.ATTEMPT_DURATION)
        self._algorithm = registry.histogram(scheduler.ALGORITHM_DURATION).only
        self._sli = registry.histogram(scheduler.SLI_DURATION)
        self._pod_attempts = registry.histogram(scheduler.POD_ATTEMPTS).only
        self._after_flush = registry.counter(scheduler.SCHEDULED_AFTER_FLUSH).only
        self._victims = registry.histogram(scheduler.PREEMPTION_VICTIMS).only
        self._preemptions = registry.counter(scheduler.PREEMPTION_ATTEMPTS).only
        self._points = registry.histogram(scheduler.EXTENSION_POINT_DURATION)
        self._plugins = registry.histogram(scheduler.PLUGIN_DURATION)
        self._evaluations = registry.counter(scheduler.PLUGIN_EVALUATIONS)
        self._hints = registry.histogram(scheduler.QUEUEING_HINT_DURATION)
        self._handling = registry.histogram(scheduler.EVENT_HANDLING)
        self._permits = registry.histogram(scheduler.PERMIT_WAIT)
        self._failures = registry.counter(component.PLUGIN_FAILURES)
        self._results: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self._handled: dict[str, Histogram] = {}
        self._ran: dict[tuple[str, str, str], Histogram] = {}
        self._noted: dict[Outline, _Noted] = {}
        self._phases: defaultdict[tuple[bool, str], dict[str, Histogram]] = defaultdict(dict)
        """By whether a node was found and by profile."""
        registry.before_scrape(self._name_plugins)
        _register_unfed(registry, frozenset(gates))

    # Notifications of the loop

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        profile = queued.info.scheduler_name
        self._algorithm.observe(seconds)
        self._time_phases(profile, decision)
        outline = decision.outline
        if outline is not None:
            self._note(outline, profile, decision)
        if decision.state.times is not None:
            decision.state.times.pass_on(self.plugin_ran)
        nomination = decision.nomination
        if nomination is not None and (nomination.status is not None or nomination.nominated_node_name):
            self._preemptions.value += 1

    def attempt_failed(self, queued: QueuedPod, status: Status, seconds: float) -> None:
        self._count(queued, "unschedulable" if status.is_rejected else "error", seconds)

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        self._count(queued, "scheduled", seconds)
        attempts = queued.attempts
        self._pod_attempts.observe(attempts)
        first = queued.initial_attempt_timestamp
        if first is not None:
            self._sli.labels(_ATTEMPT_LABELS[min(attempts, _MOST_ATTEMPTS)]).observe(self._now() - first)
        if queued.flushed_at is not None:
            self._after_flush.value += 1

    def permit_waited(self, result: str, seconds: float) -> None:
        self._permits.labels(result).observe(seconds)

    def preempted(self, victims: int) -> None:
        self._victims.observe(victims)

    def plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        self._failures.labels(plugin, point).inc()

    def event_handled(self, name: str, seconds: float) -> None:
        histogram = self._handled.get(name)
        if histogram is None:
            histogram = self._handled[name] = self._handling.labels(name)
        histogram.observe(seconds)

    # Notifications of the queue and the framework

    def hint_asked(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        self._hints.labels(plugin, event, outcome).observe(seconds)

    def extension_point_ran(self, point: str, status: str, profile: str, seconds: float) -> None:
        """`point` as in `ExtensionPoint.label`, `status` as in `Code.label`."""
        key = (point, status, profile)
        histogram = self._ran.get(key)
        if histogram is None:
            histogram = self._ran[key] = self._points.labels(*key)
        histogram.observe(seconds)

    def plugin_ran(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self._plugins.labels(plugin, point, status).observe(seconds)

    def _time_phases(self, profile: str, decision: Decision) -> None:
        is_scheduled, began = decision.is_scheduled, 0.0
        histograms = self._phases[is_scheduled, profile]
        for phase, ended in decision.marks:
            if phase:
                histogram = histograms.get(phase)
                if histogram is None:
                    status = "Success" if is_scheduled or phase == "PreFilter" else "Unschedulable"
                    histogram = histograms[phase] = self._points.labels(phase, status, profile)
                histogram.observe(ended - began)
            began = ended

    # Counting

    def _count(self, queued: QueuedPod, result: str, seconds: float) -> None:
        key = (result, queued.info.scheduler_name)
        found = self._results.get(key)
        if found is None:
            found = self._results[key] = (self._attempts.labels(*key), self._attempt_seconds.labels(*key))
        found[0].value += 1
        found[1].observe(seconds)

    def _note(self, outline: Outline, profile: str, decision: Decision) -> None:
        noted = self._noted.get(outline)
        if noted is None:
            if len(self._noted) >= _MOST_NOTED:
                # Kinds of pods that are gone must not stay alive through us.
                self._name_plugins()
            noted = self._noted[outline] = _Noted(profile)
        noted.decisions += 1
        if decision.feasible_nodes > 1 and decision.node_name:
            noted.scored += 1

    def _name_plugins(self) -> None:
        """From counts per kind of pod to counts per plugin."""
        all_noted, self._noted = self._noted, {}
        for outline, noted in all_noted.items():
            for plugin, point, times in _plugins_that_ran(outline, noted):
                self._evaluations.labels(plugin, point, noted.profile).value += times


class _Noted:
    __slots__ = ("decisions", "profile", "scored")

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self.decisions = 0
        self.scored = 0


def _plugins_that_ran(outline: Outline, noted: _Noted) -> Iterable[tuple[str, str, int]]:
    pre_filters = {step.plugin.name for step in outline.pre_filters}
    pre_filters |= {call.name for call in outline.filters if defines(call.plugin, "pre_filter")}
    yield from ((name, "PreFilter", noted.decisions) for name in sorted(pre_filters))
    yield from ((call.name, "Filter", noted.decisions) for call in outline.filters)
    if noted.scored and outline.scores is not None:
        scores = outline.scores.scores
        yield from ((call.name, "PreScore", noted.scored) for call in scores if defines(call.plugin, "pre_score"))
        yield from ((call.name, "Score", noted.scored) for call in scores)


# What is read at scrape time


def register_live(registry: MetricsRegistry, current: Current) -> None:
    """Sizes that the current scheduler keeps anyway."""

    def when_live(family: Family, read: Callable[[LiveScheduler], Values]) -> None:
        registry.read(family, lambda: {} if (live := current()) is None else read(live))

    when_live(scheduler.PENDING_PODS, _pending_pods)
    when_live(scheduler.QUEUE_INCOMING, lambda live: _as_values(live.queue.incoming))
    when_live(scheduler.UNSCHEDULABLE_PODS, lambda live: _as_values(live.queue.rejections()))
    when_live(scheduler.INFLIGHT_EVENTS, lambda live: _by_name(live.queue.in_flight_events()))
    when_live(scheduler.CACHE_SIZE, _cache_size)
    when_live(scheduler.GOROUTINES, lambda live: {("binding",): len(live.tasks)})
    when_live(scheduler.CLAIM_CREATES, lambda live: _counts(live.cache.cluster.devices.metrics.creates))
    when_live(scheduler.BINDING_CONDITIONS, lambda live: _counts(live.cache.cluster.devices.metrics.conditions))
    when_live(scheduler.BINDING_CONDITIONS_WAIT, lambda live: live.cache.cluster.devices.metrics.waits.children)
    registry.read_families(lambda: () if (live := current()) is None else metric_readings(_plugins(live)))


def _plugins(live: LiveScheduler) -> Iterator[tuple[str, Plugin]]:
    for name, profile in live.profiles.items():
        for plugin in profile.framework.plugins.values():
            yield name, plugin


def register_leadership(registry: MetricsRegistry, *, name: str, is_leader: Callable[[], bool]) -> None:
    registry.read(component.LEADER_STATUS, lambda: {(name,): float(is_leader())})


def register_self(registry: MetricsRegistry, *, features: Mapping[str, bool] | None = None) -> None:
    """How many metrics there are, and which feature gates are on."""
    registry.read(component.REGISTERED_METRICS, lambda: _by_stability(registry.families))
    registry.read_one(component.DISABLED_METRICS, lambda: len(registry.disabled))
    if features is not None:
        registry.read(component.FEATURE_ENABLED, lambda: {(name, ""): float(on) for name, on in features.items()})


_READ_FROM_LIVE = frozenset(
    (
        scheduler.PENDING_PODS,
        scheduler.QUEUE_INCOMING,
        scheduler.UNSCHEDULABLE_PODS,
        scheduler.INFLIGHT_EVENTS,
        scheduler.CACHE_SIZE,
        scheduler.GOROUTINES,
        scheduler.CLAIM_CREATES,
        scheduler.BINDING_CONDITIONS,
        scheduler.BINDING_CONDITIONS_WAIT,
    )
)


def _register_unfed(registry: MetricsRegistry, gates: frozenset[str]) -> None:
    """Families of kube-scheduler that nothing of ours feeds: known, counted as registered, without samples."""
    known = {family.name for family in registry.families} | set(registry.disabled)
    add = {
        MetricKind.COUNTER: registry.counter,
        MetricKind.GAUGE: registry.gauge,
        MetricKind.HISTOGRAM: registry.histogram,
    }
    for family in scheduler.SCHEDULER_FAMILIES:
        is_on = not family.gate or family.gate in gates
        if is_on and family.name not in known and family not in _READ_FROM_LIVE:
            add[family.kind](family)


def _counts(metric: Metric[Counter]) -> Values:
    return {labels: child.value for labels, child in metric.children.items()}


def _pending_pods(live: LiveScheduler) -> Values:
    sizes = live.queue.sizes
    return {
        ("active",): sizes.active,
        ("backoff",): sizes.backoff,
        ("unschedulable",): sizes.unschedulable,
        ("gated",): sizes.gated,
    }


def _cache_size(live: LiveScheduler) -> Values:
    cache = live.cache
    return {
        ("assumed_pods",): cache.assumed_count,
        ("pods",): len(cache),
        ("nodes",): len(cache.cluster.nodes),
    }


def _as_values(counts: Mapping[tuple[str, str], int]) -> Values:
    return {labels: count for labels, count in counts.items()}  # noqa: C416  # a copy typed for any number of labels


def _by_name(counts: Mapping[str, int]) -> Values:
    return {(name,): count for name, count in counts.items()}


def _by_stability(families: Iterable[Family]) -> Values:
    counts: dict[tuple[str, ...], float] = {}
    for family in families:
        key = (family.stability.value, "")
        counts[key] = counts.get(key, 0) + 1
    return counts
