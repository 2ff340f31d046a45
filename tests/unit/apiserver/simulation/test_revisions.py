"""Rollouts of DaemonSets and StatefulSets: revisions, limits, partitions; and circles of owners."""

from __future__ import annotations

from tests.unit.apiserver.driving import PODS, Driver, pod, workload

from bayplan.apiserver.protocol.encoding import Json

APPS = "/apis/apps/v1/namespaces/default"
CHANGE: Json = {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}


async def revisions(driver: Driver) -> list[int]:
    return sorted(one["revision"] for one in await driver.items(f"{APPS}/controllerrevisions"))


async def test_a_daemon_set_follows_the_labels_of_nodes(driver: Driver) -> None:
    body = workload("DaemonSet", "agent")
    body["spec"].pop("replicas", None)
    body["spec"]["template"]["spec"]["nodeSelector"] = {"color": "blue"}
    await driver.create(f"{APPS}/daemonsets", body)
    await driver.settle()
    assert await driver.items(PODS) == []
    await driver.patch("/api/v1/nodes/node-1", {"metadata": {"labels": {"color": "blue"}}})
    await driver.settle()
    assert [one["spec"]["nodeName"] for one in await driver.items(PODS)] == ["node-1"]
    await driver.patch("/api/v1/nodes/node-1", {"metadata": {"labels": {"color": "green"}}})
    await driver.settle()

    assert await driver.items(PODS) == []


async def test_a_revision_holds_the_template_with_its_keys_in_order(driver: Driver) -> None:
    body = workload("DaemonSet", "agent")
    body["spec"].pop("replicas", None)
    await driver.create(f"{APPS}/daemonsets", body)
    await driver.settle()
    (revision,) = await driver.items(f"{APPS}/controllerrevisions")
    template = revision["data"]["spec"]["template"]

    assert list(template) == ["$patch", "metadata", "spec"]
    assert list(template["spec"]) == sorted(template["spec"])


async def test_a_daemon_set_replaces_no_more_pods_at_once_than_it_may(driver: Driver) -> None:
    body = workload("DaemonSet", "agent")
    body["spec"].pop("replicas", None)
    await driver.create(f"{APPS}/daemonsets", body)
    await driver.settle()
    await driver.patch(f"{APPS}/daemonsets/agent", CHANGE)
    fewest = 3
    for _ in range(30):
        await driver.wait(0.3)
        await driver.bind_pending()
        pods = [one for one in await driver.items(PODS) if "deletionTimestamp" not in one["metadata"]]
        fewest = min(fewest, sum(one["status"]["phase"] == "Running" for one in pods))
    await driver.settle()

    assert fewest == 2
    assert {one["metadata"]["annotations"]["v"] for one in await driver.items(PODS)} == {"2"}
    assert await revisions(driver) == [1, 2]


async def test_a_stateful_set_keeps_its_old_revision_below_the_partition(driver: Driver) -> None:
    body = workload("StatefulSet", "db", replicas=3)
    body["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await driver.create(f"{APPS}/statefulsets", body)
    await driver.settle(10)
    first = (await driver.get(f"{APPS}/statefulsets/db"))["status"]
    assert first["currentRevision"] == first["updateRevision"]
    await driver.patch(f"{APPS}/statefulsets/db", CHANGE)
    await driver.settle(10)
    await driver.call("DELETE", f"{PODS}/db-0")
    await driver.settle(10)
    status = (await driver.get(f"{APPS}/statefulsets/db"))["status"]
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in await driver.items(PODS)}

    assert status["currentRevision"] == first["currentRevision"] != status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    assert labels["db-0"]["controller-revision-hash"] == first["currentRevision"]
    assert labels["db-2"]["controller-revision-hash"] == status["updateRevision"]
    assert await revisions(driver) == [1, 2]

    await driver.patch(f"{APPS}/statefulsets/db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    await driver.settle(12)
    done = (await driver.get(f"{APPS}/statefulsets/db"))["status"]
    assert done["currentRevision"] == done["updateRevision"] == status["updateRevision"]


async def test_a_circle_of_owners_is_deleted_in_the_foreground(driver: Driver) -> None:
    made = [await driver.create(PODS, pod(name)) for name in ("a", "b", "c")]
    for index, one in enumerate(made):
        owner = made[index - 1]["metadata"]
        reference = {"apiVersion": "v1", "kind": "Pod", "name": owner["name"], "uid": owner["uid"]}
        reference |= {"controller": True, "blockOwnerDeletion": True}
        await driver.patch(f"{PODS}/{one['metadata']['name']}", {"metadata": {"ownerReferences": [reference]}})
    await driver.call("DELETE", f"{PODS}/a", {"propagationPolicy": "Foreground"})
    await driver.wait(5)

    assert await driver.items(PODS) == []
