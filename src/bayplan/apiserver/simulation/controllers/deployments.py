"""Deployments: one ReplicaSet a template, and a rollout from the old ones to the new one."""

from __future__ import annotations

import functools
import hashlib
import math
import re

from bayplan.apiserver.protocol.encoding import Json, JsonValue, encode_sorted, parse_timestamp
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.pods import copy_of, key_of, owner_reference
from bayplan.apiserver.storage.store import Key

SETS = "replicasets.apps"
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_NUMBER = re.compile(r"[0-9]{1,19}")
"""As long as a number of 64 bits can be."""


class Deployments(Controller):
    """Rolls Deployments out."""

    name = "deployment-controller"
    primary = "deployments.apps"
    watches = (SETS,)
    adopts = SETS

    def reconcile(self, key: Key) -> float | None:
        deployment = self.client.get(self.primary, key)
        if deployment is None:
            return None
        self.claims.settle(deployment)
        sets = self.client.owned(SETS, deployment["metadata"]["uid"])
        if "deletionTimestamp" not in deployment["metadata"] and not deployment["spec"].get("paused"):
            new = self._new_set(deployment, sets)
            sets = self.client.owned(SETS, deployment["metadata"]["uid"])
            old = [one for one in sets if one["metadata"]["name"] != new["metadata"]["name"]]
            self._roll(deployment, new, old)
            self._trim_history(deployment, old)
        self._write_status(key, deployment)
        return None

    def _new_set(self, deployment: Json, sets: list[Json]) -> Json:
        wanted = template_hash(deployment["spec"]["template"])
        for one in sets:
            if (one["metadata"].get("labels") or {}).get(HASH_LABEL) == wanted:
                return one
        revision = 1 + max((_revision(one) for one in sets), default=0)
        created = self.client.create(_replica_set(deployment, wanted, revision))
        self._annotate(deployment, revision)
        return created

    def _annotate(self, deployment: Json, revision: int) -> None:
        def annotate(document: Json) -> Json:
            document["metadata"].setdefault("annotations", {})[REVISION] = str(revision)
            return document

        self.client.update(self.primary, key_of(deployment), annotate)

    def _roll(self, deployment: Json, new: Json, old: list[Json]) -> None:
        wanted = deployment["spec"].get("replicas", 1)
        strategy = deployment["spec"].get("strategy") or {}
        old_total = sum(_size(one) for one in old)
        scale = functools.partial(self._scale, deployment)
        if strategy.get("type") == "Recreate":
            for one in old:
                scale(one, 0)
            if not any(one.get("status", {}).get("replicas") for one in old):
                scale(new, wanted)
            return
        surge, unavailable = _limits(strategy.get("rollingUpdate") or {}, wanted)
        if old_total == 0 or _size(new) > wanted:
            scale(new, wanted)
        else:
            room = wanted + surge - old_total - _size(new)
            scale(new, min(wanted, _size(new) + max(0, room)))
        self._shrink_old(deployment, new, old, wanted - unavailable)

    def _shrink_old(self, deployment: Json, new: Json, old: list[Json], needed: int) -> None:
        """Scale old sets down as far as enough pods stay available; unavailable pods first."""
        spare = sum(_available(one) for one in [new, *old]) - needed
        for one in sorted(old, key=_created):
            removed = min(_available(one), max(0, spare))
            spare -= removed
            self._scale(deployment, one, _available(one) - removed)

    def _scale(self, deployment: Json, one: Json, replicas: int) -> None:
        before = _size(one)
        if before == replicas:
            return

        def scale(document: Json) -> Json:
            document["spec"]["replicas"] = replicas
            return document

        self.client.update(SETS, key_of(one), scale)
        one["spec"]["replicas"] = replicas
        direction, name = "up" if replicas > before else "down", one["metadata"]["name"]
        message = f"Scaled {direction} replica set {name} from {before} to {replicas}"
        self.client.event(deployment, "ScalingReplicaSet", message)

    def _trim_history(self, deployment: Json, old: list[Json]) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        idle = [
            one for one in sorted(old, key=_revision) if not _size(one) and not one.get("status", {}).get("replicas")
        ]
        for one in idle[: max(0, len(idle) - limit)]:
            self.client.delete(SETS, key_of(one))

    def _write_status(self, key: Key, deployment: Json) -> None:
        current = self.client.get(self.primary, key)
        if current is None:
            return
        sets = self.client.owned(SETS, current["metadata"]["uid"])
        wanted_hash = template_hash(current["spec"]["template"])
        status = _status(current, sets, wanted_hash, self.client.now())
        if current.get("status") != status:
            self.client.set_status(self.primary, key, status)


