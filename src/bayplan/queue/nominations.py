"""Nominations: which pods wait for victims to leave which node. The owner of that state.

A nomination is made here first and written to the pod's status a moment later. So `PodInfo.nominated_node_name`, which
is that status, is an input: an update of the pod without a nomination, before and after, does not withdraw one. What
the nominated pods will use on each row (`bayplan.cluster.nominated.NominatedRows`) is derived from here and follows
`changes`. Pods of a node are kept in order of nomination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bayplan.api.pod import Pod
from bayplan.cluster.changes import NameLog
from bayplan.cluster.pod_info import PodInfo

__all__ = ["GetPod", "Nominations"]

GetPod = Callable[[str, str], Pod | None]
"""(namespace, name) -> the pod as the API server last sent it."""


class Nominations:
    """Implements `framework.handle.Nominator`."""

    def __init__(self, get_pod: GetPod) -> None:
        self._get_pod = get_pod
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, PodInfo]] = {}
        self.changes = NameLog()

    def __len__(self) -> int:
        return len(self._node_of)

    def nominated_pods(self, node_name: str) -> list[PodInfo]:
        pods = self._pods_on.get(node_name)
        return list(pods.values()) if pods else []

    def nominated_nodes(self) -> Iterable[str]:
        """Nodes that at least one pod is nominated to."""
        return self._pods_on.keys()

    def node_of(self, uid: str) -> str:
        """The node that a pod is nominated to, or an empty name."""
        return self._node_of.get(uid, "")

    def add(self, info: PodInfo, node_name: str | None = None) -> None:
        """Nominate the pod, in place of any earlier nomination: to the given node, or by default to its status'.

        An empty name withdraws the nomination. A pod that is gone or bound by now is not nominated.
        """
        self.delete(info)
        node_name = info.nominated_node_name if node_name is None else node_name
        if not node_name:
            return
        current = self._get_pod(info.namespace, info.name)
        if current is None or current.spec.node_name:
            return
        self._node_of[info.uid] = node_name
        self._pods_on.setdefault(node_name, {})[info.uid] = info
        self.changes.record(node_name)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """Follow the new status. A pod whose status has no nomination before and after keeps the one that is kept
        here."""
        kept = None
        if not old.nominated_node_name and not new.nominated_node_name:
            kept = self._node_of.get(old.uid)
        self.delete(old)
        self.add(new, kept)

    def delete(self, info: PodInfo) -> None:
        node_name = self._node_of.pop(info.uid, None)
        if node_name is None:
            return
        self.changes.record(node_name)
        pods = self._pods_on[node_name]
        del pods[info.uid]
        if not pods:
            del self._pods_on[node_name]
