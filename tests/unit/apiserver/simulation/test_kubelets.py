"""Simulated kubelets: what happens on nodes."""

from __future__ import annotations

import pytest
from tests.unit.apiserver.driving import PODS, Driver, pod

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.simulation.kubelets.kubelets import EXIT_CODE, RUN_SECONDS, UNSIMULATED


def ready(node: dict[str, dict[str, list[dict[str, str]]]]) -> str:
    return next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready")


async def test_nodes_report_ready_with_capacity_and_lease(driver: Driver) -> None:
    await driver.wait(1)
    node = await driver.get("/api/v1/nodes/node-1")
    lease = await driver.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1")

    assert ready(node) == "True"
    assert node["status"]["allocatable"]["cpu"] == "8"
    assert lease["spec"]["holderIdentity"] == "node-1"


async def test_a_bound_pod_becomes_running_with_an_address(driver: Driver) -> None:
    await driver.create(PODS, pod("a"))
    await driver.bind("a", "node-1")
    assert (await driver.get(f"{PODS}/a"))["status"]["phase"] == "Pending"
    await driver.wait(1)
    status = (await driver.get(f"{PODS}/a"))["status"]

    assert status["phase"] == "Running"
    assert status["podIP"].startswith("10.")
    assert status["containerStatuses"][0]["ready"] is True
    assert {c["type"] for c in status["conditions"] if c["status"] == "True"} >= {"Ready", "PodScheduled"}


async def test_a_pod_finishes_when_its_annotation_says(driver: Driver) -> None:
    await driver.create(PODS, pod("good", annotations={RUN_SECONDS: "5"}))
    await driver.create(PODS, pod("bad", annotations={RUN_SECONDS: "5", EXIT_CODE: "3"}))
    await driver.bind_pending()
    await driver.wait(4)
    assert (await driver.get(f"{PODS}/good"))["status"]["phase"] == "Running"
    await driver.wait(2)

    assert (await driver.get(f"{PODS}/good"))["status"]["phase"] == "Succeeded"
    failed = (await driver.get(f"{PODS}/bad"))["status"]
    assert failed["phase"] == "Failed"
    assert failed["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


async def test_a_deleted_pod_is_finished_by_its_kubelet(driver: Driver) -> None:
    await driver.create(PODS, pod("a"))
    await driver.bind("a", "node-1")
    await driver.wait(1)
    await driver.call("DELETE", f"{PODS}/a")
    assert await driver.exists(f"{PODS}/a")
    await driver.wait(1)

    assert not await driver.exists(f"{PODS}/a")


async def test_a_node_without_room_rejects_a_pod(driver: Driver) -> None:
    await driver.create(PODS, pod("a", requests={"cpu": "5"}))
    await driver.create(PODS, pod("b", requests={"cpu": "5"}))
    await driver.bind("a", "node-1")
    await driver.bind("b", "node-1")
    await driver.wait(1)

    assert (await driver.get(f"{PODS}/a"))["status"]["phase"] == "Running"
    rejected = (await driver.get(f"{PODS}/b"))["status"]
    assert (rejected["phase"], rejected["reason"]) == ("Failed", "OutOfcpu")


async def test_room_is_free_again_when_a_pod_is_gone(driver: Driver) -> None:
    await driver.create(PODS, pod("a", requests={"cpu": "5"}))
    await driver.bind("a", "node-1")
    await driver.wait(1)
    await driver.call("DELETE", f"{PODS}/a")
    await driver.wait(1)
    await driver.create(PODS, pod("b", requests={"cpu": "5"}))
    await driver.bind("b", "node-1")
    await driver.wait(1)

    assert (await driver.get(f"{PODS}/b"))["status"]["phase"] == "Running"


async def test_a_stopped_node_becomes_unknown_and_loses_its_pods_in_time(driver: Driver) -> None:
    await driver.create(PODS, pod("a"))
    await driver.bind("a", "node-2")
    await driver.wait(1)
    driver.cluster.kubelets.stop_node("node-2")
    await driver.wait(60)
    node = await driver.get("/api/v1/nodes/node-2")
    assert ready(node) == "Unknown"
    taints = {(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]}
    assert ("node.kubernetes.io/unreachable", "NoExecute") in taints
    assert "deletionTimestamp" not in (await driver.get(f"{PODS}/a"))["metadata"]
    await driver.wait(320)

    evicted = await driver.get(f"{PODS}/a")
    assert "deletionTimestamp" in evicted["metadata"]
    assert any(c["type"] == "DisruptionTarget" for c in evicted["status"]["conditions"])
    driver.cluster.kubelets.start_node("node-2")
    await driver.wait(45)
    node = await driver.get("/api/v1/nodes/node-2")
    assert ready(node) == "True"
    assert not node["spec"].get("taints")
    assert not await driver.exists(f"{PODS}/a")


async def test_a_deleted_node_loses_its_pods_at_once(driver: Driver) -> None:
    await driver.create(PODS, pod("a"))
    await driver.bind("a", "node-3")
    await driver.wait(1)
    await driver.call("DELETE", "/api/v1/nodes/node-3")
    await driver.wait(1)

    assert not await driver.exists(f"{PODS}/a")
    assert "node-3" not in driver.cluster.kubelets.nodes


async def test_a_new_node_is_simulated_too_unless_it_says_no(driver: Driver) -> None:
    await driver.create("/api/v1/nodes", {"metadata": {"name": "mine"}})
    await driver.create("/api/v1/nodes", {"metadata": {"name": "theirs", "annotations": {UNSIMULATED: "none"}}})
    await driver.wait(1)

    assert ready(await driver.get("/api/v1/nodes/mine")) == "True"
    assert "conditions" not in (await driver.get("/api/v1/nodes/theirs")).get("status", {})


async def test_stopping_an_unknown_node_is_a_clear_error(cluster: EmbeddedCluster) -> None:
    with pytest.raises(KeyError, match="no simulated node is called 'nope'"):
        cluster.kubelets.stop_node("nope")


async def test_a_heartbeat_keeps_nodes_ready_for_long(driver: Driver) -> None:
    await driver.wait(300)

    for name in ("node-1", "node-2", "node-3"):
        assert ready(await driver.get(f"/api/v1/nodes/{name}")) == "True"
