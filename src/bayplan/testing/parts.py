"""Parts of pods and nodes in short form: selectors, taints, tolerations, affinity, spread.

    pod("web", affinity=[near(ZONE, {"app": "db"}), apart(HOSTNAME, {"app": "web"}, weight=50)])

Every function returns the API's own structs, so a part can be changed further by hand. Nothing is checked that an API
server would check: tests of odd input need odd parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bayplan.api.meta import LabelSelector, LabelSelectorRequirement
from bayplan.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint
from bayplan.api.pod import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodPort,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

__all__ = [
    "HOSTNAME",
    "REGION",
    "ZONE",
    "apart",
    "join_affinity",
    "near",
    "node_term",
    "port",
    "prefer_nodes",
    "require_nodes",
    "selector",
    "spread",
    "taint",
    "toleration",
]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"

Values = Mapping[str, Sequence[str]]
Match = Mapping[str, str] | LabelSelector | None


def selector(
    labels: Mapping[str, str] | None = None,
    *,
    is_in: Values | None = None,
    not_in: Values | None = None,
    exists: Iterable[str] = (),
    absent: Iterable[str] = (),
) -> LabelSelector:
    """A label selector; called without anything it is the empty one, which selects everything."""
    stated = _expressions(is_in, not_in, exists, absent)
    expressions = [LabelSelectorRequirement(key=key, operator=op, values=values) for key, op, values in stated]
    return LabelSelector(match_labels=dict(labels) if labels else None, match_expressions=expressions or None)


def node_term(
    labels: Mapping[str, str] | None = None,
    *,
    is_in: Values | None = None,
    not_in: Values | None = None,
    exists: Iterable[str] = (),
    absent: Iterable[str] = (),
    greater: Mapping[str, int] | None = None,
    less: Mapping[str, int] | None = None,
    name: str | None = None,
) -> NodeSelectorTerm:
    """A node selector term; `name` pins the node by its name, as a DaemonSet does."""
    equal = {key: [value] for key, value in (labels or {}).items()}
    stated = [*_expressions({**equal, **(is_in or {})}, not_in, exists, absent)]
    stated += [(key, "Gt", [str(number)]) for key, number in (greater or {}).items()]
    stated += [(key, "Lt", [str(number)]) for key, number in (less or {}).items()]
    expressions = [NodeSelectorRequirement(key=key, operator=op, values=values) for key, op, values in stated]
    fields = [NodeSelectorRequirement(key="metadata.name", operator="In", values=[name])] if name is not None else None
    return NodeSelectorTerm(match_expressions=expressions or None, match_fields=fields)


def _expressions(
    is_in: Values | None, not_in: Values | None, exists: Iterable[str], absent: Iterable[str]
) -> list[tuple[str, str, list[str] | None]]:
    stated: list[tuple[str, str, list[str] | None]] = []
    stated += [(key, "In", list(values)) for key, values in (is_in or {}).items()]
    stated += [(key, "NotIn", list(values)) for key, values in (not_in or {}).items()]
    stated += [(key, "Exists", None) for key in exists]
    stated += [(key, "DoesNotExist", None) for key in absent]
    return stated


def taint(text: str) -> Taint:
    """`key=value:Effect` or `key:Effect`, as kubectl writes taints."""
    rest, separator, effect = text.rpartition(":")
    if not separator or not rest or not effect:
        raise ValueError(f"`{text}` is not a taint; write `key=value:NoSchedule` or `key:NoSchedule`")
    key, _, value = rest.partition("=")
    return Taint(key=key, value=value, effect=effect)


def toleration(text: str, *, seconds: int | None = None) -> Toleration:
    """`key=value:Effect`; without `=value` any value will do, without `:Effect` any effect, and `*` is any taint."""
    rest, _, effect = text.partition(":")
    key, equals, value = rest.partition("=")
    return Toleration(
        key="" if key == "*" else key,
        operator="Equal" if equals else "Exists",
        value=value,
        effect=effect,
        toleration_seconds=seconds,
    )


def port(host_port: int, *, protocol: str = "TCP", address: str = "") -> PodPort:
    """A host port that a container wants."""
    return PodPort(container_port=host_port, host_port=host_port, protocol=protocol, host_ip=address)


def spread(
    topology_key: str,
    match: Match = None,
    *,
    max_skew: int = 1,
    soft: bool = False,
    min_domains: int | None = None,
    node_affinity_policy: str | None = None,
    node_taints_policy: str | None = None,
    match_label_keys: Sequence[str] | None = None,
) -> TopologySpreadConstraint:
    """A spread constraint over pods that `match`; `soft` is ScheduleAnyway."""
    return TopologySpreadConstraint(
        topology_key=topology_key,
        max_skew=max_skew,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        label_selector=_selector(match),
        min_domains=min_domains,
        node_affinity_policy=node_affinity_policy,
        node_taints_policy=node_taints_policy,
        match_label_keys=list(match_label_keys) if match_label_keys else None,
    )


def near(
    topology_key: str,
    match: Match = None,
    *,
    weight: int | None = None,
    namespaces: Sequence[str] | None = None,
    namespace_selector: LabelSelector | None = None,
) -> Affinity:
    """Pod affinity: required, or preferred with a weight."""
    return Affinity(pod_affinity=_pod_side(topology_key, match, weight, namespaces, namespace_selector))


def apart(
    topology_key: str,
    match: Match = None,
    *,
    weight: int | None = None,
    namespaces: Sequence[str] | None = None,
    namespace_selector: LabelSelector | None = None,
) -> Affinity:
    """Pod anti-affinity: required, or preferred with a weight."""
    return Affinity(pod_anti_affinity=_pod_side(topology_key, match, weight, namespaces, namespace_selector))


def _pod_side(
    topology_key: str,
    match: Match,
    weight: int | None,
    namespaces: Sequence[str] | None,
    namespace_selector: LabelSelector | None,
) -> PodAffinity:
    term = PodAffinityTerm(
        topology_key=topology_key,
        label_selector=_selector(match),
        namespaces=list(namespaces) if namespaces else None,
        namespace_selector=namespace_selector,
    )
    if weight is None:
        return PodAffinity(required_during_scheduling_ignored_during_execution=[term])
    weighted = WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term)
    return PodAffinity(preferred_during_scheduling_ignored_during_execution=[weighted])


def require_nodes(*terms: NodeSelectorTerm) -> Affinity:
    """Required node affinity: one of the terms must match."""
    required = NodeSelector(node_selector_terms=list(terms))
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))


def prefer_nodes(term: NodeSelectorTerm, *, weight: int = 1) -> Affinity:
    """Preferred node affinity."""
    preferred = [PreferredSchedulingTerm(weight=weight, preference=term)]
    return Affinity(node_affinity=NodeAffinity(preferred_during_scheduling_ignored_during_execution=preferred))


def join_affinity(parts: Affinity | Iterable[Affinity] | None) -> Affinity | None:
    """Several affinities as one; None for none at all."""
    if parts is None or isinstance(parts, Affinity):
        return parts
    given = list(parts)
    if not given:
        return None
    return Affinity(
        node_affinity=_join_nodes([part.node_affinity for part in given if part.node_affinity]),
        pod_affinity=_join_pods([part.pod_affinity for part in given if part.pod_affinity]),
        pod_anti_affinity=_join_pods([part.pod_anti_affinity for part in given if part.pod_anti_affinity]),
    )


def _join_nodes(sides: list[NodeAffinity]) -> NodeAffinity | None:
    if not sides:
        return None
    required = [side.required for side in sides if side.required]
    preferred = [term for side in sides for term in side.preferred or ()]
    terms = [term for each in required for term in each.node_selector_terms or ()]
    return NodeAffinity(
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms)
        if required
        else None,
        preferred_during_scheduling_ignored_during_execution=preferred or None,
    )


def _join_pods(sides: list[PodAffinity]) -> PodAffinity | None:
    if not sides:
        return None
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=[t for side in sides for t in side.required] or None,
        preferred_during_scheduling_ignored_during_execution=[t for side in sides for t in side.preferred] or None,
    )


def _selector(match: Match) -> LabelSelector | None:
    return match if match is None or isinstance(match, LabelSelector) else selector(match)
