"""All pending pods, grouped by root cause, with the one change that would free the most.

The root cause of a pod is the filter that keeps it from most nodes all by itself: without it the pod would run. Where
no filter does that alone, it is the one that rejects most nodes. Pods of one shape share one answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from bayplan.api.decode import InputError
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.builders import root_cause
from bayplan.explain.claims import Frees, PendingTogether, WouldFit
from bayplan.explain.cluster_copy import ClusterCopy
from bayplan.explain.commands import commands_for
from bayplan.explain.device_report import device_report, lacking_cause
from bayplan.explain.edits import Edit, apply_edits, patched
from bayplan.explain.model import VERSION, Suggestion
from bayplan.explain.phrases import listed
from bayplan.explain.placing import Placing
from bayplan.explain.suggestions import find_changes
from bayplan.explain.time_slices import Work
from bayplan.explain.views import ClusterView
from bayplan.explain.wording import sentence
from bayplan.framework.device_findings import DeviceExaminer
from bayplan.loop.points import EXTENDER
from bayplan.loop.record import DecisionRecord
from bayplan.loop.recorder import refused_nodes

__all__ = ["BINDING", "PERMIT", "PendingBoard", "PendingCause", "Stuck", "Waiting", "find_best_change", "group_pending"]

_MOST_SHAPES = 500
_MOST_NAMED = 200
_CAUSES_TRIED = 5
_SUGGESTIONS_TRIED = 4
_MOST_TRIED = 5_000
"""Pods that a change is tried with; more are said to be at least as many."""
FITS = "fits"
GATED = "gated"
PERMIT = "permit"
BINDING = "binding"
OTHERS = "other scheduler"


class Waiting(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A pending pod, as the queue has it."""

    pod: str
    place: str = ""
    since: float = 0.0
    attempts: int = 0
    rejected_by: list[str] = []
    """Who refused it at its last attempt."""


