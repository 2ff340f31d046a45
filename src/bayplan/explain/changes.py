"""Counterfactuals: what would let a pending pod run, each answer tried out before it is given.

Three kinds. *Without*: how many nodes there would be if one plugin had no say. *Nearest*: the nodes that miss by least,
and what they lack. *Suggestions*: the smallest changes of the pod, of one node, or of what runs there, and one more
node. Everything is worked out on a copy of the cluster, by the scheduler's own decision on the changed input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from bayplan.api.decode import InputError
from bayplan.api.pod import Pod
from bayplan.cluster.pod_info import PodInfo
from bayplan.config.profiles import ResolvedProfile
from bayplan.explain.cluster_copy import ClusterCopy
from bayplan.explain.edits import Edit, apply_edits, merge_patch
from bayplan.explain.fixes import FIXES, Trial, shortfall
from bayplan.explain.nearest import Miss, nearest_nodes, rejections_by_node
from bayplan.explain.templates import document_of, templates, twin_of
from bayplan.explain.turns import Work
from bayplan.framework.points import ExtensionPoint
from bayplan.loop.decide import Decider, Decision, decide

__all__ = ["Changes", "Suggestion", "Without", "find_changes", "try_edits"]

_MOST_TRIALS = 60
_MOST_SUGGESTIONS = 8
_MOST_OF_A_KIND = 3


class Without(msgspec.Struct, kw_only=True, rename="camel"):
    """With this plugin turned off, so many nodes would fit."""

    plugin: str
    nodes: int


class Suggestion(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A change that was tried and worked."""

    sentence: str
    edits: list[Edit]
    node: str
    """Where the pod would then go."""
    nodes: int = 1
    """How many nodes would then fit."""


