"""Intake: changes from the API server become rows of the cache and events for the queue.

Assigned pods count in the cache, whichever scheduler placed them. Unassigned pods are queued only if they name one of
our profiles. The cache is updated before pods are woken, except that hints see a deleted node while it is still there,
as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayplan.api.kinds import kind_of
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.events import ActionType, ClusterEvent, Resource
from bayplan.loop.observer import Observer
from bayplan.loop.permit import HeldPods
from bayplan.observe.clock import Clock
from bayplan.queue import SchedulingQueue, node_update_events, pod_update_events

__all__ = ["Intake"]

_POD_ADDED = ClusterEvent(Resource.ASSIGNED_POD, ActionType.ADD)
_POD_DELETED = ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE)
_NODE_ADDED = ClusterEvent(Resource.NODE, ActionType.ADD)
_NODE_DELETED = ClusterEvent(Resource.NODE, ActionType.DELETE)


class Intake:
    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        *,
        held_pods: HeldPods,
        is_ours: Callable[[str], bool],
        on_pod_gone: Callable[[PodInfo], None],
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._held_pods = held_pods
        self._is_ours = is_ours
        self._on_pod_gone = on_pod_gone
        self._clock = clock
        self._observer = observer

    def handler(self, kind: type[KubeObject]) -> Callable[[Any, Any], None]:
        """What to call with (old, new) for changes of a kind."""
        if kind is Pod:
            return self._timed("Pod", self.pod_changed)
        if kind is Node:
            return self._timed("Node", self.node_changed)
        return self.object_handler(kind_of(kind).name)

    def _timed(self, name: str, handle: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        monotonic, report = self._clock.monotonic, self._observer.event_handled
        labels = {(False, True): f"{name}Add", (True, True): f"{name}Update", (True, False): f"{name}Delete"}

        def changed(old: Any, new: Any) -> None:
            began = monotonic()
            handle(old, new)
            report(labels.get((old is not None, new is not None), name), monotonic() - began)

        return changed

    # Pods

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        self._cache.note_pod(old, new)
        if old is not None and new is not None and old.spec.node_name and not new.spec.node_name:
            # Only a storage that was restored to an earlier state takes a node back.
            self._pod_gone(old)
            old = None
        if new is None:
            if old is not None:
                self._pod_gone(old)
        elif new.spec.node_name:
            self._pod_assigned(old, new)
        elif self._is_ours(new.spec.scheduler_name):
            self._pod_unassigned(old, new)

    def _pod_assigned(self, old: Pod | None, new: Pod) -> None:
        cache = self._cache
        info = self._info(new)
        before = cache.pod(info.uid)
        was_assumed = before is not None and cache.is_assumed(info.uid)
        cache.add_pod(info)
        if old is None or not old.spec.node_name:
            if self._is_ours(info.scheduler_name):
                self._queue.delete(info)
            self._queue.move_all(_POD_ADDED, new=info)
        elif before is not None and not was_assumed:
            for event in pod_update_events(before.pod, new):
                self._queue.move_all(event, old=before, new=info)

    def _pod_gone(self, old: Pod) -> None:
        uid = old.metadata.uid or old.key
        known = self._cache.pod(uid)
        if old.spec.node_name:
            self._cache.remove_pod(uid)
            if known is not None:
                self._on_pod_gone(known)
                self._queue.move_all(_POD_DELETED, old=known)
        elif self._is_ours(old.spec.scheduler_name):
            info = self._cache.info(old)
            self._queue.delete(info)
            if known is not None:
                self._drop_assumed(known)
            elif info.nominated_node_name:
                self._wake_lower(info)

    def _pod_unassigned(self, old: Pod | None, new: Pod) -> None:
        if old is None or not self._is_ours(old.spec.scheduler_name) or old.metadata.uid != new.metadata.uid:
            self._queue.add(self._info(new))
            return
        if old.metadata.resource_version and old.metadata.resource_version == new.metadata.resource_version:
            return
        if self._cache.is_assumed(new.metadata.uid or new.key):
            if new.metadata.deletion_timestamp is not None and old.metadata.deletion_timestamp is None:
                self._drop_assumed(self._cache.info(new))
            return
        before, info = self._cache.info(old), self._info(new)
        self._queue.update(before, info)
        if before.nominated_node_name and before.nominated_node_name != info.nominated_node_name:
            self._wake_lower(before)

    def _info(self, pod: Pod) -> PodInfo:
        """The pod with its shape. The containers of all pods of a template are one list: they are half of a pod."""
        info = self._cache.info(pod)
        pod.spec.containers = info.shape.spec.containers
        return info

    def _drop_assumed(self, info: PodInfo) -> None:
        """A pod was deleted while its binding was under way."""
        held = self._held_pods.get(info.uid)
        if held is not None:
            held.reject("", "removed")
        elif self._cache.is_assumed(info.uid):
            self._cache.forget(info.uid)
        self._queue.move_all(_POD_DELETED, old=info)

    def _wake_lower(self, info: PodInfo) -> None:
        """A nomination was withdrawn: wake the pods that had to leave room for it."""
        self._queue.move_all(_POD_DELETED, old=info, predicate=lambda other: other.priority <= info.priority)

    # Nodes

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self._queue.move_all(_NODE_DELETED, old=old)
                self._cache.remove_node(old.name)
            return
        self._cache.add_node(new)
        if old is None:
            self._queue.move_all(_NODE_ADDED, new=new)
        else:
            for event in node_update_events(old, new):
                self._queue.move_all(event, old=old, new=new)

    # Everything else

    def object_handler(self, resource: str) -> Callable[[Any, Any], None]:
        """What to call with (old, new) for changes of a kind that cluster events call `resource`."""
        added = ClusterEvent(resource, ActionType.ADD)
        updated = ClusterEvent(resource, ActionType.UPDATE)
        deleted = ClusterEvent(resource, ActionType.DELETE)

        def changed(old: KubeObject | None, new: KubeObject | None) -> None:
            if new is not None:
                self._cache.put_object(new)
                self._queue.move_all(added if old is None else updated, old=old, new=new)
            elif old is not None:
                self._cache.remove_object(old)
                self._queue.move_all(deleted, old=old)

        return changed
