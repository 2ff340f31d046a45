"""Deployments: one ReplicaSet a template, and a rollout from the old ones to the new one."""

from __future__ import annotations

import functools
import hashlib
import math
import re

from bayplan.apiserver.protocol.encoding import Json, JsonValue, encode_sorted, parse_timestamp
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.pods import copy_of, key_of, owner_reference
from bayplan.apiserver.simulation.controllers.rollout_status import rollout_status, seconds_to_deadline
from bayplan.apiserver.storage.store import Key

SETS = "replicasets.apps"
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_HISTORY = "deployment.kubernetes.io/revision-history"
_OWN = (REVISION, _HISTORY, "kubectl.kubernetes.io/last-applied-configuration")
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
        if "deletionTimestamp" not in deployment["metadata"]:
            if deployment["spec"].get("paused"):
                self._resize_paused(deployment, sets)
            else:
                new = self._new_set(deployment, sets)
                sets = self.client.owned(SETS, deployment["metadata"]["uid"])
                old = [one for one in sets if one["metadata"]["name"] != new["metadata"]["name"]]
                self._roll(deployment, new, old)
                self._trim_history(deployment, old)
        return self._write_status(key)

    def _resize_paused(self, deployment: Json, sets: list[Json]) -> None:
        """Give the only set with pods, or the latest, the size that is wanted now; between several nothing moves."""
        active = [one for one in sets if _size(one)] or sorted(sets, key=_revision)[-1:]
        if len(active) == 1:
            self._scale(deployment, active[0], deployment["spec"].get("replicas", 1))

    def _new_set(self, deployment: Json, sets: list[Json]) -> Json:
        wanted = template_hash(deployment["spec"]["template"])
        new = next((one for one in sets if (one["metadata"].get("labels") or {}).get(HASH_LABEL) == wanted), None)
        revision = 1 + max((_revision(one) for one in sets if one is not new), default=0)
        if new is None:
            new = self.client.create(_replica_set(deployment, wanted, revision))
        else:
            self._sync(deployment, new, revision)
        self._annotate(deployment, new["metadata"]["annotations"][REVISION])
        return new

    def _sync(self, deployment: Json, new: Json, revision: int) -> None:
        """Make the set of the present template the newest revision, with the annotations of the Deployment."""
        annotations = (new["metadata"].get("annotations") or {}) | _copied(deployment)
        before = annotations.get(REVISION, "")
        if _revision(new) < revision and (not before or _NUMBER.fullmatch(before)):
            annotations[REVISION] = str(revision)
            if before:
                earlier = annotations.get(_HISTORY)
                annotations[_HISTORY] = f"{earlier},{before}" if earlier else before
        seconds = deployment["spec"].get("minReadySeconds", 0)
        if (annotations, seconds) == (new["metadata"].get("annotations"), new["spec"].get("minReadySeconds", 0)):
            return

        def sync(document: Json) -> Json:
            document["metadata"]["annotations"] = dict(annotations)
            document["spec"]["minReadySeconds"] = seconds
            return document

        self.client.update(SETS, key_of(new), sync)
        new["metadata"]["annotations"] = annotations

    def _annotate(self, deployment: Json, revision: str) -> None:
        if (deployment["metadata"].get("annotations") or {}).get(REVISION) == revision:
            return

        def annotate(document: Json) -> Json:
            document["metadata"].setdefault("annotations", {})[REVISION] = revision
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

    def _write_status(self, key: Key) -> float | None:
        current = self.client.get(self.primary, key)
        if current is None:
            return None
        sets = self.client.owned(SETS, current["metadata"]["uid"])
        wanted = template_hash(current["spec"]["template"])
        new = next((one for one in sets if (one["metadata"].get("labels") or {}).get(HASH_LABEL) == wanted), None)
        rolling = (current["spec"].get("strategy") or {}).get("rollingUpdate") or {}
        _, unavailable = _limits(rolling, current["spec"].get("replicas", 1))
        now = self.client.clock.now()
        status = rollout_status(current, new, sets, unavailable, now)
        if current.get("status") != status:
            self.client.set_status(self.primary, key, status)
        return seconds_to_deadline(current, status, now)


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
        "annotations": _copied(deployment) | {REVISION: str(revision)},
        "ownerReferences": [owner_reference(deployment)],
    }
    spec = {"replicas": 0, "selector": selector, "template": template}
    if deployment["spec"].get("minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def _copied(deployment: Json) -> Json:
    """The annotations of a Deployment that its sets get as well."""
    annotations = deployment["metadata"].get("annotations") or {}
    return {name: value for name, value in annotations.items() if name not in _OWN}


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
