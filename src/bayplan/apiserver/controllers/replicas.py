"""ReplicaSets and ReplicationControllers: as many pods as asked for."""

from __future__ import annotations

from typing import ClassVar

from bayplan.apiserver.controllers.base import Controller
from bayplan.apiserver.controllers.pods import (
    first_to_remove,
    is_active,
    is_available,
    is_ready,
    key_of,
    pod_from_template,
)
from bayplan.apiserver.encoding import Json
from bayplan.apiserver.store import Key

# Pods are created in bursts of this size, with a turn for everybody else in between.
_BURST = 500


class ReplicaSets(Controller):
    """Keeps the number of pods of a ReplicaSet."""

    name = "replicaset-controller"
    primary: ClassVar[str] = "replicasets.apps"
    watches = ("pods",)

    def reconcile(self, key: Key) -> float | None:
        owner = self.bench.get(self.primary, key)
        if owner is None:
            return None
        pods = self.bench.owned("pods", owner["metadata"]["uid"])
        active = [pod for pod in pods if is_active(pod)]
        again = None
        if "deletionTimestamp" not in owner["metadata"]:
            again = self._adjust(owner, active)
        self._write_status(key, owner)
        return again

    def _adjust(self, owner: Json, active: list[Json]) -> float | None:
        missing = owner["spec"].get("replicas", 1) - len(active)
        for _ in range(min(missing, _BURST)):
            self.bench.create(pod_from_template(owner["spec"]["template"], owner))
        if missing < 0:
            for pod in first_to_remove(active)[:-missing]:
                self.bench.delete("pods", key_of(pod))
        return 0.0 if missing > _BURST else None

    def _write_status(self, key: Key, owner: Json) -> None:
        pods = [pod for pod in self.bench.owned("pods", owner["metadata"]["uid"]) if is_active(pod)]
        now, minimum = self.bench.clock.now(), owner["spec"].get("minReadySeconds", 0)
        ready = sum(is_ready(pod) for pod in pods)
        available = sum(is_available(pod, minimum, now) for pod in pods)
        status: Json = {"replicas": len(pods), "observedGeneration": owner["metadata"].get("generation", 1)}
        if pods:
            status["fullyLabeledReplicas"] = len(pods)
        if ready:
            status["readyReplicas"] = ready
        if available:
            status["availableReplicas"] = available
        if owner.get("status") != status and self.bench.store.get(self.primary, *key) is not None:
            self.bench.set_status(self.primary, key, status)


class ReplicationControllers(ReplicaSets):
    """Keeps the number of pods of a ReplicationController."""

    name = "replication-controller"
    primary = "replicationcontrollers"
