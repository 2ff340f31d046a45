"""Suggestions: what would let a pending pod run or move a placed one, each tried out before it is given.

Every change is made to a copy of the cluster, and the pod goes through a whole attempt there
(`bayplan.explain.placing`), so that groups, quotas and volumes count. Smallest changes come first, in the order in
which an operator would prefer them; where none helps, the answer says what stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import msgspec

from bayplan.api.decode import InputError
from bayplan.api.pod import Pod
from bayplan.api.tolerations import with_cordon
from bayplan.cluster.pod_info import PodInfo
from bayplan.config.profiles import ResolvedProfile
from bayplan.explain.builders import root_cause, too_large
from bayplan.explain.claims import IF, NothingHelps, TooLarge, Without, WouldFit, WouldMove
from bayplan.explain.cluster_copy import ClusterCopy
from bayplan.explain.commands import commands_for
from bayplan.explain.device_changes import device_trials
from bayplan.explain.device_report import device_report
from bayplan.explain.edits import Edit, apply_edits, merge_patch
from bayplan.explain.model import Changes, Suggestion
from bayplan.explain.object_changes import has_companions, object_changes
from bayplan.explain.objections import nearest_nodes, rejections_by_node
from bayplan.explain.placing import Placed, Placing, held_back_by
from bayplan.explain.remedies import MEMBERS, MORE_NODES, OBJECT, REMEDIES, Trial, shortfall
from bayplan.explain.templates import document_of, templates, twin_of
from bayplan.explain.time_slices import Work
from bayplan.explain.wording import sentence
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.loop.decide import Decider, Decision, decide
from bayplan.loop.recorder import refused_nodes

__all__ = ["find_changes", "find_moves", "try_edits"]

_MOST_TRIALS = 80
_MOST_SUGGESTIONS = 8
_MOST_OF_A_KIND = 3
_MOST_MEMBERS = 64
_HEAVIER = 10


def find_changes(copy: ClusterCopy, pod: Pod) -> Work[Changes]:
    """For a pod that waits in the copy."""
    changes = yield from _found_changes(copy, pod)
    for each in changes.suggestions:
        each.commands, each.how = commands_for(copy, each.edits)
    return changes


def _found_changes(copy: ClusterCopy, pod: Pod) -> Work[Changes]:
    changes = Changes(pod=pod.key)
    search = _Search(copy, pod)
    gate = held_back_by(search.decider.framework, copy.info(pod))
    if gate is not None:
        changes.suggestions = yield from search.without_gates(gate.message)
        return changes
    tried = yield from try_edits(copy, pod.key, ())
    if tried is not None and tried.node:
        changes.schedulable = True
        return changes
    decision = search.decide(pod)
    changes.without = yield from _without_each(copy, pod, decision)
    misses = rejections_by_node(search.decider.framework, decision)
    changes.nearest = [_suggestion(claim) for claim in nearest_nodes(copy, pod, misses)]
    yield
    helpful = yield from search.suggestions(decision, misses)
    found: list[IF] = [*helpful]
    if not found:
        found = [NothingHelps(pod=pod.key, reason=_in_the_way(search, decision, tried))]
    size = too_large(copy.info(pod), copy.cache.cluster.nodes)
    if size is not None:
        found = [TooLarge(pod=pod.key, resource=size[0], asked=size[1], largest=size[2]), *found]
    changes.suggestions = [_suggestion(claim) for claim in found]
    return changes


def _suggestion(claim: IF) -> Suggestion:
    if isinstance(claim, WouldFit):
        edits = list(claim.edits)
        return Suggestion(sentence=sentence(claim), edits=edits, node=claim.node, nodes=claim.nodes, claim=claim)
    if isinstance(claim, WouldMove):
        return Suggestion(sentence=sentence(claim), node=claim.node, claim=claim)
    nodes = claim.nodes if isinstance(claim, Without) else 0
    return Suggestion(sentence=sentence(claim), nodes=nodes, claim=claim)


def _in_the_way(search: _Search, decision: Decision, tried: Placed | None) -> str:
    if decision.is_scheduled:
        return tried.message if tried is not None else "it could not be tried"
    plugin, reason, _ = root_cause(search.decider.framework, decision, refused_nodes(decision))
    return f"{plugin}: {reason}" if plugin else reason


def try_edits(copy: ClusterCopy, key: str, edits: Sequence[Edit], *, preempts: bool = False) -> Work[Placed | None]:
    """What becomes of a pending pod with the edits applied; None if they cannot be. The copy is left as it was."""
    try:
        undo = apply_edits(copy, edits)
    except InputError:
        return None
    placing = Placing(copy, [(copy.waiting[key], "pending")], preempts=preempts)
    try:
        yield from placing.run()
        return placing.outcome(key)
    finally:
        placing.undo()
        undo()


# Without a plugin


def _without_each(copy: ClusterCopy, pod: Pod, decision: Decision) -> Work[list[Suggestion]]:
    """Of the plugins that reject something, and of those that kept the others from being asked."""
    profile = _profile_of(copy, pod.spec.scheduler_name)
    diagnosis = decision.diagnosis
    found: list[Without] = []
    for plugin in sorted(diagnosis.unschedulable_plugins) if diagnosis is not None else ():
        decider = copy.deciders_with([_without_plugin(profile, plugin)])[profile.scheduler_name]
        nodes = decide(decider, copy.info(pod)).feasible_nodes
        found.append(Without(pod=pod.key, plugin=plugin, nodes=nodes))
        yield
    return [_suggestion(claim) for claim in sorted(found, key=lambda entry: (-entry.nodes, entry.plugin))]


def _profile_of(copy: ClusterCopy, name: str) -> ResolvedProfile:
    return next(profile for profile in copy.profiles if profile.scheduler_name == name)


def _without_plugin(profile: ResolvedProfile, plugin: str) -> ResolvedProfile:
    points = {
        point: tuple(name for name in names if name != plugin or point is ExtensionPoint.QUEUE_SORT)
        for point, names in profile.points.items()
    }
    points[ExtensionPoint.POST_FILTER] = ()
    return replace(profile, points=points)


# Pending pods


class _Search:
    """Trials for one pod. PostFilter is left out: what preemption would do is said by itself."""

    def __init__(self, copy: ClusterCopy, pod: Pod) -> None:
        self._copy = copy
        self._pod = pod
        self.decider: Decider = copy.trial_deciders[pod.spec.scheduler_name]
        self._seen: set[bytes] = set()
        self._tried = 0
        self.worked = 0

    def decide(self, pod: Pod) -> Decision:
        return decide(self.decider, self._copy.info(pod))

    def without_gates(self, message: str) -> Work[list[Suggestion]]:
        """A pod that is held back: its gates by name, if those are what holds it."""
        gates = [gate.name for gate in self._pod.spec.scheduling_gates or ()]
        if not gates:
            return [_suggestion(NothingHelps(pod=self._pod.key, reason=message))]
        free = msgspec.structs.replace(self._pod.spec, scheduling_gates=None)
        names = " and ".join(f"the gate {name}" for name in gates)
        what = f"{names} {'was' if len(gates) == 1 else 'were'} removed"
        open_pod = msgspec.structs.replace(self._pod, spec=free)
        edit = Edit(kind="patchPod", name=self._pod.key, patch=merge_patch(self._pod, open_pod))
        claim = yield from self._attempt((what,), [edit])
        if claim is not None:
            return [_suggestion(claim)]
        later = self.decide(open_pod)
        found: list[Suggestion] = []
        for trial in self._answers(open_pod, (what,), rejections_by_node(self.decider.framework, later)):
            claim = yield from self._attempt(trial.done, _edits(self._pod, trial))
            found += [_suggestion(claim)] if claim is not None else []
            if len(found) >= _MOST_SUGGESTIONS:
                break
        return found or [_suggestion(NothingHelps(pod=self._pod.key, reason=f"if {what}: {later.message}"))]

    def suggestions(self, decision: Decision, misses: dict[int, tuple[str, ...]]) -> Work[list[WouldFit]]:
        found: list[tuple[int, WouldFit]] = []
        for trial in self._trials(decision, misses):
            if self._tried >= _MOST_TRIALS or len(found) >= 2 * _MOST_SUGGESTIONS:
                break
            edits = _edits(self._pod, trial)
            claim = yield from self._attempt(trial.done, edits)
            if claim is not None:
                found.append((trial.effort, claim))
        found += yield from self._devices(decision)
        for effort, search in ((OBJECT, self._objects(decision)), (MEMBERS, self._members(decision))):
            if len(found) < _MOST_SUGGESTIONS:
                more = yield from search
                found += [(effort, claim) for claim in more]
            else:
                search.close()
        another = yield from self._one_more_node(misses)
        found += [(MORE_NODES, claim) for claim in another]
        found.sort(key=lambda entry: entry[0])
        return [claim for _, claim in found][:_MOST_SUGGESTIONS]

    def _attempt(self, done: Sequence[str], edits: Sequence[Edit]) -> Work[WouldFit | None]:
        key = msgspec.json.encode(edits)
        if not edits or key in self._seen:
            return None
        self._seen.add(key)
        self._tried += 1
        tried = yield from try_edits(self._copy, self._pod.key, edits)
        if tried is None or not tried.node:
            return None
        self.worked += 1
        what = " and ".join(done)
        return WouldFit(pod=self._pod.key, what=what, edits=tuple(edits), node=tried.node, nodes=tried.feasible)

    def _trials(self, decision: Decision, misses: dict[int, tuple[str, ...]]) -> Iterator[Trial]:
        """For the nodes that object least, every way to answer their objections; nodes that object more are left out.

        Where PreFilter ended the decision, what it objected to is answered first, and the filters are asked then.
        """
        table = self._copy.cache.cluster.nodes
        if misses:
            yield from self._answers(self._pod, (), misses)
            return
        info = next((info for info in table.infos if info is not None), None)
        if info is None:
            return
        blamed = sorted(decision.diagnosis.unschedulable_plugins) if decision.diagnosis is not None else []
        for trial in self._pod_answered(Trial(self._pod, info.node, info), blamed):
            later = self.decide(trial.pod)
            if later.is_scheduled:
                yield trial
            else:
                yield from self._answers(trial.pod, trial.done, rejections_by_node(self.decider.framework, later))

    def _pod_answered(self, trial: Trial, plugins: list[str]) -> Iterator[Trial]:
        """Changes of the pod alone, because no node was looked at: for one plugin each, then for all of them."""
        for few in [(plugin,) for plugin in plugins] + ([tuple(plugins)] if len(plugins) > 1 else []):
            for each in self._all_answered(trial, few):
                if each.pod is not trial.pod and not _touches_node(each):
                    yield each

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
            nominated = self._copy.nominated_before(pod, info.name)
            yield from self._all_answered(Trial(pod, info.node, info, nominated, done=done), plugins)

    def _all_answered(self, trial: Trial, plugins: tuple[str, ...]) -> Iterator[Trial]:
        if not plugins:
            yield trial
            return
        plugin = self.decider.framework.plugins.get(plugins[0])
        remedies = plugin.remedies if plugin is not None else ()
        answered = [each for remedy in remedies for each in REMEDIES[remedy](trial)]
        if not answered and trial.done:
            # What was done for another filter may answer this one too; trying shows it.
            answered = [trial]
        for each in answered:
            yield from self._all_answered(each, plugins[1:])

    def _devices(self, decision: Decision) -> Work[list[tuple[int, WouldFit]]]:
        """Other resource claims, and claims of others released."""
        report = device_report(self.decider.framework, decision)
        found: list[tuple[int, WouldFit]] = []
        for trial in device_trials(self._copy.cache.cluster, report) if report is not None else ():
            if len(found) >= _MOST_SUGGESTIONS:
                break
            claim = yield from self._attempt((trial.what,), trial.edits)
            if claim is not None:
                found.append((trial.effort, claim))
        return found

    def _objects(self, decision: Decision) -> Work[list[WouldFit]]:
        """Objects that are missing or too small: claims, classes, quotas, groups; with what the nodes want beside."""
        found: list[WouldFit] = []
        for what, edits in object_changes(self._copy, self._pod, self._blamed(decision)):
            claim = yield from self._attempt((what,), edits)
            if claim is not None:
                found.append(claim)
                continue
            for trial in self._answers_after(what, edits):
                claim = yield from self._attempt(trial.done, [*edits, *_edits(self._pod, trial)])
                if claim is not None:
                    found.append(claim)
        return found

    def _blamed(self, decision: Decision) -> list[Plugin]:
        """Plugins that reject the pod, and those that may do so after the choice of a node."""
        framework, diagnosis = self.decider.framework, decision.diagnosis
        if diagnosis is None:
            return [*framework.at(ExtensionPoint.RESERVE), *framework.at(ExtensionPoint.PERMIT)]
        return [framework.plugins[name] for name in sorted(diagnosis.unschedulable_plugins)]

    def _answers_after(self, what: str, edits: Sequence[Edit]) -> list[Trial]:
        """What the nodes would still object to once the edits are done, answered."""
        try:
            undo = apply_edits(self._copy, edits)
        except InputError:
            return []
        try:
            misses = rejections_by_node(self.decider.framework, self.decide(self._pod))
            return list(islice(self._answers(self._pod, (what,), misses), _MOST_OF_A_KIND))
        finally:
            undo()

    def _members(self, decision: Decision) -> Work[list[WouldFit]]:
        """More pods like this one, for plugins that want to see a group; only where no node was looked at."""
        if decision.outcome is not None or decision.is_scheduled or not self._pod.labels:
            return []
        count = 1
        while count <= _MOST_MEMBERS:
            claim = yield from self._with_members(count)
            if claim is not None:
                for fewer in range(max(count // 2 + 1, 1), count):
                    smaller = yield from self._with_members(fewer)
                    if smaller is not None:
                        return [smaller]
                return [claim]
            count *= 2
        return []

    def _with_members(self, count: int) -> Work[WouldFit | None]:
        edits = []
        for number in range(count):
            name = f"{self._pod.name}-more-{number + 1}"
            document = {"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(self._pod)}
            document["metadata"] = {"name": name, "namespace": self._pod.namespace, "labels": self._pod.labels}
            document.pop("status", None)
            edits.append(Edit(kind="addPod", name=f"{self._pod.namespace}/{name}", object=document))
        what = f"there {'was one more pod' if count == 1 else f'were {count} more pods'} like it"
        claim = yield from self._attempt((what,), edits)
        # Which of the group gets which node depends on the order in which they come.
        return None if claim is None else msgspec.structs.replace(claim, node="", nodes=0)

    def _one_more_node(self, misses: dict[int, tuple[str, ...]]) -> Work[list[WouldFit]]:
        """One more node like one that there is, empty."""
        table = self._copy.cache.cluster.nodes
        rows = _by_objections(self._copy, self._pod, misses, most=200)
        for node in templates(table.at(row).node for row in rows if not has_companions(self._copy, table.at(row).name)):
            twin = twin_of(node, taken=table.row_of)
            edit = Edit(kind="addNode", name=twin.name, object=document_of(twin))
            claim = yield from self._attempt((f"there were one more node like {node.name}",), [edit])
            if claim is not None:
                return [claim]
        return []


def _by_objections(copy: ClusterCopy, pod: Pod, misses: dict[int, tuple[str, ...]], *, most: int = 40) -> list[int]:
    """Rows with the fewest objecting filters first, then the smallest shortfall."""
    fewest = sorted(misses, key=lambda row: len(misses[row]))[: max(most * 5, 200)]
    table = copy.cache.cluster.nodes

    def price(row: int) -> tuple[int, float, int]:
        info = table.at(row)
        lacking = shortfall(pod, info.node, info, nominated=copy.nominated_before(pod, info.name))
        shares = [amount / max(info.allocatable_of(name), 1) for name, amount in lacking.items()]
        return len(misses[row]), sum(shares), row

    return sorted(fewest, key=price)[:most]


def _touches_node(trial: Trial) -> bool:
    """Whether a trial changes its node, or what runs there."""
    return trial.node is not trial.info.node or bool(trial.evicted)


def _edits(pod: Pod, trial: Trial) -> list[Edit]:
    edits = []
    if trial.pod is not pod:
        edits.append(Edit(kind="patchPod", name=pod.key, patch=merge_patch(pod, trial.pod)))
    if trial.node is not trial.info.node:
        patch = merge_patch(trial.info.node, trial.node)
        edits.append(Edit(kind="patchNode", name=trial.info.name, patch=patch))
    victims: dict[str, PodInfo] = {victim.key: victim for victim in trial.evicted}
    return edits + [Edit(kind="deletePod", name=key) for key in victims]


# Placed pods


def find_moves(copy: ClusterCopy, info: PodInfo) -> Work[Changes]:
    """What would move a pod that is on a node of the copy, which is left as it was."""
    home = info.node_name
    known = copy.cache.remove_pod(info.uid)
    reserve_again = copy.release_claims(info.pod)
    free = msgspec.structs.replace(info.pod, spec=msgspec.structs.replace(info.pod.spec, node_name=""))
    copy.cache.note_pod(None, free)
    try:
        moves = yield from _moves(copy, free, home)
    finally:
        reserve_again()
        if known is not None:
            copy.cache.assume(known, home)
    return Changes(pod=info.key, is_placed=True, suggestions=[_suggestion(move) for move in moves])


def _moves(copy: ClusterCopy, pod: Pod, home: str) -> Work[list[WouldMove]]:
    profile = _profile_of(copy, pod.spec.scheduler_name)
    found: list[WouldMove] = []
    now = yield from _moved(copy, pod)
    for plugin, weight in profile.weights.items():
        for factor, words in ((0, "had no weight"), (_HEAVIER, f"weighed {_HEAVIER} times as much")):
            changed = replace(profile, weights={**profile.weights, plugin: weight * factor})
            deciders = copy.deciders_with([changed])
            moved = yield from _moved(copy, pod, deciders)
            if moved.node and moved.node not in (home, now.node):
                what = f"{plugin} {words} and it were scheduled again"
                found.append(
                    WouldMove(pod=pod.key, home=home, what=what, node=moved.node, plugin=plugin, weight=weight * factor)
                )
    drained = yield from _drained(copy, pod, home)
    return found if drained is None else [*found, drained]


def _moved(copy: ClusterCopy, pod: Pod, deciders: dict[str, Decider] | None = None) -> Work[Placed]:
    placing = Placing(copy, [(pod, "pending")], preempts=False, deciders=deciders)
    try:
        yield from placing.run()
        outcome = placing.outcome(pod.key)
    finally:
        placing.undo()
    return outcome if outcome is not None else Placed(pod=pod.key, origin="pending")


def _drained(copy: ClusterCopy, pod: Pod, home: str) -> Work[WouldMove | None]:
    """Where the pod would go if its node were drained, preempting as it may; None if it would come back there."""
    info = copy.cache.cluster.node(home)
    if info is None:
        return None
    original = info.node
    copy.cache.add_node(with_cordon(original, True))
    placing = Placing(copy, [(pod, "pending")])
    try:
        yield from placing.run()
        outcome = placing.outcome(pod.key)
        mine = [gone for gone in placing.evicted if gone.by == pod.key]
    finally:
        placing.undo()
        copy.cache.add_node(original)
    node = outcome.node if outcome is not None else ""
    if node == home:
        return None
    return WouldMove(
        pod=pod.key,
        home=home,
        what=f"{home} were drained",
        node=node,
        drain=home,
        victims=tuple(gone.pod for gone in mine) if node else (),
        ties=max((gone.ties for gone in mine), default=1) if node else 1,
    )
