"""The objects of a simulated cluster, as an API server would hold them, and the writes that a scheduler makes to them.

Each change reaches the scheduler at once, through the intake that takes the changes of a watch in a live one. Nothing
here decides when something happens; the engine does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from bayplan.api.kinds import kind_of
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod, PodStatus
from bayplan.framework.resources import CustomResource, resource_info
from bayplan.loop.intake import Intake

__all__ = ["World", "WorldListener", "timestamp"]

K = TypeVar("K", bound=KubeObject)
_replace = msgspec.structs.replace


class WorldListener:
    """Called after a change of a pod, and before time moves on; every method may be left as it is."""

    def time_passes(self, now: float, then: float) -> None:
        """Nothing happens between these two times, in seconds since the start."""

    def pod_arrived(self, pod: Pod) -> None:
        """The pod was created and waits for a node."""

    def pod_bound(self, pod: Pod) -> None:
        """The pod has a node and runs."""

    def pod_deleted(self, pod: Pod) -> None:
        """The deletion of the pod was requested."""

    def pod_gone(self, pod: Pod, reason: str) -> None:
        """The pod is no more."""

    def object_changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        """An object that is neither a pod nor a node is new, changed or gone."""


class World:
    def __init__(self, now: Callable[[], float], listener: WorldListener) -> None:
        self._now = now
        self._listener = listener
        self._intake: Intake | None = None
        self.pods: dict[tuple[str, str], Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.objects: dict[tuple[type[KubeObject], str, str], KubeObject] = {}
        self._handlers: dict[type[KubeObject], Callable[[Any, Any], None]] = {}

    def connect(self, intake: Intake) -> None:
        """Have changes reach a scheduler from now on."""
        self._intake = intake

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self.pods.get((namespace, name))

    # Changes that controllers, kubelets and people make

    def put(self, item: KubeObject) -> None:
        """Create an object or replace it."""
        if isinstance(item, Pod):
            self._set_pod(item)
        elif isinstance(item, Node):
            old = self.nodes.get(item.name)
            self.nodes[item.name] = item
            self._connected.node_changed(old, item)
        else:
            key = (type(item), item.namespace, item.name)
            before = self.objects.get(key)
            self.objects[key] = item
            self._tell(type(item), before, item)

    def remove_node(self, name: str) -> None:
        old = self.nodes.pop(name)
        self._connected.node_changed(old, None)

    def remove(self, item: KubeObject) -> None:
        """Remove any object that is there."""
        if isinstance(item, Pod):
            self.remove_pod(item, "Deleted")
        elif isinstance(item, Node):
            self.remove_node(item.name)
        else:
            self.remove_object(item)

    def remove_object(self, item: KubeObject) -> None:
        self.objects.pop((type(item), item.namespace, item.name), None)
        self._tell(type(item), item, None)

    def remove_pod(self, pod: Pod, reason: str) -> None:
        """Remove a pod that finished, was killed or was deleted; without effect if it is gone already."""
        current = self.pods.get((pod.namespace, pod.name))
        if current is None or current.uid != pod.uid:
            return
        del self.pods[pod.namespace, pod.name]
        self._connected.pod_changed(current, None)
        self._listener.pod_gone(current, reason)

    def _set_pod(self, pod: Pod) -> None:
        key = (pod.metadata.namespace, pod.metadata.name)
        old = self.pods.get(key)
        self.pods[key] = pod
        self._connected.pod_changed(old, pod)

    def _tell(self, kind: type[KubeObject], old: KubeObject | None, new: KubeObject | None) -> None:
        handler = self._handlers.get(kind)
        if handler is None:
            name = resource_info(kind).event_name if issubclass(kind, CustomResource) else kind_of(kind).name
            handler = self._handlers[kind] = self._connected.object_handler(name)
        handler(old, new)
        self._listener.object_changed(old, new)

    @property
    def _connected(self) -> Intake:
        if self._intake is None:
            raise RuntimeError("the simulated cluster has no scheduler yet; call `connect` first")
        return self._intake

    # What a scheduler's writes come to

    def bind(self, pod: Pod, node_name: str) -> None:
        started = timestamp(self._now())
        status = PodStatus(phase="Running", start_time=started, conditions=pod.status.conditions)
        bound = _replace(pod, spec=_replace(pod.spec, node_name=node_name), status=status)
        self._set_pod(bound)
        self._listener.pod_bound(bound)

    def delete_pod(self, pod: Pod) -> None:
        """Mark a pod as terminating, unless it is already."""
        if pod.metadata.deletion_timestamp is None:
            metadata = _replace(pod.metadata, deletion_timestamp=timestamp(self._now()))
            marked = _replace(pod, metadata=metadata)
            self._set_pod(marked)
            self._listener.pod_deleted(marked)

    def find(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        found: KubeObject | None
        if kind is Pod:
            found = self.pods.get((namespace, name))
        elif kind is Node:
            found = self.nodes.get(name)
        else:
            found = self.objects.get((kind, namespace, name))
        return found if isinstance(found, kind) else None


def timestamp(now: float) -> str:
    """A time as the API server writes it, in whole seconds."""
    return _timestamp(int(now))


@lru_cache(maxsize=4096)
def _timestamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
