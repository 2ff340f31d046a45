"""The promises of the contract, each a function from a trial to the problems it finds."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import numpy as np

from bayplan.api.pod import Affinity, Pod
from bayplan.cache.check import check_cache
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.points import defines
from bayplan.framework.runtime.node_calls import ScoreCall
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.testing.contract_trial import PluginTrial
from bayplan.testing.harness import Harness
from bayplan.testing.odd import ODD_PODS
from bayplan.testing.outcome import Outcome

__all__ = [
    "accepting_all_means_silent",
    "cached_equals_uncached",
    "columns_equal_one_node",
    "filter_is_pure",
    "idle_means_silent",
    "kinds_are_settled_alike",
    "odd_pods_are_answered",
    "pins_are_named",
    "raw_scores_are_in_bounds",
    "reserve_is_undone",
    "same_shape_same_answer",
    "scores_are_in_range",
    "values_score_as_nodes",
]


def scores_are_in_range(trial: PluginTrial) -> list[str]:
    """After normalising, every score of a feasible node is 0 to 100."""
    if not trial.has("score", "score_nodes"):
        return []
    problems = []
    for pod in trial.pods():
        outcome = trial.harness().explain(pod)
        if outcome.failure is not None:
            problems.append(f"scoring fails: {outcome.failure.message}")
        for name, scores in outcome.scores.items():
            bad = [score for score in scores.values() if not 0 <= score <= 100]
            problems += [f"node `{name}` scores {score}" for score in bad]
    return problems


def raw_scores_are_in_bounds(trial: PluginTrial) -> list[str]:
    """What `is_within_bounds` promises: before normalising, too, every score is 0 to 100."""
    if not getattr(type(trial.plugin), "is_within_bounds", False):
        return []
    problems = []
    for pod in trial.pods():
        bad = {name: score for name, score in _raw_scores(trial, trial.one.info(pod)).items() if not 0 <= score <= 100}
        problems += [f"is_within_bounds, but node `{name}` scores {score}" for name, score in bad.items()]
    return problems


def _raw_scores(trial: PluginTrial, info: PodInfo) -> dict[str, int]:
    """By node; empty when the plugin is not asked."""
    state, nodes = trial.scored(info), trial.nodes
    if state is None or not trial.has("score", "score_nodes"):
        return {}
    if not trial.has("score_nodes"):
        return {node.name: trial.plugin.score(state, info, node) for node in nodes}
    scores = trial.plugin.score_nodes(state, info, nodes)
    return {nodes.info(p).name: int(scores[p]) for p in np.flatnonzero(nodes.valid).tolist()}


def values_score_as_nodes(trial: PluginTrial) -> list[str]:
    """What `score_by_value` promises: the raw and the normalised scores of every node, by the value of its label."""
    if not trial.has("score_by_value"):
        return []
    problems = []
    for pod in trial.pods():
        info = trial.one.info(pod)
        state, nodes = trial.scored(info), trial.nodes.take(np.flatnonzero(trial.nodes.valid))
        found = None if state is None else trial.plugin.score_by_value(state, info, nodes)
        if state is None or found is None:
            continue
        raw = ScoreCall(trial.plugin, 1, _raise).raw(state, info, nodes)
        normalized = ScoreCall(trial.plugin, 1, _raise).normalized(state, info, raw)
        bins = nodes.label_bins(found.key)
        for position, name in enumerate(nodes.names):
            said = found.scores[bins[position]], found.normalized[bins[position]]
            wanted = int(raw[position]), int(normalized[position])
            if said != wanted:
                problems.append(f"score_by_value gives `{name}` {said}, its scores are {wanted}")
    return problems


def _raise(plugin: str, method: str, exception: BaseException) -> None:
    raise exception


def idle_means_silent(trial: PluginTrial) -> list[str]:
    """What `is_idle` promises: no pod is rejected, and no node preferred, by a plugin that says it is idle."""
    if not trial.has("is_idle"):
        return []
    problems = []
    for pod in trial.pods():
        info = trial.one.info(pod)
        if not trial.plugin.is_relevant(info) or not trial.plugin.is_idle(info):
            continue
        answer = trial.plugin.pre_filter(CycleState(), info, trial.nodes) if trial.has("pre_filter") else None
        if isinstance(answer, Status) and not (answer.is_success or answer.is_skip):
            problems.append(f"is_idle, but pre_filter says {answer}")
        state = trial.prepared(info)
        if state is not None and trial.has("filter", "filter_nodes"):
            verdicts = _verdicts(trial, state, info)
            problems += [f"is_idle, but filter says {v} of `{n}`" for n, v in verdicts.items() if not v.is_success]
        if len(set(_raw_scores(trial, info).values())) > 1:
            problems.append("is_idle, but nodes score differently")
    return problems


def accepting_all_means_silent(trial: PluginTrial) -> list[str]:
    """What `accepts_all` promises: no node is rejected by a filter that says so."""
    if not trial.has("accepts_all") or not trial.has("filter", "filter_nodes"):
        return []
    problems = []
    for pod in trial.pods():
        info = trial.one.info(pod)
        state = trial.prepared(info)
        if state is None or not trial.plugin.accepts_all(info, trial.nodes):
            continue
        verdicts = _verdicts(trial, state, info)
        problems += [f"accepts_all, but filter says {v} of `{n}`" for n, v in verdicts.items() if not v.is_success]
    return problems


def kinds_are_settled_alike(trial: PluginTrial) -> list[str]:
    """What `settles_by_kind` and `signs_by_kind` promise: other labels and another namespace change nothing."""
    plugin = trial.plugin
    if not (plugin.settles_by_kind or plugin.signs_by_kind):
        return []
    problems = []
    for pod, twin in zip(trial.pods(), trial.pods(), strict=True):
        twin.metadata.labels, twin.metadata.namespace = {"kind": "twin"}, "elsewhere"
        one, other = trial.one.info(pod), trial.one.info(twin)
        if one.shape.kind != other.shape.kind:
            continue
        if plugin.settles_by_kind and plugin.is_relevant(one) != plugin.is_relevant(other):
            problems.append("settles_by_kind, but is_relevant tells pods of one kind apart")
        if plugin.signs_by_kind and plugin.sign(one) != plugin.sign(other):
            problems.append("signs_by_kind, but signs pods of one kind differently")
    return problems


def pins_are_named(trial: PluginTrial) -> list[str]:
    """What `names_pin` promises: for a pod that is pinned to a node, PreFilter names that node and no other."""
    if not trial.plugin.names_pin or not trial.has("pre_filter"):
        return []
    problems = []
    for pod in trial.pods():
        for name in (trial.nodes.names[0], "elsewhere"):
            info = trial.one.info(_pinned(pod, name))
            answer = trial.plugin.pre_filter(CycleState(), info, trial.nodes)
            if not isinstance(answer, PreFilterResult) or answer.node_names != frozenset((name,)):
                problems.append(f"names_pin, but pre_filter says {answer} of a pod that is pinned to `{name}`")
    return problems


def _pinned(pod: Pod, name: str) -> Pod:
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    spec = msgspec.structs.replace(pod.spec, affinity=msgspec.convert(affinity, Affinity))
    return msgspec.structs.replace(pod, spec=spec)


def filter_is_pure(trial: PluginTrial) -> list[str]:
    """Filter answers the same when asked again, and the cluster is as it was."""
    if not trial.has("filter", "filter_nodes"):
        return []
    problems = []
    for pod in trial.pods():
        info = trial.one.info(pod)
        before = _picture(trial.one)
        state = trial.prepared(info)
        if state is None:
            continue
        first, second = _verdicts(trial, state, info), _verdicts(trial, state, info)
        unlike = [name for name in first if first[name] != second[name]]
        problems += [f"node `{name}`: first {first[name]}, then {second[name]}" for name in unlike]
        if _picture(trial.one) != before or check_cache(trial.one.scheduler.cache):
            problems.append("the cluster is not what it was before the filter ran")
    return problems


def _picture(harness: Harness) -> list[Any]:
    """What a plugin could have changed, copied out."""
    table = harness.cluster.nodes
    infos = [info for info in table.infos if info is not None]
    return [
        table.requested.tolist(),
        table.allocatable.tolist(),
        table.pod_count.tolist(),
        [(i.name, dict(i.labels), list(i.requested), list(i.allocatable), list(i.pods), len(i.taints)) for i in infos],
        harness.cluster.generation,
    ]


def reserve_is_undone(trial: PluginTrial) -> list[str]:
    """After Unreserve the plugin is as before Reserve; Unreserve may come twice, and without a Reserve."""
    if not trial.has("reserve", "unreserve"):
        return []
    problems = []
    for pod in trial.pods():
        harness = trial.harness()
        outcome = harness.explain(pod)
        if not outcome.is_scheduled:
            continue
        plugin: Any = harness.plugin(trial.plugin.name)
        before = _own_state(plugin)
        harness.schedule(pod)
        harness.forget(pod)
        if _own_state(plugin) != before:
            problems.append(f"after Reserve and Unreserve on `{outcome.node_name}` the plugin is not as it was")
        if defines(plugin, "unreserve"):
            problems += _unreserves_idly(plugin, harness.info(pod), outcome.node_name)
    return problems


def _own_state(plugin: Any) -> dict[str, Any]:
    """The plugin's own attributes that can be compared; ports and arguments are not its state."""
    kept = {name: value for name, value in vars(plugin).items() if name not in ("args", "_handle", "version")}
    plain = (int, float, str, bytes, bool, tuple, list, dict, set, frozenset, type(None))
    return {name: copy.deepcopy(value) for name, value in kept.items() if isinstance(value, plain)}


