"""Cluster events: what happened, and which of it may unblock a pod that a plugin rejected.

A plugin lists the events that could change its answer, each with a hint function that looks at the change and says
whether it is worth trying the pod again. A pod waits until a hint of a plugin that rejected it says `QUEUE`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import Enum, IntFlag
from typing import Any, NamedTuple, TypeVar

from bayplan.cluster.pod_info import PodInfo

__all__ = [
    "ALL",
    "WILDCARD",
    "ActionType",
    "ClusterEvent",
    "EventHint",
    "Hint",
    "HintFunction",
    "Resource",
    "by_shape",
    "is_by_shape",
]


class ActionType(IntFlag):
    """Bits as in kube-scheduler; the numeric order matters to `ClusterEvent.matches`."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    """Every kind of update."""


ALL = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE


class Resource:
    """Names of what changes. A custom resource is named `<plural>.<version>.<group>`."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    STORAGE_CLASS = "StorageClass"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    ANY = "*"


class Hint(Enum):
    QUEUE = "Queue"
    SKIP = "QueueSkip"


class ClusterEvent(NamedTuple):
    resource: str
    action: ActionType
    label: str = ""
    """Name in metrics and records; derived from resource and action when empty."""

    @property
    def is_wildcard(self) -> bool:
        return self.resource == Resource.ANY and self.action == ALL

    @property
    def name(self) -> str:
        return self.label or f"{self.resource}{_ACTION_LABELS.get(self.action, 'Update')}"

    def matches(self, incoming: ClusterEvent) -> bool:
        """Whether a registration for this event covers an incoming one."""
        if self.is_wildcard:
            return True
        covers = self.resource in (Resource.ANY, incoming.resource) or (
            self.resource == Resource.POD and incoming.resource in (Resource.ASSIGNED_POD, Resource.UNSCHEDULABLE_POD)
        )
        return covers and bool(self.action & incoming.action) and incoming.action <= self.action


_ACTION_LABELS = {
    ActionType.ADD: "Add",
    ActionType.DELETE: "Delete",
    ActionType.UPDATE_NODE_ALLOCATABLE: "AllocatableChange",
    ActionType.UPDATE_NODE_LABEL: "LabelChange",
    ActionType.UPDATE_NODE_TAINT: "TaintChange",
    ActionType.UPDATE_NODE_CONDITION: "ConditionChange",
    ActionType.UPDATE_NODE_ANNOTATION: "AnnotationChange",
    ActionType.UPDATE_NODE_DECLARED_FEATURE: "DeclaredFeatureChange",
    ActionType.UPDATE_POD_LABEL: "LabelChange",
    ActionType.UPDATE_POD_SCALE_DOWN: "ScaleDown",
    ActionType.UPDATE_POD_TOLERATION: "TolerationChange",
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "SchedulingGatesEliminated",
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "GeneratedResourceClaim",
}

WILDCARD = ClusterEvent(Resource.ANY, ALL, "Wildcard")

HintFunction = Callable[[PodInfo, Any, Any], Hint]
"""(waiting pod, old object, new object) -> Hint. Changed pods arrive as PodInfo, everything else as the API object; the
side that is absent (old of an add, new of a delete) is None. An exception counts as QUEUE."""

H = TypeVar("H", bound=Callable[..., Hint])


def by_shape(hint: H) -> H:
    """Mark a hint that answers alike for all pods of a shape, save for the pod that the event is about.

    Thousands of pods of one template may wait; a hint that looks at `pod.shape`, at the change and at the cluster, but
    not at the name, the uid or the annotations of the waiting pod, is then called once for all of them."""
    hint.is_by_shape = True  # type: ignore[attr-defined]
    return hint


def is_by_shape(hint: HintFunction | None) -> bool:
    """Whether one answer of the hint holds for all pods of a shape. A missing hint has one answer for all pods."""
    return hint is None or getattr(hint, "is_by_shape", False)


def by_shapes(hint: H) -> H:
    """Mark a hint that is `by_shape` and looks at no more of a changed pod than its shape and whether it has a node.

    An event that is like an earlier one is then shown only to pods that were rejected since: thousands of waiting pods
    that it cannot help cost it nothing. The hint must not look at the rest of the cluster."""
    hint.is_by_shapes = True  # type: ignore[attr-defined]
    return by_shape(hint)


def is_by_shapes(hint: HintFunction | None) -> bool:
    """Whether the hint answers like events alike. One that is missing always queues."""
    return getattr(hint, "is_by_shapes", False)


class HintView(NamedTuple):
    """What a hint reads, apart from namespaces and from whether the changed pod has a node."""

    names: Callable[[PodInfo], Iterable[tuple[str, Iterable[str]]]]
    """Keys of labels, and their values, that it looks for on a changed pod, by the waiting pod. May raise."""
    sees: Callable[[PodInfo], Hashable]
    """What it reads of a changed pod that is not a label. May raise."""


def by_view(view: HintView) -> Callable[[H], H]:
    """Mark a hint that is `by_shapes`, and that reads no more of a changed pod than the view says.

    Pods that differ in other labels, as those of a StatefulSet do, are then alike to the pods that wait."""

    def mark(hint: H) -> H:
        hint.view = view  # type: ignore[attr-defined]
        return by_shapes(hint)

    return mark


def view_of(hint: HintFunction | None) -> HintView | None:
    """What the hint reads, if it says so."""
    return getattr(hint, "view", None)


class EventHint(NamedTuple):
    """An event that may unblock a pod. Without a hint every such event queues it."""

    event: ClusterEvent
    hint: HintFunction | None = None
