"""What speed promises say: each function compares the answers of a plugin with and without one of its promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from bayplan.api.pod import Affinity, Pod
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.reading import reading_of, stated_depends
from bayplan.framework.runtime.node_calls import ScoreCall
from bayplan.framework.status import SUCCESS, Status
from bayplan.testing.contract.trial import PluginTrial, answers_in
from bayplan.testing.harness import Harness

__all__ = [
    "accepting_all_rejects_none",
    "bindings_wait_for_one_request",
    "cached_equals_uncached",
    "combined_scores_equal_their_sum",
    "counts_are_enough",
    "idle_means_no_effect",
    "kinds_are_settled_alike",
    "pins_are_named",
    "raw_scores_are_in_bounds",
    "released_pods_are_named",
    "stated_depends_is_enough",
    "values_score_as_nodes",
]


def raw_scores_are_in_bounds(trial: PluginTrial) -> list[str]:
    """What `is_within_bounds` promises: before normalising, too, every score is 0 to 100."""
    if not getattr(type(trial.plugin), "is_within_bounds", False):
        return []
    problems = []
    for pod in trial.pods():
        bad = {name: score for name, score in trial.raw_scores(trial.one.info(pod)).items() if not 0 <= score <= 100}
        problems += [f"is_within_bounds, but node `{name}` scores {score}" for name, score in bad.items()]
    return problems


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


def idle_means_no_effect(trial: PluginTrial) -> list[str]:
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
            verdicts = trial.verdicts(state, info)
            problems += [f"is_idle, but filter says {v} of `{n}`" for n, v in verdicts.items() if not v.is_success]
        if len(set(trial.raw_scores(info).values())) > 1:
            problems.append("is_idle, but nodes score differently")
    return problems


def accepting_all_rejects_none(trial: PluginTrial) -> list[str]:
    """What `accepts_all` promises: no node is rejected by a filter that promises so."""
    if not trial.has("accepts_all") or not trial.has("filter", "filter_nodes"):
        return []
    problems = []
    for pod in trial.pods():
        info = trial.one.info(pod)
        state = trial.prepared(info)
        if state is None or not trial.plugin.accepts_all(info, trial.nodes):
            continue
        verdicts = trial.verdicts(state, info)
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


def stated_depends_is_enough(trial: PluginTrial) -> list[str]:
    """What `depends` states: no less than the code reads, where all of the code is understood."""
    problems = []
    for method in ("filter", "score"):
        stated = stated_depends(trial.plugin, method)
        found = reading_of(trial.plugin, method)
        if stated is None or found.obstacle or found.depends <= stated or not trial.has(method):
            continue
        part = next(part for part in found.parts if part.depends is found.depends)
        problems.append(
            f"`{method}` states Depends.{stated.name}, but line {part.line} reads `{part.expression}`: it depends on "
            f"{found.depends.name}"
        )
    return problems


def cached_equals_uncached(trial: PluginTrial) -> list[str]:
    """What `depends` and `sign` promise: a scheduler that keeps answers decides like one that computes all anew, while
    pods come, go and get other labels, and nodes and objects change."""
    keeping, computing = trial.harness(), trial.harness(remember=False)
    for round_number, change in enumerate(_CHANGES):
        for pod in trial.pods():
            placed = _named(pod, f"{pod.name}-{round_number}")
            first, second = keeping.schedule(placed), computing.schedule(placed)
            if answers_in(first) != answers_in(second):
                return [f"kept answers differ from those computed anew: {first.totals} and {second.totals}"]
        problems = _differences(trial, keeping, computing)
        for harness in (keeping, computing):
            change(trial, harness)
        problems += _differences(trial, keeping, computing)
        if problems:
            return problems
    return []


def _differences(trial: PluginTrial, keeping: Harness, computing: Harness) -> list[str]:
    decided = [(_decided(keeping, pod), _decided(computing, pod)) for pod in trial.pods()]
    return [f"with kept answers, the pod goes to {one}; computed anew, to {two}" for one, two in decided if one != two]


def _decided(harness: Harness, pod: Pod) -> str:
    """A decision as a running scheduler makes it, for which nothing is computed that only explanations need."""
    decision = harness.scheduler.decide(harness.info(pod))
    return f"`{decision.node_name}` with {decision.total} points" if decision.is_scheduled else decision.message


def _relabel_pods(trial: PluginTrial, harness: Harness) -> None:
    for pod in trial.running_pods()[::2]:
        pod.metadata.labels = {**(pod.metadata.labels or {}), "app": "changed"}
        harness.add(pod)


def _change_nodes(trial: PluginTrial, harness: Harness) -> None:
    for node in trial.copied_nodes()[::2]:
        labels = {key: f"{value}0" for key, value in (node.metadata.labels or {}).items()}
        node.metadata.labels = {**labels, "kubernetes.io/hostname": node.name}
        harness.add(node)


def _remove_some(trial: PluginTrial, harness: Harness) -> None:
    harness.remove(*trial.running_pods()[::3], *trial.own_objects[:1])


_CHANGES = (_relabel_pods, _change_nodes, _remove_some)
"""What happens after each round."""


def _named(pod: Pod, name: str) -> Pod:
    pod.metadata.name = name
    pod.metadata.uid = f"uid-{name}"
    return pod


def counts_are_enough(trial: PluginTrial) -> list[str]:
    """What `filter_reads_counts_only` promises: pods on nodes that request the same and differ in all else change no
    verdict."""
    if not trial.plugin.filter_reads_counts_only or not trial.has("filter_nodes"):
        return []
    problems = []
    other = trial.harness(change=_with_requests_alone)
    twin, nodes = other.plugin(trial.plugin.name), other.cluster.columns()
    for pod in trial.pods():
        info, like = trial.one.info(pod), other.info(pod)
        state, state_there = trial.prepared(info), CycleState()
        if state is None or (trial.has("pre_filter") and _refuses(twin.pre_filter(state_there, like, nodes))):
            continue
        first, second = trial.verdicts(state, info), twin.filter_nodes(state_there, like, nodes)
        for position in np.flatnonzero(nodes.valid).tolist():
            name, number = nodes.info(position).name, int(second.ids[position])
            status = second.status(number) if number else SUCCESS
            if status.code is not first[name].code:
                problems.append(f"filter_reads_counts_only, but other pods of the same size make `{name}` {status}")
    return problems


def _with_requests_alone(pod: Pod) -> Pod:
    """The same requests under another name, without labels, ports, volumes and terms."""
    containers = [
        msgspec.structs.replace(each, name=f"c{number}", ports=None)
        for number, each in enumerate(pod.spec.containers or ())
    ]
    spec = msgspec.structs.replace(pod.spec, containers=containers, volumes=None, affinity=None, tolerations=None)
    metadata = msgspec.structs.replace(pod.metadata, name=f"{pod.name}-twin", uid=f"{pod.uid}-twin", labels={})
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


def _refuses(answer: Any) -> bool:
    return isinstance(answer, Status) and not answer.is_success


def bindings_wait_for_one_request(trial: PluginTrial) -> list[str]:
    """What `binds_at_once` promises: `bind` makes one request, and waits for nothing besides."""
    if not trial.plugin.binds_at_once or not trial.has("bind"):
        return []
    api = _CountingApi()
    plugin = type(trial.plugin)(trial.plugin.args, replace(trial.plugin.handle, api=api))
    problems = []
    for pod in trial.pods():
        api.requests = 0
        binding = plugin.bind(CycleState(), trial.one.info(pod), trial.nodes.names[0])
        try:
            binding.send(None)
            problems.append("binds_at_once, but bind waits for something besides its request")
        except StopIteration as ended:
            if api.requests > 1 or (api.requests == 0 and not (ended.value is not None and ended.value.is_skip)):
                problems.append(f"binds_at_once, but bind makes {api.requests} requests")
        except Exception as error:
            problems.append(f"bind raises {type(error).__name__}: {error}")
        finally:
            binding.close()
    return problems


class _CountingApi:
    """An API server that grants everything at once."""

    def __init__(self) -> None:
        self.requests = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def granted(*arguments: Any, **keywords: Any) -> None:
            self.requests += 1

        return granted


def released_pods_are_named(trial: PluginTrial) -> list[str]:
    """What `releases` promises: a pod that was held back and now may pass is in the log."""
    if not trial.has("releases") or not trial.has("pre_enqueue"):
        return []
    harness = trial.harness()
    plugin = harness.plugin(trial.plugin.name)
    harness.remove(*trial.own_objects)
    held = [info for info in map(harness.info, trial.pods()) if _refuses(plugin.pre_enqueue(info))]
    log = plugin.releases()
    position = 0 if log is None else log.position
    harness.add(*trial.own_objects)
    harness.remove(*trial.running_pods()[::2])
    log = plugin.releases()
    named = None if log is None else log.since(position)
    if named is None:
        return []
    passing = {info.key for info in held if not _refuses(plugin.pre_enqueue(info))}
    return [f"`{key}` may pass pre_enqueue now, but releases does not name it" for key in sorted(passing - named)]


def combined_scores_equal_their_sum(trial: PluginTrial) -> list[str]:
    """What `combine_scores` promises: the weighted sum of the members' own scores, for all nodes and for one."""
    if not trial.has("combine_scores"):
        return []
    harness = trial.harness(with_defaults=True)
    calls = {call.name: call for call in harness.framework().score_calls}
    scores = {name: (call.plugin, call.weight) for name, call in calls.items()}
    combined = harness.plugin(trial.plugin.name).combine_scores(scores)
    if combined is None:
        return []
    every = harness.cluster.columns()
    nodes = every.take(np.flatnonzero(every.valid))
    problems = []
    for pod in trial.pods():
        info = harness.info(pod)
        members = [calls[name] for name in combined.members]
        if not all(call.plugin.is_relevant(info) for call in members):
            continue
        raw = [call.raw(CycleState(), info, nodes) for call in members]
        weights = np.array([call.weight for call in members], dtype=np.int64)
        wanted = weights @ np.stack(raw)
        totals, first = np.zeros(len(nodes), dtype=np.int64), np.zeros(len(nodes), dtype=np.uint8)
        if combined.totals(info, nodes, totals, first) and not (
            np.array_equal(totals, wanted) and np.array_equal(first, raw[0])
        ):
            problems.append(f"combine_scores gives {totals.tolist()[:5]}, the scores add up to {wanted.tolist()[:5]}")
        for position, node in enumerate(nodes):
            one = combined.total(info, node)
            if one is not None and one != (int(wanted[position]), int(raw[0][position])):
                problems.append(
                    f"combine_scores gives `{node.name}` {one}, its scores add up to {int(wanted[position])}"
                )
    return problems
