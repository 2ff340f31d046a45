"""An API server with one claim, and a clock on which nobody waits, for tests of what the plugin writes."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from bayplan.api.pod import Pod
from bayplan.framework import Conflict
from bayplan.framework.devices import ResourceClaim
from bayplan.observe.clock import VirtualClock

Json = dict[str, Any]


class Clock(VirtualClock):
    """One on which nobody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        if self.meanwhile is not None:
            await self.meanwhile()


class Api:
    """A server with one claim. Before each update, one of `meanwhile` takes the place of the claim: None deletes it."""

    def __init__(self, stored: Json, *meanwhile: Json | None) -> None:
        self.stored: Json | None = copy.deepcopy(stored)
        self.meanwhile = [copy.deepcopy(each) for each in meanwhile]
        self.calls: list[tuple[str, str, Json]] = []
        self.lost_answers: list[Exception] = []
        """Raised one by one for what was carried out."""
        self.refusals: list[Exception] = []
        """Raised one by one instead of carrying something out."""
        self.unread: list[Exception] = []
        """Raised one by one instead of the claim."""
        self.node_name = ""
        """Of every pod, whatever its name."""

    async def get(self, kind: type[Any], name: str, namespace: str = "") -> Any:
        if self.unread:
            raise self.unread.pop(0)
        if kind is Pod:
            metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
            return msgspec.convert({"metadata": metadata, "spec": {"nodeName": self.node_name}}, Pod)
        return None if self.stored is None else msgspec.convert(self.stored, kind)

    async def update(self, item: ResourceClaim, change: Json, *, subresource: str = "") -> ResourceClaim:
        self._refuse()
        if self.meanwhile:
            self.stored = self.meanwhile.pop(0)
            if self.stored is not None:
                self.stored["metadata"]["resourceVersion"] = str(int(item.metadata.resource_version) + 1)
        version = change["metadata"].get("resourceVersion")
        if self.stored is None or version not in (None, self.stored["metadata"]["resourceVersion"]):
            raise Conflict("the object has been modified", code=409)
        self.calls.append(("update", subresource, change))
        for part, fields in change.items():
            merged = {**self.stored.get(part, {}), **fields}
            self.stored[part] = {key: value for key, value in merged.items() if value is not None}
        self.stored["metadata"]["resourceVersion"] = str(int(self.stored["metadata"]["resourceVersion"]) + 1)
        if self.lost_answers:
            raise self.lost_answers.pop(0)
        return msgspec.convert(self.stored, ResourceClaim)

    async def create(self, kind: type[ResourceClaim], body: Json) -> ResourceClaim:
        self.calls.append(("create", "", body))
        metadata = {**body["metadata"], "name": f"{body['metadata']['generateName']}x7", "uid": "new"}
        return msgspec.convert({**body, "metadata": metadata}, kind)

    async def patch_pod(self, item: Any, change: Json, *, subresource: str = "") -> None:
        self.calls.append(("patch pod", subresource, change))

    async def delete(self, item: ResourceClaim) -> None:
        self._refuse()
        self.calls.append(("delete", item.name, {}))

    def _refuse(self) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
