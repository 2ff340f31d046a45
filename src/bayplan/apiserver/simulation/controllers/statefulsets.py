"""StatefulSets: numbered pods, one after the other, each with its own claims."""

from __future__ import annotations

from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.controllers.base import Controller, ControllerClient
from bayplan.apiserver.simulation.controllers.pod_tally import PodFacts
from bayplan.apiserver.simulation.controllers.pods import copy_of, pod_from_template
from bayplan.apiserver.simulation.controllers.revisions import REVISION_LABEL, Revisions
from bayplan.apiserver.storage.store import Key

CLAIMS = "persistentvolumeclaims"
Numbered = dict[int, tuple[Key, PodFacts]]
"""Pods by their number."""


class StatefulSets(Controller):
    """Keeps the numbered pods of a StatefulSet."""

    name = "statefulset-controller"
    primary = "statefulsets.apps"
    watches = ("pods",)
    adopts = "pods"

    def __init__(self, client: ControllerClient) -> None:
        super().__init__(client)
        self._revisions = Revisions(client)

    def reconcile(self, key: Key) -> float | None:
        owner = self.client.get(self.primary, key)
        if owner is None:
            return None
        self.claims.settle(owner)
        pods = {_ordinal(key): (key, pod) for key, pod in self.client.pods.of(owner["metadata"]["uid"]).in_order()}
        update = self._revisions.current(owner)
        current = (owner.get("status") or {}).get("currentRevision") or update
        if "deletionTimestamp" not in owner["metadata"]:
            self._adjust(owner, pods, update, current)
        self._write_status(key, owner, update, current)
        return self.seconds_until_available(owner)

    def _adjust(self, owner: Json, pods: Numbered, update: str, current: str) -> None:
        spec = owner["spec"]
        first = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(first, first + spec.get("replicas", 1))
        in_order = spec.get("podManagementPolicy") != "Parallel"
        for ordinal in wanted:
            key, pod = pods.get(ordinal, (None, None))
            if pod is None:
                self._create(owner, ordinal, current if ordinal < _partition(owner) else update)
            elif key is not None and not pod.is_active and not pod.is_terminating:
                self._delete(owner, key)
            if in_order and (pod is None or not self._is_available(owner, pod) or pod.is_terminating):
                return
        surplus = sorted((ordinal for ordinal in pods if ordinal not in wanted), reverse=True)
        for ordinal in surplus[:1] if in_order else surplus:
            key, pod = pods[ordinal]
            if not pod.is_terminating:
                self._delete(owner, key)
        if not surplus:
            self._update_one(owner, pods, update)

    def _create(self, owner: Json, ordinal: int, revision: str) -> None:
        name = f"{owner['metadata']['name']}-{ordinal}"
        labels = {
            "apps.kubernetes.io/pod-index": str(ordinal),
            "statefulset.kubernetes.io/pod-name": name,
            REVISION_LABEL: revision,
        }
        pod = pod_from_template(self._revisions.template(owner, revision), owner, name=name, labels=labels)
        pod["spec"]["hostname"] = name
        if owner["spec"].get("serviceName"):
            pod["spec"]["subdomain"] = owner["spec"]["serviceName"]
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            self._add_claim(owner, template, name, pod)
        self.client.create(pod)
        self._event(owner, "SuccessfulCreate", f"create Pod {name}")

    def _delete(self, owner: Json, key: Key) -> None:
        self.client.delete("pods", key)
        self._event(owner, "SuccessfulDelete", f"delete Pod {key[1]}")

    def _event(self, owner: Json, reason: str, what: str) -> None:
        self.client.event(owner, reason, f"{what} in StatefulSet {owner['metadata']['name']} successful")

    def _add_claim(self, owner: Json, template: Json, pod_name: str, pod: Json) -> None:
        volume = template["metadata"]["name"]
        claim = f"{volume}-{pod_name}"
        namespace = owner["metadata"]["namespace"]
        if self.client.store.get(CLAIMS, namespace, claim) is None:
            metadata = {"name": claim, "namespace": namespace, "labels": dict(template["metadata"].get("labels") or {})}
            spec = copy_of(template.get("spec") or {})
            self.client.create(
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
            )
            made = f"create Claim {claim} Pod {pod_name} in StatefulSet {owner['metadata']['name']} success"
            self.client.event(owner, "SuccessfulCreate", made)
        volumes = [one for one in pod["spec"].get("volumes") or () if one.get("name") != volume]
        pod["spec"]["volumes"] = [*volumes, {"name": volume, "persistentVolumeClaim": {"claimName": claim}}]

    def _update_one(self, owner: Json, pods: Numbered, update: str) -> None:
        """Replace the highest pod that still has an old template, once all above it are ready."""
        if (owner["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
            return
        for ordinal in sorted(pods, reverse=True):
            if ordinal < _partition(owner):
                return
            key, pod = pods[ordinal]
            if pod.labels.get(REVISION_LABEL) != update:
                if not pod.is_terminating:
                    self._delete(owner, key)
                return
            if not self._is_available(owner, pod):
                return

    def _is_available(self, owner: Json, pod: PodFacts) -> bool:
        return pod.is_available(owner["spec"].get("minReadySeconds", 0), self.client.clock.now())

    def _write_status(self, key: Key, owner: Json, update: str, current: str) -> None:
        pods = list(self.client.pods.of(owner["metadata"]["uid"]).actives())
        updated = sum(pod.labels.get(REVISION_LABEL) == update for pod in pods)
        ready = sum(pod.is_ready for pod in pods)
        wanted = owner["spec"].get("replicas", 1)
        if updated == len(pods) == ready == wanted or not owner.get("status"):
            current = update
        before = sum(pod.labels.get(REVISION_LABEL) == current for pod in pods)
        status: Json = {
            "observedGeneration": owner["metadata"].get("generation", 1),
            "replicas": len(pods),
            "availableReplicas": sum(self._is_available(owner, pod) for pod in pods),
            "updateRevision": update,
            "currentRevision": current,
            "collisionCount": 0,
        }
        status |= {"readyReplicas": ready} if ready else {}
        status |= {"currentReplicas": before} if before else {}
        status |= {"updatedReplicas": updated} if updated else {}
        if owner.get("status") != status:
            self.client.set_status(self.primary, key, status)
        in_use = {pod.labels.get(REVISION_LABEL, "") for pod in pods} | {update, current}
        self._revisions.trim(owner, in_use)


def _partition(owner: Json) -> int:
    """The number of the first pod that gets the new template."""
    rolling = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return int(rolling.get("partition", 0))


def _ordinal(key: Key) -> int:
    text = key[1].rpartition("-")[2]
    return int(text) if text.isdigit() else -1
