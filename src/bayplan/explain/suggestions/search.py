"""Suggestions: what would let a pending pod run, each tried out before it is given.

Every change is made to a copy of the cluster, and the pod goes through a whole attempt there
(`bayplan.explain.whatif.placing`), so that groups, quotas and volumes count. Smallest changes come first, in the order
in which an operator would prefer them; where none helps, the answer says what stands in the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import inf

import msgspec

from bayplan.api.decode import InputError
from bayplan.api.pod import Pod
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.config.profiles import ResolvedProfile
from bayplan.explain.builders import root_cause, too_large
from bayplan.explain.claims.base import Edit
from bayplan.explain.claims.pods import IF, NothingHelps, TooLarge, Without, WouldFit, WouldMove
from bayplan.explain.claims.wording import sentence
from bayplan.explain.device_report import device_report
from bayplan.explain.model import Changes, Suggestion
from bayplan.explain.suggestions.attempts import Tried, budgets_against, try_edits
from bayplan.explain.suggestions.commands import commands_for
from bayplan.explain.suggestions.device_changes import device_trials
from bayplan.explain.suggestions.object_changes import has_companions, object_changes
from bayplan.explain.suggestions.objections import nearest_nodes, rejections_by_node
from bayplan.explain.suggestions.remedies import (
    MEMBERS,
    MORE_NODES,
    OBJECT,
    REMEDIES,
    Trial,
    parts_of_requests,
    shortfall,
)
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.explain.whatif.edits import apply_edits, merge_patch
from bayplan.explain.whatif.placing import held_back_by
from bayplan.explain.whatif.templates import document_of, templates, twin_of
from bayplan.framework.diagnosis import Remedy
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.loop.decide import Decider, Decision, decide
from bayplan.loop.recorder import refused_nodes
from bayplan.observe.time_slices import Work

__all__ = ["find_changes", "profile_of", "suggestion_of"]

_MOST_TRIALS = 80
_MOST_SUGGESTIONS = 8
_MOST_OF_A_KIND = 3
_MOST_MEMBERS = 64
_SMALLEST_PART = 32
"""Of a request, as a divisor, where a plugin objects before any node was looked at."""
_AMOUNT = re.compile(r"(?<=the pod asked )\S+(?= instead of )")
_MOST_AHEAD = 100
"""So many of the pods that come first are tried before the one in question."""


def find_changes(copy: ClusterCopy, pod: Pod) -> Work[Changes]:
    """For a pod that waits in the copy."""
    changes = yield from _found_changes(copy, pod)
    for each in changes.suggestions:
        each.commands, each.how = commands_for(copy, each.edits)
    return changes


def _found_changes(copy: ClusterCopy, pod: Pod) -> Work[Changes]:
    changes = Changes(pod=pod.key)
    if pod.spec.scheduler_name not in copy.deciders:
        changes.suggestions = yield from _under_our_names(copy, pod)
        return changes
    search = _Search(copy, pod)
    gate = held_back_by(search.decider.framework, copy.info(pod))
    if gate is not None:
        changes.suggestions = yield from search.without_gates(gate.message)
        return changes
    tried = yield from try_edits(copy, pod.key, ())
    if tried is not None and tried.fits:
        changes.schedulable = True
        return changes
    decision = search.decide(pod)
    changes.without = yield from _without_each(copy, pod, decision)
    misses = rejections_by_node(search.decider.framework, decision)
    changes.nearest = [suggestion_of(claim) for claim in nearest_nodes(copy, pod, misses)]
    yield
    helpful = yield from search.suggestions(decision, misses)
    found: list[IF] = [*helpful]
    if not found:
        found = [NothingHelps(pod=pod.key, reason=_in_the_way(search, decision, tried))]
    size = too_large(copy.info(pod), copy.cache.cluster.nodes)
    if size is not None:
        found = [TooLarge(pod=pod.key, resource=size[0], asked=size[1], largest=size[2]), *found]
    changes.suggestions = [suggestion_of(claim) for claim in found]
    changes.note = search.note
    return changes


def _under_our_names(copy: ClusterCopy, pod: Pod) -> Work[list[Suggestion]]:
    """For a pod that waits for a scheduler which is none of ours: each of our profiles in its place."""
    found: list[IF] = []
    reasons: list[str] = []
    for name in sorted(copy.deciders):
        ours = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name=name))
        edit = Edit(kind="patchPod", name=pod.key, patch=merge_patch(pod, ours))
        what = f"the pod named the scheduler `{name}`"
        tried = yield from try_edits(copy, pod.key, [edit])
        if tried is not None and tried.fits:
            node, nodes = tried.placed.node, tried.placed.feasible
            found.append(WouldFit(pod=pod.key, what=what, edits=(edit,), node=node, nodes=nodes))
        elif tried is not None:
            reasons.append(f"if {what}: {tried.placed.message}")
    if not found:
        found = [NothingHelps(pod=pod.key, reason=reasons[0] if reasons else "no scheduler that runs here takes it")]
    return [suggestion_of(claim) for claim in found]


def suggestion_of(claim: IF) -> Suggestion:
    if isinstance(claim, WouldFit):
        edits = list(claim.edits)
        return Suggestion(sentence=sentence(claim), edits=edits, node=claim.node, nodes=claim.nodes, claim=claim)
    if isinstance(claim, WouldMove):
        return Suggestion(sentence=sentence(claim), node=claim.node, claim=claim)
    nodes = claim.nodes if isinstance(claim, Without) else 0
    return Suggestion(sentence=sentence(claim), nodes=nodes, claim=claim)


def _in_the_way(search: _Search, decision: Decision, tried: Tried | None) -> str:
    if decision.is_scheduled:
        return tried.placed.message if tried is not None else "it could not be tried"
    plugin, reason, _ = root_cause(search.decider.framework, decision, refused_nodes(decision))
    return f"{plugin}: {reason}" if plugin else reason


def _others_in_line(copy: ClusterCopy, pod: Pod) -> tuple[list[Pod], list[Pod]]:
    """Waiting pods that are tried before this one whenever both may fit, and those that are tried after it."""

    def turn(other: Pod) -> tuple[int, float]:
        # One that is not in the queue is being tried, and enters again when that has failed.
        return -other.priority, copy.entered.get(other.key, inf)

    others = [each for key, each in copy.waiting.items() if key != pod.key]
    ours = [each for each in others if each.spec.scheduler_name in copy.deciders and not each.spec.scheduling_gates]
    ours.sort(key=turn)
    return [each for each in ours if turn(each) < turn(pod)], [each for each in ours if turn(each) >= turn(pod)]


# Without a plugin


def _without_each(copy: ClusterCopy, pod: Pod, decision: Decision) -> Work[list[Suggestion]]:
    """Of the plugins that reject something, and of those that kept the others from being asked."""
    profile = profile_of(copy, pod.spec.scheduler_name)
    diagnosis = decision.diagnosis
    found: list[Without] = []
    for plugin in sorted(diagnosis.unschedulable_plugins) if diagnosis is not None else ():
        decider = copy.deciders_with([_without_plugin(profile, plugin)])[profile.scheduler_name]
        info = copy.info(pod)
        info.nominated_node_name = ""  # only that node would be looked at
        nodes = decide(decider, info).feasible_nodes
        found.append(Without(pod=pod.key, plugin=plugin, nodes=nodes))
        yield
    return [suggestion_of(claim) for claim in sorted(found, key=lambda entry: (-entry.nodes, entry.plugin))]


def profile_of(copy: ClusterCopy, name: str) -> ResolvedProfile:
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
        ahead, behind = _others_in_line(copy, pod)
        self._ahead, self._untried = ahead[:_MOST_AHEAD], len(ahead[_MOST_AHEAD:])
        self._behind = behind[:_MOST_AHEAD]
        self._more_important = [other for other in self._ahead if other.priority > pod.priority]
        self._takes_room = False
        self._may_ask_nothing = False
        self._seen: set[bytes] = set()
        self._tried = 0
        self.worked = 0

    @property
    def note(self) -> str:
        """What the suggestions leave out."""
        if not self._untried or not self._takes_room:
            return ""
        return f"{self._untried:,} more pods whose turn comes first were not tried: they may take what becomes free."

    def decide(self, pod: Pod) -> Decision:
        return decide(self.decider, self._copy.info(pod))

    def without_gates(self, message: str) -> Work[list[Suggestion]]:
        """A pod that is held back: its gates by name, if those are what holds it."""
        gates = [gate.name for gate in self._pod.spec.scheduling_gates or ()]
        if not gates:
            return [suggestion_of(NothingHelps(pod=self._pod.key, reason=message))]
        free = msgspec.structs.replace(self._pod.spec, scheduling_gates=None)
        names = " and ".join(f"the gate {name}" for name in gates)
        what = f"{names} {'was' if len(gates) == 1 else 'were'} removed"
        open_pod = msgspec.structs.replace(self._pod, spec=free)
        edit = Edit(kind="patchPod", name=self._pod.key, patch=merge_patch(self._pod, open_pod))
        claim = yield from self._attempt((what,), [edit])
        if claim is not None:
            return [suggestion_of(claim)]
        later = self.decide(open_pod)
        found: list[Suggestion] = []
        for trial in self._answers(open_pod, (what,), rejections_by_node(self.decider.framework, later)):
            claim = yield from self._attempt(trial.done, _edits(self._pod, trial))
            found += [suggestion_of(claim)] if claim is not None else []
            if len(found) >= _MOST_SUGGESTIONS:
                break
        return found or [suggestion_of(NothingHelps(pod=self._pod.key, reason=f"if {what}: {later.message}"))]

    def suggestions(self, decision: Decision, misses: dict[int, tuple[str, ...]]) -> Work[list[WouldFit]]:
        found = yield from self._of_trials(decision, misses)
        found += yield from self._devices(decision)
        for effort, search in ((OBJECT, self._objects(decision)), (MEMBERS, self._members(decision))):
            if len(found) < _MOST_SUGGESTIONS:
                more = yield from search
                found += [(effort, claim) for claim in more]
            else:
                search.close()
        another = yield from self._one_more_node(misses)
        found += [(MORE_NODES, claim) for claim in another]
        if not found:
            # Every pod runs that asks for nothing: that is said where nothing else is left to say.
            self._may_ask_nothing, self._tried = True, 0
            found = yield from self._of_trials(decision, misses)
        found.sort(key=lambda entry: (entry[1].before > 0, entry[0], _price(entry[1])))
        return [claim for _, claim in found][:_MOST_SUGGESTIONS]

    def _of_trials(self, decision: Decision, misses: dict[int, tuple[str, ...]]) -> Work[list[tuple[int, WouldFit]]]:
        found: list[tuple[int, WouldFit]] = []
        for trial in self._trials(decision, misses):
            if self._tried >= _MOST_TRIALS or len(found) >= 2 * _MOST_SUGGESTIONS:
                break
            claim = yield from self._attempt(trial.done, _edits(self._pod, trial))
            if claim is not None and not any(_asks_more(other, claim) for _, other in found):
                found.append((trial.effort, claim))
        return found

    def _attempt(self, done: Sequence[str], edits: Sequence[Edit]) -> Work[WouldFit | None]:
        key = msgspec.json.encode(edits)
        if not edits or key in self._seen:
            return None
        self._seen.add(key)
        self._tried += 1
        tried = yield from try_edits(self._copy, self._pod.key, edits)
        before = 0
        kinds = {edit.kind for edit in edits}
        has_others = self._ahead or ("deletePod" in kinds and self._behind)
        if tried is not None and tried.fits and has_others and kinds != {"patchPod"}:
            tried, before = yield from self._in_turn(edits)
        if tried is None or not tried.fits or tried.fate is None:
            return None
        self.worked += 1
        against = yield from budgets_against(self._copy, edits)
        return WouldFit(
            pod=self._pod.key,
            what=" and ".join(done),
            edits=tuple(edits),
            node=tried.placed.node,
            nodes=tried.placed.feasible,
            before=before,
            lost=tried.fate.lost,
            displaced=tried.fate.displaced,
            against=against,
        )

    def _in_turn(self, edits: Sequence[Edit]) -> Work[tuple[Tried | None, int]]:
        """What becomes free is for those that come first; and how many of those that are as important as the pod would
        have to come after it, if none of it is left."""
        self._takes_room = True
        tried = yield from try_edits(self._copy, self._pod.key, edits, ahead=self._ahead, behind=self._behind)
        equals = self._ahead[len(self._more_important) :]
        if not equals or (tried is not None and tried.fits):
            return tried, 0
        later = [*equals, *self._behind]
        tried = yield from try_edits(self._copy, self._pod.key, edits, ahead=self._more_important, behind=later)
        return tried, len(equals)

    def _trials(self, decision: Decision, misses: dict[int, tuple[str, ...]]) -> Iterator[Trial]:
        """For the nodes that object least, every way to answer their objections; nodes that object more are left out.

        Where PreFilter ended the decision, its objections are answered first, and the filters run then.
        """
        if misses:
            yield from self._answers(self._pod, (), misses)
            return
        info = self._roomiest()
        if info is None:
            return
        blamed = sorted(decision.diagnosis.unschedulable_plugins) if decision.diagnosis is not None else []
        for trial in self._pod_answered(
            Trial(self._pod, info.node, info, may_ask_nothing=self._may_ask_nothing), blamed
        ):
            later = self.decide(trial.pod)
            if later.is_scheduled:
                yield trial
            else:
                yield from self._answers(trial.pod, trial.done, rejections_by_node(self.decider.framework, later))

    def _roomiest(self) -> NodeInfo | None:
        """The node that lacks the least: what the pod asks is too much in itself, if it is too much there."""
        found = [info for info in self._copy.cache.cluster.nodes.infos if info is not None]
        return min(found, key=lambda info: len(shortfall(self._pod, info.node, info)), default=None)

    def _pod_answered(self, trial: Trial, plugins: list[str]) -> Iterator[Trial]:
        """Changes of the pod alone, because no node was looked at: for one plugin each, then for all of them."""
        for few in [(plugin,) for plugin in plugins] + ([tuple(plugins)] if len(plugins) > 1 else []):
            for each in self._all_answered(trial, few):
                if each.pod is not trial.pod and not _touches_node(each):
                    yield each
        known = self.decider.framework.plugins
        if any(Remedy.REQUESTS in known[name].remedies for name in plugins if name in known):
            yield from parts_of_requests(trial, most=_SMALLEST_PART)

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
            first = Trial(pod, info.node, info, nominated, self._may_ask_nothing, done=done)
            yield from self._all_answered(first, plugins)

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
        complain = self.decider.framework.complain
        for what, edits in object_changes(self._copy, self._pod, self._blamed(decision), complain):
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
        """One more node like one that there is, with nothing but the pods that every such node has."""
        table = self._copy.cache.cluster.nodes
        rows = _by_objections(self._copy, self._pod, misses, most=200)
        for node in templates(table.at(row).node for row in rows if not has_companions(self._copy, table.at(row).name)):
            twin = twin_of(node, taken=table.row_of)
            edit = Edit(kind="addNode", name=twin.name, object=document_of(twin), like=node.name)
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


def _asks_more(claim: WouldFit, other: WouldFit) -> bool:
    """Whether the other one is the same on the same node with a still smaller request; larger ones come first."""
    is_about_amounts = claim.what != other.what and _AMOUNT.search(claim.what) is not None
    return is_about_amounts and claim.node == other.node and _AMOUNT.sub("", claim.what) == _AMOUNT.sub("", other.what)


def _price(claim: WouldFit) -> int:
    """How much is lost: pods that are gone or wait for a node, and budgets that are broken."""
    return len(claim.lost) + len(claim.displaced) + len(claim.against)


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