class Changes(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    pod: str
    schedulable: bool = False
    """It would find a node as things are: nothing needs to change."""
    without: list[Without] = []
    nearest: list[Miss] = []
    suggestions: list[Suggestion] = []
    note: str = ""
    """What the answer leaves out."""


def find_changes(copy: ClusterCopy, pod: Pod) -> Work[Changes]:
    """For a pod that waits in the copy."""
    changes = Changes(pod=pod.key)
    search = _Search(copy, pod)
    decision = search.decide(pod)
    yield
    if decision.is_scheduled:
        changes.schedulable = True
        return changes
    changes.without = yield from _without_each(copy, pod, decision)
    misses = rejections_by_node(search.decider.framework, decision)
    changes.nearest = nearest_nodes(copy, pod, misses)
    yield
    changes.suggestions = yield from search.suggestions(decision, misses)
    return changes


def try_edits(copy: ClusterCopy, key: str, edits: Sequence[Edit]) -> Decision | None:
    """The decision about a pending pod with the edits applied; None if they cannot be. The copy is left as it was."""
    try:
        undo = apply_edits(copy, edits)
    except InputError:
        return None
    try:
        return _Search(copy, copy.waiting[key]).decide(copy.waiting[key])
    finally:
        undo()


# Without a plugin


def _without_each(copy: ClusterCopy, pod: Pod, decision: Decision) -> Work[list[Without]]:
    """Of the plugins that reject something, and of those that kept the others from being asked."""
    profile = _profile_of(copy, pod)
    diagnosis = decision.diagnosis
    found = []
    for plugin in sorted(diagnosis.unschedulable_plugins) if diagnosis is not None else ():
        decider = copy.deciders_with([_without_plugin(profile, plugin)])[profile.scheduler_name]
        found.append(Without(plugin=plugin, nodes=decide(decider, copy.info(pod)).feasible_nodes))
        yield
    return sorted(found, key=lambda entry: (-entry.nodes, entry.plugin))


def _profile_of(copy: ClusterCopy, pod: Pod) -> ResolvedProfile:
    return next(profile for profile in copy.profiles if profile.scheduler_name == pod.spec.scheduler_name)


def _without_plugin(profile: ResolvedProfile, plugin: str) -> ResolvedProfile:
    points = {
        point: tuple(name for name in names if name != plugin or point is ExtensionPoint.QUEUE_SORT)
        for point, names in profile.points.items()
    }
    points[ExtensionPoint.POST_FILTER] = ()
    return replace(profile, points=points)


# Suggestions


class _Search:
    """Trials for one pod. PostFilter is left out: what preemption would do is among the suggestions by itself."""

    def __init__(self, copy: ClusterCopy, pod: Pod) -> None:
        self._copy = copy
        self._pod = pod
        name = pod.spec.scheduler_name
        self.decider: Decider = copy.trial_decider(name)
        self._seen: set[bytes] = set()
        self._tried = 0
        self.worked = 0

    def decide(self, pod: Pod) -> Decision:
        return decide(self.decider, self._copy.info(pod))

    def suggestions(self, decision: Decision, misses: dict[int, tuple[str, ...]]) -> Work[list[Suggestion]]:
        found: list[Suggestion] = []
        for trial in self._trials(decision, misses):
            if self._tried >= _MOST_TRIALS or len(found) >= _MOST_SUGGESTIONS:
                break
            suggestion = self._tried_out(trial)
            if suggestion is not None:
                found.append(suggestion)
            yield
        another = yield from self._one_more_node(misses)
        return [*found, *another]

    def _trials(self, decision: Decision, misses: dict[int, tuple[str, ...]]) -> Iterator[Trial]:
        """For the nodes that object least, every way to answer their objections; nodes that object more are left out.

        Where PreFilter ended the decision, what it objected to is answered first, and the filters are asked then.
        """
        table = self._copy.cache.cluster.nodes
        if misses:
            yield from self._answers(self._pod, (), misses)
            return
        info = next(iter(info for info in table.infos if info is not None))
        blamed = decision.diagnosis.unschedulable_plugins if decision.diagnosis is not None else set()
        for trial in _all_answered(Trial(self._pod, info.node, info), tuple(sorted(blamed))):
            later = self.decide(trial.pod)
            if later.is_scheduled:
                yield trial
            else:
                yield from self._answers(trial.pod, trial.done, rejections_by_node(self.decider.framework, later))

    def _answers(self, pod: Pod, done: tuple[str, ...], misses: dict[int, tuple[str, ...]]) -> Iterator[Trial]:
        table = self._copy.cache.cluster.nodes
        rows = _by_objections(self._copy, pod, misses)
        given: dict[tuple[str, ...], int] = {}
        found_before = self.worked
        fewest = 0
        for row in rows:
            plugins = misses[row]
            if given.get(plugins, 0) >= _MOST_OF_A_KIND or (self.worked > found_before and len(plugins) > fewest):
                continue
            given[plugins] = given.get(plugins, 0) + 1
            fewest = len(plugins)
            info = table.at(row)
            yield from _all_answered(Trial(pod, info.node, info, done=done), plugins)

    def _tried_out(self, trial: Trial) -> Suggestion | None:
        edits = _edits(self._pod, trial)
        key = msgspec.json.encode(edits)
        if not edits or key in self._seen:
            return None
        self._seen.add(key)
        self._tried += 1
        decision = try_edits(self._copy, self._pod.key, edits)
        if decision is None or not decision.is_scheduled:
            return None
        self.worked += 1
        what = " and ".join(trial.done)
        return Suggestion(
            sentence=f"It would fit on {_on(decision)} if {what}.",
            edits=edits,
            node=decision.node_name,
            nodes=decision.feasible_nodes,
        )

    def _one_more_node(self, misses: dict[int, tuple[str, ...]]) -> Work[list[Suggestion]]:
        """One more node like one that there is, empty."""
        table = self._copy.cache.cluster.nodes
        rows = _by_objections(self._copy, self._pod, misses, most=200)
        for info in templates(table.at(row).node for row in rows):
            twin = twin_of(info, taken=table.row_of)
            edit = Edit(kind="addNode", name=twin.name, object=document_of(twin))
            decision = try_edits(self._copy, self._pod.key, [edit])
            yield
            if decision is not None and decision.is_scheduled:
                sentence = f"It would fit if there were one more node like {info.name}."
                return [Suggestion(sentence=sentence, edits=[edit], node=decision.node_name)]
        return []


def _all_answered(trial: Trial, plugins: tuple[str, ...]) -> Iterator[Trial]:
    if not plugins:
        yield trial
        return
    fix = FIXES.get(plugins[0])
    if fix is not None:
        for answered in fix(trial):
            yield from _all_answered(answered, plugins[1:])


def _on(decision: Decision) -> str:
    others = decision.feasible_nodes - 1
    return decision.node_name if not others else f"{decision.node_name} and {others} other node{'s' * (others > 1)}"


def _by_objections(copy: ClusterCopy, pod: Pod, misses: dict[int, tuple[str, ...]], *, most: int = 40) -> list[int]:
    """Rows with the fewest objecting filters first, then the smallest shortfall."""
    fewest = sorted(misses, key=lambda row: len(misses[row]))[: max(most * 5, 200)]
    table = copy.cache.cluster.nodes

    def price(row: int) -> tuple[int, float, int]:
        info = table.at(row)
        lacking = shortfall(pod, info.node, info)
        shares = [amount / max(info.allocatable_of(name), 1) for name, amount in lacking.items()]
        return len(misses[row]), sum(shares), row

    return sorted(fewest, key=price)[:most]


def _edits(pod: Pod, trial: Trial) -> list[Edit]:
    edits = []
    if trial.pod is not pod:
        edits.append(Edit(kind="patchPod", name=pod.key, patch=merge_patch(pod, trial.pod)))
    if trial.node is not trial.info.node:
        patch = merge_patch(trial.info.node, trial.node)
        edits.append(Edit(kind="patchNode", name=trial.info.name, patch=patch))
    victims: dict[str, PodInfo] = {victim.key: victim for victim in trial.evicted}
    return edits + [Edit(kind="deletePod", name=key) for key in victims]
