"""NodePorts keeps two pods of a node from holding the same host port."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.plugins.small_cluster import STATE, SmallCluster, node, pod_object, rejected, verdicts

from bayplan.cluster.overlay import OverlayColumns, overlay_of
from bayplan.framework import SKIP, ActionType, ClusterEvent, Code, Depends, Hint, PodInfo, Resource
from bayplan.plugins.intree.node_ports import NodePorts


def port(number: int, *, ip: str = "", protocol: str = "TCP") -> dict[str, Any]:
    return {"containerPort": 1, "hostPort": number, "hostIP": ip, "protocol": protocol}


def containers(*ports: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "c", "ports": list(ports)}]


def cluster_with(*ports: dict[str, Any]) -> SmallCluster:
    cluster = SmallCluster(node("free"), node("used"))
    cluster.run("holder", "used", containers=containers(*ports))
    return cluster


@pytest.mark.parametrize(
    ("held", "wanted", "collides"),
    [
        (port(80), port(80), True),
        (port(80), port(81), False),
        (port(80), port(80, protocol="UDP"), False),
        (port(80, protocol=""), port(80), True),
        (port(80, ip="10.0.0.1"), port(80, ip="10.0.0.1"), True),
        (port(80, ip="10.0.0.1"), port(80, ip="10.0.0.2"), False),
        (port(80, ip="10.0.0.1"), port(80), True),
        (port(80), port(80, ip="10.0.0.1"), True),
        (port(80, ip="0.0.0.0"), port(80, ip="10.0.0.1"), True),
        (port(80, ip="10.0.0.1"), port(80, ip="0.0.0.0"), True),
        (port(80, ip="10.0.0.1"), port(80, ip="10.0.0.1", protocol="SCTP"), False),
    ],
)
def test_ports_collide_by_protocol_number_and_address(
    held: dict[str, Any], wanted: dict[str, Any], collides: bool
) -> None:
    cluster = cluster_with(held)

    assert rejected(cluster.plugin(NodePorts), cluster.pod(containers=containers(wanted)), cluster) == (
        {"used"} if collides else set()
    )


def test_a_collision_may_be_resolved_by_preemption() -> None:
    cluster = cluster_with(port(80))
    answer = verdicts(cluster.plugin(NodePorts), cluster.pod(containers=containers(port(81), port(80))), cluster)[
        "used"
    ]

    assert answer.code is Code.UNSCHEDULABLE
    assert answer.reasons == ("node(s) didn't have free ports for the requested pod ports",)


def test_a_pod_without_host_ports_is_none_of_its_business() -> None:
    cluster = cluster_with(port(80))
    plugin, pod = cluster.plugin(NodePorts), cluster.pod(containers=containers(port(0)))

    assert not plugin.is_relevant(pod)
    assert plugin.pre_filter(STATE, pod, cluster.columns) is SKIP
    assert plugin.pre_filter(STATE, cluster.pod(containers=containers(port(80))), cluster.columns) is None


def test_sidecars_count_and_other_init_containers_do_not() -> None:
    cluster = cluster_with(port(80))
    plugin = cluster.plugin(NodePorts)
    plain = {"name": "i", "ports": [port(80)]}

    assert rejected(plugin, cluster.pod(initContainers=[plain]), cluster) == set()
    assert rejected(plugin, cluster.pod(initContainers=[plain | {"restartPolicy": "Always"}]), cluster) == {"used"}


def test_a_dry_run_sees_the_ports_of_the_dry_run() -> None:
    cluster = cluster_with(port(80))
    plugin, pod = cluster.plugin(NodePorts), cluster.pod(containers=containers(port(80)))
    table = cluster.state.nodes
    holder = next(iter(table.at(table.row_of["used"]).pods.values()))
    freed, taken = overlay_of(table, table.row_of["used"]), overlay_of(table, table.row_of["free"])
    freed.remove(0, holder)
    taken.add(0, cluster.pod("new", containers=containers(port(80))))

    assert plugin.filter_nodes(STATE, pod, freed).ids.tolist() == [0]
    assert plugin.filter_nodes(STATE, pod, taken).ids.tolist() == [1]


def test_columns_of_another_cluster_are_read_from_that_cluster() -> None:
    cluster, other = cluster_with(port(80)), cluster_with(port(81))
    pod = cluster.pod(containers=containers(port(81)))

    assert cluster.plugin(NodePorts).filter_nodes(STATE, pod, other.columns).ids.tolist() == [0, 1]


def test_rows_without_a_node_are_passed_over() -> None:
    cluster = cluster_with(port(80))
    cluster.cache.remove_node("free")
    pod = cluster.pod(containers=containers(port(80)))
    overlay = OverlayColumns(cluster.state.nodes, np.array([0, 1], dtype=np.intp))

    assert cluster.plugin(NodePorts).filter_nodes(STATE, pod, cluster.columns).ids.tolist() == [0, 1]
    assert cluster.plugin(NodePorts).filter_nodes(STATE, pod, overlay).ids.tolist() == [0, 1]


def test_answers_follow_the_pods_on_a_node_and_are_shared_by_equal_ports() -> None:
    cluster = SmallCluster()
    plugin = cluster.plugin(NodePorts)
    first, second = cluster.pod(containers=containers(port(80))), cluster.pod(containers=containers(port(80)) * 2)

    assert plugin.depends is Depends.USE
    assert plugin.sign(first) == plugin.sign(second)


def deleted(cluster: SmallCluster, *ports: dict[str, Any], node_name: str = "", nominated: str = "") -> PodInfo:
    spec = {"containers": containers(*ports), "nodeName": node_name}
    return cluster.cache.info(pod_object("gone", status={"nominatedNodeName": nominated}, **spec))


def test_a_deleted_pod_wakes_those_that_want_its_ports() -> None:
    cluster = SmallCluster()
    (event, hint), (added, always) = cluster.plugin(NodePorts).events_to_register()
    pod = cluster.pod(containers=containers(port(80)))

    assert event == ClusterEvent(Resource.POD, ActionType.DELETE)
    assert hint(pod, deleted(cluster, port(80), node_name="n"), None) is Hint.QUEUE
    assert hint(pod, deleted(cluster, port(80), nominated="n"), None) is Hint.QUEUE
    assert hint(pod, deleted(cluster, port(80)), None) is Hint.SKIP
    assert hint(pod, deleted(cluster, port(81), node_name="n"), None) is Hint.SKIP
    assert hint(pod, deleted(cluster, node_name="n"), None) is Hint.SKIP
    assert (added, always) == (ClusterEvent(Resource.NODE, ActionType.ADD), None)
