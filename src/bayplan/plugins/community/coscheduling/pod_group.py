"""The PodGroup custom resource: pods that are scheduled together or not at all.

A pod belongs to the group of its namespace that its label names. The plugin only reads groups; their status is written
by the controller in `bayplan.app.controllers`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bayplan.framework import CustomResource, PodInfo, PrinterColumn, ResourcePart
from bayplan.plugins.resource_amounts import ResourceAmounts, check_amounts

__all__ = ["POD_GROUP_LABEL", "PodGroup", "PodGroupSpec", "PodGroupStatus", "group_key"]

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


class PodGroupSpec(ResourcePart):
    """The number of pods that make the group complete."""

    min_member: Annotated[int, Meta(ge=1, description="The number of pods below which none of them is bound.")] = 0
    min_resources: Annotated[
        ResourceAmounts | None,
        Meta(description="What the cluster must have free for the group to be tried."),
    ] = None
    schedule_timeout_seconds: Annotated[
        int | None, Meta(description="How long a pod of the group holds its place while the others are not there yet.")
    ] = None

    def __post_init__(self) -> None:
        check_amounts(self.min_resources)


class PodGroupStatus(ResourcePart):
    """Written by the controller."""

    phase: Annotated[str, Meta(description="Pending, Scheduling, Running, Finished, Failed or Unknown.")] = ""
    occupied_by: Annotated[str, Meta(description="The owners of the first pod, as `namespace/name`, by commas.")] = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class PodGroup(
    CustomResource,
    group="scheduling.x-k8s.io",
    version="v1alpha1",
    plural="podgroups",
    short_names=("pg", "pgs"),
    approved_by="https://github.com/kubernetes-sigs/scheduler-plugins/pull/50",
    columns=(
        PrinterColumn("Phase", ".status.phase"),
        PrinterColumn("MinMember", ".spec.minMember", "integer"),
        PrinterColumn("Running", ".status.running", "integer"),
        PrinterColumn("Succeeded", ".status.succeeded", "integer"),
        PrinterColumn("Failed", ".status.failed", "integer"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
):
    """Pods that belong together; see `spec.minMember`."""

    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)


def group_key(pod: PodInfo) -> str | None:
    """`namespace/name` of the group that a pod's label names."""
    name = pod.labels.get(POD_GROUP_LABEL)
    return f"{pod.namespace}/{name}" if name else None
