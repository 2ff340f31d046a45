"""Topology spread constraints, compiled: a pod's own, or the configured defaults with a selector found for the pod."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.framework import PodInfo
from bayplan.framework.columns import Objects
from bayplan.framework.objects import (
    LabelSelector,
    ReplicaSet,
    ReplicationController,
    Selector,
    SelectorError,
    Service,
    StatefulSet,
    TopologySpreadConstraint,
    compile_selector,
    from_labels,
)

__all__ = ["HOSTNAME", "SYSTEM_DEFAULTS", "SpreadConstraint", "compile_constraints", "default_selector"]

HOSTNAME = "kubernetes.io/hostname"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, max_skew=3, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", max_skew=5, when_unsatisfiable="ScheduleAnyway"
    ),
)

_WITH_SELECTOR: dict[tuple[str, str], type[ReplicaSet] | type[StatefulSet]] = {
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
}


class SpreadConstraint(NamedTuple):
    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    honors_affinity: bool
    honors_taints: bool
    matches_self: bool
    lacking_is_empty: bool = False
    """Whether a node without the key counts as one with an empty value, as with the system defaults."""

    def counts(self, pod: PodInfo) -> bool:
        """Whether the selector matches a pod (of the right namespace)."""
        return self.selector.matches(pod.labels)


def compile_constraints(
    constraints: list[TopologySpreadConstraint] | tuple[TopologySpreadConstraint, ...],
    pod: PodInfo,
    *,
    when_unsatisfiable: str,
    selector: Selector | None = None,
    lacking_is_empty: bool = False,
) -> tuple[SpreadConstraint, ...]:
    """The constraints with one effect. `selector` replaces the (absent) selectors of defaults."""
    return tuple(
        _compile(constraint, pod, selector)._replace(lacking_is_empty=lacking_is_empty)
        for constraint in constraints
        if constraint.when_unsatisfiable == when_unsatisfiable
    )


def _compile(constraint: TopologySpreadConstraint, pod: PodInfo, selector: Selector | None) -> SpreadConstraint:
    if selector is None:
        selector = compile_selector(constraint.label_selector)
        keys = constraint.match_label_keys or ()
        selector = selector.and_equal((key, pod.labels[key]) for key in keys if key in pod.labels)
    return SpreadConstraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        selector=selector,
        honors_affinity=constraint.node_affinity_policy != "Ignore",
        honors_taints=constraint.node_taints_policy == "Honor",
        matches_self=selector.matches(pod.labels),
    )


def default_selector(pod: PodInfo, objects: Objects) -> Selector | None:
    """The selector of the pod's services and its controller; None when nothing selects it."""
    labels: dict[str, str] = {}
    for service in objects.list(Service, pod.namespace):
        wanted = service.spec.selector
        if wanted and all(pod.labels.get(key) == value for key, value in wanted.items()):
            labels |= wanted
    owner = pod.shape.controller
    more: Selector | None = None
    if owner is not None:
        stated = owner.api_version, owner.kind
        kind = _WITH_SELECTOR.get(stated)
        if kind is not None:
            owning = objects.get(kind, f"{pod.namespace}/{owner.name}")
            more = _readable(owning.spec.selector) if owning is not None else None
        elif stated == ("v1", "ReplicationController"):
            controller = objects.get(ReplicationController, f"{pod.namespace}/{owner.name}")
            labels |= (controller.spec.selector or {}) if controller else {}
    if not labels and more is None:
        return None
    found = from_labels(labels)
    if more is not None and not more.is_nothing:
        found = Selector(tuple(sorted({*found.requirements, *more.requirements}, key=lambda r: (r.key, r.operator))))
    return found if found.requirements else None


def _readable(selector: LabelSelector | None) -> Selector | None:
    """A controller's selector; None for one that does not parse, which then selects nothing."""
    try:
        return compile_selector(selector)
    except SelectorError:
        return None
