"""StatefulSets: numbered pods, one after the other, each with its own claims."""

from __future__ import annotations

from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.deployments import template_hash
from bayplan.apiserver.simulation.controllers.pod_tally import PodFacts
from bayplan.apiserver.simulation.controllers.pods import copy_of, pod_from_template
from bayplan.apiserver.storage.store import Key

REVISION_LABEL = "controller-revision-hash"
CLAIMS = "persistentvolumeclaims"
Numbered = dict[int, tuple[Key, PodFacts]]
"""Pods by their number."""


class StatefulSets(Controller):
    """Keeps the numbered pods of a StatefulSet."""

    name = "statefulset-controller"
    primary = "statefulsets.apps"
    watches = ("pods",)
    adopts = "pods"

    def reconcile(self, key: Key) -> float | None:
        owner = self.client.get(self.primary, key)
        if owner is None:
            return None
        self.claims.settle(owner)
        pods = {_ordinal(key): (key, pod) for key, pod in self.client.pods.of(owner["metadata"]["uid"]).in_order()}
        if "deletionTimestamp" not in owner["metadata"]:
            self._adjust(owner, pods)
        self._write_status(key, owner)
        return None

    def _adjust(self, owner: Json, pods: Numbered) -> None:
        spec = owner["spec"]
        first = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(first, first + spec.get("replicas", 1))
        in_order = spec.get("podManagementPolicy") != "Parallel"
        for ordinal in wanted:
            key, pod = pods.get(ordinal, (None, None))
            if pod is None:
                self._create(owner, ordinal)
            elif key is not None and not pod.is_active and not pod.is_terminating:
                self._delete(owner, key)
            if in_order and (pod is None or not pod.is_ready or pod.is_terminating):
                return
        surplus = sorted((ordinal for ordinal in pods if ordinal not in wanted), reverse=True)
        for ordinal in surplus[:1] if in_order else surplus:
            key, pod = pods[ordinal]
            if not pod.is_terminating:
                self._delete(owner, key)
        if not surplus:
            self._update_one(owner, pods)

    def _create(self, owner: Json, ordinal: int) -> None:
        name = f"{owner['metadata']['name']}-{ordinal}"
        labels = {
            "apps.kubernetes.io/pod-index": str(ordinal),
            "statefulset.kubernetes.io/pod-name": name,
            REVISION_LABEL: self._revision(owner),
        }
        pod = pod_from_template(owner["spec"]["template"], owner, name=name, labels=labels)
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

    def _update_one(self, owner: Json, pods: Numbered) -> None:
        """Replace the highest pod that still has an old template."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        revision = self._revision(owner)
        for ordinal in sorted(pods, reverse=True):
            if ordinal < partition:
                return
            key, pod = pods[ordinal]
            if pod.labels.get(REVISION_LABEL) != revision:
                if not pod.is_terminating:
                    self._delete(owner, key)
                return

    def _revision(self, owner: Json) -> str:
        return f"{owner['metadata']['name']}-{template_hash(owner['spec']['template'])}"

    def _write_status(self, key: Key, owner: Json) -> None:
        pods = list(self.client.pods.of(owner["metadata"]["uid"]).actives())
        revision = self._revision(owner)
        updated = sum(pod.labels.get(REVISION_LABEL) == revision for pod in pods)
        ready = sum(pod.is_ready for pod in pods)
        status: Json = {
            "observedGeneration": owner["metadata"].get("generation", 1),
            "replicas": len(pods),
            "availableReplicas": ready,
            "updateRevision": revision,
            "currentRevision": revision,
            "collisionCount": 0,
        }
        status |= {"readyReplicas": ready} if ready else {}
        status |= {"currentReplicas": updated, "updatedReplicas": updated} if updated else {}
        if owner.get("status") != status:
            self.client.set_status(self.primary, key, status)


def _ordinal(key: Key) -> int:
    text = key[1].rpartition("-")[2]
    return int(text) if text.isdigit() else -1
