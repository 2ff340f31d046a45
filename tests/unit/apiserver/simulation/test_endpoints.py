"""Endpoints and EndpointSlices follow the pods that a Service selects, or what was written by hand."""

from __future__ import annotations

from tests.unit.apiserver.driving import PODS, Driver, pod

from bayplan.apiserver.protocol.encoding import Json

CORE = "/api/v1/namespaces/default"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def service(name: str, selector: Json | None, target: int | str = 80) -> Json:
    spec: Json = {"ports": [{"name": "http", "port": 80, "targetPort": target}]}
    return {"metadata": {"name": name}, "spec": spec | ({"selector": selector} if selector else {})}


async def slices_of(driver: Driver, name: str) -> list[Json]:
    return await driver.items(SLICES, labelSelector=f"kubernetes.io/service-name={name}")


async def test_addresses_come_and_go_with_the_pods(driver: Driver) -> None:
    await driver.create(f"{CORE}/services", service("web", {"app": "web"}, "web"))
    for name, number in (("a", 3000), ("b", 3001)):
        body = pod(name)
        body["metadata"]["labels"] = {"app": "web"}
        body["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": number}]
        await driver.create(PODS, body)
        await driver.bind(name, "node-1")
    await driver.settle()
    subsets = (await driver.get(f"{CORE}/endpoints/web"))["subsets"]
    slices = await slices_of(driver, "web")
    for one in slices:
        await driver.call("DELETE", f"{SLICES}/{one['metadata']['name']}")
    await driver.settle()
    made_again = await slices_of(driver, "web")
    await driver.call("DELETE", f"{PODS}/a")
    await driver.settle()
    left = await slices_of(driver, "web")

    assert {(one["addresses"][0]["targetRef"]["name"], one["ports"][0]["port"]) for one in subsets} == {
        ("a", 3000),
        ("b", 3001),
    }
    assert {(one["endpoints"][0]["targetRef"]["name"], one["ports"][0]["port"]) for one in slices} == {
        ("a", 3000),
        ("b", 3001),
    }
    assert len(made_again) == 2
    assert [one["endpoints"][0]["targetRef"]["name"] for one in left] == ["b"]


async def test_a_service_that_selects_nothing_has_empty_endpoints_until_it_is_deleted(driver: Driver) -> None:
    await driver.create(f"{CORE}/services", service("nothing", {"app": "none"}))
    await driver.settle()
    endpoints, slices = await driver.get(f"{CORE}/endpoints/nothing"), await slices_of(driver, "nothing")
    await driver.call("DELETE", f"{CORE}/services/nothing")
    await driver.settle()

    assert "subsets" not in endpoints
    assert [one.get("endpoints") or [] for one in slices] == [[]]
    assert await driver.items(f"{CORE}/endpoints", fieldSelector="metadata.name=nothing") == []
    assert await slices_of(driver, "nothing") == []


async def test_endpoints_without_a_service_are_left_alone(driver: Driver) -> None:
    await driver.create(f"{CORE}/endpoints", {"metadata": {"name": "alone"}})
    await driver.settle()

    assert (await driver.get(f"{CORE}/endpoints/alone"))["metadata"]["name"] == "alone"


async def test_endpoints_that_were_written_by_hand_are_mirrored(driver: Driver) -> None:
    await driver.create(f"{CORE}/services", service("outside", None))
    body: Json = {
        "metadata": {"name": "outside"},
        "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}],
    }
    await driver.create(f"{CORE}/endpoints", body)
    await driver.settle()
    first = await slices_of(driver, "outside")
    body["subsets"][0]["addresses"] = [{"ip": "10.2.3.4"}]
    await driver.call("PUT", f"{CORE}/endpoints/outside", body)
    await driver.settle()
    second = await slices_of(driver, "outside")
    await driver.call("DELETE", f"{CORE}/endpoints/outside")
    await driver.settle()

    assert [one["endpoints"][0]["addresses"] for one in first] == [["10.1.2.3"]]
    assert [one["endpoints"][0]["addresses"] for one in second] == [["10.2.3.4"]]
    assert first[0]["metadata"]["name"] == second[0]["metadata"]["name"]
    assert await slices_of(driver, "outside") == []
