"""What a dump leaves out: made where it is named, left alone where it is there."""

from __future__ import annotations

from typing import Any

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.observe.clock import VirtualClock
from bayplan.sim.dump_completion import completed, servable


def pod(name: str, **more: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-web", "controller": True}
    metadata = {"name": name, "namespace": "shop", "uid": f"u-{name}", "ownerReferences": [owner]}
    metadata |= {"creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"app": "web"}}
    spec = {"containers": [{"name": "main", "image": "example/app:1"}], "nodeName": "n1", **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def replica_set() -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "example/app:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "web", "namespace": "shop", "uid": "u-web"}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def node() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"capacity": {"cpu": 4, "pods": 9}},
    }


def made(documents: list[dict[str, Any]]) -> list[str]:
    return [f"{one['kind']} {one['metadata']['name']}" for one in completed(documents)][: -len(documents)]


def test_namespaces_accounts_and_classes_that_pods_name_are_made_once() -> None:
    pods = [pod(f"p{i}", serviceAccountName="robot", priorityClassName="high", priority=1000) for i in range(2)]

    assert made(pods) == ["Namespace shop", "ServiceAccount robot", "PriorityClass high"]
    assert completed(pods)[2]["value"] == 1000


def test_what_is_given_or_part_of_every_cluster_is_not_made() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    critical = pod("p", priorityClassName="system-node-critical", priority=2_000_001_000)

    assert made([namespace, critical]) == []


def test_owners_that_are_missing_are_dropped_and_those_that_are_there_stay() -> None:
    alone, together = completed([pod("p")])[-1], completed([replica_set(), pod("p")])[-1]

    assert "ownerReferences" not in alone["metadata"]
    assert together["metadata"]["ownerReferences"][0]["uid"] == "u-web"


def test_kinds_that_nobody_serves_are_left_out_with_a_line() -> None:
    version = {"name": "v1"}
    spec = {"group": "e.com", "names": {"kind": "Foo"}, "versions": [version]}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    known = [definition, {"apiVersion": "e.com/v1", "kind": "Foo"}]
    job = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}

    kept, left_out = servable([*known, job, job])

    assert kept == known
    assert left_out == ["2 autoscaling/v2/HorizontalPodAutoscaler left out: the embedded cluster has no such kind"]


async def test_a_dump_with_its_owners_comes_up_as_it_was() -> None:
    clock = VirtualClock()
    over = pod("over") | {"status": {"phase": "Succeeded"}}
    dump = completed([node(), replica_set(), pod("p"), over])
    cluster = EmbeddedCluster(objects=dump, listen=False, clock=clock)
    await cluster.start()
    await clock.run_for(5.0)
    answer = await cluster.in_process_transport().request("GET", "/api/v1/namespaces/shop/pods")
    listed = answer.json()["items"]
    await cluster.stop()

    phases = {one["metadata"]["name"]: one["status"]["phase"] for one in listed}
    assert phases == {"over": "Succeeded", "p": "Running"}
    assert listed[1]["metadata"]["uid"] == "u-p"
    assert listed[1]["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"
