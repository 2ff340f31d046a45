"""ReplicaSets and ReplicationControllers: as many pods as asked for."""

from __future__ import annotations

from typing import ClassVar

from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.pods import first_to_remove, is_active, key_of, pod_from_template
from bayplan.apiserver.storage.store import Key

# Pods are created and deleted in bursts of this size, and other tasks run in between.
_BURST = 100
_FAILURE = "ReplicaFailure"


class ReplicaSets(Controller):
    """Keeps the number of pods of a ReplicaSet."""

    name = "replicaset-controller"
    primary: ClassVar[str] = "replicasets.apps"
    watches = ("pods",)
    adopts = "pods"

    def reconcile(self, key: Key) -> float | None:
        owner = self.client.get(self.primary, key)
        if owner is None:
            return None
        self.claims.settle(owner)
        again, refusal = None, None
        if "deletionTimestamp" not in owner["metadata"]:
            try:
                again = self._adjust(owner)
            except RequestRefused as problem:
                refusal = problem
        self._write_status(key, owner, refusal)
        if refusal is not None:
            raise refusal
        return self.seconds_until_available(owner) if again is None else again

    def _adjust(self, owner: Json) -> float | None:
        uid = owner["metadata"]["uid"]
        missing = owner["spec"].get("replicas", 1) - self.client.pods.of(uid).active
        for _ in range(min(missing, _BURST)):
            self.client.create_pod(owner, pod_from_template(owner["spec"]["template"], owner))
        if missing < 0:
            pods = [pod for pod in self.client.owned("pods", uid) if is_active(pod)]
            for pod in first_to_remove(pods)[: min(-missing, _BURST)]:
                self.client.delete_pod(owner, key_of(pod))
        return 0.0 if abs(missing) > _BURST else None

    def _write_status(self, key: Key, owner: Json, refusal: RequestRefused | None) -> None:
        pods = self.client.pods.of(owner["metadata"]["uid"])
        available = pods.available(owner["spec"].get("minReadySeconds", 0), self.client.clock.now())
        status: Json = {"replicas": pods.active, "observedGeneration": owner["metadata"].get("generation", 1)}
        if pods.active:
            status["fullyLabeledReplicas"] = pods.active
        if pods.ready:
            status["readyReplicas"] = pods.ready
        if available:
            status["availableReplicas"] = available
        conditions = self._conditions(owner.get("status") or {}, refusal)
        if conditions:
            status["conditions"] = conditions
        if owner.get("status") != status and self.client.store.get(self.primary, *key) is not None:
            self.client.set_status(self.primary, key, status)

    def _conditions(self, status: Json, refusal: RequestRefused | None) -> list[Json]:
        """The conditions of others, and ours if a pod could not be created."""
        known = status.get("conditions") or []
        conditions = [one for one in known if one["type"] != _FAILURE]
        if refusal is not None:
            earlier: Json = next((one for one in known if one["type"] == _FAILURE), {})
            since = earlier.get("lastTransitionTime") or self.client.now()
            failure = {"type": _FAILURE, "status": "True", "lastTransitionTime": since}
            conditions.append(failure | {"reason": "FailedCreate", "message": str(refusal)})
        return conditions


class ReplicationControllers(ReplicaSets):
    """Keeps the number of pods of a ReplicationController."""

    name = "replication-controller"
    primary = "replicationcontrollers"
