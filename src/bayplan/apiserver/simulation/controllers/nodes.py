"""Nodes that stop reporting, and pods on nodes that are tainted or gone."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.kinds.pod_admission import NOT_READY, UNREACHABLE
from bayplan.apiserver.objects.conditions import set_condition
from bayplan.apiserver.objects.deletion import DeleteOptions
from bayplan.apiserver.protocol.encoding import Json, decode_object, parse_timestamp
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.pods import is_terminating, key_of
from bayplan.apiserver.simulation.placement import tolerates
from bayplan.apiserver.storage.store import Change, Key

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OWN_TAINTS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)
LEASES = "leases.coordination.k8s.io"
LEASE_NAMESPACE = "kube-node-lease"


class NodeLifecycle(Controller):
    """Marks nodes whose kubelet stopped reporting, and evicts pods that do not tolerate it."""

    name = "node-lifecycle-controller"
    component = "node-controller"
    primary = "nodes"
    watches = (LEASES, "pods")

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        if resource == LEASES:
            return (
                [("", change.entry.name)]
                if change.previous is None and change.entry.namespace == LEASE_NAMESPACE
                else []
            )
        # A pod that has just been bound may sit on a node with a taint it does not tolerate.
        node = change.entry.fields[0] if change.entry.fields else ""
        was = change.previous.fields[0] if change.previous is not None and change.previous.fields else ""
        return [("", node)] if node and node != was else []

    def reconcile(self, key: Key) -> float | None:
        node = self.client.get("nodes", key)
        if node is None:
            self._remove_pods(key[1])
            return None
        again = self._watch_heartbeat(key, node)
        node = self.client.get("nodes", key) or node
        evict_again = self._evict(node)
        waits = [wait for wait in (again, evict_again) if wait is not None]
        return min(waits, default=None)

    # ---- silent nodes

    def _watch_heartbeat(self, key: Key, node: Json) -> float | None:
        """Detect missing heartbeats, and keep the taints that follow from the conditions of the node."""
        lease = self.client.get(LEASES, (LEASE_NAMESPACE, key[1]))
        left = None
        if lease is not None:  # the status of a node that is not simulated is kept as written
            spec = lease.get("spec") or {}
            grace = float(spec.get("leaseDurationSeconds", 40))
            left = parse_timestamp(spec.get("renewTime", "")) + grace - self.client.clock.now()
            if left <= 0 and _ready_value(node) != "Unknown":
                self._mark_unknown(key)
                self.client.event(node, "NodeNotReady", f"Node {key[1]} status is now: NodeNotReady")
                node = self.client.get("nodes", key) or node
        self._set_taints(key, node, _wanted_taints(node, is_simulated=lease is not None))
        return left + 0.5 if left is not None and left > 0 else None

    def _mark_unknown(self, key: Key) -> None:
        def mark(document: Json) -> Json:
            status = document.setdefault("status", {})
            reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
            for condition in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready"):
                set_condition(status, condition, "Unknown", now=self.client.now(), reason=reason, message=message)
            for condition in status["conditions"]:
                condition.pop("lastProbeTime", None)
            return document

        self.client.update_status("nodes", key, mark)

    def _set_taints(self, key: Key, node: Json, wanted: list[tuple[str, str]]) -> None:
        current = (node.get("spec") or {}).get("taints") or []
        others = [taint for taint in current if taint.get("key") not in _OWN_TAINTS]
        mine = {(taint["key"], taint["effect"]): taint for taint in current if taint not in others}
        if set(mine) == set(wanted):
            return
        now = self.client.now()
        taints = others + [mine.get(pair, {"key": pair[0], "effect": pair[1], "timeAdded": now}) for pair in wanted]

        def change(document: Json) -> Json:
            document.setdefault("spec", {})["taints"] = taints
            return document

        self.client.update("nodes", key, change)

    # ---- pods

    def _evict(self, node: Json) -> float | None:
        """Delete pods that do not tolerate the node's NoExecute taints, when their time is up."""
        taints = [taint for taint in (node.get("spec") or {}).get("taints") or () if taint.get("effect") == "NoExecute"]
        if not taints:
            return None
        waits = []
        for pod in self._pods_on(node["metadata"]["name"]):
            left = None if is_terminating(pod) else seconds_tolerated(pod, taints, self.client.clock.now())
            if left is not None and left <= 0:
                self._mark_evicted(pod)
                self.client.delete("pods", key_of(pod), DeleteOptions())
            elif left is not None:
                waits.append(left)
        return min(waits, default=None)

    def _mark_evicted(self, pod: Json) -> None:
        def mark(document: Json) -> Json:
            reason, message = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
            status = document.setdefault("status", {})
            set_condition(status, "DisruptionTarget", "True", now=self.client.now(), reason=reason, message=message)
            return document

        self.client.update_status("pods", key_of(pod), mark)

    def _pods_on(self, node: str) -> list[Json]:
        return [
            decode_object(entry.raw)
            for entry in self.client.entries("pods")
            if entry.fields and entry.fields[0] == node
        ]

    def _remove_pods(self, node: str) -> None:
        """Remove pods of a node that no longer exists; no kubelet can finish them."""
        for pod in self._pods_on(node):
            self.client.delete("pods", key_of(pod), DeleteOptions(grace_seconds=0))
        self.client.delete(LEASES, (LEASE_NAMESPACE, node))


def _ready_value(node: Json) -> str:
    conditions = node.get("status", {}).get("conditions") or ()
    return next((str(c.get("status")) for c in conditions if c.get("type") == "Ready"), "")


def _wanted_taints(node: Json, *, is_simulated: bool) -> list[tuple[str, str]]:
    value = _ready_value(node) if is_simulated else "True"
    key = {"Unknown": UNREACHABLE, "False": NOT_READY}.get(value)
    wanted = [(key, "NoSchedule"), (key, "NoExecute")] if key else []
    is_cordoned = (node.get("spec") or {}).get("unschedulable")
    return [*wanted, (UNSCHEDULABLE, "NoSchedule")] if is_cordoned else wanted


def seconds_tolerated(pod: Json, taints: list[Json], now: float) -> float | None:
    """How long a pod may stay on a node with these taints; None for ever."""
    tolerations = pod["spec"].get("tolerations") or []
    limits = []
    for taint in taints:
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not matching:
            return 0.0
        seconds = [t["tolerationSeconds"] for t in matching if t.get("tolerationSeconds") is not None]
        if seconds:
            added = parse_timestamp(taint.get("timeAdded", "")) or now
            limits.append(added + min(seconds) - now)
    return min(limits, default=None)
