"""Which pods a workload controls: only its own, orphans that match, and none that no longer do."""

from __future__ import annotations

from tests.unit.apiserver.driving import PODS, Driver, pod, template, workload

from bayplan.apiserver.protocol.encoding import Json

SETS = "/apis/apps/v1/namespaces/default/replicasets"
CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"


async def owner_of(driver: Driver, name: str) -> str:
    references = (await driver.get(f"{PODS}/{name}"))["metadata"].get("ownerReferences") or []
    return next((one["name"] for one in references if one.get("controller")), "")


async def test_a_reference_without_controller_is_no_ownership(driver: Driver) -> None:
    """A set of none leaves the pods of another alone, even if they name it as an owner too."""
    body: Json = {"metadata": {"name": "keep"}, "spec": {"replicas": 2, "template": template({"app": "keep"})}}
    await driver.create(CONTROLLERS, body)
    none: Json = {"metadata": {"name": "none"}, "spec": {"replicas": 0, "template": template({"app": "none"})}}
    other = await driver.create(CONTROLLERS, none)
    await driver.settle()
    reference = {"apiVersion": "v1", "kind": "ReplicationController", "name": "none", "uid": other["metadata"]["uid"]}
    for one in await driver.items(PODS):
        both = [*one["metadata"]["ownerReferences"], reference]
        await driver.patch(f"{PODS}/{one['metadata']['name']}", {"metadata": {"ownerReferences": both}})
    before = {one["metadata"]["uid"] for one in await driver.items(PODS)}
    await driver.patch(f"{CONTROLLERS}/none", {"metadata": {"labels": {"touched": "yes"}}})
    await driver.settle()

    assert {one["metadata"]["uid"] for one in await driver.items(PODS)} == before
    assert (await driver.get(f"{CONTROLLERS}/none"))["status"]["replicas"] == 0


async def test_a_workload_adopts_orphans_that_it_selects(driver: Driver) -> None:
    await driver.create(PODS, pod("orphan", labels={"app": "web"}))
    await driver.create(PODS, pod("stranger", labels={"app": "other"}))
    await driver.create(SETS, workload("ReplicaSet", "web", replicas=1))
    await driver.settle()

    assert await owner_of(driver, "orphan") == "web"
    assert await owner_of(driver, "stranger") == ""
    assert len(await driver.items(PODS, labelSelector="app=web")) == 1

    await driver.create(PODS, pod("late", labels={"app": "web"}))
    await driver.settle()
    left = [one["metadata"]["name"] for one in await driver.items(PODS, labelSelector="app=web")]
    assert len(left) == 1


async def test_a_pod_that_is_no_longer_selected_is_released_and_replaced(driver: Driver) -> None:
    await driver.create(SETS, workload("ReplicaSet", "web", replicas=1))
    await driver.settle()
    first = (await driver.items(PODS))[0]["metadata"]["name"]
    await driver.patch(f"{PODS}/{first}", {"metadata": {"labels": {"app": "apart"}}})
    await driver.settle()

    assert await owner_of(driver, first) == ""
    assert len(await driver.items(PODS, labelSelector="app=web")) == 1


async def test_a_stateful_set_adopts_only_pods_of_its_own_names(driver: Driver) -> None:
    await driver.create(PODS, pod("db-0", labels={"app": "db"}))
    await driver.create(PODS, pod("other-0", labels={"app": "db"}))
    await driver.create("/apis/apps/v1/namespaces/default/statefulsets", workload("StatefulSet", "db", replicas=1))
    await driver.settle()

    assert await owner_of(driver, "db-0") == "db"
    assert await owner_of(driver, "other-0") == ""
