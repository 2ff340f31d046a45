"""NodeAffinity: match nodes with the labels and names that a pod requires and prefers."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from bayplan.framework import (
    SKIP,
    SUCCESS,
    ActionType,
    ClusterEvent,
    CycleState,
    Depends,
    Error,
    EventHint,
    Hint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PluginArgs,
    PodInfo,
    PreFilterResult,
    Remedy,
    Resource,
    Status,
    Unresolvable,
    Verdicts,
    by_shape,
    normalize_highest,
)
from bayplan.framework.columns import Int64N, match_required, match_term
from bayplan.framework.objects import (
    Node,
    NodeRequirement,
    NodeTerm,
    RequiredNodes,
    compile_node_selector,
    compile_term,
    parse_int64,
)
from bayplan.framework.objects import NodeAffinity as NodeAffinityRules

__all__ = ["NodeAffinity"]

_NOT_ENFORCED = Unresolvable("node(s) didn't match scheduler-enforced node affinity")
_NOT_WANTED = Unresolvable("node(s) didn't match Pod's node affinity/selector")
_CONFLICT = Unresolvable("pod affinity terms conflict")
_STATUSES = (SUCCESS, _NOT_ENFORCED, _NOT_WANTED)

WeightedTerms = tuple[tuple[int, NodeTerm], ...]


class NodeAffinity(Plugin):
    """Match `spec.nodeSelector` and `spec.affinity.nodeAffinity` with nodes.

    *What it does*: evaluates each requirement once per distinct label value. Terms are alternatives; the requirements
    of a term must all hold; a term that is empty or does not parse matches no node. When every required term names
    nodes by `metadata.name`, only those nodes are considered.
    *Rejects when*: the node does not match what the arguments enforce, or not what the pod requires; at PreFilter, when
    the names that the terms ask for exclude each other.
    *Scores by*: the sum of the weights of the preferred terms that match, those of the arguments included.
    *Retries on*: a matching node being added, a node's labels changing so that it matches.
    *Arguments*: `addedAffinity`, a node affinity that holds for every pod of the profile besides its own.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 2
    remedies = (Remedy.NODE_AFFINITY,)
    depends = Depends.NODE
    settles_by_kind = True
    signs_by_kind = True
    names_pin = True
    reasons = (*_NOT_WANTED.reasons, *_NOT_ENFORCED.reasons, *_CONFLICT.reasons)
    normalize = normalize_highest

    class Args(PluginArgs):
        added_affinity: NodeAffinityRules | None = None
        """Enforced on, and preferred for, every pod of the profile."""

        def validate(self) -> list[str]:
            rules = self.added_affinity or NodeAffinityRules()
            required = compile_node_selector(rules.required) if rules.required else ()
            preferred = _weighted_terms(rules)
            where = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
            problems = [text for place, term in enumerate(required) for text in _problems(f"{where}[{place}]", term)]
            where = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
            return problems + _problems_of_preferred(where, preferred)

    def setup(self) -> None:
        rules: NodeAffinityRules = self.args.added_affinity or NodeAffinityRules()
        required = rules.required
        self._enforced = None if required is None else RequiredNodes((), compile_node_selector(required))
        self._added_preferred = _weighted_terms(rules)

    def sign(self, pod: PodInfo) -> Hashable:
        return (pod.shape.required_nodes, pod.shape.preferred_nodes)

    def is_relevant(self, pod: PodInfo) -> bool:
        return self._may_reject(pod) or self._may_prefer(pod)

    def _may_reject(self, pod: PodInfo) -> bool:
        return self._enforced is not None or not pod.shape.required_nodes.is_anything

    def _may_prefer(self, pod: PodInfo) -> bool:
        return bool(self._added_preferred) or pod.shape.preferred_nodes is not None

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | PreFilterResult | None:
        if pod.shape.pinned_to:
            return PreFilterResult(frozenset((pod.shape.pinned_to,)))
        if not self._may_reject(pod):
            return SKIP
        names = _pinned_names(pod.shape.required_nodes.terms)
        if names is None:
            return None
        return PreFilterResult(names) if names else _CONFLICT

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        matches = match_required(pod.shape.required_nodes, nodes)
        if self._enforced is None:
            return Verdicts.reject(~matches, _NOT_WANTED)
        ids = np.where(match_required(self._enforced, nodes), np.where(matches, 0, 2), 1)
        return Verdicts.of(ids, _STATUSES)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        shape = pod.shape
        if shape.requires_pin_alone and self._enforced is None:
            return None if node.name == shape.pinned_to else _NOT_WANTED
        if self._enforced is not None and not self._enforced.matches(node.labels, node.name):
            return _NOT_ENFORCED
        return None if shape.required_nodes.matches(node.labels, node.name) else _NOT_WANTED

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        if not self._may_prefer(pod):
            return SKIP
        problems = _problems_of_preferred("", pod.shape.preferred_nodes or ())
        return Error(*problems) if problems else None

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        scores = np.zeros(len(nodes), dtype=np.int64)
        for weight, term in self._preferred(pod):
            scores += weight * match_term(term, nodes)
        return scores

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return sum(weight for weight, term in self._preferred(pod) if term.matches(node.labels, node.name))

    def _preferred(self, pod: PodInfo) -> WeightedTerms:
        return self._added_preferred + (pod.shape.preferred_nodes or ())

    def events_to_register(self) -> list[EventHint]:
        event = ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [EventHint(event, self._after_node_change)]

    @by_shape
    def _after_node_change(self, pod: PodInfo, old: Node | None, new: Node) -> Hint:
        was_wrong = old is None or not self._is_acceptable(old, pod)
        return Hint.QUEUE if was_wrong and self._is_acceptable(new, pod) else Hint.SKIP

    def _is_acceptable(self, node: Node, pod: PodInfo) -> bool:
        if self._enforced is not None and not self._enforced.matches(node.labels, node.name):
            return False
        return pod.shape.required_nodes.matches(node.labels, node.name)


def _weighted_terms(rules: NodeAffinityRules) -> WeightedTerms:
    return tuple((preferred.weight, compile_term(preferred.preference)) for preferred in rules.preferred or ())


def _pinned_names(terms: tuple[NodeTerm, ...] | None) -> frozenset[str] | None:
    """The only nodes that can match, when every term names some; None when any node can."""
    if not terms:
        return None
    names = [term.node_names() for term in terms]
    return frozenset().union(*(some for some in names if some is not None)) if None not in names else None


def _problems_of_preferred(path: str, terms: WeightedTerms) -> list[str]:
    """What keeps preferred terms from being parsed. Terms without weight or content are not checked."""
    weighed = [(place, term) for place, (weight, term) in enumerate(terms) if weight and not term.is_empty]
    return [text for place, term in weighed for text in _problems(f"{path}[{place}]", term)]


def _problems(path: str, term: NodeTerm) -> list[str]:
    if term.is_valid:
        return []
    numbers = [
        f'{path}.matchExpressions[{place}].values[0]: Invalid value: "{requirement.values[0]}": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
        for place, requirement in enumerate(term.expressions)
        if _lacks_number(requirement)
    ]
    return numbers or [
        f"{path}: a requirement does not parse; In and NotIn take values, Exists and DoesNotExist none, Gt and Lt one "
        "integer, and matchFields only `metadata.name` with In or NotIn and one value"
    ]


def _lacks_number(requirement: NodeRequirement) -> bool:
    is_single = requirement.operator in ("Gt", "Lt") and len(requirement.values) == 1
    return is_single and parse_int64(requirement.values[0]) is None
