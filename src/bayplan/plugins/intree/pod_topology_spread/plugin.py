"""PodTopologySpread: spread matching pods evenly over zones, hosts or any other topology."""

from __future__ import annotations

from math import log
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

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
    Remedy,
    Resource,
    StateKey,
    Status,
    Unresolvable,
    Unschedulable,
    Verdicts,
    by_shape,
)
from bayplan.framework.columns import ABSENT, BoolN, DomainCounts, Int64N, PodQuery
from bayplan.framework.objects import (
    Node,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    TopologySpreadConstraint,
)
from bayplan.framework.promises import MOST_VALUES, ByValue
from bayplan.plugins.intree.pod_topology_spread.constraints import (
    HOSTNAME,
    SYSTEM_DEFAULTS,
    SpreadConstraint,
    compile_constraints,
    default_selector,
)
from bayplan.plugins.intree.pod_topology_spread.counts import (
    CountedDomains,
    HardSpread,
    Inclusion,
    Inclusions,
    count_domains,
    inclusion_key,
    is_included,
    query_of,
)
from bayplan.plugins.intree.pod_topology_spread.scores import (
    IGNORED,
    normalize_spread,
    reversed_few,
    round_half_up,
    rounded,
)

__all__ = ["PodTopologySpread"]

MISSING_LABEL = Unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")
TOO_SKEWED = Unschedulable("node(s) didn't match pod topology spread constraints")
_STATUSES = (Status(TOO_SKEWED.code.SUCCESS), MISSING_LABEL, TOO_SKEWED)
_MISSING, _SKEWED = 1, 2
_DEFAULTING = ("System", "List")
_HARD_EFFECT, _SOFT_EFFECT = "DoNotSchedule", "ScheduleAnyway"
_NO_KEYS: frozenset[str] = frozenset()


class _Soft:
    """State of PreScore: per constraint the pods by domain, or None where they are counted by node. Without rules every
    node is ignored, because none has one of the keys.

    The last entry of the counts is for nodes without the key.
    """

    __slots__ = ("counts", "rules", "weights")

    def __init__(self, rules: tuple[_Rule, ...]) -> None:
        self.rules = rules
        self.counts: list[DomainCounts | None] = []
        self.weights: list[float] = []

    def table(self, number: int) -> DomainCounts:
        """The share of a constraint that is counted by domain, for each domain."""
        counts = self.counts[number]
        assert counts is not None  # the caller checked
        table = counts * self.weights[number] + (self.rules[number].constraint.max_skew - 1)
        table[-1] = 0.0
        return table


class _Rule:
    """A constraint with what counting needs, computed once per shape."""

    __slots__ = ("constraint", "key", "keys", "query")

    def __init__(self, constraint: SpreadConstraint, pod: PodInfo, keys: frozenset[str]) -> None:
        self.constraint = constraint
        self.keys = keys
        """Of all constraints of the pod, one set for all of them; empty where nodes need none of the others."""
        self.key = inclusion_key(constraint, pod, keys)
        self.query: PodQuery | None = query_of(constraint, pod)


class _Known:
    """The constraints of a shape; defaults are valid until services or controllers change."""

    __slots__ = ("by_effect", "generation", "versions")

    def __init__(self) -> None:
        self.generation = -1
        self.versions: tuple[int, ...] = ()
        self.by_effect: dict[str, tuple[_Rule, ...]] = {}


_HARD = StateKey[HardSpread]("PodTopologySpread/hard")
_SOFT = StateKey[_Soft]("PodTopologySpread/soft")


