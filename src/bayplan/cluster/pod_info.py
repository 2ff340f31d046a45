"""One pod, as plugins see it: its identity beside the shape it shares with its template."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from bayplan.api.meta import OwnerReference
from bayplan.api.pod import Pod, PodSpec
from bayplan.cluster.shapes import PodShape, ShapeTable, Usage

__all__ = ["PodInfo", "parse_time", "pod_info"]


class PodInfo:
    """A pod under scheduling or on a node. Treat it as read-only; `pod` is the object as the API server sent it."""

    __slots__ = (
        "has_preemption_notice",
        "is_terminating",
        "name",
        "namespace",
        "node_name",
        "nominated_node_name",
        "pod",
        "shape",
        "start_time",
        "uid",
    )

    def __init__(self, pod: Pod, shape: PodShape) -> None:
        metadata, status = pod.metadata, pod.status
        self.pod = pod
        self.shape = shape
        self.name = metadata.name
        self.namespace = metadata.namespace
        self.uid = metadata.uid or f"{metadata.namespace}/{metadata.name}"
        self.node_name = pod.spec.node_name
        self.nominated_node_name = status.nominated_node_name
        self.is_terminating = metadata.deletion_timestamp is not None
        self.start_time = parse_time(status.start_time) if status.start_time else None
        self.has_preemption_notice = self.is_terminating and _is_preempted(pod)

    def __repr__(self) -> str:
        return f"<PodInfo {self.key}>"

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def labels(self) -> dict[str, str]:
        return self.shape.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.pod.annotations

    @property
    def spec(self) -> PodSpec:
        return self.pod.spec

    @property
    def priority(self) -> int:
        return self.shape.priority

    @property
    def usage(self) -> Usage:
        return self.shape.usage

    @property
    def controller(self) -> OwnerReference | None:
        return self.pod.controller

    @property
    def scheduler_name(self) -> str:
        return self.shape.spec.scheduler_name

    def placed(self, node_name: str) -> PodInfo:
        """The same pod as it counts once it is on that node; shares everything with this one."""
        copy = PodInfo.__new__(PodInfo)
        copy.pod, copy.shape, copy.name, copy.namespace = self.pod, self.shape, self.name, self.namespace
        copy.uid, copy.node_name, copy.nominated_node_name = self.uid, node_name, ""
        copy.is_terminating, copy.start_time = self.is_terminating, self.start_time
        copy.has_preemption_notice = self.has_preemption_notice
        return copy


def pod_info(pod: Pod, shapes: ShapeTable) -> PodInfo:
    return PodInfo(pod, shapes.shape_of(pod))


def _is_preempted(pod: Pod) -> bool:
    condition = pod.condition("DisruptionTarget")
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"


@lru_cache(maxsize=16384)
def parse_time(text: str) -> float:
    """An RFC 3339 time as seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()
