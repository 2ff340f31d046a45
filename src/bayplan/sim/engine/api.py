"""The API server of a simulation, as plugins and the loop write to it: `ApiPort`, `Recorder` and `StatusPort`.

A write takes no time and reaches the scheduler before it returns. What a real API server refuses for its state (a pod
that is gone, a pod that is bound) is refused with the same errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.patches import merge_patch
from bayplan.api.pod import Pod, PodCondition
from bayplan.client.errors import Conflict, NotFound
from bayplan.cluster.pod_info import PodInfo
from bayplan.loop.profile import StatusPort
from bayplan.sim.engine.world import World

__all__ = ["SimulatedApi", "SimulatedStatus"]

K = TypeVar("K", bound=KubeObject)


class SimulatedApi:
    def __init__(self, world: World) -> None:
        self._world = world
        self._made = 0

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        current = self._current(pod)
        if current.spec.node_name:
            raise Conflict(f"pod `{pod.key}` is already on node `{current.spec.node_name}`", code=409)
        if current.metadata.deletion_timestamp is not None:
            raise Conflict(f"pod `{pod.key}` is being deleted, cannot be assigned to a host", code=409)
        self._world.bind(current, node_name)

    async def delete_pod(self, pod: PodInfo) -> None:
        self._world.delete_pod(self._current(pod))

    async def patch_pod_status(
        self, pod: PodInfo, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        current = self._world.pod(pod.namespace, pod.name)
        if current is not None and current.uid == pod.pod.uid:
            _set_status(self._world, current, condition, nominated_node_name)

    async def patch_pod(self, pod: PodInfo, patch: dict[str, Any], *, subresource: str = "") -> None:
        current = self._current(pod)
        metadata = patch.get("metadata", {})
        if patch.keys() == {"metadata"} and metadata.keys() == {"annotations"} and not subresource:
            # The patch that plugins send for every pod, without taking the pod apart.
            annotations = merge_patch(current.annotations, metadata["annotations"])
            self._world.put(
                msgspec.structs.replace(
                    current, metadata=msgspec.structs.replace(current.metadata, annotations=annotations)
                )
            )
        else:
            await self.update(current, patch, subresource=subresource)

    async def patch(self, item: KubeObject, patch: dict[str, Any], *, subresource: str = "") -> None:
        await self.update(item, patch, subresource=subresource)

    async def create(self, kind: type[K], body: dict[str, Any]) -> K:
        made = msgspec.convert(body, kind)
        if not made.metadata.name:
            self._made += 1
            made.metadata.name = f"{body['metadata'].get('generateName', '')}{self._made}"
        made.metadata.uid = made.metadata.uid or f"{kind.__name__}/{made.key}"
        self._world.put(made)
        return made

    async def delete(self, item: KubeObject) -> None:
        self._world.remove_object(item)

    async def update(self, item: K, change: dict[str, Any], *, subresource: str = "") -> K:
        current = self._world.find(type(item), item.name, item.namespace)
        if current is None:
            raise NotFound(f"{type(item).__name__} `{item.key}` is not there", code=404)
        changed = msgspec.convert(merge_patch(msgspec.to_builtins(current), change), type(item))
        self._world.put(changed)
        return changed

    async def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        return self._world.find(kind, name, namespace)

    def _current(self, pod: PodInfo) -> Pod:
        found = self._world.pod(pod.namespace, pod.name)
        if found is None or found.uid != pod.pod.uid:
            raise NotFound(f"pod `{pod.key}` is not there", code=404)
        return found


class SimulatedStatus(StatusPort):
    """Writes nominations after the attempt that made them; conditions of failed attempts stay in the ledger."""

    def __init__(self, world: World, later: Callable[[Callable[[], None]], None]) -> None:
        self._world = world
        self._later = later

    def report(self, pod: Pod, *, reason: str, message: str, nominated_node_name: str | None) -> None:
        if nominated_node_name is not None and nominated_node_name != pod.status.nominated_node_name:
            self._later(lambda: self._write(pod, nominated_node_name))

    def _write(self, pod: Pod, nominated_node_name: str) -> None:
        current = self._world.pod(pod.namespace, pod.name)
        if current is not None and current.uid == pod.uid and not current.spec.node_name:
            _set_status(self._world, current, None, nominated_node_name)


def _set_status(world: World, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None) -> None:
    status = pod.status
    if condition is not None:
        others = [each for each in status.conditions or () if each.type != condition.type]
        status = msgspec.structs.replace(status, conditions=[*others, condition])
    if nominated_node_name is not None:
        status = msgspec.structs.replace(status, nominated_node_name=nominated_node_name)
    if status != pod.status:
        world.put(msgspec.structs.replace(pod, status=status))
