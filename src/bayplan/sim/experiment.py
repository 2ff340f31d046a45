"""One run: a cluster, a workload and a policy in; an outcome that can be compared with others out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import fsum
from typing import Protocol

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.settings import Settings
from bayplan.framework.metrics import metric_readings
from bayplan.loop.observer import Observer
from bayplan.observe.metrics import MetricKind
from bayplan.sim.engine.controllers import replace_lost_pods
from bayplan.sim.engine.simulation import Simulation, SimulationOptions
from bayplan.sim.engine.world import WorldListener
from bayplan.sim.ledger import ClusterSample, DecisionLine, Ledger, PodStory, digest

__all__ = ["MEASURES", "MEASURE_FAMILIES", "Experiment", "RunOutcome", "SimulatedWorkload", "quantile"]

MEASURES = (
    *("attempts", "cost", "evictions", "imbalance", "nodes.empty", "pending.mean", "pods.arrived", "pods.bound"),
    *("pods.finished", "pods.pending", "pods.withdrawn", "preemptions", "refusals"),
    *("wait.max", "wait.mean", "wait.p50", "wait.p99"),
)
"""Of every run."""
MEASURE_FAMILIES = ("allocated.", "pending.by.", "plugin.", "stranded.")
"""How measures begin that some runs have: by resource, or by plugin."""


class SimulatedWorkload(Protocol):
    """Where pods come from. The same workload begins each run anew."""

    def begin(self, simulation: Simulation) -> None:
        """Put what will happen on the timeline."""


class RunOutcome(msgspec.Struct, frozen=True):
    """What came of a run."""

    variant: str
    seed: int
    seconds: float
    """Simulated."""
    measures: dict[str, float]
    reasons: dict[str, int]
    """Why pods still wait at the end: the message of the last attempt, with how many pods have it."""
    samples: list[ClusterSample]
    decisions: list[DecisionLine]
    digest: str
    failures: dict[str, int] = {}
    """Exceptions of plugins."""


class Experiment:
    """What every variant of a comparison has in common."""

    def __init__(
        self,
        objects: Iterable[KubeObject],
        workload: SimulatedWorkload,
        options: SimulationOptions | None = None,
        *,
        replaces_lost_pods: bool = False,
    ) -> None:
        self.objects = list(objects)
        self.workload = workload
        self.options = options or SimulationOptions()
        self.replaces_lost_pods = replaces_lost_pods
        """Whether pods of `objects` are made again by their controllers."""

    def run(
        self,
        settings: Settings,
        *,
        variant: str = "",
        progress: Callable[[float], None] | None = None,
        observers: Sequence[Observer] = (),
        prepare: Callable[[Simulation], None] = lambda _: None,
    ) -> RunOutcome:
        """Run to the end; `prepare` is called with the simulation before anything happens."""
        ledger = Ledger()
        simulation = Simulation(settings, self.options, [ledger, *observers])
        ledger.watch(simulation.core.cache.cluster, partial(_gauges, _measuring_plugins(simulation)))
        simulation.listeners += [ledger, _Requests(simulation, ledger)]
        simulation.load(self.objects)
        if self.replaces_lost_pods:
            replace_lost_pods(simulation)
        self.workload.begin(simulation)
        prepare(simulation)
        simulation.run(progress=progress)
        ledger.finish(simulation.now)
        return _outcome(ledger, variant=variant, seed=self.options.seed, seconds=simulation.now)


class _Requests(WorldListener):
    def __init__(self, simulation: Simulation, ledger: Ledger) -> None:
        self._cache = simulation.core.cache
        self._profiles = simulation.core.profiles
        self._ledger = ledger

    def pod_arrived(self, pod: Pod) -> None:
        if pod.spec.scheduler_name not in self._profiles:
            self._ledger.pods[pod.uid].message = f"no profile is the scheduler `{pod.spec.scheduler_name}`"
        shape = self._cache.info(pod).shape
        self._ledger.note_request(shape.note(_Requests, lambda: tuple(sorted(shape.amounts.items()))))


def _measuring_plugins(simulation: Simulation) -> list[tuple[str, object]]:
    """The plugins that have metrics; looking for them takes longer than reading them."""
    plugins = [("", plugin) for framework in simulation.core.frameworks for plugin in framework.plugins.values()]
    return [entry for entry in plugins if metric_readings([entry])]


def _gauges(plugins: Sequence[tuple[str, object]]) -> dict[str, float]:
    """Gauges that plugins feed, such as fragmentation; `plugin.` and the name on /metrics without its beginning."""
    return {
        ".".join(("plugin", reading.family.name.removeprefix("bayplan_plugin_"), *filter(None, labels))): float(value)
        for reading in metric_readings(plugins)
        if reading.family.kind is MetricKind.GAUGE
        for labels, value in reading.values.items()
        if isinstance(value, int | float)
    }


def _outcome(ledger: Ledger, *, variant: str, seed: int, seconds: float) -> RunOutcome:
    stories = list(ledger.pods.values())
    waiting = [story for story in stories if story.bound is None and story.gone is None]
    reasons = Counter(story.message or "not tried yet" for story in waiting)
    return RunOutcome(
        variant=variant,
        seed=seed,
        seconds=seconds,
        measures=_measures(ledger, stories, len(waiting), seconds),
        reasons=dict(sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))),
        samples=ledger.samples,
        decisions=ledger.decisions,
        digest=digest(ledger.decisions),
        failures=dict(sorted(ledger.failures.items())),
    )


def _measures(ledger: Ledger, stories: Sequence[PodStory], pending: int, seconds: float) -> dict[str, float]:
    waits = sorted(_wait(story, seconds) for story in stories)
    ends = Counter(story.end for story in stories)
    measures = {
        "pods.arrived": len(stories),
        "pods.bound": sum(story.bound is not None for story in stories),
        "pods.finished": ends["Finished"],
        "pods.withdrawn": ends["Withdrawn"],
        "pods.pending": pending,
        "attempts": len(ledger.decisions),
        "wait.mean": _mean(waits) if waits else 0.0,
        "wait.p50": quantile(waits, 0.5),
        "wait.p99": quantile(waits, 0.99),
        "wait.max": waits[-1] if waits else 0.0,
        "preemptions": ledger.preemptions,
        "evictions": ledger.evictions,
        "refusals": ledger.refusals,
    }
    measures["pending.mean"] = fsum(waits) / seconds if seconds else 0.0
    if seconds:
        measures |= {f"pending.by.{name}": total / seconds for name, total in ledger.refused_seconds.items()}
    return {name: round(value, 6) for name, value in (measures | _over_time(ledger.samples)).items()}


def _over_time(samples: Sequence[ClusterSample]) -> dict[str, float]:
    """Means of the samples, and the values at the end."""
    if not samples:
        return {}
    last, found = samples[-1], dict[str, float]()
    for name in last.allocated:
        found[f"allocated.{name}"] = _mean([sample.allocated.get(name, 0.0) for sample in samples])
        found[f"allocated.{name}.end"] = last.allocated[name]
    for name in last.stranded:
        found[f"stranded.{name}"] = _mean([sample.stranded.get(name, 0.0) for sample in samples])
        found[f"stranded.{name}.end"] = last.stranded[name]
    for name in last.gauges:
        found[name] = _mean([sample.gauges.get(name, 0.0) for sample in samples])
        found[f"{name}.end"] = last.gauges[name]
    found["nodes.empty"] = _mean([sample.empty_nodes for sample in samples])
    found["imbalance"] = _mean([sample.imbalance for sample in samples])
    found["cost"] = _mean([sample.price for sample in samples]) * last.time / 3600.0
    return found


def _mean(values: Sequence[float]) -> float:
    """By the exact sum: what `sum` makes of floats depends on the version of Python."""
    return fsum(values) / len(values)


def _wait(story: PodStory, seconds: float) -> float:
    """Until the pod was bound; of one that never was, until it was gone or everything ended."""
    for end in (story.bound, story.gone):
        if end is not None:
            return end - story.arrived
    return seconds - story.arrived


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that so large a share of an ordered list does not exceed; 0 of an empty one."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
