"""Claims of pods in the embedded cluster, made from templates, released and deleted; and the device driver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.apiserver.driving import PODS, Driver, pod

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.simulation.devices import DeviceModel, UnusableModel, read_models
from bayplan.observe.clock import VirtualClock

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS, TEMPLATES = f"{GROUP}/namespaces/default/resourceclaims", f"{GROUP}/namespaces/default/resourceclaimtemplates"
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
FINALIZER = "resource.kubernetes.io/delete-protection"


@pytest.fixture
async def devices(clock: VirtualClock) -> AsyncIterator[Driver]:
    models = read_models(["gpu.example.com=2"])
    cluster = EmbeddedCluster(nodes=2, clock=clock, listen=False, seed=7, devices=models)
    await cluster.start()
    yield Driver(cluster, clock)
    await cluster.stop()


def template(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "t"}, "spec": {"metadata": metadata, "spec": SPEC}}


def claiming(name: str = "p") -> dict[str, Any]:
    return pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])


async def allocate(driver: Driver, claim: dict[str, Any], user: dict[str, Any]) -> None:
    """What a scheduler writes."""
    path = f"{CLAIMS}/{claim['metadata']['name']}"
    await driver.patch(path, {"metadata": {"finalizers": [FINALIZER]}})
    result = {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
    consumer = {"resource": "pods", "name": user["metadata"]["name"], "uid": user["metadata"]["uid"]}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
    await driver.patch(f"{path}/status", {"status": status})


async def test_every_node_gets_a_slice_and_every_driver_a_class(devices: Driver) -> None:
    await devices.wait(1)
    slices = await devices.items(f"{GROUP}/resourceslices")

    assert [each["spec"]["nodeName"] for each in slices] == ["node-1", "node-2"]
    assert [each["name"] for each in slices[0]["spec"]["devices"]] == ["gpu-0", "gpu-1"]
    assert await devices.exists(f"{GROUP}/deviceclasses/gpu.example.com")


async def test_the_slice_of_a_node_goes_with_the_node(devices: Driver) -> None:
    await devices.wait(1)
    await devices.call("DELETE", "/api/v1/nodes/node-1")
    await devices.wait(2)

    assert [each["spec"]["nodeName"] for each in await devices.items(f"{GROUP}/resourceslices")] == ["node-2"]


async def test_a_claim_is_made_from_the_template_and_noted_in_the_pod(devices: Driver) -> None:
    await devices.create(TEMPLATES, template(labels={"team": "a"}))
    made = await devices.create(PODS, claiming())
    await devices.wait(1)
    (claim,) = await devices.items(CLAIMS)
    found = await devices.get(f"{PODS}/p")

    assert claim["metadata"]["generateName"] == "p-gpu-"
    assert claim["metadata"]["labels"] == {"team": "a"}
    assert claim["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert claim["spec"]["devices"]["requests"][0]["exactly"] == {
        "deviceClassName": "gpu.example.com",
        "allocationMode": "ExactCount",
        "count": 1,
    }
    assert found["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]


async def test_a_missing_template_is_told_and_waited_for(devices: Driver) -> None:
    await devices.create(PODS, claiming())
    await devices.wait(1)
    reasons = {event["reason"] for event in await devices.items("/api/v1/namespaces/default/events")}

    assert "FailedResourceClaimCreation" in reasons
    await devices.create(TEMPLATES, template())
    await devices.wait(2)
    assert len(await devices.items(CLAIMS)) == 1


async def test_a_claim_of_a_template_goes_with_its_pod(devices: Driver) -> None:
    await devices.create(TEMPLATES, template())
    made = await devices.create(PODS, claiming())
    await devices.wait(1)
    (claim,) = await devices.items(CLAIMS)
    await allocate(devices, claim, made)
    await devices.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    await devices.wait(3)

    assert await devices.items(CLAIMS) == []


async def test_a_claim_that_people_made_stays_and_is_free_again(devices: Driver) -> None:
    claim = await devices.create(CLAIMS, {"metadata": {"name": "c"}, "spec": SPEC})
    made = await devices.create(PODS, pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]))
    await allocate(devices, claim, made)
    await devices.wait(1)
    assert "allocation" in (await devices.get(f"{CLAIMS}/c"))["status"]
    await devices.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    await devices.wait(2)
    found = await devices.get(f"{CLAIMS}/c")

    assert "allocation" not in found.get("status", {})
    assert FINALIZER not in found["metadata"].get("finalizers", [])


async def test_devices_with_conditions_are_reported_ready_after_their_time(clock: VirtualClock) -> None:
    model = DeviceModel(
        driver="gpu.example.com", count=1, device={"bindingConditions": ["ready"]}, ready_after_seconds=5
    )
    cluster = EmbeddedCluster(nodes=1, clock=clock, listen=False, devices=[model])
    await cluster.start()
    driver = Driver(cluster, clock)
    await driver.create(CLAIMS, {"metadata": {"name": "c"}, "spec": SPEC})
    place = {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
    result = {"request": "r", **place, "bindingConditions": ["ready"]}
    await driver.patch(f"{CLAIMS}/c/status", {"status": {"allocation": {"devices": {"results": [result]}}}})
    await driver.wait(1)
    assert "devices" not in (await driver.get(f"{CLAIMS}/c"))["status"]
    await driver.wait(6)
    (status,) = (await driver.get(f"{CLAIMS}/c"))["status"]["devices"]
    await cluster.stop()

    assert {name: status[name] for name in place} == place
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [("ready", "True")]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("gpu.example.com", "`gpu.example.com` is not DRIVER=COUNT"),
        ("gpu.example.com=many", "is not DRIVER=COUNT"),
        ("gpu.example.com=129", "`count` is a number from 0 to 128"),
        ({"count": 1}, "devices without `driver`"),
        ({"driver": "a", "nodes": {}}, "unknown field `nodes`"),
    ],
)
def test_descriptions_of_devices_are_checked(given: Any, problem: str) -> None:
    with pytest.raises(UnusableModel, match=problem):
        read_models([given])
