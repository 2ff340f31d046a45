"""NodeCRDResourceFit: filter and score nodes by a custom resource about them, ClusterScopedResource."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from bayplan.framework import (
    MAX_NODE_SCORE,
    ActionType,
    ClusterEvent,
    CustomResource,
    CycleState,
    Depends,
    EventHint,
    NodeInfo,
    ObjectRemedy,
    Plugin,
    PodInfo,
    Resource,
    ResourcePart,
    Status,
    Unschedulable,
)
from bayplan.framework.objects import Metadata

__all__ = ["ClusterScopedResource", "ClusterScopedResourceSpec", "NodeCRDResourceFit"]


class ClusterScopedResourceSpec(ResourcePart):
    """Which resources a node has, and how well it scores for each."""

    resources_filter: Annotated[
        dict[str, bool] | None, Meta(description="Resource names that pods on this node may request.")
    ] = None
    resources_score: Annotated[
        dict[str, int] | None, Meta(description="Score of the node for pods that request the resource, 0 to 100.")
    ] = None


class ClusterScopedResource(
    CustomResource,
    group="scheduling.sigs.k8s.io",
    version="v1alpha1",
    plural="clusterscopedresources",
    kind="ClusterScopedResources",
    singular="clusterscopedresource",
    scope="Cluster",
    owned=True,
):
    """Resources of the node that has the same name."""

    spec: ClusterScopedResourceSpec = msgspec.field(default_factory=ClusterScopedResourceSpec)


_MOST_REMEDIES = 3
_NOT_FOUND = Unschedulable("CRD for node not found")


class NodeCRDResourceFit(Plugin):
    """Match what a pod requests with the ClusterScopedResource of the same name as the node.

    *What it does*: compares the names of the resources that the pod's containers request (without init containers),
    not amounts.
    *Rejects when*: the node has no such object, or the object does not enable one of the resources.
    *Scores by*: the mean of the object's scores for the requested resources, each held to 0 to 100, rounded up.
    *Retries on*: a change of a ClusterScopedResource, a new node.
    *Arguments*: none.
    *Differs from the original*: a pod that requests nothing scores 0 (the original divided zero by zero); scores above
    100 count as 100 (the original's were refused by the framework, and the pod with them); where Score runs without
    Filter, a node without an object scores 0 instead of ending the attempt; the resource that is named in the reason is
    the first in the alphabet, not a random one.
    """

    depends = Depends.NODE
    watches = (ClusterScopedResource,)
    reasons = ("CRD for node not found", "Node does not enable resource <resource>")

    def sign(self, pod: PodInfo) -> Hashable:
        return _requested(pod)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        spec = self._spec(node)
        if spec is None:
            return _NOT_FOUND
        enabled = spec.resources_filter or {}
        missing = next((name for name in _requested(pod) if not enabled.get(name)), None)
        return None if missing is None else Unschedulable(f"Node does not enable resource {missing}")

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        spec, requested = self._spec(node), _requested(pod)
        if spec is None or not requested:
            return 0
        scores = spec.resources_score or {}
        total = sum(min(max(scores.get(name, 0), 0), MAX_NODE_SCORE) for name in requested)
        return -(-total // len(requested))

    def object_remedies(self, pod: PodInfo) -> Iterator[ObjectRemedy]:
        """Objects of a few nodes that enable what the pod requests: those that lack the least, then missing ones."""
        requested, lister = _requested(pod), self.handle.resources(ClusterScopedResource)
        known: dict[str, ClusterScopedResource | None] = {
            node.name: lister.get(node.name) for node in self.handle.nodes()
        }
        missing = {name: [each for each in requested if not _enabled(item).get(each)] for name, item in known.items()}
        lacking = [name for name, item in known.items() if item is None or missing[name]]
        lacking.sort(key=lambda name: (known[name] is None, len(missing[name]), name))
        for name in lacking[:_MOST_REMEDIES]:
            yield _remedy(name, known[name], missing[name])

    def _spec(self, node: NodeInfo) -> ClusterScopedResourceSpec | None:
        found: ClusterScopedResource | None = self.handle.resources(ClusterScopedResource).get(node.name)
        return None if found is None else found.spec

    def events_to_register(self) -> list[EventHint]:
        return [
            EventHint(ClusterScopedResource.changes()),
            EventHint(ClusterEvent(Resource.NODE, ActionType.ADD)),
        ]


def _requested(pod: PodInfo) -> tuple[str, ...]:
    """Names of the resources that the app containers request, sorted."""
    requirements = [container.resources for container in pod.shape.spec.containers or ()]
    return tuple(sorted({name for each in requirements if each is not None for name in each.requests or ()}))


def _enabled(item: ClusterScopedResource | None) -> dict[str, bool]:
    return (item.spec.resources_filter or {}) if item is not None else {}


def _remedy(name: str, current: ClusterScopedResource | None, missing: list[str]) -> ObjectRemedy:
    item = current or ClusterScopedResource(metadata=Metadata(name=name))
    filters = {**_enabled(current), **dict.fromkeys(missing, True)}
    wanted = msgspec.structs.replace(item, spec=msgspec.structs.replace(item.spec, resources_filter=filters))
    changes = ["existed"] if current is None else []
    changes += [f"enabled {' and '.join(missing)}"] if missing else []
    return ObjectRemedy(f"ClusterScopedResources {name} {' and '.join(changes)}", current, wanted)