class PodTopologySpread(Plugin):
    """Spreads pods that match a selector over the values of a node label.

    *What it does*: for each constraint counts matching pods per topology value and limits (DoNotSchedule) or scores
    (ScheduleAnyway) the difference between values.
    *Rejects when*: the node lacks a required key (unresolvable), or the pod would exceed maxSkew there.
    *Scores by*: fewer matching pods in the node's domains, weighted by the logarithm of the number of domains.
    Pods without constraints of their own get the defaults when a service or controller selects them.
    *Retries on*: matching pods that are added, removed or relabelled; nodes whose topology or taints change.
    *Arguments*: defaultConstraints, defaultingType.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 2
    remedies = (Remedy.TOPOLOGY_SPREAD,)
    settles_by_kind = True
    reasons = (MISSING_LABEL.message, TOO_SKEWED.message)
    normalize = normalize_spread

    class Args(PluginArgs):
        default_constraints: list[TopologySpreadConstraint] = msgspec.field(default_factory=list)
        defaulting_type: str = "System"

        def validate(self) -> list[str]:
            return _validate(self)

    def setup(self) -> None:
        system = self.args.defaulting_type == "System"
        self._defaults = SYSTEM_DEFAULTS if system else tuple(self.args.default_constraints)
        self._is_system = system
        self._inclusions = Inclusions()
        self._key = (self, "constraints")
        self._cluster, self._objects = self.handle.cluster, self.handle.cluster.objects
        self._unselected = (-1, -1)
        """Number of the last shape that nothing selects, and the generation of objects as of which nothing does."""

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(pod.shape.spec.topology_spread_constraints or self._defaults)

    def is_idle(self, pod: PodInfo) -> bool:
        """Whether no constraint, own or default, applies until services or controllers change."""
        if not pod.shape.spec.topology_spread_constraints:
            as_of = pod.shape.number, self._objects.generation
            if self._unselected == as_of:
                return True
            if default_selector(pod, self._objects) is None:
                self._unselected = as_of
                return True
        return not self._rules(pod, _HARD_EFFECT) and not self._rules(pod, _SOFT_EFFECT)

    def _rules(self, pod: PodInfo, effect: str) -> tuple[_Rule, ...]:
        shape = pod.shape
        known = shape.note(self._key, _Known)
        if known.generation != self._objects.generation and not shape.spec.topology_spread_constraints:
            self._follow(known)
        rules = known.by_effect.get(effect)
        if rules is None:
            rules = known.by_effect[effect] = self._make_rules(pod, effect)
        return rules

    def _follow(self, known: _Known) -> None:
        """Drop defaults that were computed before services or controllers changed."""
        version = self._objects.version
        versions = (version(Service), version(ReplicaSet), version(StatefulSet), version(ReplicationController))
        known.generation = self._objects.generation
        if known.versions != versions:
            known.versions, known.by_effect = versions, {}

    def _make_rules(self, pod: PodInfo, effect: str) -> tuple[_Rule, ...]:
        own = pod.shape.spec.topology_spread_constraints
        if own:
            constraints = compile_constraints(own, pod, when_unsatisfiable=effect)
        else:
            constraints = self._default_constraints(pod, effect)
        needs_all_keys = effect == _HARD_EFFECT or bool(own) or not self._is_system
        keys = frozenset(constraint.topology_key for constraint in constraints) if needs_all_keys else _NO_KEYS
        shared = keys if len(keys) > 1 else _NO_KEYS
        return tuple(_Rule(constraint, pod, shared) for constraint in constraints)

    def _constraints(self, pod: PodInfo, effect: str) -> tuple[SpreadConstraint, ...]:
        return tuple(rule.constraint for rule in self._rules(pod, effect))

    def _default_constraints(self, pod: PodInfo, effect: str) -> tuple[SpreadConstraint, ...]:
        wanted = [c for c in self._defaults if c.when_unsatisfiable == effect]
        selector = default_selector(pod, self._objects) if wanted else None
        if selector is None:
            return ()
        return compile_constraints(
            wanted, pod, when_unsatisfiable=effect, selector=selector, lacking_is_empty=self._is_system
        )

    def _count(self, rule: _Rule, pod: PodInfo) -> tuple[Inclusion, DomainCounts]:
        cluster = self._cluster
        inclusion = self._inclusions.find(rule.key, rule.constraint, pod, rule.keys, cluster.nodes)
        return inclusion, count_domains(inclusion, rule.query, cluster)

    # Filter

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        rules = self._rules(pod, _HARD_EFFECT)
        if not rules:
            return SKIP
        if self._lacks_key(rules):
            state.put(_HARD, HardSpread([], lacks_key=True))
            return None
        state.put(_HARD, HardSpread([CountedDomains(rule.constraint, *self._count(rule, pod)) for rule in rules]))
        return None

    def _lacks_key(self, rules: tuple[_Rule, ...]) -> bool:
        """Whether no node has one of the keys that all nodes need: a pod may state thousands of them."""
        label = self._cluster.nodes.label
        return any(not label(key).present for key in rules[0].keys) if rules[0].keys else False

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        self._move(state[_HARD], pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        self._move(state[_HARD], pod, removed, node, -1)

    def _move(self, hard: HardSpread, pod: PodInfo, other: PodInfo, node: NodeInfo, by: int) -> None:
        if other.namespace != pod.namespace:
            return
        if any(domain.constraint.topology_key not in node.labels for domain in hard.domains):
            return
        for domain in hard.domains:
            constraint = domain.constraint
            if constraint.counts(other) and is_included(constraint, pod, node):
                domain.move(domain.inclusion.column.id_of(node.labels[constraint.topology_key]), by)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        hard = state[_HARD]
        if hard.lacks_key:
            return Verdicts(np.full(len(nodes), _MISSING, dtype=np.int32), _STATUSES.__getitem__)
        ids: npt.NDArray[np.integer[Any]] | None = None
        for domain in reversed(hard.domains):
            constraint = domain.constraint
            allowed = constraint.max_skew + domain.minimum() - constraint.matches_self
            verdict = (domain.counts > allowed) * np.int32(_SKEWED)
            if not np.count_nonzero(verdict) and domain.inclusion.column.present == len(nodes.table):
                continue
            verdict[-1] = _MISSING
            found = nodes.by_label(constraint.topology_key, verdict)
            ids = found if ids is None else np.where(found != 0, found, ids)
        return Verdicts.accept(len(nodes)) if ids is None else Verdicts(ids, _STATUSES.__getitem__)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        hard = state[_HARD]
        if hard.lacks_key:
            return MISSING_LABEL
        for domain in hard.domains:
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
        rules = self._rules(pod, _SOFT_EFFECT)
        if not rules or not len(nodes):
            return SKIP
        if self._lacks_key(rules):
            state.put(_SOFT, _Soft(()))
            return None
        soft, ignored = _Soft(rules), self._ignored(rules, pod, nodes)
        for rule in rules:
            constraint = rule.constraint
            weight = log(self._domains_in_play(constraint, nodes, ignored) + 2)
            soft.weights.append(weight)
            soft.counts.append(None if constraint.topology_key == HOSTNAME else self._count(rule, pod)[1])
        state.put(_SOFT, soft)
        return None

    def _ignored(self, rules: tuple[_Rule, ...], pod: PodInfo, nodes: NodeColumns) -> BoolN | None:
        """Where a node lacks a key, if that counts; None when no node does."""
        if self._is_system and not pod.shape.spec.topology_spread_constraints:
            return None
        missing: BoolN | None = None
        for rule in rules:
            key = rule.constraint.topology_key
            if nodes.label(key).present < len(nodes.table):
                absent = nodes.label_values(key) == ABSENT
                missing = absent if missing is None else missing | absent
        return missing if missing is not None and missing.any() else None

    def _domains_in_play(self, constraint: SpreadConstraint, nodes: NodeColumns, ignored: BoolN | None) -> int:
        """The number of values among the feasible nodes; for the hostname, the number of nodes."""
        if constraint.topology_key == HOSTNAME:
            return len(nodes) - (0 if ignored is None else int(ignored.sum()))
        column = nodes.label(constraint.topology_key)
        if ignored is None and len(nodes) == len(nodes.table) == column.present:
            return column.values_in_use()
        bins = nodes.label_bins(constraint.topology_key)
        if ignored is not None:
            bins = bins[~ignored]
        present = np.bincount(bins, minlength=column.domains + 1) > 0
        empty = column.id_of("")
        return int(present.sum()) - int(empty != ABSENT and present[empty] and present[-1])

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        soft = state[_SOFT]
        if not soft.rules:
            return np.full(len(nodes), IGNORED, dtype=np.int64)
        if len(soft.counts) == 1 and soft.counts[0] is not None:
            scores = rounded(soft.table(0)).take(nodes.label_bins(soft.rules[0].constraint.topology_key))
        else:
            scores = rounded(self._sum(soft, nodes))
        ignored = self._ignored(soft.rules, pod, nodes)
        if ignored is not None:
            scores[ignored] = IGNORED
        return scores

    def score_by_value(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> ByValue | None:
        soft = state[_SOFT]
        if len(soft.counts) != 1:
            return None
        counts, weight, constraint = soft.counts[0], soft.weights[0], soft.rules[0].constraint
        if counts is None or len(counts) > MOST_VALUES:
            return None
        more = constraint.max_skew - 1
        scores = [round_half_up(count * weight + more) for count in counts.tolist()]
        scores[-1] = 0
        key = constraint.topology_key
        places = nodes.places_in_use(key)
        if places[-1] == len(scores) - 1 and self._ignored(soft.rules, pod, nodes) is not None:
            scores[-1] = IGNORED
            places = places[:-1]
        return ByValue(key, scores, reversed_few(scores, places))

    def _sum(self, soft: _Soft, nodes: NodeColumns) -> DomainCounts:
        total: DomainCounts | None = None
        for number, (rule, counts, weight) in enumerate(zip(soft.rules, soft.counts, soft.weights, strict=True)):
            constraint = rule.constraint
            if counts is None:
                share = self._count_rows(rule, nodes).astype(np.float64)
                share *= weight
                share += constraint.max_skew - 1
                if nodes.label(constraint.topology_key).present < len(nodes.table):
                    share[nodes.label_values(constraint.topology_key) == ABSENT] = 0.0
            else:
                share = soft.table(number).take(nodes.label_bins(constraint.topology_key))
            total = share if total is None else total + share
        assert total is not None  # PreScore skips a pod without constraints
        return total

    def _count_rows(self, rule: _Rule, nodes: NodeColumns) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        if rule.query is None:
            return np.zeros(len(nodes), dtype=np.int32)
        return nodes.cut(self._cluster.pods.counter(rule.query).rows)

    # Requeueing

    def events_to_register(self) -> list[EventHint]:
        pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE
        nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return [
            EventHint(ClusterEvent(Resource.POD, pods), self._pod_hint),
            EventHint(ClusterEvent(Resource.NODE, nodes), self._node_hint),
        ]

    @by_shape
    def _pod_hint(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> Hint:
        other = new or old
        if other is None:
            return Hint.SKIP
        is_self = other.uid == pod.uid
        is_placed = bool(other.node_name or other.nominated_node_name) and other.namespace == pod.namespace
        if not is_self and not is_placed:
            return Hint.SKIP
        constraints = self._constraints(pod, _HARD_EFFECT)
        if old is not None and new is not None:
            return self._updated_pod_hint(constraints, old, new, is_self=is_self)
        return Hint.QUEUE if any(c.counts(other) for c in constraints) else Hint.SKIP

    def _updated_pod_hint(
        self, constraints: tuple[SpreadConstraint, ...], old: PodInfo, new: PodInfo, *, is_self: bool
    ) -> Hint:
        if (
            is_self
            and len(new.shape.tolerations) != len(old.shape.tolerations)
            and any(c.honors_taints for c in constraints)
        ):
            return Hint.QUEUE
        flips = any(c.counts(old) != c.counts(new) for c in constraints)
        return Hint.QUEUE if flips else Hint.SKIP

    @by_shape
    def _node_hint(self, pod: PodInfo, old: Node | None, new: Node | None) -> Hint:
        constraints = self._constraints(pod, _HARD_EFFECT)
        before, after = _has_all_keys(old, constraints), _has_all_keys(new, constraints)
        if old is None or new is None:
            return Hint.QUEUE if before or after else Hint.SKIP
        if before != after:
            return Hint.QUEUE
        return Hint.QUEUE if after and _differs(old, new, constraints) else Hint.SKIP


def _has_all_keys(node: Node | None, constraints: tuple[SpreadConstraint, ...]) -> bool:
    return node is not None and all(c.topology_key in node.labels for c in constraints)


def _differs(old: Node, new: Node, constraints: tuple[SpreadConstraint, ...]) -> bool:
    if any(old.labels.get(c.topology_key) != new.labels.get(c.topology_key) for c in constraints):
        return True
    return (old.spec.taints or []) != (new.spec.taints or [])


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
