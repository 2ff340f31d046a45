"""InterPodAffinity once more: every term against every pod.

Namespaces are the delicate part. Terms of running pods look at the labels of the incoming pod's namespace. Terms of
the incoming pod name namespaces through the list of namespaces, and besides accept any pod when their namespace
selector accepts a namespace without labels.
"""

from __future__ import annotations

from collections import Counter

from bayplan.api.node import Node
from bayplan.api.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from bayplan.api.workload import Namespace
from bayplan.testing.oracle.cluster import UNRESOLVABLE, UNSCHEDULABLE, OracleCluster, Verdict
from bayplan.testing.oracle.matching import matches_labels

__all__ = ["affinity_scores", "affinity_verdict", "uses_affinity"]

_NAME = "InterPodAffinity"
Pairs = Counter[tuple[str, str]]


def _side(pod: Pod, *, anti: bool) -> PodAffinity:
    affinity = pod.spec.affinity or Affinity()
    return (affinity.pod_anti_affinity if anti else affinity.pod_affinity) or PodAffinity()


def _their_term_matches(term: PodAffinityTerm, owner: Pod, other: Pod, cluster: OracleCluster) -> bool:
    """A running pod's term against the incoming pod."""
    if not _is_named(term, owner, other.namespace) and not matches_labels(
        term.namespace_selector, cluster.namespace_labels(other.namespace)
    ):
        return False
    return matches_labels(term.label_selector, other.labels)


def _own_term_matches(term: PodAffinityTerm, owner: Pod, other: Pod, cluster: OracleCluster) -> bool:
    """The incoming pod's term against a running pod (or itself)."""
    selected = {n.name for n in cluster.of_kind(Namespace) if matches_labels(term.namespace_selector, n.labels)}
    is_meant = (
        _is_named(term, owner, other.namespace)
        or other.namespace in selected
        or matches_labels(term.namespace_selector, {})
    )
    return is_meant and matches_labels(term.label_selector, other.labels)


def _is_named(term: PodAffinityTerm, owner: Pod, namespace: str) -> bool:
    if not term.namespaces and term.namespace_selector is None:
        return namespace == owner.namespace
    return namespace in (term.namespaces or ())


def uses_affinity(pod: Pod, cluster: OracleCluster) -> bool:
    """Whether the filter takes part at all, which is settled before anything is tried out."""
    own = _side(pod, anti=False).required or _side(pod, anti=True).required
    return bool(own) or bool(_forbidden_pairs(pod, cluster))


def affinity_verdict(pod: Pod, node: Node, cluster: OracleCluster) -> Verdict | None:
    near, apart = _side(pod, anti=False).required, _side(pod, anti=True).required
    if near and not _is_near(pod, near, node, cluster):
        return Verdict(_NAME, UNRESOLVABLE, ("node(s) didn't match pod affinity rules",))
    for term in apart:
        pairs = _pairs(cluster, [(term, p, n) for p, n in cluster.placed() if _own_term_matches(term, pod, p, cluster)])
        if pairs[_pair(term, node)] > 0 and term.topology_key in node.labels:
            return Verdict(_NAME, UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",))
    away = _forbidden_pairs(pod, cluster)
    if any(away[pair] > 0 for pair in node.labels.items()):
        return Verdict(_NAME, UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",))
    return None


def _is_near(pod: Pod, terms: list[PodAffinityTerm], node: Node, cluster: OracleCluster) -> bool:
    if any(term.topology_key not in node.labels for term in terms):
        return False
    partners = [(p, n) for p, n in cluster.placed() if all(_own_term_matches(t, pod, p, cluster) for t in terms)]
    pairs = _pairs(cluster, [(term, p, n) for term in terms for p, n in partners])
    if all(pairs[_pair(term, node)] > 0 for term in terms):
        return True
    return not pairs and all(_own_term_matches(term, pod, pod, cluster) for term in terms)


def _forbidden_pairs(pod: Pod, cluster: OracleCluster) -> Pairs:
    """Topology pairs in which a running pod's required anti-affinity means the incoming pod."""
    meant = [
        (term, other, node)
        for other, node in cluster.placed()
        for term in _side(other, anti=True).required
        if _their_term_matches(term, other, pod, cluster)
    ]
    return _pairs(cluster, meant)


def _pairs(cluster: OracleCluster, found: list[tuple[PodAffinityTerm, Pod, Node]]) -> Pairs:
    return Counter(_pair(term, node) for term, _, node in found if term.topology_key in node.labels)


def _pair(term: PodAffinityTerm, node: Node) -> tuple[str, str]:
    return term.topology_key, node.labels.get(term.topology_key, "")


def affinity_scores(pod: Pod, nodes: list[Node], cluster: OracleCluster, hard_weight: int = 1) -> list[int] | None:
    """Scores 0 to 100 of the feasible nodes; None when the plugin skips the pod."""
    pairs: Pairs = Counter()
    for other, node in cluster.placed():
        for term, weight in _weighted_terms(pod, other, cluster, hard_weight):
            if term.topology_key in node.labels:
                pairs[_pair(term, node)] += weight
    if not pairs:
        return None
    raw = [sum(pairs[pair] for pair in node.labels.items()) for node in nodes]
    lowest, highest = min(raw), max(raw)
    if lowest == highest:
        return [0] * len(raw)
    return [int(100.0 * (float(score - lowest) / float(highest - lowest))) for score in raw]


def _weighted_terms(
    pod: Pod, other: Pod, cluster: OracleCluster, hard_weight: int
) -> list[tuple[PodAffinityTerm, int]]:
    """The preferences between the incoming pod and one running pod, from either side."""
    found: list[tuple[PodAffinityTerm, int]] = []
    for sign, anti in ((1, False), (-1, True)):
        ours = [(each.pod_affinity_term, sign * each.weight) for each in _side(pod, anti=anti).preferred]
        theirs = [(each.pod_affinity_term, sign * each.weight) for each in _side(other, anti=anti).preferred]
        found += [(term, weight) for term, weight in ours if _own_term_matches(term, pod, other, cluster)]
        found += [(term, weight) for term, weight in theirs if _their_term_matches(term, other, pod, cluster)]
    if hard_weight:
        found += [
            (t, hard_weight) for t in _side(other, anti=False).required if _their_term_matches(t, other, pod, cluster)
        ]
    return found
