"""Rollouts of Deployments and DaemonSets: revisions, progress and its deadline, pauses, and pods beside old ones."""

from __future__ import annotations

import pytest
from tests.unit.apiserver.driving import PODS, Driver, workload

from bayplan.apiserver.protocol.encoding import Json

APPS = "/apis/apps/v1/namespaces/default"
WEB = f"{APPS}/deployments/web"
REVISION = "deployment.kubernetes.io/revision"


def version(name: str | None) -> Json:
    return {"spec": {"template": {"metadata": {"annotations": {"v": name}}}}}


async def progress(driver: Driver) -> Json:
    conditions = (await driver.get(WEB))["status"]["conditions"]
    return {one["type"]: one for one in conditions}["Progressing"]


@pytest.mark.parametrize(
    ("kind", "place"), [("Deployment", "deployments"), ("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets")]
)
async def test_pods_are_available_once_they_have_been_ready_for_long_enough(
    driver: Driver, kind: str, place: str
) -> None:
    amount: Json = {} if kind == "DaemonSet" else {"replicas": 1}
    await driver.create(f"{APPS}/{place}", workload(kind, "web", minReadySeconds=60, **amount))
    await driver.settle()
    field = "numberAvailable" if kind == "DaemonSet" else "availableReplicas"
    early = (await driver.get(f"{APPS}/{place}/web"))["status"].get(field, 0)
    await driver.wait(70)

    assert early == 0
    assert (await driver.get(f"{APPS}/{place}/web"))["status"].get(field, 0) > 0


async def test_an_old_template_becomes_the_newest_revision(driver: Driver) -> None:
    await driver.create(f"{APPS}/deployments", workload("Deployment", "web", replicas=1))
    await driver.settle()
    await driver.patch(WEB, {"metadata": {"annotations": {"kubernetes.io/change-cause": "first"}}})
    await driver.settle()
    await driver.patch(WEB, version("2"))
    await driver.settle()
    await driver.patch(WEB, version(None))
    await driver.settle()
    sets = await driver.items(f"{APPS}/replicasets")
    revisions = {one["spec"]["replicas"]: one["metadata"]["annotations"] for one in sets}

    assert (await driver.get(WEB))["metadata"]["annotations"][REVISION] == "3"
    assert {size: found[REVISION] for size, found in revisions.items()} == {1: "3", 0: "2"}
    assert revisions[1]["deployment.kubernetes.io/revision-history"] == "1"
    assert revisions[1]["kubernetes.io/change-cause"] == "first"


async def test_a_rollout_that_makes_no_progress_times_out(driver: Driver) -> None:
    body = workload("Deployment", "web", replicas=1, progressDeadlineSeconds=30)
    await driver.create(f"{APPS}/deployments", body)
    await driver.wait(1)
    (one,) = await driver.items(f"{APPS}/replicasets")
    name = one["metadata"]["name"]
    started = await progress(driver)
    await driver.wait(40)
    stuck = await progress(driver)
    await driver.settle()
    done = await progress(driver)

    assert (started["status"], started["message"]) == ("True", f'ReplicaSet "{name}" is progressing.')
    assert (stuck["status"], stuck["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert stuck["message"] == f'ReplicaSet "{name}" has timed out progressing.'
    assert (done["status"], done["reason"]) == ("True", "NewReplicaSetAvailable")
    assert done["message"] == f'ReplicaSet "{name}" has successfully progressed.'


async def test_a_paused_deployment_is_scaled_and_not_rolled_out(driver: Driver) -> None:
    await driver.create(f"{APPS}/deployments", workload("Deployment", "web", replicas=1))
    await driver.settle()
    await driver.patch(WEB, version("2") | {"spec": version("2")["spec"] | {"paused": True, "replicas": 3}})
    await driver.settle()
    pods = await driver.items(PODS)
    paused = await progress(driver)

    assert [(one["metadata"].get("annotations") or {}).get("v") for one in pods] == [None] * 3
    assert (paused["status"], paused["reason"]) == ("Unknown", "DeploymentPaused")
    await driver.patch(WEB, {"spec": {"paused": False}})
    await driver.settle()
    assert {one["metadata"]["annotations"].get("v") for one in await driver.items(PODS)} == {"2"}
    assert (await progress(driver))["reason"] == "NewReplicaSetAvailable"


async def test_a_deployment_tells_that_its_pods_cannot_be_created(driver: Driver) -> None:
    hard: Json = {"spec": {"hard": {"pods": "1"}}, "metadata": {"name": "q"}}
    await driver.create("/api/v1/namespaces/default/resourcequotas", hard)
    await driver.create(f"{APPS}/deployments", workload("Deployment", "web", replicas=2))
    await driver.settle()
    failures = [one for one in (await driver.get(WEB))["status"]["conditions"] if one["type"] == "ReplicaFailure"]

    assert [(one["status"], one["reason"]) for one in failures] == [("True", "FailedCreate")]


async def test_a_daemon_set_makes_new_pods_beside_old_ones_where_it_may(driver: Driver) -> None:
    strategy: Json = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await driver.create(f"{APPS}/daemonsets", workload("DaemonSet", "web", updateStrategy=strategy))
    await driver.settle()
    wanted = len(await driver.items(PODS))
    await driver.patch(f"{APPS}/daemonsets/web", version("2"))
    most, fewest = 0, wanted
    for _ in range(40):
        await driver.wait(0.3)
        await driver.bind_pending()
        pods = [one for one in await driver.items(PODS) if "deletionTimestamp" not in one["metadata"]]
        most = max(most, len(pods))
        running = {one["spec"]["nodeName"] for one in pods if one["status"]["phase"] == "Running"}
        fewest = min(fewest, len(running))
    await driver.settle()

    assert (most, fewest) == (wanted + 1, wanted)
    assert {one["metadata"]["annotations"].get("v") for one in await driver.items(PODS)} == {"2"}
