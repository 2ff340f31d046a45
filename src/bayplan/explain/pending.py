"""All pending pods, grouped by root cause, with the one change that would free the most.

The root cause of a pod is the filter that keeps it from most nodes all by itself: without it the pod would run. Where
no filter does that alone, it is the one that rejects most nodes. Pods of one shape share one answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from math import inf

import msgspec

from bayplan.api.decode import InputError
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.builders import root_cause
from bayplan.explain.claims.base import Edit
from bayplan.explain.claims.phrases import BEING_DELETED, NO_REASON, listed
from bayplan.explain.claims.pods import Frees, PendingTogether, WouldFit
from bayplan.explain.claims.wording import sentence
from bayplan.explain.device_report import device_report, lacking_cause
from bayplan.explain.last_attempts import LastRefusal, LateRefusal, no_refusals
from bayplan.explain.model import PendingBoard, PendingCause, Suggestion, Waiting
from bayplan.explain.suggestions.attempts import budgets_against, fate_of_deleted, in_turn
from bayplan.explain.suggestions.commands import commands_for
from bayplan.explain.suggestions.search import find_changes
from bayplan.explain.views import ClusterView
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.explain.whatif.edits import apply_edits, patched
from bayplan.explain.whatif.placing import Placing
from bayplan.framework.device_findings import DeviceExaminer
from bayplan.loop.points import EXTENDER
from bayplan.loop.recorder import refused_nodes
from bayplan.observe.time_slices import Work

__all__ = ["BINDING", "PERMIT", "Stuck", "find_best_change", "group_pending"]

_MOST_SHAPES = 500
_MOST_NAMED = 200
_CAUSES_TRIED = 5
_SUGGESTIONS_TRIED = 4
_AT_ONCE = 50
_MOST_TRIED = 2_000
"""Pods that a change is tried with, those of its cause first; more are said to be at least as many."""
FITS = "fits"
GATED = "gated"
PERMIT = "permit"
BINDING = "binding"
PREEMPTION = "preemption"
OTHERS = "other scheduler"
ENDING = "ending"


Stuck = dict[str, list[str]]
"""By the title of a cause, all of its pods, for trying what would help them."""


def group_pending(
    view: ClusterView,
    pods: Sequence[tuple[PodInfo, Waiting, str]],
    stuck: Stuck | None = None,
    last_refusal: LastRefusal = no_refusals,
    awaits_victims: Callable[[PodInfo], bool] = lambda _: False,
) -> Work[PendingBoard]:
    """`pods` are (pod, what the queue says of it, plugin that holds it back if any); `stuck` is filled."""
    causes: dict[tuple[str, tuple[str, ...]], PendingCause] = {}
    known: dict[tuple[int, tuple[str, ...], bool, str], PendingCause] = {}
    for info, waiting, gate in pods:
        late = last_refusal(info.uid) if waiting.attempts else None
        said = late.title if late is not None else ""
        alike = info.shape.number, tuple(waiting.rejected_by), bool(waiting.attempts), said
        if waiting.place == PERMIT:
            cause = PendingCause(title=f"held at Permit by {gate}", plugin=gate, reasons=[PERMIT])
        elif awaits_victims(info):
            said = "pods that have to leave are still there"
            cause = PendingCause(title=f"{PREEMPTION}: {said}", plugin=PREEMPTION, reasons=[said])
        elif gate:
            cause = PendingCause(title=_gate_title(info, gate), plugin=gate, reasons=[GATED, _gate_title(info, gate)])
        elif info.is_terminating:
            cause = PendingCause(title=f"nothing: {BEING_DELETED}", plugin="", reasons=[ENDING])
        elif alike in known:
            cause = known[alike]
        elif info.scheduler_name not in view.deciders:
            title = f"waiting for the scheduler `{info.scheduler_name}`, which is none of ours"
            cause = PendingCause(title=title, plugin="", reasons=[OTHERS, info.scheduler_name])
        elif len(known) >= _MOST_SHAPES:
            cause = PendingCause(title=f"not looked at: only {_MOST_SHAPES} kinds of pods are", plugin="")
        else:
            cause = known[alike] = _cause_of(view, info, waiting, late)
            yield
        group = causes.setdefault((cause.plugin, tuple(cause.reasons)), msgspec.structs.replace(cause, pods=[]))
        group.count += 1
        group.pods.append(waiting)
    for cause in causes.values():
        is_refused = bool(cause.plugin or cause.message) and not {GATED, PERMIT} & set(cause.reasons)
        if stuck is not None and is_refused:
            stuck[cause.title] = [waiting.pod for waiting in cause.pods]
        cause.pods = sorted(cause.pods, key=lambda waiting: waiting.since)[:_MOST_NAMED]
    ordered = sorted(causes.values(), key=lambda cause: (-cause.count, cause.title))
    for cause in ordered:
        cause.claim = _together(len(pods), cause)
    first = ordered[0].claim if ordered else None
    claim = first or PendingTogether(total=0)
    return PendingBoard(verdict=sentence(claim), total=len(pods), causes=ordered, claim=claim)


def _gate_title(info: PodInfo, gate: str) -> str:
    gates = [f"`{each.name}`" for each in info.pod.spec.scheduling_gates or ()]
    return f"held back by {gate}{': ' + listed(gates, 'gates') if gates else ''}"


def _together(total: int, cause: PendingCause) -> PendingTogether:
    names = tuple(waiting.pod for waiting in cause.pods)
    reason = cause.reasons[0] if cause.plugin and not {GATED, PERMIT} & set(cause.reasons) else ""
    return PendingTogether(total=total, count=cause.count, title=cause.title, reason=reason, pods=names)


def _cause_of(view: ClusterView, info: PodInfo, waiting: Waiting, late: LateRefusal | None) -> PendingCause:
    if waiting.place == BINDING and late is not None:
        return _refused_later(late)
    decision = view.decide(info)
    if decision.is_scheduled and EXTENDER in waiting.rejected_by:
        said = "refused by an extender at the last attempt"
        return PendingCause(title=f"{EXTENDER}: {said}", plugin=EXTENDER, reasons=[said])
    if decision.is_scheduled and late is not None:
        return _refused_later(late)
    if decision.is_scheduled:
        return PendingCause(title="nothing: they fit and wait for their turn", plugin="", reasons=[FITS])
    if decision.diagnosis is None:
        return PendingCause(title=decision.message, plugin="", message=decision.message)
    plugin, reason, _ = root_cause(view.framework(info.scheduler_name), decision, refused_nodes(decision, most=None))
    framework = view.framework(info.scheduler_name)
    report = device_report(framework, decision) if isinstance(framework.plugins.get(plugin), DeviceExaminer) else None
    reason = lacking_cause(report) if report is not None else _of_any(reason, info)
    title = f"{plugin}: {reason or NO_REASON}" if plugin else reason
    return PendingCause(title=title, plugin=plugin, reasons=[reason], message=decision.message)


def _refused_later(late: LateRefusal) -> PendingCause:
    return PendingCause(title=late.title, plugin=late.plugin, reasons=[late.error_itself], message=late.error)


def _of_any(reason: str, info: PodInfo) -> str:
    """The reason without the name of the pod: those of one shape share it."""
    return re.sub(rf"\bpod {re.escape(info.name)}\b", "pod", reason)


def find_best_change(copy: ClusterCopy, stuck: Stuck, *, total: int) -> Work[tuple[Suggestion | None, int]]:
    """Of the changes that help one pod of each large group, the one after which most pending pods find a node.

    `total` is how many are pending, those included that no change of this kind is for."""
    best: Frees | None = None
    counted = {key for keys in stuck.values() for key in keys if key in copy.waiting}
    line = _in_line(copy, counted)
    largest = sorted(stuck.values(), key=lambda keys: -len(keys))
    for keys in largest[:_CAUSES_TRIED]:
        pod = next((copy.waiting[key] for key in keys if key in copy.waiting), None)
        if pod is None or pod.spec.scheduler_name not in copy.deciders:
            continue
        changes = yield from find_changes(copy, pod)
        helpful = [suggestion.claim for suggestion in changes.suggestions if isinstance(suggestion.claim, WouldFit)]
        for claim in helpful[:_SUGGESTIONS_TRIED]:
            freed = yield from _freed_by(copy, claim, keys, line, counted, total)
            if freed is not None and _gain(freed) > (_gain(best) if best is not None else 0):
                best = freed
    if best is None:
        return None, 0
    commands, how = commands_for(copy, best.edits)
    change = Suggestion(sentence=sentence(best), edits=list(best.edits), commands=commands, how=how, claim=best)
    return change, best.count


def _gain(freed: Frees) -> int:
    """Pods that find a node, without as many as have to wait in their place or are lost."""
    return freed.count - len(freed.displaced) - len(freed.lost)


def _in_line(copy: ClusterCopy, counted: AbstractSet[str]) -> list[str]:
    """These and all others that would take what becomes free, in the order of their turns."""
    ours = [
        key
        for key, pod in copy.waiting.items()
        if key in counted or (pod.spec.scheduler_name in copy.deciders and not pod.spec.scheduling_gates)
    ]
    return sorted(ours, key=lambda key: (-copy.waiting[key].priority, copy.entered.get(key, inf)))


def _freed_by(
    copy: ClusterCopy, claim: WouldFit, group: Sequence[str], line: Sequence[str], counted: AbstractSet[str], total: int
) -> Work[Frees | None]:
    """A change of one pod is made to all of its group that it changes: they most likely come from one template."""
    within = set(islice(dict.fromkeys([*group, *line]), _MOST_TRIED))
    tried = [key for key in line if key in within]
    edits = yield from _for_all_like_it(copy, claim, [key for key in group if key in within])
    undo: list[Callable[[], None]] = []
    try:
        for start in range(0, len(edits), _AT_ONCE):
            undo.append(apply_edits(copy, edits[start : start + _AT_ONCE]))
            yield
        placing = Placing(copy, [(pod, "pending") for pod in in_turn(copy, tried)], preempts=False)
        undo.append(placing.undo)
        yield from placing.run()
        freed = {each.pod for each in placing.placed} & counted
        fate = fate_of_deleted(copy, placing)
    except InputError:
        return None
    finally:
        for step in reversed(undo):
            step()
    if fate is None:
        return None
    against = yield from budgets_against(copy, edits)
    what = re.sub(r"\bthe pod\b|(?<=\blike )it\b", claim.pod, claim.what)
    return Frees(
        pod=claim.pod,
        what=what if len(edits) == len(claim.edits) else f"{what}, and the same for those like it",
        edits=tuple(edits),
        count=len(freed),
        of=total,
        is_limited=len(tried) < len(line),
        lost=fate.lost,
        displaced=fate.displaced,
        against=against,
    )


def _for_all_like_it(copy: ClusterCopy, claim: WouldFit, group: Sequence[str]) -> Work[list[Edit]]:
    edits = [edit for edit in claim.edits if edit.kind != "patchPod"]
    for edit in claim.edits:
        if edit.kind == "patchPod":
            for number, name in enumerate(group):
                pod = copy.waiting.get(name)
                if pod is not None and patched(pod, edit.patch) != pod:
                    edits.append(Edit(kind="patchPod", name=name, patch=edit.patch))
                if not number % _AT_ONCE:
                    yield
    return edits
