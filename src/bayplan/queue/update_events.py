"""The cluster events that the difference of two versions of an object amounts to.

One change may be several events, and they come in a fixed order. A pod update that is none of the specific events is
the general one; a node update that is none of them is nothing at all, because heartbeats are most of what nodes send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.quantity import Quantity, QuantityError, milli_value
from bayplan.api.requests import pod_requests
from bayplan.framework.events import ActionType, ClusterEvent, Resource

__all__ = ["node_update_events", "pod_update_events"]


def pod_update_events(old: Pod, new: Pod) -> list[ClusterEvent]:
    """What changed about a pod, waiting or assigned; never empty."""
    resource = Resource.ASSIGNED_POD if new.spec.node_name else Resource.UNSCHEDULABLE_POD
    events = [ClusterEvent(resource, action) for action, has_changed in _POD_CHANGES if has_changed(old, new)]
    return events or [ClusterEvent(resource, ActionType.UPDATE)]


def node_update_events(old: Node, new: Node) -> list[ClusterEvent]:
    """What changed about a node as far as scheduling is concerned; empty for a heartbeat."""
    return [ClusterEvent(Resource.NODE, action) for action, has_changed in _NODE_CHANGES if has_changed(old, new)]


def _labels_differ(old: Pod | Node, new: Pod | Node) -> bool:
    return old.labels != new.labels


def _is_scaled_down(old: Pod, new: Pod) -> bool:
    """Any effective request became smaller or went away."""
    if _what_requests_depend_on(old) == _what_requests_depend_on(new):
        return False
    try:
        before, after = pod_requests(old, status=True), pod_requests(new, status=True)
    except QuantityError:
        return True
    return any(name not in after or after[name] < amount for name, amount in before.items())


def _what_requests_depend_on(pod: Pod) -> tuple[object, ...]:
    """Compared first because it is cheap and because most updates are of something else."""
    spec, status = pod.spec, pod.status
    return (
        spec.containers,
        spec.init_containers,
        spec.resources,
        spec.overhead,
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        pod.condition("PodResizePending"),
    )


def _are_gates_eliminated(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _is_toleration_added(old: Pod, new: Pod) -> bool:
    # The API server allows tolerations to be added but not changed, so the length is enough.
    return len(old.spec.tolerations or ()) != len(new.spec.tolerations or ())


def _do_generated_claims_differ(old: Pod, new: Pod) -> bool:
    before, after = old.status, new.status
    if (before.resource_claim_statuses or []) != (after.resource_claim_statuses or []):
        return True
    return before.extended_resource_claim_status != after.extended_resource_claim_status


def _is_uncordoned(old: Node, new: Node) -> bool:
    return old.spec.unschedulable and not new.spec.unschedulable


def _allocatable_differs(old: Node, new: Node) -> bool:
    before, after = old.status.allocatable or {}, new.status.allocatable or {}
    return before != after and not _are_same_amounts(before, after)


def _are_same_amounts(before: Mapping[str, Quantity], after: Mapping[str, Quantity]) -> bool:
    """`1` and `1000m` are written differently and mean the same."""
    if before.keys() != after.keys():
        return False
    try:
        return all(milli_value(before[name]) == milli_value(after[name]) for name in before)
    except QuantityError:
        return False


def _taints_differ(old: Node, new: Node) -> bool:
    return (old.spec.taints or []) != (new.spec.taints or [])


def _conditions_differ(old: Node, new: Node) -> bool:
    return _condition_statuses(old) != _condition_statuses(new)


def _condition_statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions or ()}


def _annotations_differ(old: Node, new: Node) -> bool:
    return old.annotations != new.annotations


def _declared_features_differ(old: Node, new: Node) -> bool:
    return (old.status.declared_features or []) != (new.status.declared_features or [])


_POD_CHANGES: tuple[tuple[ActionType, Callable[[Pod, Pod], bool]], ...] = (
    (ActionType.UPDATE_POD_LABEL, _labels_differ),
    (ActionType.UPDATE_POD_SCALE_DOWN, _is_scaled_down),
    (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _are_gates_eliminated),
    (ActionType.UPDATE_POD_TOLERATION, _is_toleration_added),
    (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _do_generated_claims_differ),
)
_NODE_CHANGES: tuple[tuple[ActionType, Callable[[Node, Node], bool]], ...] = (
    (ActionType.UPDATE_NODE_TAINT, _is_uncordoned),
    (ActionType.UPDATE_NODE_ALLOCATABLE, _allocatable_differs),
    (ActionType.UPDATE_NODE_LABEL, _labels_differ),
    (ActionType.UPDATE_NODE_TAINT, _taints_differ),
    (ActionType.UPDATE_NODE_CONDITION, _conditions_differ),
    (ActionType.UPDATE_NODE_ANNOTATION, _annotations_differ),
    (ActionType.UPDATE_NODE_DECLARED_FEATURE, _declared_features_differ),
)
