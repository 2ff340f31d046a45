"""NodeVolumeLimits: how many volumes of a driver a node can attach."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import (
    VolumeCluster,
    attachment,
    claim,
    csi_node,
    judged,
    reasons,
    started,
    storage_class,
    uses,
    volume,
)

from bayplan.framework import ActionType, Code, CycleState, Hint, Resource
from bayplan.plugins.intree.node_volume_limits import NodeVolumeLimits

TOO_MANY = ("node(s) exceed max volume count",)
EBS = "ebs.csi.aws.com"


def csi(name: str, *, driver: str = "csi.x", handle: str = "") -> Any:
    return volume(name, csi={"driver": driver, "volumeHandle": handle or name})


def ebs_disk(name: str) -> dict[str, Any]:
    return {"name": name, "awsElasticBlockStore": {"volumeID": name}}


@pytest.fixture
def cluster() -> VolumeCluster:
    """n0 has room for one volume, n1 for three, n2 has no CSINode; pods a and b run on both n0 and n1."""
    cluster = VolumeCluster(node("n0"), node("n1"), node("n2"))
    for name in "abcd":
        cluster.put(csi(name), claim(name, bound_to=name))
    cluster.put(csi_node("n0", csi_x=1), csi_node("n1", csi_x=3))
    for number in range(3):
        cluster.run(f"r{number}", f"n{number}", volumes=uses("a"))
    return cluster


def test_a_node_that_would_go_over_a_limit_is_rejected(cluster: VolumeCluster) -> None:
    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("b"), cluster) == {"n0": TOO_MANY}


def test_all_new_volumes_count(cluster: VolumeCluster) -> None:
    plugin = cluster.plugin(NodeVolumeLimits)

    assert reasons(plugin, cluster.pod_with("b", "c"), cluster) == {"n0": TOO_MANY}
    assert reasons(plugin, cluster.pod_with("b", "c", "d"), cluster) == {"n0": TOO_MANY, "n1": TOO_MANY}


def test_the_rejection_can_be_resolved_by_preemption(cluster: VolumeCluster) -> None:
    status = judged(cluster.plugin(NodeVolumeLimits), cluster.pod_with("b"), cluster)["n0"]

    assert status.code is Code.UNSCHEDULABLE


def test_a_volume_that_is_on_the_node_already_counts_once(cluster: VolumeCluster) -> None:
    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("a"), cluster) == {}


def test_drivers_without_a_number_have_no_limit(cluster: VolumeCluster) -> None:
    cluster.put(csi_node("n0", csi_x=None, csi_y=0))

    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("b", "c"), cluster) == {}


def test_only_the_drivers_of_the_pod_matter(cluster: VolumeCluster) -> None:
    cluster.put(csi("y", driver="csi.y"), claim("y", bound_to="y"), csi_node("n0", csi_x=1, csi_y=1))

    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("y"), cluster) == {}


def test_a_limit_of_zero_is_a_limit(cluster: VolumeCluster) -> None:
    cluster.put(csi_node("n2", csi_x=0))

    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("b"), cluster) == {"n0": TOO_MANY, "n2": TOO_MANY}


def test_limits_and_pods_are_followed(cluster: VolumeCluster) -> None:
    plugin = cluster.plugin(NodeVolumeLimits)

    assert reasons(plugin, cluster.pod_with("b"), cluster) == {"n0": TOO_MANY}
    cluster.put(csi_node("n0", csi_x=2))
    assert reasons(plugin, cluster.pod_with("b"), cluster) == {}
    cluster.run("more", "n0", volumes=uses("c"))
    assert reasons(plugin, cluster.pod_with("b"), cluster) == {"n0": TOO_MANY}
    cluster.cache.remove_pod("uid-more")
    assert reasons(plugin, cluster.pod_with("b"), cluster) == {}
    cluster.cache.remove_object(csi_node("n0"))
    cluster.put(csi_node("n1", csi_x=1))
    assert reasons(plugin, cluster.pod_with("b"), cluster) == {"n1": TOO_MANY}


def test_pods_that_came_before_any_limit_count_once_there_is_one() -> None:
    """Nothing is counted for drivers that nobody limits; what is needed later is caught up with."""
    cluster = VolumeCluster(node("n0"), node("n1"))
    for name in "abc":
        cluster.put(csi(name), claim(name, bound_to=name))
    cluster.put(csi_node("n0", another=1))
    plugin, pod = cluster.plugin(NodeVolumeLimits), cluster.pod_with("c")
    cluster.run("first", "n0", volumes=uses("a"))
    assert reasons(plugin, pod, cluster) == {}
    cluster.run("second", "n0", volumes=uses("b"))
    assert reasons(plugin, pod, cluster) == {}
    cluster.put(csi_node("n0", csi_x=2), csi_node("n1", csi_x=2))

    assert reasons(plugin, pod, cluster) == {"n0": TOO_MANY}


def test_exact_counts_are_kept_until_a_row_changes(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(NodeVolumeLimits), cluster.pod_with("b")

    assert reasons(plugin, pod, cluster) == {"n0": TOO_MANY}
    assert reasons(plugin, pod, cluster) == {"n0": TOO_MANY}
    cluster.cache.remove_pod("uid-r0")
    assert reasons(plugin, pod, cluster) == {}


def test_nodes_that_come_and_go_are_followed(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(NodeVolumeLimits), cluster.pod_with("b")
    assert reasons(plugin, pod, cluster) == {"n0": TOO_MANY}

    cluster.cache.remove_node("n0")
    assert reasons(plugin, pod, cluster) == {}
    cluster.put(csi_node("late", csi_x=0))
    for number in range(80):
        cluster.cache.add_node(node(f"m{number}"))
    cluster.cache.add_node(node("late"))
    assert reasons(plugin, pod, cluster) == {"late": TOO_MANY}


def test_attachments_count_where_no_pod_accounts_for_them(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(NodeVolumeLimits), cluster.pod_with("d")
    cluster.put(attachment("x", node="n1", volume="a"), attachment("y", node="n1", volume="b"))
    assert reasons(plugin, pod, cluster) == {"n0": TOO_MANY}

    third = attachment("z", node="n1", volume="c")
    cluster.put(third)
    assert reasons(plugin, pod, cluster) == {"n0": TOO_MANY, "n1": TOO_MANY}
    cluster.cache.remove_object(third)
    assert reasons(plugin, pod, cluster) == {"n0": TOO_MANY}


def test_attachments_that_name_no_csi_volume_do_not_count(cluster: VolumeCluster) -> None:
    cluster.put(volume("plain"), csi_node("n1", csi_x=2))
    cluster.put(
        attachment("1", node="n1", volume=None),
        attachment("2", node="n1", volume="gone"),
        attachment("3", node="n1", volume="plain"),
        attachment("4", node="n1", volume="c", attacher=""),
        attachment("5", node="n1", volume="c", attacher="csi.other"),
        attachment("6", node="elsewhere", volume="c"),
    )

    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("d"), cluster) == {"n0": TOO_MANY}


def test_attachments_of_a_node_that_comes_later_count(cluster: VolumeCluster) -> None:
    plugin = cluster.plugin(NodeVolumeLimits)
    cluster.put(attachment("1", node="late", volume="c"), csi_node("late", csi_x=1))
    assert reasons(plugin, cluster.pod_with("b"), cluster) == {"n0": TOO_MANY}

    cluster.cache.add_node(node("late"))
    assert reasons(plugin, cluster.pod_with("b"), cluster) == {"n0": TOO_MANY, "late": TOO_MANY}


def test_an_attachment_that_moves_is_counted_on_its_new_node_only(cluster: VolumeCluster) -> None:
    plugin = cluster.plugin(NodeVolumeLimits)
    cluster.put(csi_node("n1", csi_x=2), attachment("1", node="n1", volume="c"))
    assert reasons(plugin, cluster.pod_with("b"), cluster) == {"n0": TOO_MANY, "n1": TOO_MANY}

    cluster.put(attachment("1", node="n2", volume="c"))
    assert reasons(plugin, cluster.pod_with("b"), cluster) == {"n0": TOO_MANY}


def test_an_unbound_claim_counts_for_the_provisioner_of_its_class(cluster: VolumeCluster) -> None:
    cluster.put(storage_class(), claim("new"), storage_class("other", provisioner="csi.y"))
    cluster.put(
        claim("else", storage_class="other"), claim("none", storage_class=None), claim("what", storage_class="?")
    )
    plugin = cluster.plugin(NodeVolumeLimits)

    assert reasons(plugin, cluster.pod_with("new"), cluster) == {"n0": TOO_MANY}
    assert reasons(plugin, cluster.pod_with("else", "none", "what"), cluster) == {}


def test_a_claim_whose_volume_is_gone_counts_for_its_class(cluster: VolumeCluster) -> None:
    cluster.put(storage_class(), claim("lost", bound_to="gone"))

    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("lost"), cluster) == {"n0": TOO_MANY}


def test_an_unbound_claim_that_two_pods_share_counts_once(cluster: VolumeCluster) -> None:
    cluster.put(storage_class(), claim("new"), csi_node("n0", csi_x=2))
    cluster.run("first", "n0", volumes=uses("new"))

    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("new"), cluster) == {}


def test_volumes_of_no_driver_do_not_count(cluster: VolumeCluster) -> None:
    cluster.put(volume("nfs"), claim("nfs", bound_to="nfs"))
    cluster.put(volume("odd", csi={"driver": "csi.x", "volumeHandle": ""}), claim("odd", bound_to="odd"))

    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("nfs", "odd"), cluster) == {}


def test_in_tree_disks_count_for_their_driver_where_there_is_a_csi_node(cluster: VolumeCluster) -> None:
    """No annotation is needed: the move of these plugins is over."""
    cluster.put(csi_node("n0", ebs_csi_aws_com=1), csi_node("n1", ebs_csi_aws_com=2))
    cluster.put(volume("disk", awsElasticBlockStore={"volumeID": "aws://z/vol-1"}), claim("disk", bound_to="disk"))
    cluster.put(storage_class("gp2", provisioner="kubernetes.io/aws-ebs"), claim("new", storage_class="gp2"))
    for name in ("n0", "n1", "n2"):
        cluster.run(f"disk-{name}", name, volumes=uses("disk"))
    plugin = cluster.plugin(NodeVolumeLimits)

    assert reasons(plugin, cluster.pod(volumes=[ebs_disk("vol-2")]), cluster) == {"n0": TOO_MANY}
    assert reasons(plugin, cluster.pod(volumes=[ebs_disk("vol-1")]), cluster) == {}
    assert reasons(plugin, cluster.pod_with("new"), cluster) == {"n0": TOO_MANY}
    assert reasons(plugin, cluster.pod_with("disk"), cluster) == {}


def test_azure_files_and_vsphere_volumes_are_never_counted(cluster: VolumeCluster) -> None:
    cluster.put(csi_node("n0", file_csi_azure_com=0, csi_vsphere_vmware_com=0))
    cluster.put(volume("vm", vsphereVolume={"volumePath": "p"}), claim("vm", bound_to="vm"))
    cluster.put(storage_class("old", provisioner="kubernetes.io/vsphere-volume"), claim("new", storage_class="old"))
    pod = cluster.pod_with("vm", "new", volumes=[{"name": "f", "azureFile": {"shareName": "s"}}])

    assert reasons(cluster.plugin(NodeVolumeLimits), pod, cluster) == {}


def test_a_malformed_disk_fails_the_cycle_on_nodes_with_a_csi_node(cluster: VolumeCluster) -> None:
    pod = cluster.pod(volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "aws://z/nonsense"}}])
    statuses = judged(cluster.plugin(NodeVolumeLimits), pod, cluster)

    assert [statuses[name].code for name in ("n0", "n1", "n2")] == [Code.ERROR, Code.ERROR, Code.SUCCESS]
    assert statuses["n0"].reasons[0].startswith("converting volume(v) from inline to csi: ")


def test_what_cannot_be_made_out_of_running_pods_is_not_counted(cluster: VolumeCluster) -> None:
    cluster.put(volume("bad", awsElasticBlockStore={"volumeID": "aws://z/x"}), claim("bad", bound_to="bad"))
    cluster.put(claim("q-e", owner="somebody"), storage_class(), csi_node("n1", csi_x=2))
    cluster.run("q", "n1", volumes=[*uses("bad", "gone"), {"name": "e", "ephemeral": {}}])

    assert reasons(cluster.plugin(NodeVolumeLimits), cluster.pod_with("b"), cluster) == {"n0": TOO_MANY}


def test_a_missing_claim_rejects_every_node(cluster: VolumeCluster) -> None:
    statuses = judged(cluster.plugin(NodeVolumeLimits), cluster.pod_with("gone"), cluster)

    expected = ('looking up PVC default/gone: persistentvolumeclaim "gone" not found',)
    assert {(s.code, s.reasons) for s in statuses.values()} == {(Code.UNRESOLVABLE, expected)}
    assert len(statuses) == 3


def test_a_claim_without_a_name_is_an_error(cluster: VolumeCluster) -> None:
    statuses = judged(cluster.plugin(NodeVolumeLimits), cluster.pod_with(""), cluster)

    assert {(s.code, s.reasons) for s in statuses.values()} == {(Code.ERROR, ("PersistentVolumeClaim had no name",))}


def test_an_ephemeral_volume_counts_through_its_claim(cluster: VolumeCluster) -> None:
    cluster.put(storage_class(), claim("p-e", owner="uid-p"))
    pod = cluster.pod(volumes=[{"name": "e", "ephemeral": {}}])
    plugin = cluster.plugin(NodeVolumeLimits)

    assert reasons(plugin, pod, cluster) == {"n0": TOO_MANY}
    cluster.put(claim("p-e", owner="somebody"))
    statuses = judged(plugin, pod, cluster)
    owner = "PVC default/p-e was not created for pod default/p (pod is not owner)"
    assert {(s.code, s.reasons) for s in statuses.values()} == {(Code.ERROR, (owner,))}


def test_the_filter_works_without_a_state(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(NodeVolumeLimits), cluster.pod_with("b")

    assert plugin.filter_nodes(CycleState(), pod, cluster.columns).ids.tolist() == [1, 0, 0]


def test_pods_without_attachable_volumes_are_skipped(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(NodeVolumeLimits), cluster.pod(volumes=[{"name": "i", "iscsi": {"iqn": "q"}}])
    _, status = started(plugin, pod, cluster)

    assert not plugin.is_relevant(pod)
    assert status is not None
    assert status.is_skip


def test_hints(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(NodeVolumeLimits), cluster.pod_with("b")
    hints = {(e.event.resource, e.event.action): e.hint for e in plugin.events_to_register()}

    assert hints[Resource.CSI_NODE, ActionType.ADD] is None

    after_csi_node = hints[Resource.CSI_NODE, ActionType.UPDATE]
    assert after_csi_node(pod, csi_node("n", csi_x=1), csi_node("n", csi_x=2)) is Hint.QUEUE
    assert after_csi_node(pod, csi_node("n", csi_x=2), csi_node("n", csi_x=1)) is Hint.SKIP
    assert after_csi_node(pod, csi_node("n", csi_x=None), csi_node("n", csi_x=1)) is Hint.QUEUE
    assert after_csi_node(pod, csi_node("n", csi_x=1), csi_node("n", csi_x=None)) is Hint.SKIP
    assert after_csi_node(pod, csi_node("n"), csi_node("n", csi_x=0)) is Hint.SKIP

    after_pod = hints[Resource.POD, ActionType.DELETE]
    assert after_pod(pod, cluster.run("gone", "n0", volumes=uses("a")), None) is Hint.QUEUE
    assert after_pod(pod, cluster.run("gone", "n0", volumes=[ebs_disk("d")]), None) is Hint.QUEUE
    assert after_pod(pod, cluster.run("gone", "n0"), None) is Hint.SKIP
    assert after_pod(pod, cluster.pod_with("a", name="gone"), None) is Hint.SKIP
    nominated = cluster.pod("gone", volumes=uses("a"), status={"nominatedNodeName": "n0"})
    assert after_pod(pod, nominated, None) is Hint.QUEUE

    after_claim = hints[Resource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD]
    assert after_claim(pod, None, claim("b")) is Hint.QUEUE
    assert after_claim(pod, None, claim("c")) is Hint.SKIP
    assert after_claim(cluster.pod(volumes=[{"name": "e", "ephemeral": {}}]), None, claim("p-e")) is Hint.QUEUE

    after_detachment = hints[Resource.VOLUME_ATTACHMENT, ActionType.DELETE]
    inline = cluster.pod(volumes=[{"name": "e", "ephemeral": {}}, ebs_disk("d")])
    assert after_detachment(pod, attachment("x", node="n0", volume="a"), None) is Hint.QUEUE
    assert after_detachment(inline, attachment("x", node="n0", volume="a", attacher=EBS), None) is Hint.QUEUE
    assert after_detachment(inline, attachment("x", node="n0", volume="a"), None) is Hint.SKIP
