"""The ClusterScopedResource custom resource: what a node offers, as somebody outside the cluster sees it.

The tutorial's samples write the kind in the plural, which its own Go type does not have, so the definition rendered
here uses the plural and takes those samples as they are. Where the original definition is installed already, that works
too: objects are found by the resource's path, in which the kind does not occur.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bayplan.framework import CustomResource, ResourcePart

__all__ = ["ClusterScopedResource", "ClusterScopedResourceSpec"]


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
):
    """Resources of the node that has the same name."""

    spec: ClusterScopedResourceSpec = msgspec.field(default_factory=ClusterScopedResourceSpec)
