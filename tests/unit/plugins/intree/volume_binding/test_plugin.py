"""VolumeBinding: PreFilter, Filter, Reserve and the hints. Writing and waiting is in `test_volume_binder.py`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import (
    SELECTED,
    VolumeCluster,
    capacity,
    claim,
    csi_driver,
    csi_node,
    judged,
    reasons,
    started,
    storage_class,
    terms,
    volume,
)

from bayplan.framework import ActionType, Code, CycleState, Hint, Resource
from bayplan.plugins.intree.volume_binding.plugin import BINDING, VolumeBinding

AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
EPHEMERAL = {"name": "e", "ephemeral": {}}


@pytest.fixture
def cluster() -> VolumeCluster:
    nodes = [node(f"n{i}", labels={"zone": zone, "host": f"n{i}"}) for i, zone in enumerate("aab")]
    return VolumeCluster(*nodes)


def pre_filter(cluster: VolumeCluster, pod: Any) -> tuple[Code, tuple[str, ...]]:
    _, status = started(cluster.plugin(VolumeBinding), pod, cluster)
    assert status is not None
    return status.code, status.reasons


# PreFilter


def test_a_missing_claim_is_rejected(cluster: VolumeCluster) -> None:
    expected = (Code.UNRESOLVABLE, ('persistentvolumeclaim "gone" not found',))

    assert pre_filter(cluster, cluster.pod_with("gone")) == expected


def test_the_claim_of_an_ephemeral_volume_is_waited_for(cluster: VolumeCluster) -> None:
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-e"'

    assert pre_filter(cluster, cluster.pod(volumes=[EPHEMERAL])) == (Code.UNRESOLVABLE, (waiting,))


def test_a_lost_claim_is_rejected(cluster: VolumeCluster) -> None:
    cluster.put(claim("c", bound_to="v", phase="Lost"))
    lost = 'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'

    assert pre_filter(cluster, cluster.pod_with("c")) == (Code.UNRESOLVABLE, (lost,))


def test_a_claim_under_deletion_is_rejected(cluster: VolumeCluster) -> None:
    cluster.put(claim("c", bound_to="v", deleted=True))
    expected = (Code.UNRESOLVABLE, ('persistentvolumeclaim "c" is being deleted',))

    assert pre_filter(cluster, cluster.pod_with("c")) == expected


def test_the_claim_of_an_ephemeral_volume_must_be_the_pods_own(cluster: VolumeCluster) -> None:
    cluster.put(claim("p-e", owner="somebody"), storage_class())
    other = "PVC default/p-e was not created for pod default/p (pod is not owner)"

    assert pre_filter(cluster, cluster.pod(volumes=[EPHEMERAL])) == (Code.UNRESOLVABLE, (other,))
    cluster.put(claim("p-e", owner="uid-p"))
    assert reasons(cluster.plugin(VolumeBinding), cluster.pod(volumes=[EPHEMERAL]), cluster) == {}


IMMEDIATE: list[list[Any]] = [
    [claim("c"), storage_class(mode="Immediate")],
    [claim("c", storage_class=None)],
    [claim("c", storage_class="unknown")],
    [claim("c", volumeName="v"), storage_class()],
]


@pytest.mark.parametrize("items", IMMEDIATE)
def test_unbound_immediate_claims_are_rejected(cluster: VolumeCluster, items: list[Any]) -> None:
    """Immediate class, no class, unknown class, and a claim that names a volume that has not answered yet."""
    cluster.put(*items)
    expected = (Code.UNRESOLVABLE, ("pod has unbound immediate PersistentVolumeClaims",))

    assert pre_filter(cluster, cluster.pod_with("c")) == expected


def test_a_class_without_a_binding_mode_is_an_error(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), storage_class(mode=None))
    expected = (Code.ERROR, ('VolumeBindingMode not set for StorageClass "fast"',))

    assert pre_filter(cluster, cluster.pod_with("c")) == expected


def test_pods_without_claims_are_skipped(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod()

    assert not plugin.is_relevant(pod)
    assert pre_filter(cluster, pod)[0] is Code.SKIP
    assert plugin.filter(CycleState(), pod, cluster.state.nodes.at(0)) is None
    assert not plugin.filter_nodes(CycleState(), pod, cluster.columns).ids.any()


# Filter: bound claims


def test_a_bound_volume_must_be_reachable(cluster: VolumeCluster) -> None:
    cluster.put(volume("v", affinity=terms("zone", "a")), claim("c", bound_to="v"))

    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster) == {"n2": (AFFINITY,)}


def test_a_volume_without_affinity_is_reachable_from_everywhere(cluster: VolumeCluster) -> None:
    cluster.put(volume("v"), claim("c", bound_to="v"))

    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster) == {}


def test_what_the_affinity_of_a_volume_says_of_node_names_is_not_compared(cluster: VolumeCluster) -> None:
    fields = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]
    cluster.put(volume("v", affinity=fields), claim("c", bound_to="v"))

    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster) == {}


def test_a_volume_that_is_gone_is_told(cluster: VolumeCluster) -> None:
    cluster.put(claim("c", bound_to="v"))

    expected = dict.fromkeys(("n0", "n1", "n2"), (GONE,))
    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster) == expected


def test_the_first_bound_claim_that_fails_decides(cluster: VolumeCluster) -> None:
    cluster.put(volume("v", affinity=terms("zone", "a")), claim("c", bound_to="v"), claim("d", bound_to="gone"))

    expected = {"n0": (GONE,), "n1": (GONE,), "n2": (AFFINITY,)}
    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c", "d"), cluster) == expected


def test_reasons_come_in_a_fixed_order(cluster: VolumeCluster) -> None:
    cluster.put(volume("v", affinity=terms("zone", "b"), claim="c"), claim("c", bound_to="v"))
    cluster.put(claim("d"), storage_class(provisioner="kubernetes.io/no-provisioner"))

    expected = {"n0": (AFFINITY, NO_VOLUME), "n1": (AFFINITY, NO_VOLUME), "n2": (NO_VOLUME,)}
    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c", "d"), cluster) == expected


def test_in_tree_volumes_are_translated_where_the_node_was_migrated(cluster: VolumeCluster) -> None:
    zone = "topology.kubernetes.io/zone"
    for number, labels in enumerate(({zone: "a"}, {"topology.gke.io/zone": "a"}, {zone: "a"})):
        cluster.cache.add_node(node(f"n{number}", labels=labels))
    cluster.put(csi_node("n0"), *(csi_node(f"n{i}", migrated="kubernetes.io/gce-pd") for i in (1, 2)))
    disk = volume("v", affinity=terms(zone, "a"), gcePersistentDisk={"pdName": "d"})
    cluster.put(disk, claim("c", bound_to="v"))
    plugin = cluster.plugin(VolumeBinding)

    assert reasons(plugin, cluster.pod_with("c"), cluster) == {"n2": (AFFINITY,)}
    cluster.put(csi_node("n1"))
    assert reasons(plugin, cluster.pod_with("c"), cluster) == {"n1": (AFFINITY,), "n2": (AFFINITY,)}


def test_a_zone_label_of_a_migrated_volume_becomes_affinity(cluster: VolumeCluster) -> None:
    cluster.put(csi_node("n0", migrated="kubernetes.io/cinder"), csi_node("n1"))
    disk = volume("v", labels={"topology.kubernetes.io/zone": "a"}, cinder={"volumeID": "x"})
    cluster.put(disk, claim("c", bound_to="v"))

    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster) == {"n0": (AFFINITY,)}


def test_a_volume_that_cannot_be_translated_is_an_error_on_migrated_nodes(cluster: VolumeCluster) -> None:
    cluster.put(csi_node("n1", migrated="kubernetes.io/aws-ebs"))
    disk = volume("v", awsElasticBlockStore={"volumeID": "aws://z/x"}, claim="c")
    cluster.put(disk, claim("c", bound_to="v"), claim("d"), storage_class(provisioner=""))
    statuses = judged(cluster.plugin(VolumeBinding), cluster.pod_with("c", "d"), cluster)

    assert [statuses[f"n{i}"].code for i in range(3)] == [Code.UNRESOLVABLE, Code.ERROR, Code.UNRESOLVABLE]
    assert statuses["n1"].reasons[0].startswith("could not translate pv: ")


# Filter: claims that wait for their consumer


def test_an_open_volume_serves_where_it_is_reachable(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), storage_class(provisioner="kubernetes.io/no-provisioner"))
    cluster.put(volume("v", affinity=terms("host", "n1")))

    expected = {"n0": (NO_VOLUME,), "n2": (NO_VOLUME,)}
    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster) == expected


def test_a_claim_without_a_volume_is_fine_where_one_can_be_made(cluster: VolumeCluster) -> None:
    topologies = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
    cluster.put(claim("c"), storage_class(allowedTopologies=topologies))

    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster) == {"n2": (NO_VOLUME,)}


def test_a_volume_that_exists_needs_no_topology(cluster: VolumeCluster) -> None:
    topologies = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
    cluster.put(claim("c"), storage_class(allowedTopologies=topologies), volume("v", affinity=terms("zone", "b")))

    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster) == {}


def test_room_is_checked_where_the_driver_keeps_account(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), storage_class(), csi_driver())
    cluster.put(capacity("a", capacity="5Gi", nodeTopology={"matchLabels": {"zone": "a"}}))
    cluster.put(capacity("b", capacity="4Gi", nodeTopology={"matchLabels": {"zone": "b"}}))
    plugin = cluster.plugin(VolumeBinding)

    assert reasons(plugin, cluster.pod_with("c"), cluster) == {"n2": (NO_SPACE,)}
    cluster.put(csi_driver(storage_capacity=False))
    assert reasons(plugin, cluster.pod_with("c"), cluster) == {}


def test_a_claim_that_is_being_provisioned_holds_the_pod_to_its_node(cluster: VolumeCluster) -> None:
    cluster.put(claim("c", annotations={SELECTED: "n1"}), claim("d"), storage_class())
    plugin = cluster.plugin(VolumeBinding)

    expected = {"n0": (NO_VOLUME,), "n2": (NO_VOLUME,)}
    assert reasons(plugin, cluster.pod_with("c", "d"), cluster) == expected
    cluster.put(claim("c", annotations={SELECTED: "gone"}))
    expected["n1"] = (NO_VOLUME,)
    assert reasons(plugin, cluster.pod_with("c", "d"), cluster) == expected


def test_a_claim_that_is_being_provisioned_is_not_matched_with_a_volume(cluster: VolumeCluster) -> None:
    cluster.put(claim("c", annotations={SELECTED: "n1"}), volume("v"))
    cluster.put(storage_class(provisioner="kubernetes.io/no-provisioner"))

    expected = dict.fromkeys(("n0", "n1", "n2"), (NO_VOLUME,))
    assert reasons(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster) == expected


def test_a_claim_with_a_bad_selector_is_an_error(cluster: VolumeCluster) -> None:
    bad = {"matchExpressions": [{"key": "k", "operator": "Near", "values": []}]}
    cluster.put(claim("c", selector=bad), storage_class())
    statuses = judged(cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster)

    assert {status.code for status in statuses.values()} == {Code.ERROR}
    assert statuses["n0"].reasons[0].startswith("error creating internal label selector for claim: default/c: ")


def test_a_class_that_vanished_after_pre_filter_is_an_error(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), storage_class())
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with("c")
    state, _ = started(plugin, pod, cluster)
    cluster.cache.remove_object(storage_class())
    verdicts = plugin.filter_nodes(state, pod, cluster.columns)

    assert verdicts.status(int(verdicts.ids[0])).reasons == ('failed to find storage class "fast"',)
    assert plugin.filter(state, pod, cluster.state.nodes.at(0)).code is Code.ERROR


# Score


def test_it_does_not_score(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with("c")

    assert plugin.pre_score(CycleState(), pod, cluster.columns).is_skip
    assert plugin.score_nodes(CycleState(), pod, cluster.columns).tolist() == [0, 0, 0]
    assert plugin.score(CycleState(), pod, cluster.state.nodes.at(0)) == 0


# Reserve


def reserved(plugin: Any, cluster: VolumeCluster, pod: Any, node_name: str) -> tuple[CycleState, Any]:
    state, status = started(plugin, pod, cluster)
    assert status is None
    return state, plugin.reserve(state, pod, node_name)


def test_a_reserved_volume_is_taken_for_other_pods(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), claim("d"), storage_class(provisioner="kubernetes.io/no-provisioner"), volume("v"))
    plugin, pod, other = cluster.plugin(VolumeBinding), cluster.pod_with("c"), cluster.pod_with("d", name="q")
    state, status = reserved(plugin, cluster, pod, "n1")

    assert status is None
    assert reasons(plugin, other, cluster) == dict.fromkeys(("n0", "n1", "n2"), (NO_VOLUME,))
    plugin.unreserve(state, pod, "n1")
    plugin.unreserve(state, pod, "n1")
    assert reasons(plugin, other, cluster) == {}


def test_a_second_pod_with_the_same_claim_gets_the_same_volume(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), storage_class(provisioner="kubernetes.io/no-provisioner"))
    cluster.put(volume("v", affinity=terms("zone", "a")), volume("w", affinity=terms("zone", "b")))
    plugin, other = cluster.plugin(VolumeBinding), cluster.pod_with("c", name="q")
    reserved(plugin, cluster, cluster.pod_with("c"), "n1")

    assert reasons(plugin, other, cluster) == {"n2": (NO_VOLUME,)}


def test_a_reserved_provisioning_holds_other_pods_to_the_node(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), storage_class())
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with("c")
    state, _ = reserved(plugin, cluster, pod, "n1")

    other = cluster.pod_with("c", name="q")
    assert reasons(plugin, other, cluster) == {"n0": (NO_VOLUME,), "n2": (NO_VOLUME,)}
    plugin.unreserve(state, pod, "n1")
    assert reasons(plugin, other, cluster) == {}


def test_a_newer_version_from_the_api_server_wins_over_a_promise(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), claim("d"), storage_class(provisioner="kubernetes.io/no-provisioner"), volume("v"))
    plugin = cluster.plugin(VolumeBinding)
    reserved(plugin, cluster, cluster.pod_with("c"), "n1")
    cluster.put(volume("v", version="7"))

    assert reasons(plugin, cluster.pod_with("d", name="q"), cluster) == {}


def test_bound_claims_leave_nothing_to_bind(cluster: VolumeCluster) -> None:
    cluster.put(volume("v"), claim("c", bound_to="v"))
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with("c")
    state, status = reserved(plugin, cluster, pod, "n1")

    assert status is None
    assert plugin.pre_bind_pre_flight(state, pod, "n1").is_skip


def test_pods_that_never_met_pre_filter_reserve_nothing(cluster: VolumeCluster) -> None:
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod()

    assert plugin.reserve(CycleState(), pod, "n1") is None
    assert plugin.pre_bind_pre_flight(CycleState(), pod, "n1").is_skip
    plugin.unreserve(CycleState(), pod, "n1")


def test_what_is_reserved_is_told_before_pre_bind(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), claim("d", size="20Gi"), storage_class(), volume("v"))
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with("c", "d")
    state, _ = reserved(plugin, cluster, pod, "n1")
    promised = state[BINDING].reserved

    assert plugin.pre_bind_pre_flight(state, pod, "n1") is None
    assert promised is not None
    assert [(b.volume.name, b.claim.name) for b in promised.bindings] == [("v", "c")]
    assert [(c.name, c.annotations[SELECTED]) for c in promised.provisions] == [("d", "n1")]


def test_reserving_on_a_node_that_is_gone_or_no_longer_fits_fails(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), storage_class(provisioner="kubernetes.io/no-provisioner"), volume("v"))
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with("c")
    state, _ = started(plugin, pod, cluster)

    assert plugin.reserve(state, pod, "gone").code is Code.ERROR
    cluster.cache.remove_object(volume("v"))
    assert plugin.reserve(state, pod, "n1").reasons == (NO_VOLUME,)


def test_a_claim_that_changed_since_pre_filter_cannot_be_promised(cluster: VolumeCluster) -> None:
    cluster.put(claim("c"), claim("d", size="50Gi"), storage_class(), volume("v"))
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with("c", "d")
    state, _ = started(plugin, pod, cluster)
    cluster.put(claim("d", size="50Gi", version="9"))
    status = plugin.reserve(state, pod, "n1")

    assert (status.code, status.reasons) == (
        Code.ERROR,
        ('"default/d" is out of sync (stored: 9, assume: 1)',),
    )
    other = cluster.put(claim("e", version="1")).pod_with("e", name="q")
    assert reserved(plugin, cluster, other, "n1")[0][BINDING].reserved.bindings[0].volume.name == "v"


# Arguments, hints


def test_arguments() -> None:
    assert VolumeBinding.Args().bind_timeout_seconds == 600
    assert VolumeBinding.Args().validate() == []
    assert VolumeBinding.Args(bind_timeout_seconds=-1).validate() == ["bindTimeoutSeconds: must be 0 or more, not -1"]
    assert VolumeBinding.allow_parallel_pre_bind


def test_it_can_be_looked_at_without_a_handle() -> None:
    assert VolumeBinding().events_to_register()


def test_hints(cluster: VolumeCluster) -> None:
    plugin, pod = (
        cluster.plugin(VolumeBinding),
        cluster.pod_with("c", volumes=[{"name": "i", "csi": {"driver": "csi.x"}}]),
    )
    events = {event.event.resource: event for event in plugin.events_to_register()}
    change = ActionType.ADD | ActionType.UPDATE

    assert {resource: event.event.action for resource, event in events.items()} == {
        Resource.STORAGE_CLASS: change,
        Resource.PERSISTENT_VOLUME_CLAIM: change,
        Resource.PERSISTENT_VOLUME: change,
        Resource.NODE: ActionType.ADD | ActionType.UPDATE_NODE_LABEL,
        Resource.CSI_NODE: change,
        Resource.CSI_DRIVER: ActionType.UPDATE,
        Resource.CSI_STORAGE_CAPACITY: change,
    }
    assert events[Resource.PERSISTENT_VOLUME].hint is None
    assert events[Resource.NODE].hint is None

    after_class, allowed = events[Resource.STORAGE_CLASS].hint, [{"matchLabelExpressions": [{"key": "z"}]}]
    assert after_class(pod, None, storage_class()) is Hint.QUEUE
    assert after_class(pod, storage_class(), storage_class(allowedTopologies=allowed)) is Hint.QUEUE
    assert after_class(pod, storage_class(), storage_class(allowedTopologies=[])) is Hint.SKIP

    after_claim = events[Resource.PERSISTENT_VOLUME_CLAIM].hint
    assert after_claim(pod, claim("c"), claim("c")) is Hint.QUEUE
    assert after_claim(pod, None, claim("d")) is Hint.SKIP
    assert after_claim(pod, None, claim("c", namespace="other")) is Hint.SKIP

    after_csi_node = events[Resource.CSI_NODE].hint
    assert after_csi_node(pod, None, csi_node("n")) is Hint.QUEUE
    assert after_csi_node(pod, csi_node("n"), csi_node("n", migrated="a")) is Hint.QUEUE
    assert after_csi_node(pod, csi_node("n"), csi_node("n", csi_x=1)) is Hint.SKIP

    after_driver = events[Resource.CSI_DRIVER].hint
    on, off, unset = (csi_driver(storage_capacity=value) for value in (True, False, None))
    assert after_driver(pod, on, off) is Hint.QUEUE
    assert after_driver(pod, on, unset) is Hint.QUEUE
    assert after_driver(pod, off, on) is Hint.SKIP
    assert after_driver(cluster.pod_with("c"), on, off) is Hint.SKIP

    after_capacity = events[Resource.CSI_STORAGE_CAPACITY].hint
    assert after_capacity(pod, None, capacity("x")) is Hint.QUEUE
    assert after_capacity(pod, capacity("x"), capacity("x", capacity="1Gi")) is Hint.QUEUE
    assert after_capacity(pod, capacity("x", capacity="1Gi"), capacity("x", capacity="2Gi")) is Hint.QUEUE
    assert after_capacity(pod, capacity("x", capacity="2Gi"), capacity("x", capacity="1Gi")) is Hint.SKIP
    larger = capacity("x", capacity="1Gi", maximumVolumeSize="3Gi")
    assert after_capacity(pod, capacity("x", capacity="2Gi"), larger) is Hint.QUEUE
    assert after_capacity(pod, larger, capacity("x", capacity="2Gi")) is Hint.SKIP
    assert after_capacity(pod, capacity("x", capacity="2Gi"), capacity("x")) is Hint.SKIP
