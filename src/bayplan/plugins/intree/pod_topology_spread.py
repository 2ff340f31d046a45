"""PodTopologySpread: keep matching pods evenly spread over zones, hosts or any other topology."""

from __future__ import annotations

from math import log
from typing import Any

import msgspec
import numpy as np

from bayplan.api.node import Node
from bayplan.api.pod import TopologySpreadConstraint
from bayplan.api.workload import ReplicaSet, ReplicationController, Service, StatefulSet
from bayplan.framework import (
    SKIP,
    ActionType,
    ClusterEvent,
    CycleState,
    EventHint,
    Hint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PluginArgs,
    PodInfo,
    Resource,
    StateKey,
    Status,
    Unresolvable,
    Unschedulable,
    Verdicts,
)
from bayplan.plugins.intree.spread_constraints import (
    HOSTNAME,
    SYSTEM_DEFAULTS,
    Constraint,
    compile_constraints,
    default_selector,
)
from bayplan.plugins.intree.spread_counts import (
    Counts,
    Inclusion,
    InclusionColumns,
    count_domains,
    counter_of,
    is_included,
)
from bayplan.snapshot.axes import ABSENT, BoolN, Int64N

__all__ = ["PodTopologySpread"]

MISSING_LABEL = Unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")
TOO_SKEWED = Unschedulable("node(s) didn't match pod topology spread constraints")
_STATUSES = (Status(TOO_SKEWED.code.SUCCESS), MISSING_LABEL, TOO_SKEWED)
_MISSING, _SKEWED = 1, 2
_DEFAULTING = ("System", "List")


class _Domain:
    """Matching pods per domain of one constraint, with the two lowest domains kept as kube-scheduler keeps them.

    After a dry run moved counts, the minimum comes from these two slots alone; that approximation is deliberate.
    """

    __slots__ = ("constraint", "counts", "inclusion", "slots")

    def __init__(self, constraint: Constraint, inclusion: Inclusion, counts: Counts) -> None:
        self.constraint = constraint
        self.inclusion = inclusion
        self.counts = counts
        self.slots: list[list[float]] | None = None

    def copy(self) -> _Domain:
        twin = _Domain(self.constraint, self.inclusion, self.counts.copy())
        twin.slots = None if self.slots is None else [list(slot) for slot in self.slots]
        return twin

    def minimum(self) -> float:
        if self.inclusion.domains < self.constraint.min_domains:
            return 0.0
        if self.slots is not None:
            return self.slots[0][1]
        return float(self.counts[self.inclusion.registered].min()) if self.inclusion.domains else float(2**31 - 1)

    def move(self, domain: int, by: int) -> None:
        if self.slots is None:
            self.slots = self._lowest_two()
        self.counts[domain] += by
        _update(self.slots, domain, float(self.counts[domain]))

    def _lowest_two(self) -> list[list[float]]:
        domains = np.flatnonzero(self.inclusion.registered)
        lowest = domains[np.argsort(self.counts[domains], kind="stable")[:2]]
        slots = [[float(domain), float(self.counts[domain])] for domain in lowest]
        return slots + [[-1.0, float(2**31 - 1)]] * (2 - len(slots))


def _update(slots: list[list[float]], domain: int, count: float) -> None:
    if slots[0][0] == domain:
        slots[0][1] = count
    elif slots[1][0] == domain:
        slots[1][1] = count
    elif count < slots[0][1]:
        slots[1], slots[0] = slots[0], [domain, count]
        return
    elif count < slots[1][1]:
        slots[1] = [domain, count]
        return
    if slots[0][1] > slots[1][1]:
        slots[0], slots[1] = slots[1], slots[0]


class _Hard:
    __slots__ = ("domains",)

    def __init__(self, domains: list[_Domain]) -> None:
        self.domains = domains

    def clone(self) -> _Hard:
        return _Hard([domain.copy() for domain in self.domains])


class _Soft:
    """Prepared at PreScore: per constraint a value by domain (the last place stands for nodes without the key)."""

    __slots__ = ("constraints", "needs_all_keys", "tables", "weights")

    def __init__(self, constraints: tuple[Constraint, ...], *, needs_all_keys: bool) -> None:
        self.constraints = constraints
        self.needs_all_keys = needs_all_keys
        self.tables: list[Counts | None] = []
        self.weights: list[float] = []


