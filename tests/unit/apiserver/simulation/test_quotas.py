"""Quotas, limit ranges and runtime classes: what they refuse, fill in and count."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.apiserver.driving import PODS, Driver, pod, workload

from bayplan.apiserver.protocol.encoding import Json

CORE = "/api/v1/namespaces/default"
QUOTAS = f"{CORE}/resourcequotas"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"


def sized(name: str, **resources: Json) -> Json:
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = resources
    return made


async def refused(driver: Driver, body: Json, path: str = PODS) -> str:
    answer = await driver.transport.request("POST", path, body=body)
    assert answer.status == 403, answer.body
    return str(answer.json()["message"])


async def test_a_quota_refuses_what_exceeds_it_and_counts_again_when_room_is_made(driver: Driver) -> None:
    hard = {"cpu": "1", "pods": "2", "configmaps": "3", "count/deployments.apps": "0"}
    await driver.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    await driver.wait(1)
    await driver.create(PODS, sized("a", requests={"cpu": "600m"}))
    used = (await driver.get(f"{QUOTAS}/q"))["status"]["used"]
    message = await refused(driver, sized("b", requests={"cpu": "500m"}))

    assert (used["cpu"], used["pods"]) == ("600m", "1")
    assert message.endswith("is forbidden: exceeded quota: q, requested: cpu=500m, used: cpu=600m, limited: cpu=1")

    await driver.call("DELETE", f"{PODS}/a")
    await driver.wait(2)
    assert (await driver.get(f"{QUOTAS}/q"))["status"]["used"]["cpu"] == "0"
    await driver.create(PODS, sized("b", requests={"cpu": "500m"}))
    silent = await refused(driver, sized("c"))
    assert silent.endswith("failed quota: q: must specify cpu for: main")


@pytest.mark.parametrize(
    ("scope", "counted", "uncounted"),
    [
        ("BestEffort", {}, {"requests": {"cpu": "1"}}),
        ("NotBestEffort", {"requests": {"cpu": "1"}}, {}),
        ("Terminating", {"activeDeadlineSeconds": 60}, {}),
        ("NotTerminating", {}, {"activeDeadlineSeconds": 60}),
    ],
)
async def test_a_scoped_quota_counts_pods_of_its_scope(
    driver: Driver, scope: str, counted: Json, uncounted: Json
) -> None:
    spec: Json = {"hard": {"pods": "0"}, "scopes": [scope]}
    await driver.create(QUOTAS, {"metadata": {"name": "q"}, "spec": spec})
    await driver.wait(1)

    def made(name: str, given: dict[str, Any]) -> Json:
        one = sized(name, **{key: value for key, value in given.items() if key == "requests"})
        one["spec"] |= {key: value for key, value in given.items() if key != "requests"}
        return one

    await driver.create(PODS, made("free", uncounted))
    assert "exceeded quota: q, requested: pods=1" in await refused(driver, made("bound", counted))


async def test_a_quota_by_priority_class(driver: Driver) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await driver.create(path, {"metadata": {"name": "gold"}, "value": 5})
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["gold"]}]}
    spec: Json = {"hard": {"pods": "0"}, "scopeSelector": selector}
    await driver.create(QUOTAS, {"metadata": {"name": "q"}, "spec": spec})
    await driver.create(PODS, pod("plain"))
    gold = pod("gold")
    gold["spec"]["priorityClassName"] = "gold"

    assert "exceeded quota" in await refused(driver, gold)


async def test_a_quota_by_affinity_to_pods_of_other_namespaces(driver: Driver) -> None:
    spec: Json = {"hard": {"pods": "0"}, "scopes": ["CrossNamespacePodAffinity"]}
    await driver.create(QUOTAS, {"metadata": {"name": "q"}, "spec": spec})
    near, far = pod("near"), pod("far")
    term: Json = {"topologyKey": "zone", "labelSelector": {}}
    near["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = {"weight": 1, "podAffinityTerm": term | {"namespaceSelector": {}}}
    far["spec"]["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
    await driver.create(PODS, near)

    assert "exceeded quota" in await refused(driver, far)


async def test_a_quota_by_the_attributes_of_volumes(driver: Driver) -> None:
    selector = {"matchExpressions": [{"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["fast"]}]}
    spec: Json = {"hard": {"persistentvolumeclaims": "1"}, "scopeSelector": selector}
    await driver.create(QUOTAS, {"metadata": {"name": "q"}, "spec": spec})
    path = f"{CORE}/persistentvolumeclaims"

    def claim(name: str, **given: Json) -> Json:
        requests = {"requests": {"storage": "1Gi"}}
        return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": requests, **given}}

    await driver.create(path, claim("plain"))
    await driver.create(path, claim("fast", volumeAttributesClassName="fast"))

    message = await refused(driver, claim("second", volumeAttributesClassName="fast"), path)
    assert message.endswith(
        "requested: persistentvolumeclaims=1, used: persistentvolumeclaims=1, limited: persistentvolumeclaims=1"
    )


async def test_a_quota_counts_the_devices_that_claims_ask_for(driver: Driver) -> None:
    name = "gpu.deviceclass.resource.k8s.io/devices"
    await driver.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {name: "5"}}})
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"

    def claim(name: str, **request: Json) -> Json:
        return {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "r", **request}]}}}

    exactly: Json = {"deviceClassName": "gpu", "count": 2}
    alternatives = [{"name": str(count), "deviceClassName": "gpu", "count": count} for count in (3, 1)]
    await driver.create(path, claim("a", exactly=exactly))
    await driver.create(path, claim("b", firstAvailable=alternatives))
    all_of_them: Json = {"deviceClassName": "gpu", "allocationMode": "All"}

    assert f"requested: {name}=32, used: {name}=5" in await refused(driver, claim("c", exactly=all_of_them), path)
    await driver.call("DELETE", f"{path}/b")
    await driver.wait(1)
    assert (await driver.get(f"{QUOTAS}/q"))["status"]["used"] == {name: "2"}


async def test_a_quota_is_charged_when_an_object_asks_for_more(driver: Driver) -> None:
    hard = {"requests.cpu": "2", "requests.storage": "2Gi", "services.nodeports": "1"}
    await driver.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    await driver.create(PODS, sized("a", requests={"cpu": "1"}))
    await driver.bind("a", "node-1")
    service: Json = {
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]},
    }
    await driver.create(f"{CORE}/services", service)
    await driver.wait(1)

    async def changed(path: str, spec: Json) -> str:
        kind = "application/merge-patch+json"
        answer = await driver.transport.request("PATCH", path, body={"spec": spec}, content_type=kind)
        return "" if answer.status == 200 else str(answer.json()["message"])

    def cpu(amount: str) -> Json:
        return {"containers": [{"name": "main", "resources": {"requests": {"cpu": amount}}}]}

    too_much = await changed(f"{PODS}/a/resize", cpu("2500m"))
    assert "requested: requests.cpu=1500m, used: requests.cpu=1, limited: requests.cpu=2" in too_much
    assert await changed(f"{PODS}/a/resize", cpu("1800m")) == ""
    assert (await driver.get(f"{QUOTAS}/q"))["status"]["used"]["requests.cpu"] == "1800m"
    await changed(f"{PODS}/a/resize", cpu("500m"))
    await driver.wait(1)
    assert (await driver.get(f"{QUOTAS}/q"))["status"]["used"]["requests.cpu"] == "500m"
    assert "requested: services.nodeports=2" in await changed(f"{CORE}/services/s", {"type": "NodePort"})


async def test_a_pod_that_gets_a_deadline_moves_from_one_quota_to_another(driver: Driver) -> None:
    for name, scope in (("ends", "Terminating"), ("stays", "NotTerminating")):
        spec: Json = {"hard": {"pods": "1"}, "scopes": [scope]}
        await driver.create(QUOTAS, {"metadata": {"name": name}, "spec": spec})
    await driver.create(PODS, pod("a"))
    await driver.patch(f"{PODS}/a", {"spec": {"activeDeadlineSeconds": 60}})
    await driver.wait(1)
    used = [(await driver.get(f"{QUOTAS}/{name}"))["status"]["used"]["pods"] for name in ("ends", "stays")]

    assert used == ["1", "0"]


async def test_a_limit_range_bounds_a_resize(driver: Driver) -> None:
    item: Json = {"type": "Container", "max": {"cpu": "1"}}
    await driver.create(f"{CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    await driver.create(PODS, sized("a", requests={"cpu": "500m"}, limits={"cpu": "1"}))
    await driver.bind("a", "node-1")
    await driver.wait(1)
    body = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}}
    kind = "application/merge-patch+json"
    answer = await driver.transport.request("PATCH", f"{PODS}/a/resize", body=body, content_type=kind)

    assert answer.status == 403
    assert "maximum cpu usage per Container is 1, but limit is 2" in answer.json()["message"]


async def test_a_limit_range_fills_in_and_bounds_containers(driver: Driver) -> None:
    item: Json = {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}
    item |= {"min": {"cpu": "50m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "5"}}
    await driver.create(f"{CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    made = await driver.create(PODS, sized("a"))
    resources = made["spec"]["containers"][0]["resources"]
    low = await refused(driver, sized("low", requests={"cpu": "10m"}, limits={"cpu": "50m"}))
    high = await refused(driver, sized("high", limits={"cpu": "2"}))
    ratio = await refused(driver, sized("ratio", requests={"cpu": "100m"}, limits={"cpu": "1"}))

    assert resources == {"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}}
    assert made["status"]["qosClass"] == "Burstable"
    assert "minimum cpu usage per Container is 50m, but request is 10m" in low
    assert "maximum cpu usage per Container is 1, but limit is 2" in high
    assert "cpu max limit to request ratio per Container is 5, but provided ratio is 10" in ratio


async def test_a_limit_range_bounds_pods_and_claims(driver: Driver) -> None:
    items = [
        {"type": "Pod", "max": {"memory": "1Gi"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
    ]
    await driver.create(f"{CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": items}})
    claim: Json = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Mi"}}

    assert "maximum memory usage per Pod is 1Gi.  No limit is specified" in await refused(driver, sized("a"))
    message = await refused(driver, claim, f"{CORE}/persistentvolumeclaims")
    assert "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi" in message


async def test_a_runtime_class_adds_overhead_and_where_to_run(driver: Driver) -> None:
    toleration = {"key": "vm", "operator": "Exists"}
    body: Json = {"metadata": {"name": "vm"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "250m"}}}
    body["scheduling"] = {"nodeSelector": {"vm": "yes"}, "tolerations": [toleration]}
    await driver.create(RUNTIMES, body)
    made = pod("a")
    made["spec"]["runtimeClassName"] = "vm"
    created = (await driver.create(PODS, made))["spec"]
    unknown = pod("b")
    unknown["spec"]["runtimeClassName"] = "nope"
    conflicting = pod("c")
    conflicting["spec"] |= {"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}}
    alone = pod("d")
    alone["spec"]["overhead"] = {"cpu": "1"}

    assert created["overhead"] == {"cpu": "250m"}
    assert created["nodeSelector"] == {"vm": "yes"}
    assert toleration in created["tolerations"]
    assert 'pod rejected: RuntimeClass "nope" not found' in await refused(driver, unknown)
    assert "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes" in await refused(driver, conflicting)
    assert "Pod Overhead set without corresponding RuntimeClass" in await refused(driver, alone)


async def test_a_workload_whose_pods_exceed_a_quota_says_so_until_there_is_room(driver: Driver) -> None:
    await driver.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}})
    await driver.wait(1)
    path = "/apis/apps/v1/namespaces/default/replicasets"
    await driver.create(path, workload("ReplicaSet", "web", replicas=3))
    await driver.settle()
    (condition,) = (await driver.get(f"{path}/web"))["status"]["conditions"]

    assert (condition["type"], condition["status"], condition["reason"]) == ("ReplicaFailure", "True", "FailedCreate")
    assert "exceeded quota: q" in condition["message"]
    await driver.patch(f"{path}/web", {"spec": {"replicas": 2}})
    await driver.settle()
    assert "conditions" not in (await driver.get(f"{path}/web"))["status"]
