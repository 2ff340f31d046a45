"""The CSINode of each row."""

from __future__ import annotations

from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import VolumeCluster, csi_node

from bayplan.plugins.volumes.csi_nodes import CsiNodeRows, MigratedRows

EBS, GCE = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"


def test_rows_are_told_when_their_csi_node_differs() -> None:
    cluster = VolumeCluster(node("n0"), node("n1")).put(csi_node("n1"))
    rows = CsiNodeRows(cluster.state)

    assert rows.follow() == [1]
    assert rows.follow() == []
    cluster.put(csi_node("n0"))
    assert rows.follow() == [0]
    cluster.cache.add_node(node("n2"))
    assert rows.follow() == []
    cluster.cache.remove_node("n0")
    assert rows.follow() == [0]
    cluster.cache.remove_object(csi_node("n1"))
    assert rows.follow() == [1]
    assert rows.nodes == [None, None, None]


def test_a_node_may_come_after_its_csi_node() -> None:
    cluster = VolumeCluster(node("n0")).put(csi_node("n1"))
    rows = CsiNodeRows(cluster.state)
    rows.follow()
    cluster.cache.add_node(node("n1"))

    assert rows.follow() == [1]


def test_migrated_rows_follow_the_annotation() -> None:
    cluster = VolumeCluster(node("n0"), node("n1")).put(csi_node("n0", migrated=f"{EBS},{GCE}"), csi_node("n1"))
    migrated = MigratedRows(cluster.state)

    assert migrated.of(EBS).tolist() == [True, False]
    cluster.put(csi_node("n0", migrated=GCE), csi_node("n1", migrated=EBS))
    assert migrated.of(EBS).tolist() == [False, True]
    assert migrated.of(GCE).tolist() == [True, False]
    cluster.cache.add_node(node("n2"))
    assert migrated.of(GCE).tolist() == [True, False, False]
    cluster.put(csi_node("n1", migrated=EBS, csi_x=1))
    assert migrated.of(EBS).tolist() == [False, True, False]
