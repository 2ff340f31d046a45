"""All pending pods, grouped by root cause, with the one change that would free the most.

The root cause of a pod is the filter that keeps it from most nodes all by itself: without it the pod would run. Where
no filter does that alone, it is the one that rejects most nodes. Pods of one shape share one answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import msgspec

from bayplan.api.decode import InputError
from bayplan.api.pod import Pod
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.changes import Suggestion, find_changes
from bayplan.explain.cluster_copy import ClusterCopy
from bayplan.explain.edits import Edit, apply_edits
from bayplan.explain.nearest import sole_objectors
from bayplan.explain.turns import Work
from bayplan.explain.views import ClusterView
from bayplan.loop.decide import Decision, decide
from bayplan.loop.points import EXTENDER
from bayplan.loop.recorder import refused_nodes

__all__ = ["Cause", "PendingBoard", "Waiting", "find_best_change", "group_pending"]

_MOST_SHAPES = 500
_MOST_NAMED = 200
_CAUSES_TRIED = 5
_MOST_PLACED = 300
FITS = "fits"
GATED = "gated"


class Waiting(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A pending pod, as the queue has it."""

    pod: str
    place: str = ""
    since: float = 0.0
    attempts: int = 0
    rejected_by: list[str] = []
    """Who refused it at its last attempt."""


class Cause(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    title: str
    plugin: str
    reasons: list[str] = []
    count: int = 0
    pods: list[Waiting] = []
    """Some of them, longest waiting first."""
    message: str = ""
    """What one of them was told."""


class PendingBoard(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    verdict: str
    total: int = 0
    causes: list[Cause] = []
    """Most pods first."""
    change: Suggestion | None = None
    """The one that would free the most."""
    frees: int = 0
    """How many of the pending pods would then find a node, one after the other."""


def group_pending(view: ClusterView, pods: Sequence[tuple[PodInfo, Waiting, str]]) -> Work[PendingBoard]:
    """`pods` are (pod, what the queue says of it, plugin that gates it if any)."""
    causes: dict[tuple[str, tuple[str, ...]], Cause] = {}
    known: dict[int, Cause] = {}
    for info, waiting, gate in pods:
        if gate:
            cause = Cause(title=f"held back by {gate}", plugin=gate, reasons=[GATED])
        elif info.shape.number in known:
            cause = known[info.shape.number]
        elif info.scheduler_name not in view.deciders or len(known) >= _MOST_SHAPES:
            cause = Cause(title="not looked at", plugin="")
        else:
            cause = known[info.shape.number] = _cause_of(view, info, waiting)
            yield
        group = causes.setdefault((cause.plugin, tuple(cause.reasons)), msgspec.structs.replace(cause, pods=[]))
        group.count += 1
        group.pods.append(waiting)
    for cause in causes.values():
        cause.pods = sorted(cause.pods, key=lambda waiting: waiting.since)[:_MOST_NAMED]
    ordered = sorted(causes.values(), key=lambda cause: (-cause.count, cause.title))
    return PendingBoard(verdict=_verdict(len(pods), ordered), total=len(pods), causes=ordered)


def _verdict(total: int, causes: Sequence[Cause]) -> str:
    if not total:
        return "No pod is pending."
    first = causes[0]
    rest = f", {total - first.count} for other reasons" if total > first.count else ""
    return f"{total} pod{'s' if total > 1 else ''} pending: {first.count} because of {first.title}{rest}."


def _cause_of(view: ClusterView, info: PodInfo, waiting: Waiting) -> Cause:
    decision = view.decide(info)
    if decision.is_scheduled and EXTENDER in waiting.rejected_by:
        said = "refused by an extender at the last attempt"
        return Cause(title=f"{EXTENDER}: {said}", plugin=EXTENDER, reasons=[said])
    if decision.is_scheduled:
        return Cause(title="nothing: they fit and wait for their turn", plugin="", reasons=[FITS])
    if decision.diagnosis is None:
        return Cause(title=decision.message, plugin="", message=decision.message)
    plugin, reasons = _root(view, info, decision)
    title = f"{plugin}: {', '.join(reasons)}" if plugin else ", ".join(reasons)
    return Cause(title=title, plugin=plugin, reasons=reasons, message=decision.message)


def _root(view: ClusterView, info: PodInfo, decision: Decision) -> tuple[str, list[str]]:
    groups = refused_nodes(decision, most=None)
    alone = sole_objectors(view.framework(info.scheduler_name), decision)
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.plugin] = counts.get(group.plugin, 0) + group.count
    blamed = {plugin: nodes for plugin, nodes in alone.items() if plugin in counts} or counts
    plugin = max(sorted(blamed), key=lambda name: blamed[name], default="")
    largest = next((group for group in groups if group.plugin == plugin), None)
    return plugin, list(largest.reasons) if largest is not None else [decision.message]


def find_best_change(copy: ClusterCopy, causes: Iterable[Cause]) -> Work[tuple[Suggestion | None, int]]:
    """Of the changes that help one pod of each large group, the one after which most pending pods find a node."""
    best: Suggestion | None = None
    most = 0
    stuck = [cause for cause in causes if cause.plugin and GATED not in cause.reasons]
    counted = {waiting.pod for cause in stuck for waiting in cause.pods}
    for cause in stuck[:_CAUSES_TRIED]:
        pod = copy.waiting.get(cause.pods[0].pod)
        if pod is None or pod.spec.scheduler_name not in copy.deciders:
            continue
        changes = yield from find_changes(copy, pod)
        for suggestion in changes.suggestions:
            freed = yield from _freed_by(copy, suggestion, [waiting.pod for waiting in cause.pods], counted)
            if freed > most:
                best, most = suggestion, freed
    return best, most


def _freed_by(copy: ClusterCopy, suggestion: Suggestion, group: Sequence[str], counted: Set[str]) -> Work[int]:
    """A change of one pod is made to all of its group: they most likely come from one template.

    Others than `counted` wait for something else than a node, or for their turn: no change frees them.
    """
    edits = [edit for edit in suggestion.edits if edit.kind != "patchPod"]
    for edit in suggestion.edits:
        if edit.kind == "patchPod":
            edits += [Edit(kind="patchPod", name=name, patch=edit.patch) for name in group if name in copy.waiting]
    try:
        undo = apply_edits(copy, edits)
    except InputError:
        return 0
    placed: list[str] = []
    try:
        for pod in _first(pod for key, pod in copy.waiting.items() if key in counted):
            info = copy.info(pod)
            decision = decide(copy.trial_decider(info.scheduler_name), info)
            if decision.is_scheduled and copy.cache.pod(info.uid) is None:
                copy.cache.assume(info, decision.node_name)
                placed.append(info.uid)
            yield
    finally:
        for uid in placed:
            copy.cache.forget(uid)
        undo()
    return len(placed)


def _first(pods: Iterable[Pod]) -> list[Pod]:
    return [pod for pod, _ in zip(pods, range(_MOST_PLACED), strict=False)]
