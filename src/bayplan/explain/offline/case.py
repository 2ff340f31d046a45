"""A case: a cluster, a pending pod (or several) and a configuration, evaluated offline into a plain result.

The result has the shape of the golden cases (`tests/parity/golden/README.md`): reasons by node, scores by plugin, the
best nodes, the messages, the preemption. `bayplan evaluate --cases` writes it, and `bayplan.explain.offline.evaluating`
adds a verdict. Files are read and results are shown elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.api.pod import Pod
from bayplan.api.suggest import with_suggestion
from bayplan.app.offline import OfflineScheduler
from bayplan.cluster.axes import Rows
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.claims.base import JsonObject
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.runtime.call import call_plugin
from bayplan.framework.status import Code, Status
from bayplan.loop.decide import Decision
from bayplan.loop.select import TieBreak
from bayplan.preemption.candidates import Preemptor

__all__ = ["UnknownProfile", "decide_in_full", "evaluate_one", "evaluate_sequence", "first_by_name"]


class UnknownProfile(ValueError):
    """A pod asks for a scheduler name that no profile answers to."""

    def __init__(self, pod: Pod, known: Iterable[str]) -> None:
        name = pod.spec.scheduler_name
        super().__init__(
            with_suggestion(
                f"pod `{pod.key}` names the scheduler `{name}`, which no profile of the configuration answers to",
                name,
                known,
            )
        )


def first_by_name(scheduler: OfflineScheduler) -> TieBreak:
    """Ties go to the node whose name sorts first."""
    table = scheduler.cache.cluster.nodes
    return lambda ties: min(ties.tolist(), key=lambda row: table.at(row).name)


def evaluate_one(scheduler: OfflineScheduler, pod: Pod) -> JsonObject:
    """Everything about one pod: verdicts, scores, best nodes, messages and preemption."""
    return decide_in_full(scheduler, pod)[1]


def decide_in_full(scheduler: OfflineScheduler, pod: Pod) -> tuple[Decision, JsonObject]:
    """The decision about one pod, beside the result that it comes to. Nothing is assumed."""
    info = _known(scheduler, pod)
    decision = scheduler.decide(info, always_score=True, explains=True, tie_break=first_by_name(scheduler))
    return decision, _result(scheduler, info, decision)


def _known(scheduler: OfflineScheduler, pod: Pod) -> PodInfo:
    if pod.spec.scheduler_name not in scheduler.deciders:
        raise UnknownProfile(pod, scheduler.deciders)
    return scheduler.info(pod)


def _result(scheduler: OfflineScheduler, info: PodInfo, decision: Decision) -> JsonObject:
    result: JsonObject = {"nodes": {}, "scores": {}, "best": []}
    if decision.failure is not None:
        return result | {"message": decision.failure.message}
    if decision.diagnosis is not None and decision.diagnosis.pre_filter_message:
        rejection = decision.diagnosis.absent
        assert rejection is not None  # a PreFilter rejection is what its message comes from
        result["prefilter"] = _status(rejection)
    else:
        result |= _all_nodes(scheduler, info, decision)
    if decision.diagnosis is not None:
        result |= _failure(scheduler, info, decision, is_pinned=bool(info.node_name))
    return result


def _all_nodes(scheduler: OfflineScheduler, info: PodInfo, decision: Decision) -> JsonObject:
    """Verdicts and scores of every node, also when a nomination made looking at them unnecessary."""
    best: list[str] | None = None
    if decision.outcome is None and decision.scores is None and decision.node_name and info.nominated_node_name:
        best = [decision.node_name]
        decision = scheduler.decide(_without_nomination(info), always_score=True, explains=True)
    table = scheduler.cache.cluster.nodes
    scores = decision.scores
    rejected = _rejected(scheduler, decision)
    by_node: JsonObject = {}
    if scores is not None:
        columns = {name: share.tolist() for name, share in scores.shares.items()}
        for position, row in enumerate(scores.rows.tolist()):
            shares = {name: share[position] for name, share in columns.items() if share[position]}
            by_node[table.at(row).name] = shares | {"total": int(scores.totals[position])}
    if best is None:
        highest = max((entry["total"] for entry in by_node.values()), default=0)
        best = sorted(name for name, entry in by_node.items() if entry["total"] == highest)
    return {"nodes": rejected, "scores": by_node, "best": best} | _grants(scheduler, info, decision, best)


def _grants(scheduler: OfflineScheduler, info: PodInfo, decision: Decision, best: list[str]) -> JsonObject:
    """What plugins would give the pod on the first of the best nodes, besides its place."""
    node = scheduler.cache.cluster.node(best[0]) if best else None
    found: JsonObject = {}
    if node is None:
        return found
    framework = scheduler.framework(info.scheduler_name)
    for plugin in framework.plugins.values():
        granted = call_plugin(plugin, "grants", framework.complain, decision.state, info, node)
        found |= granted if isinstance(granted, dict) else {}
    return found


def _without_nomination(info: PodInfo) -> PodInfo:
    twin = info.placed(info.node_name)
    twin.nominated_node_name = ""
    return twin


def _rejected(scheduler: OfflineScheduler, decision: Decision) -> JsonObject:
    table = scheduler.cache.cluster.nodes
    groups: list[tuple[Status, Rows]] = decision.rejected_groups()
    found = {table.at(row).name: _status(status) for status, rows in groups for row in rows.tolist()}
    absent = decision.absent
    if absent is not None:
        feasible = set() if decision.scores is None else {table.at(r).name for r in decision.scores.rows.tolist()}
        for name in table.row_of:
            if name not in found and name not in feasible:
                found[name] = _status(absent) | {"plugin": ""}
    return found


def _status(status: Status) -> JsonObject:
    return {"code": status.code.label, "plugin": status.plugin, "reasons": sorted(status.reasons)}


def _failure(scheduler: OfflineScheduler, info: PodInfo, decision: Decision, *, is_pinned: bool) -> JsonObject:
    diagnosis = decision.diagnosis
    assert diagnosis is not None  # the caller checked
    full = diagnosis.message
    suffix, diagnosis.post_filter_message = diagnosis.post_filter_message, ""
    message, diagnosis.post_filter_message = diagnosis.message, suffix
    if is_pinned:
        return {"message": message}
    return {"message": message, "fullMessage": full, "preemption": _preemption(scheduler, info, decision)}


def _preemption(scheduler: OfflineScheduler, info: PodInfo, decision: Decision) -> JsonObject:
    nomination = decision.nomination
    assert nomination is not None and decision.diagnosis is not None  # set whenever nothing fits
    status = nomination.status
    code = Code.SUCCESS if status is None else status.code
    preemptors = [
        plugin
        for plugin in scheduler.framework(info.scheduler_name).at(ExtensionPoint.POST_FILTER)
        if isinstance(plugin, Preemptor)
    ]
    attempted = bool(preemptors) and code is not Code.ERROR
    result: JsonObject = {
        "attempted": attempted,
        "code": code.label,
        "message": "" if status is None else status.message,
        "nominatedNodes": [],
        "victims": {},
        "pdbViolations": {},
    }
    if attempted and code is Code.SUCCESS:
        found = preemptors[0].find_candidates(decision.state, info, decision.diagnosis)
        for candidate in found.all:
            result["victims"][candidate.node_name] = [victim.key for victim in candidate.victims]
            result["pdbViolations"][candidate.node_name] = candidate.violations
        result["nominatedNodes"] = sorted(candidate.node_name for candidate in found.cheapest)
    return result


def evaluate_sequence(scheduler: OfflineScheduler, pods: list[Pod]) -> list[JsonObject]:
    """Pods one after the other, each counted on the node it got; nothing is preempted."""
    choose = first_by_name(scheduler)
    return [_step(scheduler, _known(scheduler, pod), choose) for pod in pods]


def _step(scheduler: OfflineScheduler, info: PodInfo, choose: TieBreak) -> JsonObject:
    ties: list[int] = []

    def remember_ties(rows: Rows) -> int:
        ties.extend(rows.tolist())
        return choose(rows)

    decision = scheduler.decide(info, tie_break=remember_ties, always_score=True)
    result: JsonObject = {"pod": info.key, "feasible": decision.feasible_nodes, "best": []}
    if not decision.is_scheduled:
        if decision.diagnosis is not None:
            decision.diagnosis.post_filter_message = ""
        return result | {"message": decision.message}
    table = scheduler.cache.cluster.nodes
    best = sorted(table.at(row).name for row in ties) if ties else [decision.node_name]
    scheduler.assume(info, decision.node_name)
    return result | {"best": best, "chosen": decision.node_name, "total": decision.total}
