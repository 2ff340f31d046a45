"""DefaultPreemption: make room for a pod by evicting pods of lower priority."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayplan.framework import (
    ActionType,
    ClusterEvent,
    Code,
    CycleState,
    Diagnosis,
    Error,
    EventHint,
    Handle,
    Hint,
    Permission,
    Plugin,
    PluginArgs,
    PodInfo,
    PostFilterResult,
    Resource,
    Status,
    Unresolvable,
    Unschedulable,
    by_shape,
)
from bayplan.framework.columns import NameLog, Rows
from bayplan.framework.objects import PodDisruptionBudget
from bayplan.preemption.budgets import Budgets
from bayplan.preemption.candidates import Candidate, Candidates, compared, pick_cheapest, price, remaining
from bayplan.preemption.eviction import Evictions, kept_nomination
from bayplan.preemption.node_trial import NO_VICTIMS
from bayplan.preemption.outcome_cache import OutcomeCache
from bayplan.preemption.search import Found, FromCache, InColumns, NodeByNode, SearchInputs, SearchStrategy
from bayplan.preemption.victim_columns import VictimColumns

__all__ = ["DefaultPreemption"]

NOT_HELPFUL = Unresolvable("Preemption is not helpful for scheduling")
GATED = Unresolvable("waiting for the preemption for this pod to be finished")
_NEVER = "not eligible due to preemptionPolicy=Never."
_TERMINATING = "not eligible due to a terminating pod on the nominated node."


class DefaultPreemption(Plugin):
    """Finds the node where evicting lower-priority pods costs least, nominates the pod to it and evicts them.

    *What it does*: for each node that is out of room (not unsuitable for good), removes all lower-priority pods in a
    dry run, reprieves as many as possible, most important first, and compares the remaining victims.
    *Rejects when*: at PreEnqueue, while the victims of this pod are still being evicted.
    *Scores by*: fewest broken disruption budgets, lowest highest priority of a victim, smallest sum of priorities,
    fewest victims, latest started.
    *Retries on*: pods deleted, only to check held-back preemptors again.
    *Arguments*: minCandidateNodesPercentage, minCandidateNodesAbsolute.
    *Differs from kube-scheduler*: the search starts at a seeded node instead of a random one.
    """

    default_weight = 0
    reasons = (NOT_HELPFUL.message, NO_VICTIMS.message, _NEVER, _TERMINATING)
    permissions = (
        Permission("", "pods", ("delete",)),
        Permission("", "pods/status", ("patch",)),
        Permission("policy", "poddisruptionbudgets", ("get", "list", "watch")),
    )

    class Args(PluginArgs):
        min_candidate_nodes_percentage: int = 10
        min_candidate_nodes_absolute: int = 100

        def validate(self) -> list[str]:
            percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
            problems = []
            if not 0 <= percentage <= 100:
                problems.append(f"minCandidateNodesPercentage: must be 0 to 100, got {percentage}")
            if absolute < 0:
                problems.append(f"minCandidateNodesAbsolute: must not be negative, got {absolute}")
            if percentage == 0 and absolute == 0:
                problems.append("minCandidateNodesPercentage: cannot be 0 together with minCandidateNodesAbsolute")
            return problems

    def setup(self) -> None:
        self._evictions = Evictions(self)
        self._columns = VictimColumns()
        self._outcomes = OutcomeCache()
        self._budgets: Budgets | None = None
        self._budgets_version = -1
        self._offset = 0

    # PreEnqueue

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return GATED if self._evictions.is_waited_for(pod.uid) else None

    def releases(self) -> NameLog:
        return self._evictions.releases()

    def events_to_register(self) -> list[EventHint]:
        """The hint never queues: a deleted victim releases a held-back preemptor, other plugins requeue the rest."""
        return [EventHint(ClusterEvent(Resource.POD, ActionType.DELETE), _never)]

    # PostFilter

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> PostFilterResult | Status:
        refusal = self._ineligible(pod, diagnosis)
        if refusal is not None:
            return refusal
        rows = self.helpful_rows(diagnosis)
        if not len(rows):
            return PostFilterResult("", self._none_found(Found(), diagnosis))
        try:
            found = self._reviewed(self.search(state, pod, rows))
        except ValueError as error:
            return Error(str(error), exception=error)
        chosen, left = self._chosen(found)
        if chosen is None:
            return found.failure or PostFilterResult("", self._none_found(found, diagnosis))
        self._evictions.start(pod, chosen.node_name, chosen.victims)
        return PostFilterResult(chosen.node_name, None, chosen.victims, left[0], compared(chosen, left[1:]))

    def _chosen(self, found: Found) -> tuple[Candidate | None, list[int]]:
        """One of the cheapest candidates; how many candidates there are, and how many each criterion left."""
        if len(found.columns) == 1 and not found.candidates:
            many, columns = found.columns[0]
            positions, left = many.cheapest()
            table = self.handle.cluster.nodes
            return (many.candidate(int(positions[0]), columns, table) if len(positions) else None), left
        chosen = self.choose(found, most=1)
        if not chosen:
            return None, []
        prices = self._prices(found)
        return chosen[0], [prices.shape[1], *remaining(prices)]

    def _prices(self, found: Found) -> npt.NDArray[np.float64]:
        """A row for each criterion, a column for each candidate."""
        parts = [np.array([price(candidate) for candidate in found.candidates], dtype=np.float64).reshape(-1, 5).T]
        for many, _ in found.columns:
            columns = np.array([many.violations, *many.prices], dtype=np.float64)
            parts.append(columns[:, many.takes])
        return np.concatenate(parts, axis=1)

    def _ineligible(self, pod: PodInfo, diagnosis: Diagnosis) -> PostFilterResult | None:
        if pod.shape.spec.preemption_policy == "Never":
            return PostFilterResult(None, Unschedulable(f"preemption: {_NEVER}"))
        evictions = self._evictions
        node = evictions.nominated_node(pod)
        if node is None or self._status_on(node.row, diagnosis) is Code.UNRESOLVABLE:
            return None
        lower = (other for other in node.pods.values() if other.priority < pod.priority)
        if not evictions.is_awaited_on(node, pod) and not any(
            other.has_preemption_notice or evictions.is_evicted(other) for other in lower
        ):
            return None
        return PostFilterResult(kept_nomination(pod, node), Unschedulable(f"preemption: {_TERMINATING}"))

    def _status_on(self, row: int, diagnosis: Diagnosis) -> Code | None:
        for status, rows in diagnosis.groups:
            if row in rows:
                return status.code
        return diagnosis.absent.code if diagnosis.absent is not None else None

    def helpful_rows(self, diagnosis: Diagnosis) -> Rows:
        """Rows whose rejection may end when pods are evicted, in ascending order."""
        table = self.handle.cluster.nodes
        absent = diagnosis.absent
        if absent is not None and absent.code is Code.UNSCHEDULABLE:
            helpful = table.valid[: table.size].copy()
        else:
            helpful = np.zeros(table.size, dtype=np.bool_)
        for status, rows in diagnosis.groups:
            helpful[rows] = status.code is Code.UNSCHEDULABLE
        return np.flatnonzero(helpful)

    def _none_found(self, found: Found, diagnosis: Diagnosis) -> Status:
        groups = [(status, np.array(rows, dtype=np.intp)) for status, rows in found.refused.items()]
        summary = Diagnosis(total_nodes=diagnosis.total_nodes, groups=groups, absent=NOT_HELPFUL)
        return Unschedulable(f"preemption: {summary.message}")

    def find_candidates(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> Candidates:
        rows = self.helpful_rows(diagnosis)
        found = self._reviewed(self.search(state, pod, rows)) if len(rows) else Found()
        return Candidates(self.all_candidates(found), self.choose(found))

    def dry_copy(self, handle: Handle) -> DefaultPreemption:
        copy = type(self)(self.args, handle)
        # Columns over all running pods: they follow from the table, take long to build, and are refreshed before use.
        copy._columns = self._columns
        return copy

    # The search

    def search(self, state: CycleState, pod: PodInfo, rows: Rows) -> Found:
        """Dry runs from a moving start until there are enough candidates."""
        enough = max(
            len(rows) * self.args.min_candidate_nodes_percentage // 100, self.args.min_candidate_nodes_absolute
        )
        enough = min(enough, len(rows))
        self._offset = (self._offset * 31 + 17) % len(rows)
        turned = np.concatenate([rows[self._offset :], rows[: self._offset]])
        found, step, tried = Found(), max(enough, 1), 0
        strategy = self._strategy(state, pod)
        while tried < len(turned) and not (found.unviolating_count and found.candidate_count >= enough):
            strategy.try_rows(turned[tried : tried + step], found)
            tried += step
        strategy.finish(turned[:tried], found)
        return found

    def _reviewed(self, found: Found) -> Found:
        """What extenders leave of the candidates."""
        review = self.handle.review_candidates
        if review is None:
            return found
        agreed = Found()
        agreed.refused = found.refused
        for candidate in review(self.all_candidates(found)):
            agreed.take(candidate)
        return agreed

    def _strategy(self, state: CycleState, pod: PodInfo) -> SearchStrategy:
        """The fastest way of searching that the filters allow, by what they read."""
        dry_run, table = self.handle.dry_run, self.handle.cluster.nodes
        columns, nominated = self._columns, dry_run.nominated_rows(self.handle.nominator)
        columns.refresh(table)
        runs = SearchInputs(dry_run, state, pod, table=table, columns=columns, budgets=self._current_budgets())
        if not dry_run.reads_counts_only(state):
            return NodeByNode(runs, nominated)
        usage = nominated.usage_beside(pod)
        in_columns = InColumns(runs, usage)
        terms = dry_run.remembers(state)
        if terms is None or nominated.includes(pod):
            return in_columns
        terms = (terms, self._budgets_version)
        outcomes = self._outcomes.of(pod, terms=terms, nominated=usage, columns=columns, table=table)
        return FromCache(in_columns, outcomes, columns)

    def _current_budgets(self) -> Budgets:
        objects = self.handle.cluster.objects
        version = objects.version(PodDisruptionBudget)
        if self._budgets is None or self._budgets_version != version:
            self._budgets, self._budgets_version = Budgets(objects.list(PodDisruptionBudget)), version
        return self._budgets

    def choose(self, found: Found, *, most: int | None = None) -> list[Candidate]:
        """The candidates that tie for the lowest price; of each search in columns no more than `most`, if given."""
        table = self.handle.cluster.nodes
        finalists = list(found.candidates)
        for many, columns in found.columns:
            finalists += [many.candidate(int(p), columns, table) for p in many.cheapest()[0][:most].tolist()]
        return pick_cheapest(finalists)

    def all_candidates(self, found: Found) -> list[Candidate]:
        """Every candidate with its victims; for explanations."""
        table = self.handle.cluster.nodes
        result = list(found.candidates)
        for many, columns in found.columns:
            takes = np.flatnonzero(many.takes).tolist()
            result += [many.candidate(position, columns, table) for position in takes]
        return result


@by_shape
def _never(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> Hint:
    return Hint.SKIP
