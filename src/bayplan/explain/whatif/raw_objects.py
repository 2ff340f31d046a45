"""Objects that people wrote by hand, made what an API server would have made of them.

Evaluating a manifest that never passed through a cluster must give the answer that the cluster would give, so defaults
of pods and nodes are applied here, and what would be refused there is refused here, by name and path. Admission that a
cluster configures is not imitated (see `bayplan.api.pod_defaults`), and neither is any controller.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.api.decode import InputError
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.pod_defaults import UnknownPriorityClass, apply_pod_defaults
from bayplan.api.workload import PriorityClass
from bayplan.cluster.pod_info import parse_time

__all__ = ["check_pod", "complete_objects"]


def complete_objects(objects: Iterable[KubeObject], *, priority_classes: Iterable[PriorityClass], source: str) -> None:
    """Default them in place; applying it twice changes nothing. Raises `InputError`."""
    classes = list(priority_classes)
    for item in objects:
        if isinstance(item, Node):
            _complete_node(item)
        elif isinstance(item, Pod):
            check_pod(item, source=source)
            _complete_pod(item, classes, source)


def _complete_node(node: Node) -> None:
    """A node that says what it has, but not how much of it is for pods, offers all of it."""
    if node.status.allocatable is None and node.status.capacity is not None:
        node.status.allocatable = dict(node.status.capacity)


def _complete_pod(pod: Pod, classes: list[PriorityClass], source: str) -> None:
    try:
        apply_pod_defaults(pod, priority_classes=classes)
    except UnknownPriorityClass as error:
        raise InputError(str(error), source=source) from None


def check_pod(pod: Pod, *, source: str = "", where: str = "") -> None:
    """Refuse what an API server would never have let through and a decision could not cope with."""
    place = where or f"pod `{pod.key}`"
    if not pod.spec.containers:
        # Usually a misspelt `spec` or `containers`.
        raise InputError("has no `spec.containers`; add at least one", source=source, where=place)
    _check_time(pod.metadata.creation_timestamp, source=source, where=f"{place}: metadata.creationTimestamp")
    _check_time(pod.status.start_time, source=source, where=f"{place}: status.startTime")


def _check_time(text: str | None, *, source: str, where: str) -> None:
    """Times decide between victims and in the queue."""
    try:
        _ = parse_time(text) if text else None
    except (ValueError, OverflowError):
        problem = f"`{text}` is not a time; write it like `2026-01-31T12:00:00Z`"
        raise InputError(problem, source=source, where=where) from None
