"""Part of the contract: the cluster as arrays and indexes, for plugins that answer for many nodes at once.

    from bayplan.framework.columns import BoolN, Int64N, NodeTable, match_term

`NodeColumns` is what `filter_nodes` and `score_nodes` get: `nodes.allocatable("cpu")`, `nodes.label_values(key)`.
`ClusterState` (`self.handle.cluster`) has the tables behind it. A plugin that answers node by node needs none of this.
"""

from __future__ import annotations

from bayplan.cluster.affinity_terms import (
    PodTerm,
    PodTerms,
    WeightedTerm,
)
from bayplan.cluster.axes import (
    ABSENT,
    BoolN,
    FloatRN,
    Int32N,
    Int64N,
    Int64RN,
    NodeRow,
    Rows,
)
from bayplan.cluster.changes import ChangeLog, NameLog
from bayplan.cluster.derived import DerivedColumns
from bayplan.cluster.image_index import ImageState
from bayplan.cluster.label_columns import LabelColumn
from bayplan.cluster.labelled_pods import PodSet
from bayplan.cluster.namespace_index import SelectedNamespaces
from bayplan.cluster.namespace_usage import NamespaceUsage
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import (
    HostPorts,
    NodeInfo,
)
from bayplan.cluster.node_matching import (
    by_taint_set,
    has_untolerated_taint,
    match_required,
    match_term,
)
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.objects import Objects
from bayplan.cluster.overlay import OverlayColumns
from bayplan.cluster.pod_index import (
    PodIndex,
    PodQuery,
)
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    ResourceAxis,
    Vector,
    is_counted,
)
from bayplan.cluster.row_counts import (
    DomainCounts,
    RowCounts,
)
from bayplan.cluster.shapes import PodShape
from bayplan.cluster.state import ClusterState
from bayplan.cluster.term_index import (
    TermGroup,
    TermKind,
    TermView,
)

__all__ = [
    "ABSENT",
    "CPU",
    "EPHEMERAL_STORAGE",
    "MEMORY",
    "BoolN",
    "ChangeLog",
    "ClusterState",
    "DerivedColumns",
    "DomainCounts",
    "FloatRN",
    "HostPorts",
    "ImageState",
    "Int32N",
    "Int64N",
    "Int64RN",
    "LabelColumn",
    "NameLog",
    "NamespaceUsage",
    "NodeColumns",
    "NodeInfo",
    "NodeRow",
    "NodeTable",
    "Objects",
    "OverlayColumns",
    "PodIndex",
    "PodInfo",
    "PodQuery",
    "PodSet",
    "PodShape",
    "PodTerm",
    "PodTerms",
    "ResourceAxis",
    "RowCounts",
    "Rows",
    "SelectedNamespaces",
    "TermGroup",
    "TermKind",
    "TermView",
    "Vector",
    "WeightedTerm",
    "by_taint_set",
    "has_untolerated_taint",
    "is_counted",
    "match_required",
    "match_term",
]
