"""CapacityScheduling: quotas that lend what they do not need, and reclaim it by preemption."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from bayplan.framework import (
    ALL,
    ActionType,
    ClusterEvent,
    Code,
    CycleState,
    Diagnosis,
    EventHint,
    Hint,
    NodeColumns,
    NodeInfo,
    ObjectRemedy,
    Permission,
    Plugin,
    PodInfo,
    PostFilterResult,
    Resource,
    StateKey,
    Status,
    Unresolvable,
    Unschedulable,
)
from bayplan.framework.columns import Rows
from bayplan.framework.objects import PodDisruptionBudget, format_quantity
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.capacity_scheduling.quotas import (
    Amounts,
    QuotaBook,
    QuotaReader,
    Quotas,
    amounts_of,
    summed,
)
from bayplan.plugins.community.capacity_scheduling.victims import QuotaTrial, find_quota_victims, potential_victims
from bayplan.preemption.budgets import Budgets
from bayplan.preemption.candidates import Candidate, pick_cheapest
from bayplan.preemption.eviction import Evictions, kept_nomination
from bayplan.preemption.node_trial import NodeTrial, candidate_on

__all__ = ["CapacityScheduling"]

_NOT_HELPFUL = Unresolvable("Preemption is not helpful for scheduling")
_NEVER = "not eligible due to preemptionPolicy=Never."
_NO_STATE = "not eligible due to failed to read from cycleState"
_TERMINATING = "not eligible due to a terminating pod on the nominated node."
_UNDER_WAY = "waiting for the preemption for this pod to be finished"


class _Claim:
    """What the pod adds to the quotas in this cycle."""

    __slots__ = ("book", "of_all", "remaining", "with_nominated")

    def __init__(self, book: QuotaBook, own: Amounts) -> None:
        self.book = book
        self.remaining = book
        """As if the victims that are evicted already had left: what nominated pods are promised beside."""
        self.with_nominated = own
        """With the nominated pods of the same namespace that are not less important."""
        self.of_all = own
        """With the pods of other namespaces that are nominated within their min, too."""


CLAIM = StateKey[_Claim]("CapacityScheduling/claim")


class CapacityScheduling(Plugin):
    """Hold namespaces to their ElasticQuota: `min` is guaranteed, `max` is the limit, use between them is borrowed.

    *What it does*: a pod counts against the quota of its namespace from the moment it is assumed on a node. Namespaces
    without a quota are not limited.
    *Rejects when*: the namespace would exceed its max; all quotas together would exceed the sum of their mins.
    *Scores by*: nothing. As the preempting plugin it reclaims what was lent: a pod within its namespace's min may
    evict pods of namespaces that use more than their min, whatever their priority; a pod beyond it only less important
    pods of its own namespace; a pod without a quota only less important pods without one.
    *Retries on*: pods deleted in namespaces with a quota, changes of ElasticQuotas.
    *Arguments*: none.
    *Differs from the original*: usage comes from the scheduler's own cache, so nothing is counted twice or kept after a
    pod is gone; requests are counted as NodeResourcesFit counts them (sidecars, pod-level requests, overhead); a
    resource that `max` does not name is not limited, and one that no `min` names is not held against the sum (for the
    original both are 0 for cpu, memory and ephemeral-storage); `pods` is enforced; only resources that the pod requests
    can reject it; a namespace that is within its min while victims are gathered loses no more pods, and the least
    important of the borrowers are evicted first; a victim is considered once, and counts as breaking its budget whether
    room or quota made it one; evictions run beside the cycle.
    """

    watches = (ElasticQuota,)
    reasons = (
        "Pod <pod> is rejected in PreFilter because ElasticQuota <namespace> is more than Max",
        "Pod <pod> is rejected in PreFilter because total ElasticQuota used is more than min",
        "No victims found on node <node> for preemptor pod <pod>",
        "global quota max exceeded",
        _NEVER,
        _NO_STATE,
        _TERMINATING,
    )
    permissions = (
        Permission("", "pods", ("delete",)),
        Permission("", "pods/status", ("patch",)),
        Permission("policy", "poddisruptionbudgets", ("get", "list", "watch")),
    )

    def setup(self) -> None:
        self._evictions = Evictions(self)
        self._reader = QuotaReader()
        self._quotas: Quotas | None = None
        self.handle.resources(ElasticQuota).on_change(self._quota_changed)

    def _quota_changed(self, old: ElasticQuota | None, new: ElasticQuota | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            self._quotas = None

    def _read(self) -> Quotas:
        if self._quotas is None:
            items = self.handle.resources(ElasticQuota).list()
            self._quotas = self._reader.read(items)
        return self._quotas

    def object_remedies(self, pod: PodInfo) -> Iterator[ObjectRemedy]:
        """A quota that is as large as it has to be for the pod, and no larger."""
        book = QuotaBook(self._read(), self.handle.cluster.namespace_usage)
        mine = [item for item in self.handle.resources(ElasticQuota).list() if item.namespace == pod.namespace]
        quota = min(mine, key=lambda item: item.key, default=None)
        if quota is None or pod.namespace not in book:
            return
        least, most = book.room_for(pod.namespace, amounts_of(pod))
        parts = {"min": quota.spec.min, "max": quota.spec.max}
        spec = quota.spec
        for name, amounts in (("min", least), ("max", most)):
            texts = {resource: format_quantity(amount, resource) for resource, amount in amounts.items()}
            spec = msgspec.structs.replace(spec, **{name: {**(parts[name] or {}), **texts} if texts else parts[name]})
        words = [
            f"{kind} {format_quantity(amount, name)} {name}"
            for kind, amounts in (("min", least), ("max", most))
            for name, amount in amounts.items()
        ]
        if words:
            what = f"ElasticQuota {quota.key} had {' and '.join(words)}"
            yield ObjectRemedy(what, quota, msgspec.structs.replace(quota, spec=spec))

    # PreFilter

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        book = QuotaBook(self._read(), self.handle.cluster.namespace_usage)
        own = amounts_of(pod)
        claim = _Claim(book, own)
        state.put(CLAIM, claim)
        if pod.namespace not in book:
            return None
        claim.with_nominated, claim.of_all = self._with_nominated(book, pod, own)
        claim.remaining = remaining = self._without(book, self._evictions.evicted())
        if book.is_over_max(pod.namespace, own) or remaining.is_over_max(pod.namespace, claim.with_nominated):
            return Unschedulable(
                f"Pod {pod.key} is rejected in PreFilter because ElasticQuota {pod.namespace} is more than Max"
            )
        if book.is_total_over_min(own) or remaining.is_total_over_min(claim.of_all):
            return Unschedulable(
                f"Pod {pod.key} is rejected in PreFilter because total ElasticQuota used is more than min"
            )
        return None

    def _with_nominated(self, book: QuotaBook, pod: PodInfo, own: Amounts) -> tuple[Amounts, Amounts]:
        """The request together with nominated pods: of the namespace, and of all namespaces."""
        namespace = of_all = own
        for other in self._nominated():
            if other.uid == pod.uid or other.namespace not in book:
                continue
            is_sibling = other.namespace == pod.namespace
            if is_sibling and other.priority >= pod.priority:
                namespace = summed(namespace, amounts_of(other))
                of_all = summed(of_all, amounts_of(other))
            elif not is_sibling and not book.is_over_min(other.namespace):
                of_all = summed(of_all, amounts_of(other))
        return namespace, of_all

    def _nominated(self) -> Iterator[PodInfo]:
        nominator = self.handle.nominator
        for name in nominator.nominated_nodes():
            yield from nominator.nominated_pods(name)

    # PostFilter

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> PostFilterResult | Status:
        refusal = self._ineligible(state, pod, diagnosis)
        if refusal is not None:
            return refusal
        refused: dict[Status, list[int]] = {}
        chosen = pick_cheapest(self._candidates(state, pod, self._helpful_rows(diagnosis), refused))
        if not chosen:
            return PostFilterResult("", _none_found(refused, diagnosis))
        candidate = chosen[0]
        self._evictions.start(pod, candidate.node_name, candidate.victims)
        return PostFilterResult(candidate.node_name, None, candidate.victims)

    def _ineligible(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> PostFilterResult | None:
        if pod.shape.spec.preemption_policy == "Never":
            return _refusal(_NEVER)
        claim = state.get(CLAIM)
        if claim is None:
            return _refusal(_NO_STATE)
        evictions = self._evictions
        node = evictions.nominated_node(pod)
        if node is None or _status_on(node, diagnosis) is Code.UNRESOLVABLE:
            return None
        if evictions.is_awaited_on(node, pod):
            return _refusal(_UNDER_WAY, kept_nomination(pod, node))
        leaving = (other for other in node.pods.values() if evictions.is_leaving(other))
        if any(_makes_room(claim, pod, other) for other in leaving):
            return _refusal(_TERMINATING, kept_nomination(pod, node))
        return None

    def _helpful_rows(self, diagnosis: Diagnosis) -> Rows:
        """Rows whose rejection may end when pods are evicted."""
        rows = diagnosis.rows_with(Code.UNSCHEDULABLE)
        if diagnosis.absent is not None and diagnosis.absent.code is Code.UNSCHEDULABLE:
            explicit = {row for _, group in diagnosis.groups for row in group.tolist()}
            rows += [row for row in self.handle.cluster.nodes.row_of.values() if row not in explicit]
        return np.array(sorted(rows), dtype=np.intp)

    def _candidates(
        self, state: CycleState, pod: PodInfo, rows: Rows, refused: dict[Status, list[int]]
    ) -> list[Candidate]:
        budgets = Budgets(self.handle.cluster.objects.list(PodDisruptionBudget))
        table, found = self.handle.cluster.nodes, []
        remaining = self._without(state[CLAIM].remaining, self._terminating())
        for row in rows.tolist():
            outcome = self._victims_on(state, pod, row, budgets, remaining.clone())
            if isinstance(outcome, Status):
                refused.setdefault(outcome, []).append(row)
            elif outcome[0]:
                found.append(candidate_on(table, row, outcome))
        return found

    def _victims_on(
        self, state: CycleState, pod: PodInfo, row: int, budgets: Budgets, book: QuotaBook
    ) -> tuple[list[PodInfo], int] | Status:
        table, claim = self.handle.cluster.nodes, state[CLAIM]
        node = table.at(row)
        leaving = {other.uid for other in node.pods.values() if self._evictions.is_leaving(other)}
        victims = potential_victims(book, pod, claim.with_nominated, node, leaving)
        if not victims:
            return Unresolvable(f"No victims found on node {node.name} for preemptor pod {pod.name}")
        nominated = [
            other
            for other in self.handle.nominator.nominated_pods(node.name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]
        room = NodeTrial(self.handle.dry_run, state, pod, table, row, nominated)
        trial = QuotaTrial(room, book, pod, claim.with_nominated, claim.of_all, leaving)
        return find_quota_victims(trial, victims, budgets)

    def _without(self, book: QuotaBook, leaving: Iterable[PodInfo]) -> QuotaBook:
        """What is used once these have left. What was freed for one preemptor is no reason to take as much again for
        another one, beside whose claim that of the first one counts."""
        gone = [pod for pod in leaving if pod.namespace in book]
        if not gone:
            return book
        remaining = book.clone()
        for pod in gone:
            remaining.remove(pod)
        return remaining

    def _terminating(self) -> Iterator[PodInfo]:
        """Pods that leave and were not evicted by this plugin."""
        is_evicted = self._evictions.is_evicted
        for node in self.handle.cluster.nodes.infos:
            if node is not None:
                yield from (pod for pod in node.pods.values() if pod.is_terminating and not is_evicted(pod))

    # Requeueing

    def events_to_register(self) -> list[EventHint]:
        return [
            EventHint(ClusterEvent(Resource.POD, ActionType.DELETE), self._after_pod_deleted),
            EventHint(ElasticQuota.changes(ALL)),
        ]

    def _after_pod_deleted(self, pod: PodInfo, old: PodInfo, new: Any) -> Hint:
        """Only pods of namespaces with a quota count against one."""
        return Hint.QUEUE if old.namespace in self._read() else Hint.SKIP


def _refusal(reason: str, nomination: str | None = None) -> PostFilterResult:
    return PostFilterResult(nomination, Unschedulable(f"preemption: {reason}"))


def _makes_room(claim: _Claim, pod: PodInfo, leaving: PodInfo) -> bool:
    """Whether a terminating pod was (or could have been) a victim of this one."""
    book = claim.book
    if pod.namespace not in book:
        return leaving.namespace not in book and leaving.priority < pod.priority
    if leaving.namespace == pod.namespace:
        return leaving.priority < pod.priority
    if leaving.namespace not in book or book.is_over_min(pod.namespace, claim.with_nominated):
        return False
    return book.is_over_min(leaving.namespace)


def _status_on(node: NodeInfo, diagnosis: Diagnosis) -> Code | None:
    for status, rows in diagnosis.groups:
        if node.row in rows:
            return status.code
    return diagnosis.absent.code if diagnosis.absent is not None else None


def _none_found(refused: dict[Status, list[int]], diagnosis: Diagnosis) -> Status:
    groups = [(status, np.array(rows, dtype=np.intp)) for status, rows in refused.items()]
    summary = Diagnosis(total_nodes=diagnosis.total_nodes, groups=groups, absent=_NOT_HELPFUL)
    return Unschedulable(f"preemption: {summary.message}")
