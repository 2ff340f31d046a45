"""The API server as plugins and the loop use it, over the client's writer and event recorder.

`LiveApi` is their `framework.handle.ApiPort`, `ProfileRecorder` their `framework.handle.Recorder`. Every write is meant
for one object, by its uid: another that took its name is left alone. The writer holds back what a replica that lost its
lease would write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from bayplan.api.kinds import kind_of
from bayplan.api.meta import KubeObject
from bayplan.api.patches import merge_patch
from bayplan.api.pod import PodCondition
from bayplan.client.errors import Conflict, Forbidden, NotFound
from bayplan.client.events import EventRecorder, EventSubject
from bayplan.client.resources import JsonObject, ResourceClient
from bayplan.client.writer import Writer
from bayplan.cluster.pod_info import PodInfo

__all__ = ["LiveApi", "ProfileRecorder"]

K = TypeVar("K", bound=KubeObject)
_UPDATE_ATTEMPTS = 5
_STRATEGIC = "application/strategic-merge-patch+json"
_ONLY_ONCE = "Scheduled"
"""A pod is bound once, so its event cannot repeat and is not kept for counting repetitions."""


class LiveApi:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def bind(self, pod: PodInfo, node_name: str) -> Coroutine[Any, Any, None]:
        return self._writer.bind(pod.namespace, pod.name, uid=pod.pod.uid, node=node_name)

    async def delete_pod(self, pod: PodInfo) -> None:
        with contextlib.suppress(Conflict):  # another pod has its name by now
            await self._writer.delete_pod(pod.namespace, pod.name, uid=pod.pod.uid)

    async def patch_pod_status(
        self, pod: PodInfo, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        status: dict[str, Any] = {}
        if condition is not None:
            status["conditions"] = [msgspec.to_builtins(condition)]
        if nominated_node_name is not None:
            # A strategic merge removes a field that is null; an empty string would be kept as one.
            status["nominatedNodeName"] = nominated_node_name or None
        try:
            await self._writer.patch_pod_status(pod.namespace, pod.name, status, uid=pod.pod.uid)
        except (NotFound, Conflict):
            return

    async def patch_pod(self, pod: PodInfo, patch: dict[str, Any], *, subresource: str = "") -> None:
        await self.patch(pod.pod, patch, subresource=subresource)

    async def patch(self, item: KubeObject, patch: dict[str, Any], *, subresource: str = "") -> None:
        client, whole = self._client(type(item)), _for_this(item, patch)
        await client.patch(item.name, whole, namespace=item.namespace, subresource=subresource, content_type=_STRATEGIC)

    async def create(self, kind: type[K], body: dict[str, Any]) -> K:
        known = kind_of(kind)
        whole = {"apiVersion": known.api_version, "kind": known.name, **body}
        made = await self._client(kind).create(whole, namespace=body["metadata"].get("namespace", ""))
        return msgspec.convert(made, kind)

    async def delete(self, item: KubeObject) -> None:
        await self._client(type(item)).delete(item.name, namespace=item.namespace, uid=item.uid)

    async def update(self, item: K, change: dict[str, Any], *, subresource: str = "") -> K:
        """Read the object again, merge the change into it and write it; repeated when another client wrote in between.

        A change for one version only is merged by the API server, which refuses it if the version is another.
        """
        client, change = self._client(type(item)), _for_this(item, change)
        if "resourceVersion" in change.get("metadata", {}):
            try:
                written = await client.patch(item.name, change, namespace=item.namespace, subresource=subresource)
            except Forbidden:
                # The role may allow updates and not patches.
                merged = merge_patch(await client.get(item.name, namespace=item.namespace), change)
                written = await client.update(item.name, merged, namespace=item.namespace, subresource=subresource)
        else:
            written = await self._update_latest(client, item, change, subresource)
        return msgspec.convert(written, type(item))

    async def _update_latest(
        self, client: ResourceClient, item: KubeObject, change: dict[str, Any], subresource: str
    ) -> JsonObject:
        for attempts_left in range(_UPDATE_ATTEMPTS - 1, -1, -1):
            current = await client.get(item.name, namespace=item.namespace)
            merged = merge_patch(current, change)
            try:
                return await client.update(item.name, merged, namespace=item.namespace, subresource=subresource)
            except Conflict:
                if not attempts_left:
                    raise
        raise AssertionError("the loop above returns or raises")

    async def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        try:
            found = await self._client(kind).get(name, namespace=namespace)
        except NotFound:
            return None
        return msgspec.convert(found, kind)

    def _client(self, kind: type[KubeObject]) -> ResourceClient:
        known = kind_of(kind)
        return self._writer.resource(known.group, known.version, known.plural, namespaced=known.is_namespaced)


def _for_this(item: KubeObject, change: dict[str, Any]) -> dict[str, Any]:
    """The change with the uid of the object as its precondition: the API server answers 409 for any other."""
    if not item.uid:
        return change
    return {**change, "metadata": {**change.get("metadata", {}), "uid": item.uid}}


class ProfileRecorder:
    def __init__(self, recorder: EventRecorder, profile_name: str) -> None:
        self._recorder = recorder
        self._profile_name = profile_name

    def event(self, pod: PodInfo, *, kind: str, reason: str, action: str, note: str) -> None:
        metadata = pod.pod.metadata
        regarding = EventSubject(
            kind="Pod",
            api_version="v1",
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
        )
        self._recorder.record(
            regarding,
            controller=self._profile_name,
            type=kind,
            reason=reason,
            action=action,
            note=note,
            can_repeat=reason != _ONLY_ONCE,
        )
