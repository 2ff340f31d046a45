"""The plugins at work: where each has a say, what it rejected, how often it decided, what it costs, what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from weakref import WeakKeyDictionary

import msgspec

from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.views import ClusterView
from bayplan.framework.cautions import state_cautions
from bayplan.framework.description import KeptAnswers, kept_answers
from bayplan.framework.metrics import metric_readings
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.promises import Depends
from bayplan.framework.registry import Registry
from bayplan.framework.runtime.framework import Framework
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.time_slices import Work

__all__ = ["CodeReader", "PluginState", "plugins_of"]

_MOST_RECORDS = 2_000
_AT_ONCE = 32
_READ_AGAIN_SECONDS = 60.0


class PluginState(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    profile: str
    plugin: str
    points: list[str] = []
    weight: int = 0
    origin: str = ""
    """The file or the class that it was loaded from; empty for plugins that come with Bayplan."""
    version: int = 0
    """Grows when something outside the cluster changed its answers."""
    rejected: int = 0
    """Nodes that it was the first to reject, in the attempts that are kept."""
    decided: int = 0
    """Attempts in which it made most of the difference to the runner-up."""
    influence: float = 0.0
    """Mean difference that its points made between the chosen node and the runner-up."""
    errors: int = 0
    filter_us: float | None = None
    """One answer about every node, asked anew, measured just now."""
    score_us: float | None = None
    times: dict[str, float] = {}
    """By extension point, microseconds in the mean of the cycles that were measured and in which it was called."""
    timed: int = 0
    """How many cycles those were, at the point where it was called most."""
    answers: list[KeptAnswers] = []
    """How long answers are kept and why not longer, of plugins that do not come with Bayplan."""
    cautions: list[str] = []
    metrics: dict[str, float] = {}
    """Counters and gauges of its own, by the name on /metrics without its beginning, and their labels."""


class CodeReader:
    """What the code of plugins says, read once in a while: reading takes longer than a decision."""

    def __init__(self) -> None:
        self._read: WeakKeyDictionary[Plugin, tuple[float, list[KeptAnswers], list[str]]] = WeakKeyDictionary()

    def read(self, plugin: Plugin, in_use: dict[str, Depends], now: float) -> tuple[list[KeptAnswers], list[str]]:
        """How long answers are kept, and cautions. `in_use` is what the scheduler goes by, by method."""
        found = self._read.get(plugin)
        if found is None or now >= found[0]:
            found = (now + _READ_AGAIN_SECONDS, kept_answers(plugin, in_use), state_cautions(type(plugin)))
            self._read[plugin] = found
        return found[1], found[2]


def plugins_of(
    view: ClusterView,
    recorder: DecisionRecorder,
    registry: Registry,
    probe: PodInfo | None,
    now: Callable[[], float],
    code: CodeReader,
) -> Work[list[PluginState]]:
    """`probe` is a pod to ask the plugins about; `now` is a clock to measure with."""
    rejected = recorder.rejections()
    yield
    times = recorder.plugin_times()
    yield
    decided, influence = yield from _influence(recorder)
    states = []
    for profile, decider in view.deciders.items():
        framework = decider.framework
        costs = _costs(view, probe, now) if probe is not None and probe.scheduler_name == profile else {}
        yield
        weights = {call.name: call.weight for call in framework.score_calls}
        names_at = {point.label: {plugin.name for plugin in framework.at(point)} for point in ExtensionPoint}
        for name, plugin in framework.plugins.items():
            yield
            origin = registry.origin_of(name)
            is_shipped = origin.startswith("bayplan.plugins.")
            answers, cautions = ([], []) if is_shipped else code.read(plugin, _in_use(framework, name), now())
            states.append(
                PluginState(
                    profile=profile,
                    plugin=name,
                    points=[label for label, names in names_at.items() if name in names],
                    weight=weights.get(name, 0),
                    origin="" if is_shipped else origin,
                    version=plugin.version,
                    rejected=rejected.get(name, 0),
                    decided=decided[name],
                    influence=round(influence.get(name, 0.0), 2),
                    errors=recorder.plugin_errors.get(name, 0),
                    filter_us=costs.get((name, "filter")),
                    score_us=costs.get((name, "score")),
                    times={
                        point: round(seconds / count * 1e6, 1)
                        for (plugin_name, point), (count, seconds) in times.items()
                        if plugin_name == name
                    },
                    timed=max((count for (timed, _), (count, _) in times.items() if timed == name), default=0),
                    answers=answers,
                    cautions=cautions,
                    metrics=_metrics(plugin),
                )
            )
    return states


def _metrics(plugin: Plugin) -> dict[str, float]:
    return {
        " ".join((reading.family.name.removeprefix("bayplan_plugin_"), *filter(None, labels))): float(value)
        for reading in metric_readings([("", plugin)])
        for labels, value in reading.values.items()
        if isinstance(value, int | float)
    }


def _in_use(framework: Framework, name: str) -> dict[str, Depends]:
    """By method, what kept answers are taken to depend on at present."""
    filters = [("filter", call.depends) for call in framework.filter_calls if call.name == name]
    return dict([*filters, *(("score", call.depends) for call in framework.score_calls if call.name == name)])


def _influence(recorder: DecisionRecorder) -> Work[tuple[Counter[str], dict[str, float]]]:
    decided: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    count = 0
    for place, note in enumerate(recorder.newest(_MOST_RECORDS)):
        if place % _AT_ONCE == 0:
            yield
        record = note.record()
        second = record.runner_up
        if second is None:
            continue
        count += 1
        gains = {
            plugin: points.weighted - (second.points[plugin].weighted if plugin in second.points else 0)
            for plugin, points in record.points.items()
        }
        if gains and record.total > second.total:
            decided[max(gains, key=lambda plugin: gains[plugin])] += 1
        for plugin, gain in gains.items():
            sums[plugin] += abs(gain)
    return decided, {plugin: total / count for plugin, total in sums.items()} if count else {}


def _costs(view: ClusterView, probe: PodInfo, now: Callable[[], float]) -> dict[tuple[str, str], float]:
    """Microseconds for one answer about all nodes, of the plugins that have a say about this pod."""
    pod = probe.placed("")
    decision = view.decide(pod, explains=True, always_score=True)
    plan, scores, state = decision.plan, decision.scores, decision.state
    if plan is None or scores is None:
        return {}
    table = plan.evaluation.table
    nodes, feasible = NodeColumns(table), NodeColumns(table, scores.rows)
    costs: dict[tuple[str, str], float] = {}
    for call in plan.filters:
        if call.name not in state.skip_filter:
            began = now()
            call.verdicts(state, pod, nodes)
            costs[call.name, "filter"] = round((now() - began) * 1e6, 1)
    for score in plan.scores:
        if score.name in scores.shares:
            began = now()
            score.raw(state, pod, feasible)
            costs[score.name, "score"] = round((now() - began) * 1e6, 1)
    return costs
