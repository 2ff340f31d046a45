"""Builders, random clusters and checks that the tests of in-tree plugins share."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
from hypothesis import strategies as st

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.cache.cache import Cache
from bayplan.cluster.overlay import OverlayColumns
from bayplan.framework import CycleState, NodeColumns, Plugin, PodInfo, Status
from bayplan.framework.status import SUCCESS

STATE = CycleState()


def node(name: str = "n", *, labels: dict[str, str] | None = None, **parts: Any) -> Node:
    """A node from wire fields: `spec` fields by name, `status` fields in `status`."""
    status = parts.pop("status", {})
    return msgspec.convert({"metadata": {"name": name, "labels": labels or {}}, "spec": parts, "status": status}, Node)


def pod_object(name: str = "p", *, status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    spec.setdefault("containers", [{"name": "c", "image": "app"}])
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status or {}}, Pod)


class SmallCluster:
    """A cache with what a plugin needs of a handle."""

    def __init__(self, *nodes: Node) -> None:
        self.cache = Cache()
        self.state = self.cache.cluster
        for each in nodes:
            self.cache.add_node(each)

    def plugin(self, kind: type[Plugin], **args: Any) -> Any:
        arguments = msgspec.convert(args, kind.Args)
        assert arguments.validate() == []
        return kind(arguments, SimpleNamespace(cluster=self.state))  # type: ignore[arg-type]

    def pod(self, name: str = "p", **spec: Any) -> PodInfo:
        return self.cache.info(pod_object(name, **spec))

    def run(self, name: str, node_name: str, **spec: Any) -> PodInfo:
        """A pod that is on a node."""
        return self.cache.add_pod(pod_object(name, nodeName=node_name, **spec))

    @property
    def columns(self) -> NodeColumns:
        return self.state.columns()


def verdicts(plugin: Any, pod: PodInfo, cluster: SmallCluster) -> dict[str, Status]:
    """What the filter says about each node, after checking that both of its forms say the same."""
    check_filter_forms(plugin, pod, cluster.columns)
    return {info.name: plugin.filter(STATE, pod, info) or SUCCESS for info in cluster.columns}


def rejected(plugin: Any, pod: PodInfo, cluster: SmallCluster) -> set[str]:
    return {name for name, status in verdicts(plugin, pod, cluster).items() if not status.is_success}


def raw_scores(plugin: Any, pod: PodInfo, cluster: SmallCluster) -> dict[str, int]:
    check_score_forms(plugin, pod, cluster.columns)
    return {info.name: plugin.score(STATE, pod, info) for info in cluster.columns}


def check_filter_forms(plugin: Any, pod: PodInfo, nodes: NodeColumns) -> None:
    """The column form says of every node what the one-node form says: all rows, some rows, and in a dry run."""
    positions = np.flatnonzero(nodes.valid)
    some = nodes.take(positions[::2])
    for view in (nodes, some, OverlayColumns(nodes.table, some.rows)):
        column = plugin.filter_nodes(STATE, pod, view)
        assert len(column.ids) == len(view)
        for position in np.flatnonzero(view.valid).tolist():
            one = plugin.filter(STATE, pod, view.info(position)) or SUCCESS
            assert column.status(int(column.ids[position])) == one


def check_score_forms(plugin: Any, pod: PodInfo, nodes: NodeColumns) -> None:
    positions = np.flatnonzero(nodes.valid)
    for view in (nodes, nodes.take(positions[::2])):
        column = plugin.score_nodes(STATE, pod, view)
        assert column.dtype == np.int64
        assert len(column) == len(view)
        for position in np.flatnonzero(view.valid).tolist():
            assert int(column[position]) == plugin.score(STATE, pod, view.info(position))


# Random parts. Few values each, so that things meet.

KEYS = ("zone", "disk", "gen", "host")
VALUES = ("a", "b", "3", "7", "07", "-2", "x9", "")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
IMAGES = ("app:latest", "db:1", "registry:5000/big:2")
NAMES = tuple(f"n{number}" for number in range(8))

_labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=4)
_taints = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(("spot", "gpu", "node.kubernetes.io/unschedulable")),
            "value": st.sampled_from(("", "yes")),
            "effect": st.sampled_from(EFFECTS),
        }
    ),
    max_size=3,
)
_node_images = st.lists(
    st.fixed_dictionaries(
        {
            "names": st.lists(st.sampled_from(IMAGES), min_size=1, max_size=2),
            "sizeBytes": st.sampled_from((0, 10 << 20, 400 << 20, 3 << 30, 2**62)),
        }
    ),
    max_size=3,
)
tolerations = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(("", "spot", "gpu", "node.kubernetes.io/unschedulable")),
            "operator": st.sampled_from(("", "Equal", "Exists")),
            "value": st.sampled_from(("", "yes")),
            "effect": st.sampled_from(("", *EFFECTS)),
        }
    ),
    max_size=3,
)
host_ports = st.lists(
    st.fixed_dictionaries(
        {
            "containerPort": st.just(80),
            "hostPort": st.sampled_from((0, 80, 81)),
            "protocol": st.sampled_from(("", "TCP", "UDP")),
            "hostIP": st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2")),
        }
    ),
    max_size=3,
)


def _requirement(operators: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            "operator": st.sampled_from(operators),
            "values": st.lists(st.sampled_from(VALUES), max_size=3),
        }
    )


_fields = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
    }
)
terms = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(
            _requirement(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near")), max_size=3
        ),
        "matchFields": st.lists(_fields, max_size=1),
    }
)
node_affinities = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
            {"nodeSelectorTerms": st.lists(terms, max_size=3)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(
            st.fixed_dictionaries({"weight": st.integers(0, 100), "preference": terms}), max_size=3
        ),
    },
)


@st.composite
def clusters(draw: st.DrawFn) -> SmallCluster:
    """Nodes of all kinds with pods that hold ports; now and then a node is gone and its row empty."""
    cluster = SmallCluster()
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    for name in names:
        spec = {"unschedulable": draw(st.booleans()), "taints": draw(_taints)}
        features = draw(st.lists(st.sampled_from(FEATURES), max_size=2))
        status = {"images": draw(_node_images), "declaredFeatures": features}
        cluster.cache.add_node(node(name, labels=draw(_labels), status=status, **spec))
    for number in range(draw(st.integers(0, 4))):
        containers = [{"name": "c", "ports": draw(host_ports)}]
        cluster.run(f"running{number}", draw(st.sampled_from(names)), containers=containers)
    for name in draw(st.sets(st.sampled_from(names), max_size=len(names) - 1)):
        if draw(st.booleans()):
            cluster.cache.remove_node(name)
    return cluster


FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "Other")


@st.composite
def pod_specs(draw: st.DrawFn) -> dict[str, Any]:
    containers = [
        {"name": f"c{number}", "image": draw(st.sampled_from((*IMAGES, "app", "none"))), "ports": draw(host_ports)}
        for number in range(draw(st.integers(1, 3)))
    ]
    spec: dict[str, Any] = {"containers": containers, "tolerations": draw(tolerations)}
    if draw(st.booleans()):
        spec["nodeSelector"] = draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2))
    if draw(st.booleans()):
        spec["affinity"] = {"nodeAffinity": draw(node_affinities)}
    if draw(st.booleans()):
        spec["nodeName"] = draw(st.sampled_from((*NAMES, "ghost")))
    if draw(st.booleans()):
        spec |= {"hostNetwork": True, "hostUsers": draw(st.sampled_from((None, False, True)))}
    return spec
