"""One pod's way through the plugin, from PreEnqueue to PreBind, against a server with any number of claims."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
from tests.patching import merged
from tests.unit.plugins.intree.dynamic_resources.claim_server import Clock
from tests.unit.plugins.intree.dynamic_resources.device_cases import device_class, node, pod

from bayplan.api.decode import decode_object
from bayplan.api.pod import Pod
from bayplan.framework import ApiError, Conflict
from bayplan.framework.devices import ResourceClaim
from bayplan.testing import Harness

Json = dict[str, Any]


class Server:
    """Claims by name; `refuse` names verbs that fail, and `before_write` may change what is stored, once."""

    def __init__(
        self, claims: list[Json], refuse: str = "", before_write: Callable[[Json], None] | None = None
    ) -> None:
        self.claims = {each["metadata"]["name"]: copy.deepcopy(each) for each in claims}
        self._refuse, self._before_write = refuse, before_write
        self.pods: list[Json] = []

    def _check(self, verb: str) -> None:
        if verb == self._refuse:
            raise ApiError(f"{verb} is refused", code=403, reason="Forbidden")

    async def get(self, kind: type[Any], name: str, namespace: str = "") -> Any:
        """The pod is gone when it is asked for."""
        found = self.claims.get(name) if kind is ResourceClaim else None
        return None if found is None else msgspec.convert(found, kind)

    async def update(self, item: ResourceClaim, change: Json, *, subresource: str = "") -> ResourceClaim:
        self._check(f"update {subresource}".strip())
        stored = self.claims[item.name]
        if self._before_write is not None:
            act, self._before_write = self._before_write, None
            act(stored)
            stored["metadata"]["resourceVersion"] = str(int(stored["metadata"]["resourceVersion"]) + 1)
        if change["metadata"].get("resourceVersion", "") not in ("", stored["metadata"]["resourceVersion"]):
            raise Conflict("the object has been modified", code=409)
        stored.update(merged(stored, change))
        stored["metadata"]["resourceVersion"] = str(int(stored["metadata"]["resourceVersion"]) + 1)
        return msgspec.convert(stored, ResourceClaim)

    async def create(self, kind: type[ResourceClaim], body: Json) -> ResourceClaim:
        self._check("create")
        metadata = {**body["metadata"], "name": f"{body['metadata']['generateName']}x", "uid": "made"}
        made = {"kind": "ResourceClaim", **copy.deepcopy(body), "metadata": {**metadata, "resourceVersion": "1"}}
        self.claims[metadata["name"]] = made
        return msgspec.convert(made, kind)

    async def patch_pod(self, item: Any, change: Json, *, subresource: str = "") -> None:
        self._check("patch pod")
        self.pods.append(change)

    async def delete(self, item: ResourceClaim) -> None:
        self.claims.pop(item.name, None)


async def outcome(
    *objects: Json,
    target: Json | None = None,
    refuse: str = "",
    before_write: Callable[[Json], None] | None = None,
    in_flight: Json | None = None,
    is_bound: bool = True,
) -> str:
    """What became of the pod in one line: `held: …`, `refused: …`, `failed: …` (and what is left of the claims) or
    `bound: …` with the claims as they are stored then. `in_flight` is a claim of another pod that was decided on and is
    not written yet; a pod that is not bound is given up after Reserve."""
    kinds = {each["kind"] for each in objects}
    extra = [*([] if "Node" in kinds else [node()]), *([] if "DeviceClass" in kinds else [device_class()])]
    claims = [each for each in objects if each["kind"] == "ResourceClaim"]
    harness = Harness(objects=[decode_object(each) for each in (*extra, *objects)])
    server, clock = Server(claims, refuse, before_write), Clock()
    tasks: list[Any] = []
    ports: Any = {
        "api": server,
        "clock": clock,
        "recorder": SimpleNamespace(event=lambda *_, **__: None),
        "start_task": lambda name, work: tasks.append(work),
    }
    real = harness.plugin("DynamicResources")
    plugin = real.dry_copy(replace(real.handle, **ports))
    framework = harness.scheduler.framework("default-scheduler")
    framework.plugins["DynamicResources"] = plugin
    if in_flight is not None:
        plugin.handle.cluster.devices.put_in_flight(msgspec.convert(in_flight, ResourceClaim))
    info = harness.info(msgspec.convert(target or pod(*(each["metadata"]["name"] for each in claims)), Pod))
    gate = plugin.pre_enqueue(info)
    if gate is not None:
        return f"held: {gate.message}"
    decision = harness.scheduler.decide(info)
    if not decision.is_scheduled:
        return f"refused: {decision.message}"
    status = plugin.reserve(decision.state, info, decision.node_name)
    if not is_bound:
        plugin.unreserve(decision.state, info, decision.node_name)
        taken = plugin.handle.cluster.devices.use.dedicated
        return f"given up: {_stored(server)}, {len(taken)} devices taken"
    status = status or await plugin.pre_bind(decision.state, info, decision.node_name)
    if status is not None:
        plugin.unreserve(decision.state, info, decision.node_name)
        for task in tasks:
            await task
        return f"failed: {status.message}; left: {_stored(server)}"
    return f"bound on {decision.node_name}: {_stored(server)}"


def _stored(server: Server) -> str:
    return ", ".join(f"{name} [{_described(claim)}]" for name, claim in sorted(server.claims.items())) or "nothing"


def _described(claim: Json) -> str:
    status = claim.get("status", {})
    results = status.get("allocation", {}).get("devices", {}).get("results") or []
    parts = [" ".join(f"{each['request']}={each['device']}" for each in results)] if "allocation" in status else []
    if status.get("reservedFor"):
        parts.append("for " + " ".join(each["name"] for each in status["reservedFor"]))
    if claim["metadata"].get("finalizers"):
        parts.append("protected")
    return "; ".join(parts)
