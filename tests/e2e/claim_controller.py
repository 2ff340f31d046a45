"""What a controller manager does about resource claims, step by step: there is none beside a bare API server.

It makes the claims that pods have from templates, and gives devices back when their pods are gone.
"""

from __future__ import annotations

import asyncio

from tests.e2e.api_session import PODS, ApiSession
from tests.e2e.objects import JsonObject

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
_CHANGED = (404, 409)
_TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"


async def make_claims(api: ApiSession) -> None:
    """A claim for every template that a pod names, and the name of the claim in the pod's status."""
    specs = {each["metadata"]["name"]: each["spec"]["spec"] for each in await api.items(_TEMPLATES)}
    waiting = [pod for pod in await api.items(PODS) if "resourceClaimStatuses" not in pod["status"]]
    await asyncio.gather(*(_make(api, pod, specs) for pod in waiting))


async def _make(api: ApiSession, pod: JsonObject, specs: dict[str, JsonObject]) -> None:
    statuses = []
    for entry in pod["spec"].get("resourceClaims", ()):
        template = entry.get("resourceClaimTemplateName")
        if template is None:
            continue
        owner = {"apiVersion": "v1", "kind": "Pod", "controller": True, "blockOwnerDeletion": True}
        owner |= {key: pod["metadata"][key] for key in ("name", "uid")}
        metadata = {
            "generateName": f"{pod['metadata']['name']}-{entry['name']}-",
            "ownerReferences": [owner],
            "annotations": {"resource.kubernetes.io/pod-claim-name": entry["name"]},
        }
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
        made = await api.call("POST", CLAIMS, body | {"spec": specs[template]})
        statuses.append({"name": entry["name"], "resourceClaimName": made["metadata"]["name"]})
    if statuses:
        change = {"status": {"resourceClaimStatuses": statuses}}
        await api.call("PATCH", f"{PODS}/{pod['metadata']['name']}/status", change)


async def give_back(api: ApiSession) -> None:
    """Drop the reservations of pods that are gone, and the devices of claims that nobody uses; delete generated ones
    without their pod. Each write is made onto the version that was read: a claim is deleted only without devices, as
    the controller does it, because nobody is woken by a deletion."""
    while await _given_back(api):
        pass


async def _given_back(api: ApiSession) -> bool:
    """Whether there was something to do, which may call for more."""
    pods = {pod["metadata"]["uid"] for pod in await api.items(PODS)}
    has_changed = False
    for claim in await api.items(CLAIMS):
        path = f"{CLAIMS}/{claim['metadata']['name']}"
        seen = {"resourceVersion": claim["metadata"]["resourceVersion"]}
        users = claim.get("status", {}).get("reservedFor", [])
        left = [user for user in users if user["uid"] in pods]
        owners = claim["metadata"].get("ownerReferences", [])
        is_orphan = bool(owners) and not any(owner["uid"] in pods for owner in owners)
        has_devices = "allocation" in claim.get("status", {})
        if len(left) < len(users) or (is_orphan and has_devices and not left):
            change = {"reservedFor": left} if left else {"reservedFor": None, "allocation": None}
            await api.call("PATCH", f"{path}/status", {"metadata": seen, "status": change}, allow=_CHANGED)
        elif is_orphan:
            body = {"metadata": {**seen, "finalizers": None}}
            freed = await api.call("PATCH", path, body, allow=_CHANGED)
            version = freed["metadata"].get("resourceVersion")
            if version is not None:
                await api.call("DELETE", path, {"preconditions": {"resourceVersion": version}}, allow=_CHANGED)
        else:
            continue
        has_changed = True
    return has_changed
