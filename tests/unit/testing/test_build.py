"""Builders: short to write, the API's own structs to read."""

from __future__ import annotations

import pytest

from bayplan.api.pod import Toleration
from bayplan.testing import (
    HOSTNAME,
    REGION,
    ZONE,
    apart,
    container,
    csi_node,
    namespace,
    near,
    node,
    node_term,
    owned_by,
    pdb,
    pod,
    prefer_nodes,
    priority_class,
    pv,
    pvc,
    replica_set,
    replication_controller,
    require_nodes,
    selector,
    service,
    spread,
    stateful_set,
    storage_class,
    taint,
    toleration,
)


def test_a_plain_pod_is_pending_and_asks_for_nothing() -> None:
    made = pod("web")

    assert made.key == "default/web"
    assert made.status.phase == "Pending"
    assert made.spec.node_name == ""
    assert made.spec.containers is not None
    assert made.spec.containers[0].resources is None
    assert made.uid != pod("other").uid


def test_a_pod_has_what_it_was_given() -> None:
    made = pod(
        "web",
        cpu="500m",
        memory="1Gi",
        labels={"app": "web"},
        priority=7,
        node="n1",
        node_selector={"disk": "ssd"},
        tolerations=["spot=yes:NoSchedule", Toleration(key="gpu")],
        host_ports=[80],
        volumes=["data"],
        gates=["wait"],
        terminating=True,
    )
    assert made.spec.containers is not None
    main = made.spec.containers[0]
    assert main.resources is not None

    assert main.resources.requests == {"cpu": "500m", "memory": "1Gi"}
    assert main.ports is not None
    assert main.ports[0].host_port == 80
    assert made.status.phase == "Running"
    assert made.priority == 7
    assert made.is_terminating
    assert [each.key for each in made.spec.tolerations or ()] == ["spot", "gpu"]
    assert [v.persistent_volume_claim.claim_name for v in made.spec.volumes or () if v.persistent_volume_claim] == [
        "data"
    ]
    assert [gate.name for gate in made.spec.scheduling_gates or ()] == ["wait"]


def test_a_pod_is_as_an_api_server_would_serve_it() -> None:
    """Requests follow limits, and matchLabelKeys are merged into selectors."""
    made = pod(labels={"v": "2"}, limits={"cpu": 2}, spread=[spread(ZONE, {"app": "x"}, match_label_keys=["v"])])
    assert made.spec.containers is not None
    assert made.spec.containers[0].resources is not None
    constraint = (made.spec.topology_spread_constraints or [])[0]
    assert constraint.label_selector is not None

    assert made.spec.containers[0].resources.requests == {"cpu": 2}
    assert [e.key for e in constraint.label_selector.match_expressions or ()] == ["v"]


def test_affinities_are_joined() -> None:
    rules = [
        near(ZONE, {"app": "db"}),
        apart(HOSTNAME, {"app": "web"}, weight=5),
        apart(HOSTNAME, selector(exists=["x"])),
        require_nodes(node_term({"disk": "ssd"}), node_term(greater={"gen": 2})),
        prefer_nodes(node_term(exists=["fast"]), weight=9),
    ]
    affinity = pod(affinity=rules).spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    assert affinity.pod_anti_affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None

    assert [t.topology_key for t in affinity.pod_affinity.required] == [ZONE]
    assert [w.weight for w in affinity.pod_anti_affinity.preferred] == [5]
    assert len(affinity.pod_anti_affinity.required) == 1
    assert len(affinity.node_affinity.required.node_selector_terms or ()) == 2
    assert [t.weight for t in affinity.node_affinity.preferred or ()] == [9]
    assert pod(affinity=[]).spec.affinity is None


def test_a_plain_node_is_an_ordinary_one() -> None:
    made = node("n1")

    assert made.labels == {HOSTNAME: "n1"}
    assert made.status.allocatable == {"cpu": 4, "memory": "32Gi", "pods": 110}


def test_a_node_has_what_it_was_given() -> None:
    made = node(
        "n1",
        cpu=8,
        zone="a",
        region="r",
        labels={"disk": "ssd"},
        hostname="",
        taints=["spot=yes:NoSchedule", "gpu:NoExecute"],
        allocatable={"example.com/gpu": 2, "pods": 5},
        images={"app:1": "1Gi"},
        unschedulable=True,
        features=["F"],
    )

    assert made.labels == {ZONE: "a", REGION: "r", "disk": "ssd"}
    assert made.status.allocatable == {"cpu": 8, "memory": "32Gi", "pods": 5, "example.com/gpu": 2}
    assert [(t.key, t.value, t.effect) for t in made.spec.taints or ()] == [
        ("spot", "yes", "NoSchedule"),
        ("gpu", "", "NoExecute"),
    ]
    assert made.status.images is not None
    assert made.status.images[0].size_bytes == 1 << 30
    assert made.spec.unschedulable


@pytest.mark.parametrize("text", ["spot", "spot=yes", ":NoSchedule", "spot:"])
def test_a_taint_needs_a_key_and_an_effect(text: str) -> None:
    with pytest.raises(ValueError, match="is not a taint"):
        taint(text)


def test_a_toleration_in_short_form() -> None:
    assert toleration("a=b:NoSchedule") == Toleration(key="a", operator="Equal", value="b", effect="NoSchedule")
    assert toleration("a") == Toleration(key="a", operator="Exists")
    assert toleration("*", seconds=5) == Toleration(operator="Exists", toleration_seconds=5)


def test_other_objects_in_one_line() -> None:
    assert namespace("shop", labels={"team": "a"}).labels["kubernetes.io/metadata.name"] == "shop"
    assert service("web", {"app": "web"}).spec.selector == {"app": "web"}
    assert pdb("b", {"app": "web"}, allowed=2, disrupted=["x"]).status.disruptions_allowed == 2
    assert priority_class("high", 10).value == 10
    assert storage_class("fast").volume_binding_mode == "WaitForFirstConsumer"
    assert storage_class("now", waits=False).volume_binding_mode == "Immediate"
    assert (csi_node("n1", {"d": 3, "e": None}).spec.drivers or [])[1].allocatable is None


def test_a_bound_claim_and_its_volume_know_each_other() -> None:
    claim, volume = pvc("data", volume="disk"), pv("disk", claim="default/data", zone="a", driver="d")

    assert claim.status.phase == "Bound"
    assert "pv.kubernetes.io/bind-completed" in claim.annotations
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.name == "data"
    assert volume.spec.node_affinity is not None
    assert pvc("new", selected_node="n1").annotations == {"volume.kubernetes.io/selected-node": "n1"}
    assert pv("free").status.phase == "Available"


def test_owners_are_named_by_kind() -> None:
    assert owned_by(replica_set("web", {"app": "web"})).api_version == "apps/v1"
    assert owned_by(stateful_set("db", selector(exists=["x"]))).kind == "StatefulSet"
    assert owned_by(replication_controller("rc", {"app": "x"})).api_version == "v1"


def test_a_container_may_be_a_sidecar() -> None:
    assert container(sidecar=True).restart_policy == "Always"
    assert container().restart_policy is None