class PendingCause(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    title: str
    plugin: str
    reasons: list[str] = []
    count: int = 0
    pods: list[Waiting] = []
    """Some of them, longest waiting first."""
    message: str = ""
    """What one of them was told."""
    claim: PendingTogether | None = None


class PendingBoard(msgspec.Struct, kw_only=True, rename="camel"):
    verdict: str
    version: str = VERSION
    total: int = 0
    causes: list[PendingCause] = []
    """Most pods first."""
    change: Suggestion | None = None
    """The one that would free the most."""
    frees: int = 0
    """How many of the pending pods would then find a node, one after the other."""
    claim: PendingTogether | None = None
    """What the verdict says."""


Stuck = dict[str, list[str]]
"""By the title of a cause, all of its pods, for trying what would help them."""


LastAttempt = Callable[[str], DecisionRecord | None]
"""The latest attempt of `namespace/name` that has ended and is on record."""


def group_pending(
    view: ClusterView,
    pods: Sequence[tuple[PodInfo, Waiting, str]],
    stuck: Stuck | None = None,
    last_attempt: LastAttempt = lambda _: None,
) -> Work[PendingBoard]:
    """`pods` are (pod, what the queue says of it, plugin that holds it back if any); `stuck` is filled."""
    causes: dict[tuple[str, tuple[str, ...]], PendingCause] = {}
    known: dict[tuple[int, tuple[str, ...], bool], PendingCause] = {}
    for info, waiting, gate in pods:
        alike = info.shape.number, tuple(waiting.rejected_by), bool(waiting.attempts)
        if waiting.place == PERMIT:
            cause = PendingCause(title=f"held at Permit by {gate}", plugin=gate, reasons=[PERMIT])
        elif gate:
            cause = PendingCause(title=_gate_title(info, gate), plugin=gate, reasons=[GATED, _gate_title(info, gate)])
        elif alike in known:
            cause = known[alike]
        elif info.scheduler_name not in view.deciders:
            title = f"waiting for the scheduler `{info.scheduler_name}`, which is none of ours"
            cause = PendingCause(title=title, plugin="", reasons=[OTHERS, info.scheduler_name])
        elif len(known) >= _MOST_SHAPES:
            cause = PendingCause(title=f"not looked at: only {_MOST_SHAPES} kinds of pods are", plugin="")
        else:
            cause = known[alike] = _cause_of(view, info, waiting, last_attempt)
            yield
        group = causes.setdefault((cause.plugin, tuple(cause.reasons)), msgspec.structs.replace(cause, pods=[]))
        group.count += 1
        group.pods.append(waiting)
    for cause in causes.values():
        if stuck is not None and cause.plugin and not {GATED, PERMIT} & set(cause.reasons):
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


def _cause_of(view: ClusterView, info: PodInfo, waiting: Waiting, last_attempt: LastAttempt) -> PendingCause:
    record = last_attempt(waiting.pod) if waiting.attempts else None
    if waiting.place == BINDING and record is not None:
        return _refused_later(record)
    decision = view.decide(info)
    if decision.is_scheduled and EXTENDER in waiting.rejected_by:
        said = "refused by an extender at the last attempt"
        return PendingCause(title=f"{EXTENDER}: {said}", plugin=EXTENDER, reasons=[said])
    if decision.is_scheduled and record is not None and record.stopped_at:
        return _refused_later(record)
    if decision.is_scheduled:
        return PendingCause(title="nothing: they fit and wait for their turn", plugin="", reasons=[FITS])
    if decision.diagnosis is None:
        return PendingCause(title=decision.message, plugin="", message=decision.message)
    plugin, reason, _ = root_cause(view.framework(info.scheduler_name), decision, refused_nodes(decision, most=None))
    framework = view.framework(info.scheduler_name)
    report = device_report(framework, decision) if isinstance(framework.plugins.get(plugin), DeviceExaminer) else None
    reason = lacking_cause(report) if report is not None else _of_any(reason, info)
    title = f"{plugin}: {reason}" if plugin else reason
    return PendingCause(title=title, plugin=plugin, reasons=[reason], message=decision.message)


def _refused_later(record: DecisionRecord) -> PendingCause:
    title = f"{record.stopped_by} at {record.stopped_at}: {record.error}"
    return PendingCause(title=title, plugin=record.stopped_by, reasons=[record.error], message=record.error)


def _of_any(reason: str, info: PodInfo) -> str:
    """The reason without the name of the pod: those of one shape share it."""
    return re.sub(rf"\bpod {re.escape(info.name)}\b", "pod", reason)


def find_best_change(copy: ClusterCopy, stuck: Stuck, *, total: int) -> Work[tuple[Suggestion | None, int]]:
    """Of the changes that help one pod of each large group, the one after which most pending pods find a node.

    `total` is how many are pending, those included that no change of this kind is for."""
    best: Frees | None = None
    counted = [key for keys in stuck.values() for key in keys if key in copy.waiting]
    largest = sorted(stuck.values(), key=lambda keys: -len(keys))
    for keys in largest[:_CAUSES_TRIED]:
        pod = next((copy.waiting[key] for key in keys if key in copy.waiting), None)
        if pod is None or pod.spec.scheduler_name not in copy.deciders:
            continue
        changes = yield from find_changes(copy, pod)
        helpful = [suggestion.claim for suggestion in changes.suggestions if isinstance(suggestion.claim, WouldFit)]
        for claim in helpful[:_SUGGESTIONS_TRIED]:
            freed = yield from _freed_by(copy, claim, keys, counted, total)
            if freed is not None and freed.count > (best.count if best is not None else 0):
                best = freed
    if best is None:
        return None, 0
    commands, how = commands_for(copy, best.edits)
    change = Suggestion(sentence=sentence(best), edits=list(best.edits), commands=commands, how=how, claim=best)
    return change, best.count


def _freed_by(
    copy: ClusterCopy, claim: WouldFit, group: Sequence[str], counted: Sequence[str], total: int
) -> Work[Frees | None]:
    """A change of one pod is made to all of its group that it changes: they most likely come from one template."""
    edits = [edit for edit in claim.edits if edit.kind != "patchPod"]
    for edit in claim.edits:
        if edit.kind == "patchPod":
            edits += [
                Edit(kind="patchPod", name=name, patch=edit.patch)
                for name in group
                if name in copy.waiting and patched(copy.waiting[name], edit.patch) != copy.waiting[name]
            ]
    try:
        undo = apply_edits(copy, edits)
    except InputError:
        return None
    tried = counted[:_MOST_TRIED]
    placing = Placing(copy, [(copy.waiting[key], "pending") for key in tried], preempts=False)
    try:
        yield from placing.run()
        freed = {each.pod for each in placing.placed} & set(tried)
    finally:
        placing.undo()
        undo()
    return Frees(
        pod=claim.pod,
        what=claim.what if len(edits) == len(claim.edits) else f"{claim.what}, and the same for those like it",
        edits=tuple(edits),
        count=len(freed),
        of=total,
        is_limited=len(tried) < len(counted),
    )