def _unreserves_idly(plugin: Any, info: PodInfo, node_name: str) -> list[str]:
    try:
        plugin.unreserve(CycleState(), info, node_name)
    except Exception as error:
        return [f"Unreserve without a Reserve raises {type(error).__name__}: {error}"]
    return []


def odd_pods_are_answered(trial: PluginTrial) -> list[str]:
    """No exception, whatever a pod looks like: a rejection is an answer, an error is not."""
    problems = []
    for name, make in ODD_PODS.items():
        harness = trial.harness()
        try:
            outcome = harness.schedule(make())
        except Exception as error:
            problems.append(f"{name}: raises {type(error).__name__}: {error}")
            continue
        failure = outcome.failure
        if failure is not None and failure.code is Code.ERROR and failure.exception is not None:
            problems.append(f"{name}: {failure.message}")
    return problems


def same_shape_same_answer(trial: PluginTrial) -> list[str]:
    """Two pods that differ in name and uid alone get the same verdicts and scores."""
    problems = []
    for pod in trial.pods():
        twin = trial.pods()[[each.name for each in trial.pods()].index(pod.name)]
        twin.metadata.name, twin.metadata.uid = f"{pod.name}-twin", f"{pod.uid}-twin"
        one, other = trial.harness().explain(pod), trial.harness().explain(twin)
        if _answers(one) != _answers(other):
            problems.append("two pods of one template get different answers")
    return problems


