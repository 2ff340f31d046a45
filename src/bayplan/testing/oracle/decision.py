"""The default profile once more: filters in order, scores by plugin, the best nodes.

Volumes, device claims and declared features are left out: the oracle knows pods that have none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import msgspec

from bayplan.api.node import Node, Taint
from bayplan.api.pod import Pod, PodPort
from bayplan.testing.oracle.affinity import affinity_scores, affinity_verdict, uses_affinity
from bayplan.testing.oracle.cluster import (
    UNRESOLVABLE,
    UNSCHEDULABLE,
    OracleCluster,
    Verdict,
    allocatable,
    used,
    used_nonzero,
)
from bayplan.testing.oracle.matching import matches_required_nodes, matches_term, pinned_names, untolerated
from bayplan.testing.oracle.spread import OracleHardSpread, hard_spread, spread_scores
from bayplan.testing.oracle.usage import Amounts, counted, is_counted, requested, scoring_request

__all__ = ["WEIGHTS", "OracleDecision", "OracleTrial", "oracle_decide"]

WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
_MEBIBYTE = 1 << 20


@dataclass
class OracleDecision:
    """`refusal` is set when the pod is refused before any node is looked at."""

    rejections: dict[str, Verdict] = field(default_factory=dict)
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    """By node and plugin, before the weight."""
    totals: dict[str, int] = field(default_factory=dict)
    best: tuple[str, ...] = ()
    refusal: Verdict | None = None


def oracle_decide(cluster: OracleCluster, pod: Pod) -> OracleDecision:
    decision = OracleDecision()
    pinned = pinned_names(pod)
    if pinned is not None and not pinned:
        decision.refusal = Verdict("NodeAffinity", UNRESOLVABLE, ("pod affinity terms conflict",))
        return decision
    trial = OracleTrial.of(cluster, pod)
    feasible: list[Node] = []
    for node in cluster.nodes:
        if pinned is not None and node.name not in pinned:
            verdict: Verdict | None = Verdict("", UNRESOLVABLE, ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
        else:
            verdict = trial.verdict_with_nominated(node)
        if verdict is None:
            feasible.append(node)
        else:
            decision.rejections[node.name] = verdict
    if feasible:
        _score(decision, cluster, pod, feasible)
    return decision


def _score(decision: OracleDecision, cluster: OracleCluster, pod: Pod, feasible: list[Node]) -> None:
    columns = {
        "TaintToleration": _taint_scores(pod, feasible),
        "NodeAffinity": _node_affinity_scores(pod, feasible),
        "NodeResourcesFit": [_least_allocated(pod, node, cluster) for node in feasible],
        "PodTopologySpread": spread_scores(pod, feasible, cluster),
        "InterPodAffinity": affinity_scores(pod, feasible, cluster),
        "NodeResourcesBalancedAllocation": _balanced_scores(pod, feasible, cluster),
        "ImageLocality": [_image_score(pod, node, cluster) for node in feasible],
    }
    for place, node in enumerate(feasible):
        scores = {plugin: column[place] for plugin, column in columns.items() if column is not None}
        decision.scores[node.name] = scores
        decision.totals[node.name] = sum(WEIGHTS[plugin] * score for plugin, score in scores.items())
    highest = max(decision.totals.values())
    decision.best = tuple(sorted(name for name, total in decision.totals.items() if total == highest))


# Filters


@dataclass
class OracleTrial:
    """The filters over a cluster in which pods may come and go on one node."""

    cluster: OracleCluster
    pod: Pod
    spread: OracleHardSpread | None
    asks_affinity: bool

    @classmethod
    def of(cls, cluster: OracleCluster, pod: Pod) -> OracleTrial:
        return cls(cluster, pod, hard_spread(pod, cluster), uses_affinity(pod, cluster))

    def copy(self) -> OracleTrial:
        return OracleTrial(self.cluster, self.pod, self.spread.copy() if self.spread else None, self.asks_affinity)

    def add(self, other: Pod, node: Node) -> None:
        spec = msgspec.structs.replace(other.spec, node_name=node.name)
        there = Pod(metadata=other.metadata, spec=spec, status=other.status)
        self.cluster = self.cluster.with_pods((*self.cluster.pods, there))
        if self.spread is not None:
            self.spread.move(other, node, 1)

    def remove(self, other: Pod, node: Node) -> None:
        self.cluster = self.cluster.with_pods(p for p in self.cluster.pods if p.uid != other.uid)
        if self.spread is not None:
            self.spread.move(other, node, -1)

    def verdict_with_nominated(self, node: Node) -> Verdict | None:
        """As if the pods nominated to the node (of no lower priority) were there, then as it is."""
        nominated = [
            other
            for other in self.cluster.waiting
            if other.status.nominated_node_name == node.name
            and other.uid != self.pod.uid
            and other.priority >= self.pod.priority
        ]
        if nominated:
            fuller = self.copy()
            for other in nominated:
                fuller.add(other, node)
            verdict = fuller.verdict(node)
            if verdict is not None:
                return verdict
        return self.verdict(node)

    def verdict(self, node: Node) -> Verdict | None:
        """The first rejection in the order of the default profile."""
        pod, cluster = self.pod, self.cluster
        return (
            _unschedulable(pod, node)
            or _other_name(pod, node)
            or _tainted(pod, node)
            or _wrong_node(pod, node)
            or _port_taken(pod, node, cluster)
            or _no_room(pod, node, cluster)
            or (self.spread.verdict(node) if self.spread is not None else None)
            or (affinity_verdict(pod, node, cluster) if self.asks_affinity else None)
        )


def _unschedulable(pod: Pod, node: Node) -> Verdict | None:
    cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    if node.spec.unschedulable and untolerated([cordon], pod.spec.tolerations or (), ("NoSchedule",)):
        return Verdict("NodeUnschedulable", UNRESOLVABLE, ("node(s) were unschedulable",))
    return None


def _other_name(pod: Pod, node: Node) -> Verdict | None:
    if pod.spec.node_name and pod.spec.node_name != node.name:
        return Verdict("NodeName", UNRESOLVABLE, ("node(s) didn't match the requested node name",))
    return None


def _tainted(pod: Pod, node: Node) -> Verdict | None:
    if untolerated(node.spec.taints, pod.spec.tolerations or (), ("NoSchedule", "NoExecute")):
        return Verdict("TaintToleration", UNRESOLVABLE, ("node(s) had untolerated taint(s)",))
    return None


def _wrong_node(pod: Pod, node: Node) -> Verdict | None:
    if matches_required_nodes(pod, node.labels, node.name):
        return None
    return Verdict("NodeAffinity", UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",))


def _host_ports(pod: Pod) -> list[PodPort]:
    sidecars = [c for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
    return [p for c in [*(pod.spec.containers or ()), *sidecars] for p in c.ports or () if p.host_port > 0]


def _port_taken(pod: Pod, node: Node, cluster: OracleCluster) -> Verdict | None:
    taken = [port for other in cluster.pods_on(node) for port in _host_ports(other)]
    if any(_conflict(wanted, port) for wanted in _host_ports(pod) for port in taken):
        reason = "node(s) didn't have free ports for the requested pod ports"
        return Verdict("NodePorts", UNSCHEDULABLE, (reason,))
    return None


def _conflict(one: PodPort, other: PodPort) -> bool:
    if (one.protocol or "TCP", one.host_port) != (other.protocol or "TCP", other.host_port):
        return False
    addresses = {one.host_ip or "0.0.0.0", other.host_ip or "0.0.0.0"}
    return len(addresses) == 1 or "0.0.0.0" in addresses


def _no_room(pod: Pod, node: Node, cluster: OracleCluster) -> Verdict | None:
    here = cluster.pods_on(node)
    offered, taken = allocatable(node), used(here)
    reasons = ["Too many pods"] if len(here) + 1 > offered.get("pods", 0) else []
    is_hopeless = False
    for name, amount in sorted(requested(pod).items()):
        if amount > 0 and is_counted(name) and amount > offered.get(name, 0) - taken.get(name, 0):
            reasons.append(f"Insufficient {name}")
            is_hopeless = is_hopeless or amount > offered.get(name, 0)
    if not reasons:
        return None
    return Verdict("NodeResourcesFit", UNRESOLVABLE if is_hopeless else UNSCHEDULABLE, tuple(sorted(reasons)))


# Scores


def _taint_scores(pod: Pod, nodes: list[Node]) -> list[int]:
    tolerations = [t for t in pod.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
    raw = [untolerated(node.spec.taints, tolerations, ("PreferNoSchedule",)) for node in nodes]
    highest = max(raw)
    return [100 if highest == 0 else 100 - 100 * count // highest for count in raw]


def _node_affinity_scores(pod: Pod, nodes: list[Node]) -> list[int] | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.preferred is None:
        return None
    raw = [
        sum(term.weight for term in affinity.preferred if matches_term(term.preference, node.labels, node.name))
        for node in nodes
    ]
    highest = max(raw)
    return [100 * score // highest if highest else 0 for score in raw]


def _least_allocated(pod: Pod, node: Node, cluster: OracleCluster) -> int:
    offered, taken, asked = allocatable(node), used_nonzero(cluster.pods_on(node)), scoring_request(pod)
    shares = []
    for name in ("cpu", "memory"):
        whole = offered.get(name, 0)
        if whole:
            free = whole - taken[name] - asked.get(name, 0)
            shares.append(free * 100 // whole if free >= 0 else 0)
    return sum(shares) // len(shares) if shares else 0


def _balanced_scores(pod: Pod, nodes: list[Node], cluster: OracleCluster) -> list[int] | None:
    asked = counted(pod)
    if not any(asked.get(name, 0) for name in ("cpu", "memory")):
        return None
    scores = []
    for node in nodes:
        offered, taken = allocatable(node), used(cluster.pods_on(node))
        more = {name: taken.get(name, 0) + asked.get(name, 0) for name in ("cpu", "memory")}
        scores.append(50 + (50 + _balance(more, offered) - _balance(taken, offered)) // 2)
    return scores


def _balance(taken: Amounts, offered: Amounts) -> int:
    fractions = [min(taken.get(n, 0) / offered[n], 1.0) for n in ("cpu", "memory") if offered.get(n, 0)]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs(fractions[0] - fractions[1]) / 2
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        deviation = sqrt(sum((f - mean) ** 2 for f in fractions) / len(fractions))
    return int((1 - deviation) * 100)


def _image_score(pod: Pod, node: Node, cluster: OracleCluster) -> int:
    containers = [*(pod.spec.init_containers or ()), *(pod.spec.containers or ())]
    wanted = [c.image for c in containers] + [v.image.reference for v in pod.spec.volumes or () if v.image]
    total = 0
    for image in wanted:
        name = image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
        having = [n for n in cluster.nodes if name in _image_sizes(n)]
        if node in having:
            total += int(float(_image_sizes(having[0])[name]) * (len(having) / len(cluster.nodes)))
    least, most = 23 * _MEBIBYTE, 1000 * _MEBIBYTE * len(containers)
    return 100 * (min(max(total, least), most) - least) // (most - least)


def _image_sizes(node: Node) -> dict[str, int]:
    return {name: image.size_bytes for image in node.status.images or () for name in image.names or ()}
