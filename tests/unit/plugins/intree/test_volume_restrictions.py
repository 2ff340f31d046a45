"""VolumeRestrictions: disks and claims that cannot be shared."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import VolumeCluster, claim, reasons, started, uses

from bayplan.framework import ActionType, Code, Hint, Resource
from bayplan.plugins.intree.volume_restrictions import SINGLE_POD_CLAIMS, VolumeRestrictions

DISK = ("node(s) had no available disk",)
CLAIM = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)
ONCE = {"accessModes": ["ReadWriteOncePod"]}


def gce(name: str = "d", *, read_only: bool = False) -> dict[str, Any]:
    return {"name": "v", "gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str = "d", *, read_only: bool = False) -> dict[str, Any]:
    return {"name": "v", "awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(name: str = "d", *, read_only: bool = False) -> dict[str, Any]:
    return {"name": "v", "iscsi": {"iqn": name, "readOnly": read_only}}


def rbd(
    image: str = "d", *, pool: str = "p", monitors: tuple[str, ...] = ("m1", "m2"), read_only: bool = False
) -> dict[str, Any]:
    return {"name": "v", "rbd": {"image": image, "pool": pool, "monitors": list(monitors), "readOnly": read_only}}


@pytest.fixture
def cluster() -> VolumeCluster:
    return VolumeCluster(node("n0"), node("n1"), node("n2"))


CONFLICTS = [
    (gce(), gce(), True),
    (gce(read_only=True), gce(), True),
    (gce(read_only=True), gce(read_only=True), False),
    (gce("other"), gce(), False),
    (ebs(), ebs(), True),
    (ebs(read_only=True), ebs(read_only=True), True),
    (ebs("other"), ebs(), False),
    (iscsi(), iscsi(), True),
    (iscsi(read_only=True), iscsi(read_only=True), False),
    (iscsi("other"), iscsi(), False),
    (rbd(), rbd(), True),
    (rbd(monitors=("m2", "m3")), rbd(), True),
    (rbd(monitors=("m3",)), rbd(), False),
    (rbd(pool="q"), rbd(), False),
    (rbd("other"), rbd(), False),
    (rbd(read_only=True), rbd(read_only=True), False),
    (gce("x"), ebs("x"), False),
]


@pytest.mark.parametrize(("wanted", "present", "is_taken"), CONFLICTS)
def test_a_disk_in_use_on_the_node_rejects_it(
    cluster: VolumeCluster, wanted: dict[str, Any], present: dict[str, Any], is_taken: bool
) -> None:
    cluster.run("r", "n1", volumes=[present])
    pod = cluster.pod(volumes=[wanted])

    assert reasons(cluster.plugin(VolumeRestrictions), pod, cluster) == ({"n1": DISK} if is_taken else {})


def test_the_rows_with_disks_follow_the_pods(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(VolumeRestrictions), cluster.pod(volumes=[gce()])
    running = cluster.run("r", "n1", volumes=[gce()])

    assert reasons(plugin, pod, cluster) == {"n1": DISK}
    cluster.cache.remove_pod(running.uid)
    assert reasons(plugin, pod, cluster) == {}
    cluster.run("s", "n2", volumes=[gce()])
    assert reasons(plugin, pod, cluster) == {"n2": DISK}
    cluster.cache.remove_node("n2")
    assert reasons(plugin, pod, cluster) == {}


def test_a_read_write_once_pod_claim_in_use_rejects_every_node(cluster: VolumeCluster) -> None:
    cluster.put(claim("c", **ONCE), claim("shared"))
    cluster.run("r", "n1", volumes=uses("c"))

    expected = dict.fromkeys(("n0", "n1", "n2"), CLAIM)
    assert reasons(cluster.plugin(VolumeRestrictions), cluster.pod_with("c", "shared"), cluster) == expected


def test_a_taken_disk_is_told_before_a_taken_claim(cluster: VolumeCluster) -> None:
    cluster.put(claim("c", **ONCE))
    cluster.run("r", "n1", volumes=[*uses("c"), gce()])
    pod = cluster.pod_with("c", volumes=[gce()])

    assert reasons(cluster.plugin(VolumeRestrictions), pod, cluster) == {"n0": CLAIM, "n1": DISK, "n2": CLAIM}


def test_it_is_skipped_when_nothing_is_in_use(cluster: VolumeCluster) -> None:
    cluster.put(claim("c", **ONCE), claim("shared"))
    cluster.run("r", "n1", volumes=uses("shared"))
    _, status = started(cluster.plugin(VolumeRestrictions), cluster.pod_with("c", "shared"), cluster)

    assert status is not None
    assert status.is_skip


def test_a_missing_claim_is_a_rejection_by_this_plugin(cluster: VolumeCluster) -> None:
    _, status = started(cluster.plugin(VolumeRestrictions), cluster.pod_with("gone"), cluster)

    assert status is not None
    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, ('persistentvolumeclaim "gone" not found',))


def test_dry_runs_move_the_count_of_uses(cluster: VolumeCluster) -> None:
    """Preemption takes the other user away; namespaces are not compared."""
    cluster.put(claim("c", **ONCE))
    other = cluster.run("r", "n1", volumes=uses("c"))
    plugin, pod = cluster.plugin(VolumeRestrictions), cluster.pod_with("c")
    state, _ = started(plugin, pod, cluster)
    tried, info = state.clone(), cluster.state.nodes.at(0)

    plugin.remove_pod(tried, pod, other, info)
    assert plugin.filter(tried, pod, info) is None
    plugin.add_pod(tried, pod, other, info)
    assert plugin.filter(tried, pod, info).reasons == CLAIM
    assert state[SINGLE_POD_CLAIMS].uses == 1


def test_pods_without_such_volumes_are_no_concern(cluster: VolumeCluster) -> None:
    plugin = cluster.plugin(VolumeRestrictions)

    assert not plugin.is_relevant(cluster.pod())
    assert not plugin.is_relevant(cluster.pod(volumes=[{"name": "e", "ephemeral": {}}]))
    assert plugin.is_relevant(cluster.pod(volumes=[rbd()]))
    assert plugin.is_relevant(cluster.pod_with("c"))


def test_hints(cluster: VolumeCluster) -> None:
    plugin = cluster.plugin(VolumeRestrictions)
    hints = {event.event.resource: event for event in plugin.events_to_register()}
    pod = cluster.pod_with("c", volumes=[gce()])

    assert {r: e.event.action for r, e in hints.items()} == {
        Resource.POD: ActionType.DELETE,
        Resource.NODE: ActionType.ADD,
        Resource.PERSISTENT_VOLUME_CLAIM: ActionType.ADD,
    }
    assert hints[Resource.NODE].hint is None

    after_pod = hints[Resource.POD].hint
    assert after_pod(pod, cluster.pod("other", volumes=[gce()]), None) is Hint.QUEUE
    assert after_pod(pod, cluster.pod("other", volumes=[gce("e")]), None) is Hint.SKIP
    assert after_pod(pod, cluster.pod_with("c", name="other"), None) is Hint.QUEUE
    elsewhere = cluster.pod_with("c", name="other")
    elsewhere.namespace = "elsewhere"
    assert after_pod(pod, elsewhere, None) is Hint.SKIP

    after_claim = hints[Resource.PERSISTENT_VOLUME_CLAIM].hint
    assert after_claim(pod, None, claim("c")) is Hint.QUEUE
    assert after_claim(pod, None, claim("d")) is Hint.SKIP
