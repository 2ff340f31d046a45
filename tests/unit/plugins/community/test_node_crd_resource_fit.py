"""NodeCRDResourceFit: nodes without an object are refused, the others score by it."""

from __future__ import annotations

from bayplan.api.meta import Metadata
from bayplan.plugins.community.node_crd_resource_fit import (
    ClusterScopedResource,
    ClusterScopedResourceSpec,
    NodeCRDResourceFit,
)
from bayplan.testing import Harness, container, expect, node, pod

MEMORY = "company.net/memory"
POD = pod("nginx", requests={MEMORY: "100Mi"})


def _resource(name: str, *, enabled: dict[str, bool], scores: dict[str, int] | None = None) -> ClusterScopedResource:
    return ClusterScopedResource(
        metadata=Metadata(name=name, uid=name),
        spec=ClusterScopedResourceSpec(resources_filter=enabled, resources_score=scores),
    )


def _harness(*resources: ClusterScopedResource, nodes: tuple[str, ...] = ("eee", "fff", "aaa")) -> Harness:
    cluster = [node(name, allocatable={MEMORY: "1Gi"}) for name in nodes]
    return Harness(nodes=cluster, objects=resources, plugins=[NodeCRDResourceFit], default_plugins=False)


def test_nodes_without_an_object_are_refused_and_the_others_score_55() -> None:
    harness = _harness(
        _resource("eee", enabled={MEMORY: True}, scores={MEMORY: 55}),
        _resource("fff", enabled={MEMORY: True}, scores={MEMORY: 55}),
    )

    outcome = harness.schedule(POD)

    expect(outcome).rejected_because("CRD for node not found", on="aaa", by="NodeCRDResourceFit")
    expect(outcome).scores("NodeCRDResourceFit", {"eee": 55, "fff": 55})


def test_a_resource_that_is_absent_or_off_refuses_the_node() -> None:
    harness = _harness(_resource("eee", enabled={MEMORY: False}), _resource("fff", enabled={}))

    outcome = harness.schedule(POD)

    expect(outcome).rejected_because(f"Node does not enable resource {MEMORY}", on="eee")
    expect(outcome).rejected_because(f"Node does not enable resource {MEMORY}", on="fff")


def test_the_score_is_the_mean_of_scores_from_0_to_100_rounded_up() -> None:
    enabled = {"a": True, "b": True}
    harness = _harness(
        _resource("eee", enabled=enabled, scores={"a": 5, "b": 500}),
        _resource("fff", enabled=enabled, scores={"a": -7, "b": 3}),
        nodes=("eee", "fff"),
    )

    outcome = harness.explain(
        pod("two", containers=[container("x", requests={"a": 1}), container("y", requests={"b": 1})])
    )

    expect(outcome).scores("NodeCRDResourceFit", {"eee": 53, "fff": 2})


def test_a_pod_that_requests_nothing_scores_nothing_and_divides_by_nothing() -> None:
    harness = _harness(_resource("eee", enabled={}, scores={MEMORY: 55}))

    expect(harness.explain(pod("idle"))).scores("NodeCRDResourceFit", {"eee": 0})


def test_init_containers_are_not_asked() -> None:
    harness = _harness(_resource("eee", enabled={}))

    expect(harness.schedule(pod("web", init_containers=[container("setup", requests={MEMORY: 1})]))).scheduled_on("eee")


def test_a_changed_object_is_seen_by_the_next_decision() -> None:
    """Answers are remembered by node; a change of the custom resource must not be missed."""
    harness = _harness(_resource("eee", enabled={MEMORY: True}), nodes=("eee",))
    expect(harness.explain(POD)).accepted("eee")

    harness.add(_resource("eee", enabled={MEMORY: False}))
    expect(harness.explain(POD)).rejected("eee")
    harness.add(_resource("eee", enabled={MEMORY: True}))
    expect(harness.explain(POD)).accepted("eee")
    harness.remove(_resource("eee", enabled={}))
    expect(harness.explain(POD)).rejected_because("CRD for node not found", on="eee")


def test_changes_of_the_object_and_new_nodes_bring_pods_back() -> None:
    events = [hint.event.resource for hint in NodeCRDResourceFit().events_to_register()]

    assert events == ["clusterscopedresources.v1alpha1.scheduling.sigs.k8s.io", "Node"]
