"""The state of the cluster: everything that a decision may read, in one live object.

It is the same object from cycle to cycle; the cache brings it up to date between cycles and never during one.
"""

from __future__ import annotations

from bayplan.api.workload import Namespace
from bayplan.cluster.device_classes import DeviceClassNames
from bayplan.cluster.devices import Devices
from bayplan.cluster.image_index import ImageIndex
from bayplan.cluster.labelled_pods import LabelledPods
from bayplan.cluster.namespace_index import NamespaceIndex
from bayplan.cluster.namespace_usage import NamespaceUsage
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.objects import Objects
from bayplan.cluster.pod_index import PodIndex
from bayplan.cluster.resources import ResourceAxis
from bayplan.cluster.shapes import ShapeTable
from bayplan.cluster.term_index import TermIndex

__all__ = ["ClusterState"]


class ClusterState:
    def __init__(self) -> None:
        self.resources = ResourceAxis()
        self.shapes = ShapeTable(self.resources)
        self.nodes = NodeTable(self.resources)
        self.pods = PodIndex()
        self.terms = TermIndex()
        self.images = ImageIndex()
        self.labelled_pods = LabelledPods()
        self.namespace_usage = NamespaceUsage()
        self.port_rows: dict[tuple[str, int], set[int]] = {}
        """Rows on which a host port (protocol, number) is in use."""
        self.claims_in_use: dict[str, int] = {}
        """How many assigned pods use a claim, by `namespace/name`."""
        self.objects = Objects()
        self.namespaces = NamespaceIndex(self.objects)
        self.devices = Devices(self.objects)
        self.device_classes = DeviceClassNames(self.objects)
        self.generation = 0
        """Grows with every change of the cluster."""
        self.pods.grow(self.nodes.capacity)

    def columns(self) -> NodeColumns:
        """All rows."""
        return NodeColumns(self.nodes)

    def node(self, name: str) -> NodeInfo | None:
        return self.nodes.info(name)

    def namespace_labels(self, name: str) -> dict[str, str]:
        namespace = self.objects.get(Namespace, name)
        return namespace.labels if namespace is not None else {}
