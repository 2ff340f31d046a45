"""Claims and volumes: binding what exists, provisioning what a class promises, releasing what was given back."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.controllers.base import Controller
from bayplan.apiserver.controllers.pods import key_of
from bayplan.apiserver.encoding import Json, decode_object
from bayplan.apiserver.quantity import parse_quantity
from bayplan.apiserver.selectors import matches_label_selector
from bayplan.apiserver.store import DELETED, Change, Key

VOLUMES, CLAIMS = "persistentvolumes", "persistentvolumeclaims"
CLASSES = "storageclasses.storage.k8s.io"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONE = "topology.kubernetes.io/zone"


class VolumeBinder(Controller):
    """Binds claims to volumes."""

    name = "persistentvolume-binder"
    primary = CLAIMS
    watches = (VOLUMES, CLASSES)

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        if resource == VOLUMES:
            self._settle_volume(change)
        claims = self.bench.entries(CLAIMS)
        return [entry.key for entry in claims if b'"phase":"Bound"' not in entry.raw or change.type == DELETED]

    def reconcile(self, key: Key) -> float | None:
        claim = self.bench.get(CLAIMS, key)
        if claim is None:
            self._release(key)
            return None
        if "deletionTimestamp" in claim["metadata"] or claim.get("status", {}).get("phase") == "Bound":
            return None
        volume = self._volume_for(claim)
        if volume is not None:
            self._bind(claim, volume)
        return None

    # ---- choosing

    def _volume_for(self, claim: Json) -> Json | None:
        if claim["spec"].get("volumeName"):
            volume = self.bench.get(VOLUMES, ("", claim["spec"]["volumeName"]))
            return volume if volume is not None and _may_take(volume, claim) else None
        volumes = list(self.bench.objects(VOLUMES))
        reserved = next((volume for volume in volumes if _is_reserved_for(volume, claim)), None)
        if reserved is not None:
            return reserved
        storage_class = self.bench.get(CLASSES, ("", claim["spec"].get("storageClassName") or ""))
        waits = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
        if waits and SELECTED_NODE not in (claim["metadata"].get("annotations") or {}):
            return None
        fitting = [] if waits else [volume for volume in volumes if _fits(volume, claim)]
        if fitting:
            return min(fitting, key=lambda volume: parse_quantity(volume["spec"]["capacity"]["storage"]))
        return self._provision(claim, storage_class)

    def _provision(self, claim: Json, storage_class: Json | None) -> Json | None:
        """Make a volume as the class's provisioner would; there is no storage behind it."""
        if storage_class is None or storage_class.get("provisioner") == NO_PROVISIONER:
            return None
        name = f"pvc-{claim['metadata']['uid']}"
        node = self.bench.get("nodes", ("", (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")))
        spec: Json = {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": list(claim["spec"]["accessModes"]),
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
            "claimRef": _claim_reference(claim),
            "csi": {"driver": storage_class["provisioner"], "volumeHandle": name},
        }
        zone = ((node or {}).get("metadata", {}).get("labels") or {}).get(_ZONE)
        if zone:
            requirement = {"key": _ZONE, "operator": "In", "values": [zone]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
        annotations = {"pv.kubernetes.io/provisioned-by": storage_class["provisioner"]}
        metadata = {"name": name, "annotations": annotations}
        return self.bench.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec})

    # ---- binding

    def _bind(self, claim: Json, volume: Json) -> None:
        reference = _claim_reference(claim)
        had_reference = bool(volume["spec"].get("claimRef"))

        def take(document: Json) -> Json:
            document["spec"]["claimRef"] = reference
            if not had_reference:
                document["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
            return document

        def give(document: Json) -> Json:
            annotations = document["metadata"].setdefault("annotations", {})
            annotations[BIND_COMPLETED] = "yes"
            if not document["spec"].get("volumeName"):
                annotations[BOUND_BY_CONTROLLER] = "yes"
            document["spec"]["volumeName"] = volume["metadata"]["name"]
            return document

        self.bench.update(VOLUMES, key_of(volume), take)
        self._set_phase(key_of(volume), "Bound")
        self.bench.update(CLAIMS, key_of(claim), give)
        capacity, modes = volume["spec"].get("capacity"), volume["spec"].get("accessModes")
        self.bench.set_status(CLAIMS, key_of(claim), {"phase": "Bound", "accessModes": modes, "capacity": capacity})

    def _set_phase(self, key: Key, wanted: str) -> None:
        volume = self.bench.get(VOLUMES, key)
        if volume is not None and volume.get("status", {}).get("phase") != wanted:
            self.bench.set_status(VOLUMES, key, {"phase": wanted, "lastPhaseTransitionTime": self.bench.now()})

    def _settle_volume(self, change: Change) -> None:
        """A new volume that nobody holds is available."""
        if change.type == DELETED:
            return
        volume = decode_object(change.entry.raw)
        if volume.get("status", {}).get("phase") in (None, "", "Pending") and not volume["spec"].get(
            "claimRef", {}
        ).get("uid"):
            self._set_phase(change.entry.key, "Available")

    def _release(self, key: Key) -> None:
        """A deleted claim gives its volume back: kept as Released, or deleted, as its policy says."""
        for volume in self.bench.objects(VOLUMES):
            reference = volume["spec"].get("claimRef") or {}
            if (reference.get("namespace"), reference.get("name")) != key or not reference.get("uid"):
                continue
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                self.bench.delete(VOLUMES, key_of(volume))
            else:
                self._set_phase(key_of(volume), "Released")


def _claim_reference(claim: Json) -> Json:
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def _is_reserved_for(volume: Json, claim: Json) -> bool:
    reference = volume["spec"].get("claimRef") or {}
    mine = (claim["metadata"]["namespace"], claim["metadata"]["name"])
    if (reference.get("namespace"), reference.get("name")) != mine:
        return False
    return reference.get("uid") in (None, "", claim["metadata"]["uid"])


def _may_take(volume: Json, claim: Json) -> bool:
    return not volume["spec"].get("claimRef") or _is_reserved_for(volume, claim)


def _fits(volume: Json, claim: Json) -> bool:
    spec, wanted = volume["spec"], claim["spec"]
    if spec.get("claimRef") or "deletionTimestamp" in volume["metadata"]:
        return False
    if volume.get("status", {}).get("phase") not in ("Available", "Pending"):
        return False
    if (spec.get("storageClassName") or "") != (wanted.get("storageClassName") or ""):
        return False
    if spec.get("volumeMode", "Filesystem") != wanted.get("volumeMode", "Filesystem"):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return False
    selector = wanted.get("selector")
    if selector and not matches_label_selector(selector, volume["metadata"].get("labels") or {}):
        return False
    return parse_quantity(spec["capacity"]["storage"]) >= parse_quantity(wanted["resources"]["requests"]["storage"])
