"""Ports for deciding without a cluster: nothing is nominated, nothing waits, and writes are refused with a sentence."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import Any, TypeVar

from bayplan.api.meta import KubeObject
from bayplan.api.pod import PodCondition
from bayplan.cluster.changes import NameLog
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.handle import WaitingPod

__all__ = ["FixedNominator", "NoApi", "NoApiError", "NoWaitingPods", "SilentRecorder", "drop_task"]

K = TypeVar("K", bound=KubeObject)


class NoApiError(RuntimeError):
    """A plugin tried to write while there is no API server."""


class FixedNominator:
    """Nominations that are given as they are, without a queue."""

    def __init__(self, pods: Iterable[PodInfo] = ()) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self.changes = NameLog()
        for pod in pods:
            self.put(pod)

    def put(self, pod: PodInfo) -> None:
        """Take over a pod with its nomination, new, changed or gone."""
        self.drop(pod.uid)
        node = pod.nominated_node_name
        if node:
            self._by_node.setdefault(node, {})[pod.uid] = pod
            self._node_of[pod.uid] = node
            self.changes.record(node)

    def drop(self, uid: str) -> None:
        """Forget a pod."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        self.changes.record(node)
        del self._by_node[node][uid]
        if not self._by_node[node]:
            del self._by_node[node]

    def node_of(self, uid: str) -> str:
        """Where the pod is nominated to; empty if nowhere."""
        return self._node_of.get(uid, "")

    def get(self, uid: str) -> PodInfo | None:
        return self._by_node[self._node_of[uid]][uid] if uid in self._node_of else None

    def nominated_pods(self, node_name: str) -> list[PodInfo]:
        return list(self._by_node.get(node_name, {}).values())

    def nominated_nodes(self) -> Iterable[str]:
        return self._by_node.keys()


class NoWaitingPods:
    def get(self, uid: str) -> WaitingPod | None:
        return None

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(())


class SilentRecorder:
    def event(self, pod: PodInfo, *, kind: str, reason: str, action: str, note: str) -> None:
        """No-op: there is no API server to write the event to."""


class NoApi:
    def _refuse(self, what: str) -> NoApiError:
        return NoApiError(f"cannot {what}: this run has no API server")

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        raise self._refuse(f"bind pod `{pod.key}` to `{node_name}`")

    async def delete_pod(self, pod: PodInfo) -> None:
        raise self._refuse(f"delete pod `{pod.key}`")

    async def patch_pod_status(
        self, pod: PodInfo, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        raise self._refuse(f"patch the status of pod `{pod.key}`")

    async def patch_pod(self, pod: PodInfo, patch: dict[str, Any], *, subresource: str = "") -> None:
        raise self._refuse(f"patch pod `{pod.key}`")

    async def patch(self, item: KubeObject, patch: dict[str, Any], *, subresource: str = "") -> None:
        raise self._refuse(f"patch `{item.key}`")

    async def create(self, kind: type[K], body: dict[str, Any]) -> K:
        raise self._refuse(f"create a {kind.__name__}")

    async def delete(self, item: KubeObject) -> None:
        raise self._refuse(f"delete `{item.key}`")

    async def update(self, item: K, change: dict[str, Any], *, subresource: str = "") -> K:
        raise self._refuse(f"update `{item.key}`")

    async def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        raise self._refuse(f"read {kind.__name__} `{name}`")


def drop_task(name: str, work: Awaitable[None]) -> None:
    """Work beside the cycle does not happen offline."""
    close = getattr(work, "close", None)
    if close is not None:
        close()
