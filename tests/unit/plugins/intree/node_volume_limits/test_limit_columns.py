"""Columns for volume limits: the bound on use, and what is followed."""

from __future__ import annotations

from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import VolumeCluster, attachment, csi_node, uses

from bayplan.plugins.intree.node_volume_limits.limit_columns import VolumeLimitColumns, limits_of


def test_limits_of_a_node() -> None:
    assert limits_of(None) == {}
    assert limits_of(csi_node("n", csi_x=3, csi_y=None, csi_z=0)) == {"csi.x": 3, "csi.z": 0}


def test_rows_are_suspect_when_all_their_volumes_together_could_go_over() -> None:
    cluster = VolumeCluster(node("n0"), node("n1"), node("n2"))
    cluster.put(csi_node("n0", csi_x=2), csi_node("n1", csi_x=3))
    for name in ("n0", "n1", "n2"):
        cluster.run(f"on-{name}", name, volumes=uses("a", "b"))
    columns = VolumeLimitColumns(cluster.state)
    columns.follow()

    assert columns.has_csi_node[:3].tolist() == [True, True, False]
    assert columns.suspects({"csi.x": 1}).tolist() == [True, False, False]
    assert columns.suspects({"csi.x": 2}).tolist() == [True, True, False]
    assert columns.suspects({"csi.other": 9}).tolist() == [False, False, False]
    assert columns.suspects({}).tolist() == [False, False, False]


def test_following_tells_the_rows_to_count_again() -> None:
    cluster = VolumeCluster(node("n0"), node("n1"))
    columns = VolumeLimitColumns(cluster.state)

    assert columns.follow() == {0, 1}
    assert columns.follow() == set()
    cluster.run("p", "n1", volumes=uses("a"))
    assert columns.follow() == {1}
    cluster.put(attachment("x", node="n0", volume="a"), attachment("y", node="gone", volume="b"))
    assert columns.follow() == {0}
    assert [each.name for each in columns.attachments_of("n0")] == ["x"]
    assert columns.attachments_of("n1") == []
    cluster.cache.remove_object(attachment("x", node="n0", volume="a"))
    assert columns.follow() == {0}
    assert columns.attachments_of("n0") == []


def test_columns_grow_with_the_table() -> None:
    cluster = VolumeCluster(node("n0")).put(csi_node("n0", csi_x=0))
    columns = VolumeLimitColumns(cluster.state)
    columns.follow()
    for number in range(200):
        cluster.cache.add_node(node(f"m{number}"))
    cluster.put(csi_node("m199", csi_x=0))
    columns.follow()
    suspects = columns.suspects({"csi.x": 1})

    assert [suspects[0], suspects[100], suspects[200]] == [True, False, True]
