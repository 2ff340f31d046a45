"""Devices as plain JSON, the way drivers and people write them, and who has which of them by what the API says."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.e2e.api_session import ApiSession
from tests.e2e.claim_controller import CLAIMS
from tests.e2e.objects import JsonObject, pod

DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"


def published(node_name: str, count: int, **more: Any) -> JsonObject:
    """As a driver publishes the devices of its node."""
    devices = [{"name": f"gpu-{n}", "attributes": {"index": {"int": n}}, **more} for n in range(count)]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": devices}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{node_name}-gpu"}, "spec": spec}


def device_class() -> JsonObject:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}


def asking(count: int) -> JsonObject:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]}}


def template(count: int) -> JsonObject:
    body = {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": {"name": "gpus"}}
    return body | {"spec": {"spec": asking(count)}}


def templated(name: str) -> JsonObject:
    return pod(name, cpu="10m", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpus"}])


def sharing(name: str, claim: str) -> JsonObject:
    return pod(name, cpu="10m", resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])


async def given(api: ApiSession) -> dict[str, list[tuple[str, str]]]:
    """(pool, device) by the uid of each pod that has a claim reserved."""
    found: dict[str, list[tuple[str, str]]] = {}
    for claim in await api.items(CLAIMS):
        status = claim.get("status", {})
        results = status.get("allocation", {}).get("devices", {}).get("results", [])
        for user in status.get("reservedFor", []):
            found.setdefault(user["uid"], []).extend((each["pool"], each["device"]) for each in results)
    return found


def given_twice(devices: dict[str, list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Devices that more than one of the pods of `given` has."""
    counted = Counter(each for held in devices.values() for each in held)
    return [device for device, count in counted.items() if count > 1]
