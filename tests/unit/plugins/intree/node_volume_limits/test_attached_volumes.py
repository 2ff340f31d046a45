"""Which volumes a pod attaches. What follows for limits is in `test_node_volume_limits.py`."""

from __future__ import annotations

from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import VolumeCluster, attachment, claim, storage_class, uses, volume

from bayplan.plugins.intree.node_volume_limits.attached_volumes import AttachedVolumes, attachable_volumes


def test_bound_volumes_are_known_by_driver_and_handle() -> None:
    cluster = VolumeCluster(node("n")).put(volume("v", csi={"driver": "d", "volumeHandle": "h"}))
    cluster.put(claim("c", bound_to="v"), volume("w", cinder={"volumeID": "x"}), claim("d", bound_to="w"))
    pod, volumes = cluster.pod_with("c", "d"), AttachedVolumes(cluster.state.objects)

    assert volumes.of_new_pod(pod, has_csi_node=True) == {("d", "h"), ("cinder.csi.openstack.org", "x")}
    assert volumes.of_new_pod(pod, has_csi_node=False) == {("d", "h")}


def test_unbound_claims_are_known_by_their_name() -> None:
    cluster = VolumeCluster().put(storage_class(), claim("c"), claim("d"))
    found = AttachedVolumes(cluster.state.objects).of_new_pod(cluster.pod_with("c", "d"), has_csi_node=True)

    assert isinstance(found, set)
    assert {driver for driver, _ in found} == {"csi.x"}
    assert sorted(handle.rpartition("-")[2] for _, handle in found) == ["default/c", "default/d"]


def test_in_tree_provisioners_count_only_beside_a_csi_node() -> None:
    cluster = VolumeCluster().put(storage_class(provisioner="kubernetes.io/gce-pd"), claim("c"))
    volumes = AttachedVolumes(cluster.state.objects)

    assert len(volumes.of_new_pod(cluster.pod_with("c"), has_csi_node=True)) == 1  # type: ignore[arg-type]
    assert volumes.of_new_pod(cluster.pod_with("c"), has_csi_node=False) == set()


def test_a_node_has_what_its_pods_attach() -> None:
    cluster = VolumeCluster(node("n"))
    for name in ("a", "b"):
        cluster.put(volume(name, csi={"driver": "d", "volumeHandle": name}), claim(name, bound_to=name))
    cluster.run("p", "n", volumes=uses("a"))
    cluster.run("q", "n", volumes=uses("a", "b"))
    cluster.run("r", "n")

    found = AttachedVolumes(cluster.state.objects).of_node(cluster.state.nodes.at(0))
    assert found == {("d", "a"), ("d", "b")}


def test_attachments_are_known_by_attacher_and_handle() -> None:
    cluster = VolumeCluster().put(volume("v", csi={"driver": "d", "volumeHandle": "h"}))
    found = AttachedVolumes(cluster.state.objects).of_attachments([attachment("x", node="n", volume="v")])

    assert found == {("csi.x", "h")}


def test_volumes_that_may_attach_are_claims_and_migratable_disks() -> None:
    disks = [{"name": "d", "azureDisk": {"diskURI": "u"}}, {"name": "r", "rbd": {"image": "i"}}]
    pod = VolumeCluster().pod_with("c", volumes=[*disks, {"name": "e", "ephemeral": {}}])

    assert [each.name for each in attachable_volumes(pod)] == ["v0", "d", "e"]
