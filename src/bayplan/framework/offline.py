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
    """Nominations that somebody states; no queue is behind it."""

    def __init__(self, pods: Iterable[PodInfo] = ()) -> None:
        self._by_node: dict[str, list[PodInfo]] = {}
        self.changes = NameLog()
        for pod in pods:
            self.put(pod)

    def put(self, pod: PodInfo) -> None:
        """Take over a pod with its nomination, new, changed or gone."""
        self.drop(pod.uid)
        if pod.nominated_node_name:
            self._by_node.setdefault(pod.nominated_node_name, []).append(pod)
            self.changes.record(pod.nominated_node_name)

    def drop(self, uid: str) -> None:
        """Forget a pod."""
        for name, pods in list(self._by_node.items()):
            left = [pod for pod in pods if pod.uid != uid]
            if len(left) < len(pods):
                self.changes.record(name)
            if left:
                self._by_node[name] = left
            else:
                del self._by_node[name]

    def nominated_pods(self, node_name: str) -> list[PodInfo]:
        return self._by_node.get(node_name, [])

    def nominated_nodes(self) -> Iterable[str]:
        return self._by_node.keys()


class NoWaitingPods:
    def get(self, uid: str) -> WaitingPod | None:
        return None

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(())


class SilentRecorder:
    def event(self, pod: PodInfo, *, kind: str, reason: str, action: str, note: str) -> None:
        """Nobody listens."""


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
