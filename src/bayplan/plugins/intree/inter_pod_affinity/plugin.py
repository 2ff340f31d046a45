"""InterPodAffinity: place a pod near some pods and away from others, by topology."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayplan.framework import (
    SKIP,
    ActionType,
    ClusterEvent,
    CycleState,
    EventHint,
    Hint,
    HintView,
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
    by_view,
    normalize_range,
)
from bayplan.framework.columns import DomainCounts, Int64N, PodTerm, TermGroup, TermKind
from bayplan.framework.objects import Node, SelectorError
from bayplan.framework.promises import MOST_VALUES, ByValue, stretched
from bayplan.plugins.intree.inter_pod_affinity.counts import (
    PairCounts,
    groups_keeping_away,
    kept_sums,
    matching_groups,
    selected_namespaces,
    term_queries,
)

__all__ = ["InterPodAffinity"]

NOT_NEAR = Unresolvable("node(s) didn't match pod affinity rules")
NOT_APART = Unschedulable("node(s) didn't match pod anti-affinity rules")
KEPT_AWAY = Unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
_STATUSES = (Status(NOT_NEAR.code.SUCCESS), KEPT_AWAY, NOT_APART, NOT_NEAR)
"""Indexed by verdict number. Where several apply to a node, the highest is reported. KEPT_AWAY is 1, the number of
True."""
_NOT_APART, _NOT_NEAR = np.uint8(2), np.uint8(3)
_Codes = npt.NDArray[np.uint8]


class _Required:
    """What Filter compares with: counts of pods per topology pair, in three groups."""

    __slots__ = ("affinity", "anti", "existing")

    def __init__(self, existing: PairCounts, affinity: PairCounts, anti: PairCounts) -> None:
        self.existing = existing
        self.affinity = affinity
        self.anti = anti

    def clone(self) -> _Required:
        return _Required(self.existing.copy(), self.affinity.copy(), self.anti.copy())


_REQUIRED = StateKey[_Required]("InterPodAffinity/required")
_PREFERRED = StateKey[PairCounts]("InterPodAffinity/preferred")
_PODS = HintView(
    names=lambda pod: (
        (requirement.key, requirement.values)
        for term in (*pod.shape.pod_terms.required_affinity, *pod.shape.pod_terms.required_anti_affinity)
        for requirement in term.selector.requirements
    ),
    sees=lambda pod: pod.shape.readable_terms.required_anti_affinity,
)
"""What the hint for pods reads of the pod that changed."""
_KEPT_AWAY = "required anti-affinity of running pods"


def _once(group: TermGroup) -> int:
    return 1


class InterPodAffinity(Plugin):
    """Honours the pod affinity and anti-affinity of the incoming pod and of running pods.

    *What it does*: counts, per topology value, running pods that match the incoming pod's terms and running pods
    whose own terms match the incoming pod.
    *Rejects when*: required affinity finds no partner (unresolvable), required anti-affinity finds one, or a running
    pod's required anti-affinity matches this pod.
    *Scores by*: preferred terms of both sides, and hardPodAffinityWeight for running pods' required affinity.
    *Retries on*: pods that are added, removed or relabelled so that a term is newly met; nodes whose topology changes.
    *Arguments*: hardPodAffinityWeight, ignorePreferredTermsOfExistingPods.
    *Differs from kube-scheduler*: nowhere; namespace selectors that accept empty labels select every namespace.
    """

    default_weight = 2
    remedies = (Remedy.POD_AFFINITY,)
    reasons = (NOT_NEAR.message, NOT_APART.message, KEPT_AWAY.message)
    normalize = normalize_range

    class Args(PluginArgs):
        hard_pod_affinity_weight: int = 1
        ignore_preferred_terms_of_existing_pods: bool = False

        def validate(self) -> list[str]:
            weight = self.hard_pod_affinity_weight
            return [] if 0 <= weight <= 100 else [f"hardPodAffinityWeight: must be 0 to 100, got {weight}"]

    def setup(self) -> None:
        self._cluster = self.handle.cluster

    def is_idle(self, pod: PodInfo) -> bool:
        """Whether the pod has no terms, and no term of a running pod matches it."""
        stated = pod.shape.spec.affinity
        if stated is not None and (stated.pod_affinity is not None or stated.pod_anti_affinity is not None):
            return False
        return not matching_groups(pod, self._cluster)

    # Filter

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        cluster = self._cluster
        try:
            terms = pod.shape.pod_terms
        except SelectorError as error:
            return Unresolvable(f"parsing pod: {error}")
        existing = self._existing_anti(pod)
        if not terms.has_required and not existing:
            return SKIP
        affinity, anti = PairCounts(cluster), PairCounts(cluster)
        queries = term_queries(pod, cluster)
        if queries.near is not None:
            partners = cluster.pods.counter(queries.near)
            for term in terms.required_affinity:
                affinity.add(term.topology_key, partners)
        for key, query in queries.anti:
            anti.add(key, cluster.pods.counter(query))
        state.put(_REQUIRED, _Required(existing, affinity, anti))
        return None

    def _existing_anti(self, pod: PodInfo) -> PairCounts:
        cluster = self._cluster
        groups = groups_keeping_away(pod, cluster)
        return PairCounts(cluster, kept_sums(_KEPT_AWAY, pod, groups, _once, cluster) if groups else None)

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        self._move(state[_REQUIRED], pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        self._move(state[_REQUIRED], pod, removed, node, -1)

    def _move(self, required: _Required, pod: PodInfo, other: PodInfo, node: NodeInfo, by: int) -> None:
        labels = self._cluster.namespace_labels(pod.namespace)
        for term in other.shape.readable_terms.required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, labels):
                required.existing.move(term.topology_key, node, by)
        terms = pod.shape.pod_terms
        if terms.required_affinity and all(self._matches(term, other) for term in terms.required_affinity):
            for term in terms.required_affinity:
                required.affinity.move(term.topology_key, node, by)
        for term in terms.required_anti_affinity:
            if self._matches(term, other):
                required.anti.move(term.topology_key, node, by)

    def _matches(self, term: PodTerm, other: PodInfo) -> bool:
        """Whether a term of the incoming pod matches a running pod."""
        namespaces = selected_namespaces(term, self._cluster)
        return (namespaces is None or other.namespace in namespaces) and term.selector.matches(other.labels)

    def _is_first(self, required: _Required, pod: PodInfo) -> bool:
        """Whether no running pod matches and the pod matches its own terms: the first pod of a group may be placed
        anywhere."""
        if required.affinity:
            return False
        return all(self._matches(term, pod) for term in pod.shape.pod_terms.required_affinity)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        found: _Codes | None = None
        for key, codes in self._codes(state[_REQUIRED], pod).items():
            numbers = nodes.by_label(key, codes)
            found = numbers if found is None else np.maximum(found, numbers)
        if found is None:
            return Verdicts.accept(len(nodes))
        return Verdicts(found, _STATUSES.__getitem__)

    def _codes(self, required: _Required, pod: PodInfo) -> dict[str, _Codes]:
        """Verdict numbers (see `_STATUSES`) by topology key and value, with a last entry for nodes without the key. A
        key that rejects no node may be absent."""
        terms = pod.shape.pod_terms
        codes = {key: (counts > 0).view(np.uint8) for key, counts in required.existing.by_key.items()}
        for term in terms.required_anti_affinity:
            counts = required.anti.by_key.get(term.topology_key)
            if counts is not None:
                _enter(codes, term.topology_key, (counts > 0).view(np.uint8) * _NOT_APART)
        far = [
            t.topology_key for t in terms.required_affinity if not self._is_near_everywhere(required, t.topology_key)
        ]
        if far:
            is_first = self._is_first(required, pod)
            for key in far:
                _enter(codes, key, self._far(required, key, is_first=is_first))
        return codes

    def _is_near_everywhere(self, required: _Required, key: str) -> bool:
        counts, nodes = required.affinity.by_key.get(key), self._cluster.nodes
        return counts is not None and bool(counts[:-1].min() > 0) and nodes.label(key).present == len(nodes)

    def _far(self, required: _Required, key: str, *, is_first: bool) -> _Codes:
        counts = required.affinity.by_key.get(key)
        if is_first or counts is None:
            far = np.full(self._cluster.nodes.label(key).domains + 1, 0 if is_first else _NOT_NEAR, np.uint8)
        else:
            far = (counts <= 0).view(np.uint8) * _NOT_NEAR
        far[-1] = _NOT_NEAR
        return far

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        required, terms = state[_REQUIRED], pod.shape.pod_terms
        if terms.required_affinity:
            if any(term.topology_key not in node.labels for term in terms.required_affinity):
                return NOT_NEAR
            near = all(required.affinity.at(t.topology_key, node) > 0 for t in terms.required_affinity)
            if not near and not self._is_first(required, pod):
                return NOT_NEAR
        if any(required.anti.at(term.topology_key, node) > 0 for term in terms.required_anti_affinity):
            return NOT_APART
        if any(required.existing.at(key, node) > 0 for key in required.existing.by_key):
            return KEPT_AWAY
        return None

    # Score

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        terms, cluster = pod.shape.pod_terms, self._cluster
        if self.args.ignore_preferred_terms_of_existing_pods and not terms.has_preferred:
            return SKIP
        groups = matching_groups(pod, cluster)
        if not groups and not terms.has_preferred:
            return SKIP
        name = (self, "preferences")
        total = PairCounts(cluster, kept_sums(name, pod, groups, self._weight_of, cluster) if groups else None)
        for key, query, weight in term_queries(pod, cluster).weighted:
            total.add(key, cluster.pods.counter(query), weight)
        if not total:
            return SKIP
        state.put(_PREFERRED, total)
        return None

    def _weight_of(self, group: TermGroup) -> int:
        """The weight of a running pod's term for its topology value."""
        kind, weight, _ = group.rule
        if kind is TermKind.REQUIRED_AFFINITY:
            return int(self.args.hard_pod_affinity_weight)
        if kind is TermKind.REQUIRED_ANTI_AFFINITY:
            return 0
        return weight if kind is TermKind.PREFERRED_AFFINITY else -weight

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        total: DomainCounts | None = None
        for key, counts in state[_PREFERRED].by_key.items():
            share = nodes.by_label(key, counts)
            total = share if total is None else total + share
        return np.zeros(len(nodes), dtype=np.int64) if total is None else total.astype(np.int64)

    def score_by_value(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> ByValue | None:
        by_key = state[_PREFERRED].by_key
        if len(by_key) != 1:
            return None
        ((key, counts),) = by_key.items()
        if len(counts) > MOST_VALUES:
            return None
        scores = list(map(int, counts.tolist()))
        return ByValue(key, scores, stretched(scores, nodes.places_in_use(key)))

    # Requeueing

    def events_to_register(self) -> list[EventHint]:
        pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [
            EventHint(ClusterEvent(Resource.POD, pods), self._pod_hint),
            EventHint(ClusterEvent(Resource.NODE, nodes), self._node_hint),
        ]

    @by_view(_PODS)
    def _pod_hint(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> Hint:
        other = new or old
        if other is None:
            return Hint.SKIP
        if old is not None and new is not None and new.uid == pod.uid:
            return Hint.QUEUE
        if not (other.node_name or other.nominated_node_name):
            return Hint.SKIP
        terms = pod.shape.pod_terms
        near, apart = terms.required_affinity, terms.required_anti_affinity
        if old is not None and new is not None:
            starts = not self._matches_all(near, old) and self._matches_all(near, new)
            stops = self._matches_all(apart, old) and not self._matches_all(apart, new)
            return Hint.QUEUE if starts or stops else Hint.SKIP
        if new is not None:
            return Hint.QUEUE if self._matches_all(near, new) else Hint.SKIP
        theirs = other.shape.readable_terms.required_anti_affinity
        freed = self._matches_all(apart, other) or (
            bool(theirs) and all(_matches_without_namespace_labels(t, pod) for t in theirs)
        )
        return Hint.QUEUE if freed else Hint.SKIP

    def _matches_all(self, terms: tuple[PodTerm, ...], other: PodInfo) -> bool:
        return bool(terms) and all(_matches_without_namespace_labels(term, other) for term in terms)

    @by_shape
    def _node_hint(self, pod: PodInfo, old: Node | None, new: Node | None) -> Hint:
        if new is None:
            return Hint.SKIP
        terms = pod.shape.pod_terms
        before = old.labels if old is not None else {}
        for term in terms.required_affinity:
            if term.topology_key in new.labels and before.get(term.topology_key) != new.labels[term.topology_key]:
                return Hint.QUEUE
        if old is None:
            return Hint.QUEUE if terms.required_anti_affinity else Hint.SKIP
        for term in terms.required_anti_affinity:
            if before.get(term.topology_key) != new.labels.get(term.topology_key) and term.topology_key in before:
                return Hint.QUEUE
        return Hint.SKIP


def _matches_without_namespace_labels(term: PodTerm, other: PodInfo) -> bool:
    """Whether a term matches a pod, without the labels of the pod's namespace, as in the hints of kube-scheduler."""
    return term.matches(other.namespace, other.labels, {})


def _enter(codes: dict[str, _Codes], key: str, more: _Codes) -> None:
    known = codes.get(key)
    codes[key] = more if known is None else np.maximum(known, more)
