"""What the engine and users rely on in the answers of any plugin, each a function from a trial to problems."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from bayplan.cache.check import check_cache
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.points import defines
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.testing.contract.trial import PluginTrial, answers_in
from bayplan.testing.harness import Harness
from bayplan.testing.odd import ODD_PODS

__all__ = [
    "columns_equal_one_node",
    "filter_is_pure",
    "odd_pods_are_answered",
    "queue_order_is_strict",
    "reserve_is_undone",
    "same_shape_same_answer",
    "scores_are_in_range",
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


def filter_is_pure(trial: PluginTrial) -> list[str]:
    """Filter answers the same when called again, and the cluster is as it was."""
    if not trial.has("filter", "filter_nodes"):
        return []
    problems = []
    for pod in trial.pods():
        info = trial.one.info(pod)
        before = _picture(trial.one)
        state = trial.prepared(info)
        if state is None:
            continue
        first, second = trial.verdicts(state, info), trial.verdicts(state, info)
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
        if answers_in(one) != answers_in(other):
            problems.append("two pods of one template get different answers")
    return problems


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


_SOME = 8
"""Of these, every three are compared with each other."""


def queue_order_is_strict(trial: PluginTrial) -> list[str]:
    """Any two pods can be compared, none goes before itself, no two before each other, and order carries over."""
    if not trial.has("less", "sort_key"):
        return []
    waiting = _waiting(trial)
    problems: list[str] = []
    if trial.has("sort_key"):
        problems += _key_problems(trial.plugin.sort_key, waiting)
    if trial.has("less"):
        problems += _less_problems(trial.plugin.less, waiting[:_SOME])
    return problems


def _waiting(trial: PluginTrial) -> list[QueuedPod]:
    """Pods that came at different times and at the same, tried before and not."""
    pods = [*trial.pods(), *(make() for make in ODD_PODS.values())]
    queued = [QueuedPod(trial.one.info(pod), float(number // 2)) for number, pod in enumerate(pods)]
    for each in queued[::3]:
        each.initial_attempt_timestamp = 1.0
    return queued


def _key_problems(sort_key: Callable[[QueuedPod], Any], waiting: Sequence[QueuedPod]) -> list[str]:
    try:
        keys = [sort_key(each) for each in waiting]
        sorted(keys)
    except Exception as error:
        return [f"sort_key: {type(error).__name__}: {error}"]
    unlike = [each.key for each, key in zip(waiting, keys, strict=True) if sort_key(each) != key]
    return [f"sort_key answers differently when called again for `{key}`" for key in unlike]


def _less_problems(less: Callable[[QueuedPod, QueuedPod], bool], waiting: Sequence[QueuedPod]) -> list[str]:
    try:
        problems = [f"less: `{each.key}` goes before itself" for each in waiting if less(each, each)]
        for one, other in permutations(waiting, 2):
            if less(one, other) and less(other, one):
                problems.append(f"less: `{one.key}` and `{other.key}` go before each other")
        for first, second, third in permutations(waiting, 3):
            if less(first, second) and less(second, third) and not less(first, third):
                problems.append(f"less: `{first.key}` goes before `{second.key}` and that before `{third.key}`, not it")
    except Exception as error:
        return [f"less: {type(error).__name__}: {error}"]
    return problems
