"""What every namespace has, and how one is emptied."""

from __future__ import annotations

from tests.unit.apiserver.driving import Driver, pod

NAMESPACES = "/api/v1/namespaces"


async def test_every_namespace_has_the_authority_of_the_server_and_gets_it_back(driver: Driver) -> None:
    driver.cluster.api.settings.authority = "PEM"
    await driver.create(NAMESPACES, {"metadata": {"name": "team"}})
    await driver.wait(1)
    path = f"{NAMESPACES}/team/configmaps/kube-root-ca.crt"
    assert (await driver.get(path))["data"] == {"ca.crt": "PEM"}
    await driver.call("DELETE", path)
    await driver.wait(1)
    assert await driver.exists(path)
    await driver.patch(path, {"data": {"ca.crt": "forged"}})
    await driver.wait(1)

    assert (await driver.get(path))["data"] == {"ca.crt": "PEM"}


async def test_pods_are_deleted_before_anything_else(driver: Driver) -> None:
    await driver.create(NAMESPACES, {"metadata": {"name": "team"}})
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await driver.create(f"{NAMESPACES}/team/pods", held)
    await driver.create(f"{NAMESPACES}/team/configmaps", {"metadata": {"name": "kept"}})
    await driver.call("DELETE", f"{NAMESPACES}/team")
    await driver.wait(3)
    namespace = await driver.get(f"{NAMESPACES}/team")
    types = {c["type"]: c["status"] for c in namespace["status"]["conditions"]}

    assert "deletionTimestamp" in (await driver.get(f"{NAMESPACES}/team/pods/held"))["metadata"]
    assert await driver.exists(f"{NAMESPACES}/team/configmaps/kept")
    assert types["NamespaceDeletionContentFailure"] == "False"

    await driver.patch(f"{NAMESPACES}/team/pods/held", {"metadata": {"finalizers": None}})
    await driver.wait(3)
    assert not await driver.exists(f"{NAMESPACES}/team")


async def test_what_keeps_a_namespace_from_going_is_told_in_its_conditions(driver: Driver) -> None:
    await driver.create(NAMESPACES, {"metadata": {"name": "team"}})
    metadata = {"name": "held", "finalizers": ["example.com/hold"]}
    await driver.create(f"{NAMESPACES}/team/configmaps", {"metadata": metadata})
    await driver.call("DELETE", f"{NAMESPACES}/team")
    await driver.wait(3)
    conditions = {c["type"]: c for c in (await driver.get(f"{NAMESPACES}/team"))["status"]["conditions"]}

    remaining, finalizers = conditions["NamespaceContentRemaining"], conditions["NamespaceFinalizersRemaining"]
    assert remaining["message"] == "Some resources are remaining: configmaps. has 1 resource instances"
    assert finalizers["message"].endswith("finalizers remaining: example.com/hold in 1 resource instances")
    assert (remaining["status"], finalizers["status"]) == ("True", "True")
