"""Simulated kubelets: what happens on nodes."""

from __future__ import annotations

import pytest
from tests.unit.apiserver.driving import PODS, Driver, pod

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.kubelets.kubelets import UNSIMULATED
from bayplan.apiserver.simulation.kubelets.pod_status import EXIT_CODE, RUN_SECONDS, STOP_SECONDS


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


async def test_an_extended_resource_that_is_added_to_the_capacity_is_offered_to_pods(driver: Driver) -> None:
    await driver.wait(1)
    path = "/api/v1/nodes/node-1"
    await driver.patch(f"{path}/status", {"status": {"capacity": {"example.com/lamp": "3"}}})
    await driver.wait(1)
    assert (await driver.get(path))["status"]["allocatable"]["example.com/lamp"] == "3"

    await driver.patch(f"{path}/status", {"status": {"capacity": {"example.com/lamp": None}}})
    await driver.wait(1)
    assert "example.com/lamp" not in (await driver.get(path))["status"]["allocatable"]


async def test_stopping_an_unknown_node_is_a_clear_error(cluster: EmbeddedCluster) -> None:
    with pytest.raises(KeyError, match="no simulated node is called 'nope'"):
        cluster.kubelets.stop_node("nope")


async def test_a_heartbeat_keeps_nodes_ready_for_long(driver: Driver) -> None:
    await driver.wait(300)

    for name in ("node-1", "node-2", "node-3"):
        assert ready(await driver.get(f"/api/v1/nodes/{name}")) == "True"


async def status_of(driver: Driver, name: str) -> Json:
    found: Json = (await driver.get(f"{PODS}/{name}"))["status"]
    return found


async def test_a_host_port_that_is_taken_and_a_node_that_does_not_match_are_refused(driver: Driver) -> None:
    for name in ("first", "second"):
        body = pod(name)
        body["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        await driver.create(PODS, body)
        await driver.bind(name, "node-1")
        await driver.wait(1)
    elsewhere = pod("elsewhere")
    elsewhere["spec"]["nodeSelector"] = {"color": "blue"}
    await driver.create(PODS, elsewhere)
    await driver.bind("elsewhere", "node-1")
    await driver.wait(1)
    second, third = await status_of(driver, "second"), await status_of(driver, "elsewhere")

    assert (await status_of(driver, "first"))["phase"] == "Running"
    assert (second["phase"], second["reason"]) == ("Failed", "NodePorts")
    assert (third["phase"], third["reason"]) == ("Failed", "NodeAffinity")


async def test_containers_are_restarted_with_back_off_until_they_succeed(driver: Driver) -> None:
    body = pod("a", annotations={RUN_SECONDS: "1", EXIT_CODE: "1,1,0"})
    body["spec"]["restartPolicy"] = "OnFailure"
    await driver.create(PODS, body)
    await driver.bind("a", "node-1")
    await driver.wait(4)
    waiting = (await status_of(driver, "a"))["containerStatuses"][0]
    await driver.wait(20)
    done = await status_of(driver, "a")

    assert waiting["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert (waiting["restartCount"], waiting["lastState"]["terminated"]["exitCode"]) == (1, 1)
    assert (done["phase"], done["containerStatuses"][0]["restartCount"]) == ("Succeeded", 2)


async def test_a_pod_fails_at_its_deadline(driver: Driver) -> None:
    body = pod("a")
    body["spec"]["activeDeadlineSeconds"] = 5
    await driver.create(PODS, body)
    await driver.bind("a", "node-1")
    await driver.wait(4)
    assert (await status_of(driver, "a"))["phase"] == "Running"
    await driver.wait(3)
    status = await status_of(driver, "a")

    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


async def test_a_deadline_that_is_set_while_a_pod_runs_counts_from_its_start(driver: Driver) -> None:
    await driver.create(PODS, pod("a"))
    await driver.bind("a", "node-1")
    await driver.wait(4)
    await driver.patch(f"{PODS}/a", {"spec": {"activeDeadlineSeconds": 6}})
    await driver.wait(1)
    assert (await status_of(driver, "a"))["phase"] == "Running"
    await driver.wait(2)

    assert (await status_of(driver, "a"))["reason"] == "DeadlineExceeded"


async def test_stopping_takes_as_long_as_hooks_and_annotation_say_and_no_longer_than_the_grace(driver: Driver) -> None:
    hooked = pod("hooked")
    hooked["spec"]["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 5}}}
    for body in (hooked, pod("slow", annotations={STOP_SECONDS: "1000"}), pod("quick")):
        await driver.create(PODS, body)
        await driver.bind(body["metadata"]["name"], "node-1")
    await driver.wait(1)
    for name in ("hooked", "slow", "quick"):
        await driver.call("DELETE", f"{PODS}/{name}")
    left = []
    for seconds in (2, 6, 24):
        await driver.wait(seconds)
        left.append(sorted(one["metadata"]["name"] for one in await driver.items(PODS)))

    assert left == [["hooked", "slow"], ["slow"], []]


async def test_a_pod_is_resized_in_place_if_its_node_has_room(driver: Driver) -> None:
    await driver.create(PODS, pod("a", requests={"cpu": "1"}))
    await driver.bind("a", "node-1")
    await driver.wait(1)
    assert (await status_of(driver, "a"))["containerStatuses"][0]["allocatedResources"] == {"cpu": "1"}

    def resized(cpu: str) -> Json:
        return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}

    await driver.patch(f"{PODS}/a/resize", resized("2"))
    await driver.wait(1)
    after = (await driver.get(f"{PODS}/a"))["status"]
    await driver.patch(f"{PODS}/a/resize", resized("200"))
    await driver.wait(1)
    refused = await status_of(driver, "a")
    pending = [one for one in refused["conditions"] if one["type"] == "PodResizePending"]

    assert after["containerStatuses"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert refused["containerStatuses"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert (pending[0]["reason"], refused["phase"]) == ("Infeasible", "Running")


async def test_ephemeral_containers_are_added_to_a_running_pod(driver: Driver) -> None:
    await driver.create(PODS, pod("a"))
    await driver.bind("a", "node-1")
    await driver.wait(1)
    debugger = {"name": "debugger", "image": "example/tools:1"}
    await driver.patch(f"{PODS}/a/ephemeralcontainers", {"spec": {"ephemeralContainers": [debugger]}})
    await driver.wait(1)
    found = await driver.get(f"{PODS}/a")

    assert [one["name"] for one in found["spec"]["ephemeralContainers"]] == ["debugger"]
    assert "running" in found["status"]["ephemeralContainerStatuses"][0]["state"]