def _answers(outcome: Outcome) -> tuple[Any, ...]:
    return outcome.rejections, outcome.scores, outcome.totals, outcome.failure is None


def columns_equal_one_node(trial: PluginTrial) -> list[str]:
    """Where both forms are defined they agree: on all rows, and on some."""
    problems = []
    for pod in trial.pods():
        info = trial.one.info(pod)
        if trial.has("filter") and trial.has("filter_nodes"):
            state = trial.prepared(info)
            problems += [] if state is None else _compare_filters(trial, state, info)
        if trial.has("score") and trial.has("score_nodes"):
            state = trial.scored(info)
            problems += [] if state is None else _compare_scores(trial, state, info)
    return problems


def _views(trial: PluginTrial) -> list[NodeColumns]:
    nodes = trial.nodes
    return [nodes, nodes.take(np.flatnonzero(nodes.valid)[::2])]


def _compare_filters(trial: PluginTrial, state: CycleState, info: PodInfo) -> list[str]:
    problems = []
    for view in _views(trial):
        verdicts = trial.plugin.filter_nodes(state, info, view)
        if len(verdicts.ids) != len(view):
            return [f"filter_nodes answers {len(verdicts.ids)} verdicts for {len(view)} nodes"]
        for position in np.flatnonzero(view.valid).tolist():
            number = int(verdicts.ids[position])
            column = verdicts.status(number) if number else SUCCESS
            one = trial.plugin.filter(state, info, view.info(position)) or SUCCESS
            if not _agree(column, one):
                problems.append(f"filter_nodes says {column} of `{view.info(position).name}`, filter says {one}")
    return problems


def _agree(one: Status, other: Status) -> bool:
    return (one.code, sorted(one.reasons)) == (other.code, sorted(other.reasons))


def _compare_scores(trial: PluginTrial, state: CycleState, info: PodInfo) -> list[str]:
    problems = []
    for view in _views(trial):
        scores = trial.plugin.score_nodes(state, info, view)
        if len(scores) != len(view):
            return [f"score_nodes answers {len(scores)} scores for {len(view)} nodes"]
        for position in np.flatnonzero(view.valid).tolist():
            one = trial.plugin.score(state, info, view.info(position))
            if int(scores[position]) != one:
                name = view.info(position).name
                problems.append(f"score_nodes gives `{name}` {int(scores[position])}, score gives {one}")
    return problems


def _verdicts(trial: PluginTrial, state: CycleState, info: PodInfo) -> dict[str, Status]:
    nodes = trial.nodes
    if not trial.has("filter_nodes"):
        return {node.name: trial.plugin.filter(state, info, node) or SUCCESS for node in nodes}
    verdicts = trial.plugin.filter_nodes(state, info, nodes)
    ids = verdicts.ids.tolist()
    valid = np.flatnonzero(nodes.valid).tolist()
    return {nodes.info(p).name: verdicts.status(ids[p]) if ids[p] else SUCCESS for p in valid}


def cached_equals_uncached(trial: PluginTrial) -> list[str]:
    """What `depends` and `sign` promise: a scheduler that remembers decides like one that asks everything anew."""
    remembering, forgetful = trial.harness(), trial.harness(remember=False)
    problems = []
    for round_number in range(3):
        for pod in trial.pods():
            name = f"{pod.name}-{round_number}"
            first = remembering.schedule(_named(pod, name))
            second = forgetful.schedule(_named(pod, name))
            if _answers(first) != _answers(second) or first.node_name != second.node_name:
                where = f"`{first.node_name}`" if first.is_scheduled else first.message
                instead = f"`{second.node_name}`" if second.is_scheduled else second.message
                problems.append(f"remembering, the pod goes to {where}; asking anew, to {instead}")
                return problems
    return problems


def _named(pod: Pod, name: str) -> Pod:
    pod.metadata.name = name
    pod.metadata.uid = f"uid-{name}"
    return pod
