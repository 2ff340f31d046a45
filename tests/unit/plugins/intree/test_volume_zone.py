"""VolumeZone: pods stay in the zones of their volumes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import VolumeCluster, claim, reasons, started, storage_class, volume

from bayplan.framework import ActionType, Code, CycleState, Hint, Resource
from bayplan.plugins.intree.volume_zone import VolumeZone

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
NO_ZONE = ("node(s) had no available volume zone",)


def cluster_of(*labels: dict[str, str]) -> VolumeCluster:
    return VolumeCluster(*(node(f"n{i}", labels=each) for i, each in enumerate(labels)))


def test_only_nodes_in_the_zone_of_the_volume_pass() -> None:
    cluster = cluster_of({ZONE: "a"}, {ZONE: "b"}, {})
    cluster.put(volume("v", labels={ZONE: "a"}), claim("c", bound_to="v"))

    assert reasons(cluster.plugin(VolumeZone), cluster.pod_with("c"), cluster) == {"n1": NO_ZONE}


def test_nodes_that_come_and_change_are_looked_at_again() -> None:
    cluster = cluster_of({ZONE: "a"}, {ZONE: "b"})
    cluster.put(volume("v", labels={ZONE: "a"}), claim("c", bound_to="v"))
    plugin, pod = cluster.plugin(VolumeZone), cluster.pod_with("c")
    assert reasons(plugin, pod, cluster) == {"n1": NO_ZONE}
    cluster.cache.add_node(node("n1", labels={ZONE: "a"}))
    assert reasons(plugin, pod, cluster) == {}
    cluster.cache.add_node(node("n2", labels={ZONE: "b"}))

    assert reasons(plugin, pod, cluster) == {"n2": NO_ZONE}


def test_zones_that_never_come_again_do_not_fill_memory() -> None:
    cluster = cluster_of({ZONE: "a"})
    plugin = cluster.plugin(VolumeZone)
    for number in range(200):
        cluster.put(volume("v", labels={ZONE: f"z{number}"}), claim("c", bound_to="v"))
        assert reasons(plugin, cluster.pod_with("c"), cluster) == {"n0": NO_ZONE}

    assert len(plugin._wrong) <= 64


def test_a_label_may_list_several_zones() -> None:
    cluster = cluster_of({ZONE: "a"}, {ZONE: "b"}, {ZONE: "c"})
    cluster.put(volume("v", labels={ZONE: "a__ b"}), claim("c", bound_to="v"))

    assert reasons(cluster.plugin(VolumeZone), cluster.pod_with("c"), cluster) == {"n2": NO_ZONE}


def test_a_list_with_an_empty_part_is_ignored() -> None:
    cluster = cluster_of({ZONE: "b"})
    cluster.put(volume("v", labels={ZONE: "a__"}), claim("c", bound_to="v"))

    _, status = started(cluster.plugin(VolumeZone), cluster.pod_with("c"), cluster)

    assert status is not None
    assert status.is_skip


def test_a_beta_label_of_a_volume_is_found_under_the_new_key_on_nodes() -> None:
    cluster = cluster_of({ZONE: "a"}, {ZONE: "b"}, {BETA_ZONE: "b", ZONE: "a"}, {BETA_ZONE: "a", ZONE: "b"})
    cluster.put(volume("v", labels={BETA_ZONE: "a"}), claim("c", bound_to="v"))

    assert reasons(cluster.plugin(VolumeZone), cluster.pod_with("c"), cluster) == {"n1": NO_ZONE, "n2": NO_ZONE}


def test_a_new_label_of_a_volume_is_not_found_under_the_beta_key() -> None:
    cluster = cluster_of({BETA_ZONE: "a"}, {BETA_REGION: "r"})
    cluster.put(volume("v", labels={ZONE: "a"}), claim("c", bound_to="v"))

    assert reasons(cluster.plugin(VolumeZone), cluster.pod_with("c"), cluster) == {"n0": NO_ZONE, "n1": NO_ZONE}


def test_a_node_with_a_region_only_lacks_the_zone() -> None:
    cluster = cluster_of({REGION: "r"}, {REGION: "r", ZONE: "a"})
    cluster.put(volume("v", labels={ZONE: "a", REGION: "r"}), claim("c", bound_to="v"))

    assert reasons(cluster.plugin(VolumeZone), cluster.pod_with("c"), cluster) == {"n0": NO_ZONE}


def test_the_filter_works_without_a_state() -> None:
    cluster = cluster_of({ZONE: "b"})
    cluster.put(volume("v", labels={ZONE: "a"}), claim("c", bound_to="v"))
    plugin, pod = cluster.plugin(VolumeZone), cluster.pod_with("c")

    assert plugin.filter(CycleState(), pod, cluster.state.nodes.at(0)).reasons == NO_ZONE
    assert plugin.filter_nodes(CycleState(), pod, cluster.columns).ids.tolist() == [1]


def test_without_a_state_a_missing_claim_rejects_every_node() -> None:
    cluster = cluster_of({}, {})
    plugin, pod = cluster.plugin(VolumeZone), cluster.pod_with("gone")
    verdicts = plugin.filter_nodes(CycleState(), pod, cluster.columns)

    assert verdicts.ids.tolist() == [1, 1]
    assert verdicts.status(1) == plugin.filter(CycleState(), pod, cluster.state.nodes.at(0))


PRE_FILTER: list[tuple[str, list[Any], str]] = [
    ("", [], "PersistentVolumeClaim had no name"),
    ("c", [], 'persistentvolumeclaim "c" not found'),
    ("c", [claim("c", storage_class=None)], "PersistentVolumeClaim had no pv name and storageClass name"),
    ("c", [claim("c")], 'storageclass.storage.k8s.io "fast" not found'),
    ("c", [claim("c"), storage_class(mode=None)], 'VolumeBindingMode not set for StorageClass "fast"'),
    ("c", [claim("c"), storage_class(mode="Immediate")], "PersistentVolume had no name"),
    ("c", [claim("c", bound_to="v")], 'persistentvolume "v" not found'),
]


@pytest.mark.parametrize(("name", "items", "reason"), PRE_FILTER)
def test_pre_filter_rejects_what_no_node_can_help(name: str, items: list[Any], reason: str) -> None:
    cluster = cluster_of({}).put(*items)
    _, status = started(cluster.plugin(VolumeZone), cluster.pod_with(name), cluster)

    assert status is not None
    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, (reason,))


def test_a_claim_that_waits_for_its_consumer_is_skipped() -> None:
    cluster = cluster_of({ZONE: "a"}).put(claim("c"), storage_class())
    _, status = started(cluster.plugin(VolumeZone), cluster.pod_with("c"), cluster)

    assert status is not None
    assert status.is_skip


def test_the_class_in_the_beta_annotation_wins() -> None:
    cluster = cluster_of({ZONE: "a"}).put(
        claim("c", annotations={"volume.beta.kubernetes.io/storage-class": "old"}), storage_class("old")
    )
    _, status = started(cluster.plugin(VolumeZone), cluster.pod_with("c"), cluster)

    assert status is not None
    assert status.is_skip


def test_ephemeral_volumes_and_pods_without_claims_are_no_concern() -> None:
    cluster = cluster_of({})
    plugin = cluster.plugin(VolumeZone)

    assert not plugin.is_relevant(cluster.pod())
    assert not plugin.is_relevant(cluster.pod(volumes=[{"name": "e", "ephemeral": {}}]))


def test_hints() -> None:
    cluster = cluster_of({})
    plugin, pod = cluster.plugin(VolumeZone), cluster.pod_with("c")
    hints = {event.event.resource: event for event in plugin.events_to_register()}
    add_or_update = ActionType.ADD | ActionType.UPDATE

    assert hints[Resource.STORAGE_CLASS].event.action == ActionType.ADD
    assert hints[Resource.NODE].event.action == ActionType.ADD | ActionType.UPDATE_NODE_LABEL
    assert hints[Resource.NODE].hint is None
    assert hints[Resource.PERSISTENT_VOLUME_CLAIM].event.action == add_or_update
    assert hints[Resource.PERSISTENT_VOLUME].event.action == add_or_update

    after_class = hints[Resource.STORAGE_CLASS].hint
    assert after_class(pod, None, storage_class()) is Hint.QUEUE
    assert after_class(pod, None, storage_class(mode="Immediate")) is Hint.SKIP
    assert after_class(pod, None, storage_class(mode=None)) is Hint.SKIP

    after_claim = hints[Resource.PERSISTENT_VOLUME_CLAIM].hint
    assert after_claim(pod, None, claim("c")) is Hint.QUEUE
    assert after_claim(pod, None, claim("d")) is Hint.SKIP
    assert after_claim(pod, None, claim("c", namespace="other")) is Hint.SKIP

    after_volume = hints[Resource.PERSISTENT_VOLUME].hint
    assert after_volume(pod, None, volume("v")) is Hint.QUEUE
    assert after_volume(pod, volume("v", labels={ZONE: "a"}), volume("v", labels={ZONE: "b"})) is Hint.QUEUE
    assert after_volume(pod, volume("v", labels={ZONE: "a"}), volume("v", labels={ZONE: "a", "x": "y"})) is Hint.SKIP