def template_hash(template: Json) -> str:
    """A name-safe hash of a pod template."""
    number = int.from_bytes(hashlib.sha256(encode_sorted(template)).digest()[:6], "big")
    letters = []
    for _ in range(10):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


def _replica_set(deployment: Json, wanted_hash: str, revision: int) -> Json:
    template = copy_of(deployment["spec"]["template"])
    template.setdefault("metadata", {}).setdefault("labels", {})[HASH_LABEL] = wanted_hash
    selector = copy_of(deployment["spec"]["selector"])
    selector.setdefault("matchLabels", {})[HASH_LABEL] = wanted_hash
    metadata = {
        "name": f"{deployment['metadata']['name']}-{wanted_hash}",
        "namespace": deployment["metadata"]["namespace"],
        "labels": dict(template["metadata"]["labels"]),
        "annotations": {REVISION: str(revision)},
        "ownerReferences": [owner_reference(deployment)],
    }
    spec = {"replicas": 0, "selector": selector, "template": template}
    if deployment["spec"].get("minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def _size(one: Json) -> int:
    return int(one["spec"].get("replicas", 1))


def _available(one: Json) -> int:
    """Available replicas; at most the size, since the status may be older than the last change of size."""
    return min(_size(one), int(one.get("status", {}).get("availableReplicas", 0)))


def _created(one: Json) -> tuple[float, str]:
    return (parse_timestamp(one["metadata"].get("creationTimestamp", "")), one["metadata"]["name"])


def _revision(one: Json) -> int:
    text = (one["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if _NUMBER.fullmatch(text) else 0


def _limits(rolling: Json, wanted: int) -> tuple[int, int]:
    surge = absolute(rolling.get("maxSurge", "25%"), wanted, round_up=True)
    unavailable = absolute(rolling.get("maxUnavailable", "25%"), wanted, round_up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def absolute(value: JsonValue, total: int, *, round_up: bool) -> int:
    """A number or a percentage of a total."""
    if isinstance(value, str) and value.endswith("%") and _NUMBER.fullmatch(value[:-1]):
        share = int(value[:-1]) * total / 100
        return math.ceil(share) if round_up else math.floor(share)
    return int(value) if isinstance(value, int) or _NUMBER.fullmatch(str(value)) else 0


def _status(deployment: Json, sets: list[Json], wanted_hash: str, now: str) -> Json:
    def total(field: str, chosen: list[Json]) -> int:
        return sum(one.get("status", {}).get(field, 0) for one in chosen)

    new = [one for one in sets if (one["metadata"].get("labels") or {}).get(HASH_LABEL) == wanted_hash]
    wanted = deployment["spec"].get("replicas", 1)
    counts = {
        "replicas": total("replicas", sets),
        "updatedReplicas": total("replicas", new),
        "readyReplicas": total("readyReplicas", sets),
        "availableReplicas": total("availableReplicas", sets),
    }
    counts["unavailableReplicas"] = max(0, wanted - counts["availableReplicas"])
    status: Json = {"observedGeneration": deployment["metadata"].get("generation", 1)}
    status |= {name: value for name, value in counts.items() if value}
    _, unavailable = _limits((deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}, wanted)
    is_available = counts["availableReplicas"] >= wanted - unavailable
    complete = counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted
    progress = "NewReplicaSetAvailable" if complete else "ReplicaSetUpdated"
    reason = "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable"
    message = f"Deployment {'has' if is_available else 'does not have'} minimum availability."
    outlook = "The rollout is complete." if complete else "The rollout is under way."
    old = {c["type"]: c for c in deployment.get("status", {}).get("conditions") or ()}
    status["conditions"] = [
        _condition(old, "Available", str(is_available), reason, message, now),
        _condition(old, "Progressing", "True", progress, outlook, now),
    ]
    return status


def _condition(old: Json, kind: str, value: str, reason: str, message: str, now: str) -> Json:
    before = old.get(kind) or {}
    moved = before.get("lastTransitionTime", now) if before.get("status") == value else now
    same = before.get("status") == value and before.get("reason") == reason
    return {
        "type": kind,
        "status": value,
        "lastUpdateTime": before.get("lastUpdateTime", now) if same else now,
        "lastTransitionTime": moved,
        "reason": reason,
        "message": message,
    }
