"""PodTopologySpread once more: domains counted by walking all nodes and pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, log

from bayplan.api.meta import LabelSelector, LabelSelectorRequirement
from bayplan.api.node import Node
from bayplan.api.pod import Pod, TopologySpreadConstraint
from bayplan.api.workload import ReplicaSet, ReplicationController, Service, StatefulSet
from bayplan.testing.oracle.cluster import UNRESOLVABLE, UNSCHEDULABLE, OracleCluster, Verdict
from bayplan.testing.oracle.matching import matches_labels, matches_required_nodes, untolerated

__all__ = ["OracleHardSpread", "hard_spread", "spread_scores"]

_NAME = "PodTopologySpread"
_HOSTNAME = "kubernetes.io/hostname"
_SYSTEM_DEFAULTS = ((_HOSTNAME, 3), ("topology.kubernetes.io/zone", 5))
_MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"
_SKEWED = "node(s) didn't match pod topology spread constraints"


def _constraints(pod: Pod, cluster: OracleCluster, effect: str) -> list[TopologySpreadConstraint]:
    own = pod.spec.topology_spread_constraints
    if own:
        return [c for c in own if c.when_unsatisfiable == effect]
    selector = _default_selector(pod, cluster) if effect == "ScheduleAnyway" else None
    if selector is None:
        return []
    return [
        TopologySpreadConstraint(topology_key=key, max_skew=skew, label_selector=selector)
        for key, skew in _SYSTEM_DEFAULTS
    ]


def _default_selector(pod: Pod, cluster: OracleCluster) -> LabelSelector | None:
    """What services and the controller of the pod select by, all of it together."""
    labels: dict[str, str] = {}
    expressions: list[LabelSelectorRequirement] = []
    for item in cluster.of_kind(Service, pod.namespace):
        wanted = item.spec.selector if isinstance(item, Service) else None
        if wanted and all(pod.labels.get(key) == value for key, value in wanted.items()):
            labels |= wanted
    owner = pod.controller
    for kind in (ReplicationController, ReplicaSet, StatefulSet):
        for item in cluster.of_kind(kind, pod.namespace):
            if owner is None or owner.kind != kind.__name__ or owner.name != item.name:
                continue
            if isinstance(item, ReplicationController):
                labels |= item.spec.selector or {}
            elif isinstance(item, ReplicaSet | StatefulSet) and item.spec.selector is not None:
                labels_too = item.spec.selector.match_labels or {}
                expressions += [
                    LabelSelectorRequirement(key=k, operator="In", values=[v]) for k, v in labels_too.items()
                ]
                expressions += item.spec.selector.match_expressions or []
    if not labels and not expressions:
        return None
    return LabelSelector(match_labels=labels or None, match_expressions=expressions or None)


def _selects(constraint: TopologySpreadConstraint, owner: Pod, other: Pod) -> bool:
    """The constraint's selector together with the owner's values of matchLabelKeys."""
    if not matches_labels(constraint.label_selector, other.labels):
        return False
    keys = [key for key in constraint.match_label_keys or () if key in owner.labels]
    return all(other.labels.get(key) == owner.labels[key] for key in keys)


def _counts(constraint: TopologySpreadConstraint, owner: Pod, other: Pod) -> bool:
    """Whether a running pod is counted. The empty selector counts no pod."""
    selector = constraint.label_selector
    keys = [key for key in constraint.match_label_keys or () if key in owner.labels]
    is_empty = selector is not None and not selector.match_labels and not selector.match_expressions and not keys
    if is_empty or other.is_terminating or other.namespace != owner.namespace:
        return False
    return _selects(constraint, owner, other)


def _includes(constraint: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    """The inclusion policies."""
    if constraint.node_affinity_policy != "Ignore" and not matches_required_nodes(pod, node.labels, node.name):
        return False
    if constraint.node_taints_policy != "Honor":
        return True
    return not untolerated(node.spec.taints, pod.spec.tolerations or (), ("NoSchedule", "NoExecute"))


@dataclass
class OracleHardSpread:
    """The DoNotSchedule constraints of one pod with their counts; a dry run moves the counts."""

    pod: Pod
    constraints: list[TopologySpreadConstraint]
    counts: list[dict[str, int]] = field(default_factory=list)

    def copy(self) -> OracleHardSpread:
        return OracleHardSpread(self.pod, self.constraints, [dict(counts) for counts in self.counts])

    def move(self, other: Pod, node: Node, by: int) -> None:
        """A pod comes to, or leaves, a node. Terminating pods and empty selectors get no special treatment here."""
        if other.namespace != self.pod.namespace or any(c.topology_key not in node.labels for c in self.constraints):
            return
        for constraint, counts in zip(self.constraints, self.counts, strict=True):
            if _selects(constraint, self.pod, other) and _includes(constraint, self.pod, node):
                counts[node.labels[constraint.topology_key]] += by

    def verdict(self, node: Node) -> Verdict | None:
        for constraint, counts in zip(self.constraints, self.counts, strict=True):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return Verdict(_NAME, UNRESOLVABLE, (_MISSING,))
            lowest = min(counts.values(), default=2**31 - 1)
            if len(counts) < (1 if constraint.min_domains is None else constraint.min_domains):
                lowest = 0
            itself = 1 if _selects(constraint, self.pod, self.pod) else 0
            if counts.get(value, 0) + itself - lowest > constraint.max_skew:
                return Verdict(_NAME, UNSCHEDULABLE, (_SKEWED,))
        return None


def hard_spread(pod: Pod, cluster: OracleCluster) -> OracleHardSpread | None:
    """The counts before anything is tried out; None when the filter takes no part."""
    constraints = _constraints(pod, cluster, "DoNotSchedule")
    if not constraints:
        return None
    spread = OracleHardSpread(pod, constraints)
    having = [node for node in cluster.nodes if all(c.topology_key in node.labels for c in constraints)]
    for constraint in constraints:
        counts: dict[str, int] = {}
        for node in having:
            if _includes(constraint, pod, node):
                here = sum(1 for other in cluster.pods_on(node) if _counts(constraint, pod, other))
                value = node.labels[constraint.topology_key]
                counts[value] = counts.get(value, 0) + here
        spread.counts.append(counts)
    return spread


def spread_scores(pod: Pod, nodes: list[Node], cluster: OracleCluster) -> list[int] | None:
    """Scores 0 to 100 of the feasible nodes; None when there is no ScheduleAnyway constraint."""
    constraints = _constraints(pod, cluster, "ScheduleAnyway")
    if not constraints:
        return None
    needs_all_keys = bool(pod.spec.topology_spread_constraints)

    def has_keys(node: Node) -> bool:
        return not needs_all_keys or all(c.topology_key in node.labels for c in constraints)

    kept = [node for node in nodes if has_keys(node)]
    counted = [node for node in cluster.nodes if has_keys(node)]
    raw = {node.name: 0.0 for node in kept}
    for constraint in constraints:
        key = constraint.topology_key
        values = {node.labels.get(key, "") for node in kept}
        weight = log((len(kept) if key == _HOSTNAME else len(values)) + 2)
        for node in kept:
            if key in node.labels:
                peers = [node] if key == _HOSTNAME else _domain(counted, node, constraint, pod)
                count = sum(1 for n in peers for other in cluster.pods_on(n) if _counts(constraint, pod, other))
                raw[node.name] += count * weight + (constraint.max_skew - 1)
    rounded = {name: floor(score + 0.5) for name, score in raw.items()}
    lowest, highest = min(rounded.values(), default=0), max(rounded.values(), default=0)

    def normalized(node: Node) -> int:
        if node.name not in rounded:
            return 0
        return 100 if highest == 0 else 100 * (highest + lowest - rounded[node.name]) // highest

    return [normalized(node) for node in nodes]


def _domain(counted: list[Node], node: Node, constraint: TopologySpreadConstraint, pod: Pod) -> list[Node]:
    """The nodes whose pods count for the domain of a node; a node without the label is in the domain of "" ."""
    key = constraint.topology_key
    return [n for n in counted if n.labels.get(key, "") == node.labels[key] and _includes(constraint, pod, n)]