class _Defaults:
    """The default constraints of a shape, good while services and controllers stay as they are."""

    __slots__ = ("by_effect", "versions")

    def __init__(self) -> None:
        self.versions: tuple[int, ...] = ()
        self.by_effect: dict[str, tuple[Constraint, ...]] = {}


_HARD = StateKey[_Hard]("PodTopologySpread/hard")
_SOFT = StateKey[_Soft]("PodTopologySpread/soft")


class PodTopologySpread(Plugin):
    """Spreads pods that match a selector over the values of a node label.

    *What it does*: for each constraint counts matching pods per topology value and limits (DoNotSchedule) or scores
    (ScheduleAnyway) the difference between values.
    *Rejects when*: the node lacks a required key (unresolvable), or the pod would exceed maxSkew there.
    *Scores by*: fewer matching pods in the node's domains, weighted by the logarithm of the number of domains.
    Pods without constraints of their own get the defaults when a service or controller selects them.
    *Retries on*: matching pods that come, go or change labels; nodes whose topology or taints change.
    *Arguments*: defaultConstraints, defaultingType.
    *Differs from kube-scheduler*: nowhere.
    """

    reasons = (MISSING_LABEL.message, TOO_SKEWED.message)

    class Args(PluginArgs):
        default_constraints: list[TopologySpreadConstraint] = msgspec.field(default_factory=list)
        defaulting_type: str = "System"

        def validate(self) -> list[str]:
            return _validate(self)

    def setup(self) -> None:
        system = self.args.defaulting_type == "System"
        self._defaults = SYSTEM_DEFAULTS if system else tuple(self.args.default_constraints)
        self._is_system = system

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(pod.shape.spec.topology_spread_constraints or self._defaults)

    def _constraints(self, pod: PodInfo, effect: str) -> tuple[Constraint, ...]:
        own = pod.shape.spec.topology_spread_constraints
        if own:
            return pod.shape.note((self, effect), lambda: compile_constraints(own, pod, when_unsatisfiable=effect))
        version = self.handle.snapshot.objects.version
        versions = (version(Service), version(ReplicaSet), version(StatefulSet), version(ReplicationController))
        known = pod.shape.note((self, "defaults"), _Defaults)
        if known.versions != versions:
            known.versions, known.by_effect = versions, {}
        if effect not in known.by_effect:
            known.by_effect[effect] = self._default_constraints(pod, effect)
        return known.by_effect[effect]

    def _default_constraints(self, pod: PodInfo, effect: str) -> tuple[Constraint, ...]:
        wanted = [c for c in self._defaults if c.when_unsatisfiable == effect]
        selector = default_selector(pod, self.handle.snapshot.objects) if wanted else None
        if selector is None:
            return ()
        return compile_constraints(wanted, pod, when_unsatisfiable=effect, selector=selector)

    def _inclusions(
        self, pod: PodInfo, constraints: tuple[Constraint, ...], *, needs_all_keys: bool
    ) -> list[Inclusion]:
        columns = pod.shape.note(
            (self, constraints, needs_all_keys), lambda: InclusionColumns(constraints, needs_all_keys=needs_all_keys)
        )
        return columns.refreshed(pod, self.handle.snapshot.nodes)

    # Filter

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        constraints = self._constraints(pod, "DoNotSchedule")
        if not constraints:
            return SKIP
        inclusions = self._inclusions(pod, constraints, needs_all_keys=True)
        snapshot = self.handle.snapshot
        counted = [
            _Domain(constraint, inclusion, count_domains(inclusion, counter_of(constraint, pod, snapshot)))
            for constraint, inclusion in zip(constraints, inclusions, strict=True)
        ]
        state.put(_HARD, _Hard(counted))
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        self._move(state[_HARD], pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        self._move(state[_HARD], pod, removed, node, -1)

    def _move(self, hard: _Hard, pod: PodInfo, other: PodInfo, node: NodeInfo, by: int) -> None:
        if other.namespace != pod.namespace:
            return
        if any(domain.constraint.topology_key not in node.labels for domain in hard.domains):
            return
        for domain in hard.domains:
            constraint = domain.constraint
            if constraint.counts(other) and is_included(constraint, pod, node):
                domain.move(domain.inclusion.column.id_of(node.labels[constraint.topology_key]), by)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        ids = np.zeros(len(nodes), dtype=np.int32)
        for domain in reversed(state[_HARD].domains):
            constraint = domain.constraint
            allowed = constraint.max_skew + domain.minimum() - constraint.matches_self
            verdict = np.zeros(len(domain.counts) + 1, dtype=np.int32)
            verdict[:-1][domain.counts > allowed] = _SKEWED
            verdict[-1] = _MISSING
            found = verdict[nodes.label_values(constraint.topology_key)]
            ids = np.where(found != 0, found, ids) if ids.any() else found
        return Verdicts(ids, _STATUSES.__getitem__)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        for domain in state[_HARD].domains:
            constraint = domain.constraint
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return MISSING_LABEL
            number = domain.inclusion.column.id_of(value)
            count = domain.counts[number] if 0 <= number < len(domain.counts) else 0
            if count + constraint.matches_self - domain.minimum() > constraint.max_skew:
                return TOO_SKEWED
        return None

    # Score

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        constraints = self._constraints(pod, "ScheduleAnyway")
        if not constraints or not len(nodes):
            return SKIP
        needs_all_keys = bool(pod.shape.spec.topology_spread_constraints) or not self._is_system
        soft = _Soft(constraints, needs_all_keys=needs_all_keys)
        inclusions = self._inclusions(pod, constraints, needs_all_keys=needs_all_keys)
        ignored = _ignored(soft, nodes)
        for constraint, inclusion in zip(constraints, inclusions, strict=True):
            size = self._domains_in_play(constraint, nodes, ignored)
            weight = log(size + 2)
            soft.weights.append(weight)
            if constraint.topology_key == HOSTNAME:
                soft.tables.append(None)
                continue
            counts = count_domains(inclusion, counter_of(constraint, pod, self.handle.snapshot))
            soft.tables.append(np.append(counts * weight + (constraint.max_skew - 1), 0.0))
        state.put(_SOFT, soft)
        return None

    def _domains_in_play(self, constraint: Constraint, nodes: NodeColumns, ignored: BoolN | None) -> int:
        """How many values the feasible nodes have; for the hostname, how many nodes there are."""
        if constraint.topology_key == HOSTNAME:
            return len(nodes) - (0 if ignored is None else int(ignored.sum()))
        values = nodes.label_values(constraint.topology_key)
        if ignored is not None:
            values = values[~ignored]
        column = nodes.label(constraint.topology_key)
        present = np.zeros(column.domains + 1, dtype=np.bool_)
        present[values] = True
        empty = column.id_of("")
        return int(present.sum()) - int(empty != ABSENT and present[empty] and present[-1])

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        soft = state[_SOFT]
        total = np.zeros(len(nodes), dtype=np.float64)
        for constraint, table, weight in zip(soft.constraints, soft.tables, soft.weights, strict=True):
            values = nodes.label_values(constraint.topology_key)
            if table is None:
                counter = counter_of(constraint, pod, self.handle.snapshot)
                counts = counter.rows[nodes.rows] if counter is not None else np.zeros(len(nodes))
                total += np.where(values != ABSENT, counts * weight + (constraint.max_skew - 1), 0.0)
            else:
                total += table[values]
        whole = np.trunc(total)
        scores: Int64N = (whole + (total - whole >= 0.5)).astype(np.int64)
        ignored = _ignored(soft, nodes)
        if ignored is not None:
            scores[ignored] = -1
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: Int64N) -> Int64N:
        """Nodes that lack a key (marked below zero) get 0; the others the more the less they hold."""
        counted = scores >= 0
        if not counted.all():
            result = np.zeros(len(scores), dtype=np.int64)
            result[counted] = _reversed(scores[counted])
            return result
        return _reversed(scores)

    # Requeueing

    def events_to_register(self) -> list[EventHint]:
        pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE
        nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return [
            EventHint(ClusterEvent(Resource.POD, pods), self._pod_hint),
            EventHint(ClusterEvent(Resource.NODE, nodes), self._node_hint),
        ]

    def _pod_hint(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> Hint:
        other = new or old
        if other is None:
            return Hint.SKIP
        is_self = other.uid == pod.uid
        is_placed = bool(other.node_name or other.nominated_node_name) and other.namespace == pod.namespace
        if not is_self and not is_placed:
            return Hint.SKIP
        constraints = self._constraints(pod, "DoNotSchedule")
        if old is not None and new is not None:
            return self._updated_pod_hint(constraints, old, new, is_self=is_self)
        return Hint.QUEUE if any(c.counts(other) for c in constraints) else Hint.SKIP

    def _updated_pod_hint(
        self, constraints: tuple[Constraint, ...], old: PodInfo, new: PodInfo, *, is_self: bool
    ) -> Hint:
        if (
            is_self
            and len(new.shape.tolerations) != len(old.shape.tolerations)
            and any(c.honors_taints for c in constraints)
        ):
            return Hint.QUEUE
        flips = any(c.counts(old) != c.counts(new) for c in constraints)
        return Hint.QUEUE if flips else Hint.SKIP

    def _node_hint(self, pod: PodInfo, old: Node | None, new: Node | None) -> Hint:
        constraints = self._constraints(pod, "DoNotSchedule")
        before, after = _has_all_keys(old, constraints), _has_all_keys(new, constraints)
        if old is None or new is None:
            return Hint.QUEUE if before or after else Hint.SKIP
        if before != after:
            return Hint.QUEUE
        return Hint.QUEUE if after and _differs(old, new, constraints) else Hint.SKIP


def _has_all_keys(node: Node | None, constraints: tuple[Constraint, ...]) -> bool:
    return node is not None and all(c.topology_key in node.labels for c in constraints)


def _differs(old: Node, new: Node, constraints: tuple[Constraint, ...]) -> bool:
    if any(old.labels.get(c.topology_key) != new.labels.get(c.topology_key) for c in constraints):
        return True
    return (old.spec.taints or []) != (new.spec.taints or [])


def _ignored(soft: _Soft, nodes: NodeColumns) -> BoolN | None:
    """Where a node lacks a key, if that counts; None when no node does."""
    if not soft.needs_all_keys:
        return None
    missing: BoolN | None = None
    for constraint in soft.constraints:
        absent = nodes.label_values(constraint.topology_key) == ABSENT
        missing = absent if missing is None else missing | absent
    return missing if missing is not None and missing.any() else None


def _reversed(scores: Int64N) -> Int64N:
    if not len(scores):
        return scores
    highest, lowest = max(int(scores.max()), 0), int(scores.min())
    if highest == 0:
        return np.full(len(scores), 100, dtype=np.int64)
    result: Int64N = 100 * (highest + lowest - scores) // highest
    return result


def _validate(args: Any) -> list[str]:
    problems = []
    if args.defaulting_type not in _DEFAULTING:
        problems.append(f"defaultingType: `{args.defaulting_type}` is not one of {', '.join(_DEFAULTING)}")
    if args.defaulting_type == "System" and args.default_constraints:
        problems.append("defaultingType: when .defaultConstraints are not empty, defaultingType must be List")
    seen = set()
    for i, constraint in enumerate(args.default_constraints):
        path = f"defaultConstraints[{i}]"
        if constraint.max_skew <= 0:
            problems.append(f"{path}.maxSkew: must be greater than zero, got {constraint.max_skew}")
        if not constraint.topology_key:
            problems.append(f"{path}.topologyKey: can not be empty")
        if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            problems.append(f"{path}.whenUnsatisfiable: must be DoNotSchedule or ScheduleAnyway")
        if constraint.label_selector is not None:
            problems.append(
                f"{path}.labelSelector: constraint must not define a selector, as they deduced for each pod"
            )
        if (constraint.topology_key, constraint.when_unsatisfiable) in seen:
            problems.append(f"{path}: duplicate of an earlier {{topologyKey, whenUnsatisfiable}} pair")
        seen.add((constraint.topology_key, constraint.when_unsatisfiable))
    return problems
