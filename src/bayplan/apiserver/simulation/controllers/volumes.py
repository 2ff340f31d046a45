"""Claims and volumes: binding, dynamic provisioning and release."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from decimal import Decimal

from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.protocol.quantity import parse_quantity
from bayplan.apiserver.protocol.selectors import matches_label_selector
from bayplan.apiserver.simulation.controllers.base import Controller, ControllerClient
from bayplan.apiserver.simulation.controllers.pods import key_of
from bayplan.apiserver.storage.store import DELETED, Change, Key

VOLUMES, CLAIMS = "persistentvolumes", "persistentvolumeclaims"
CLASSES = "storageclasses.storage.k8s.io"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_NO_CLAIM: Key = ("", "")
_ZONE = "topology.kubernetes.io/zone"


class ClaimBinder(Controller):
    """Binds claims to volumes.

    Volumes are decoded once, when they change, and indexed by class and by claim, so that the cost of a claim does
    not grow with the number of unrelated volumes.
    """

    name = "persistentvolume-binder"
    component = "persistentvolume-controller"
    primary = CLAIMS
    watches = (VOLUMES, CLASSES)

    def __init__(self, client: ControllerClient) -> None:
        super().__init__(client)
        self._free: dict[str, list[tuple[Decimal, str]]] = {}
        """Sizes and names of unclaimed volumes, by class, smallest first."""
        self._held: dict[Key, dict[str, None]] = {}
        """Names of volumes that name a claim, by claim."""
        self._waiting: dict[str, dict[Key, None]] = {}
        """Claims without a volume, by class."""

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        if resource == CLASSES:
            return list(self._waiting.get(change.entry.name, ()))
        if change.previous is not None:
            self._forget(decode_object(change.previous.raw))
        if change.type == DELETED:
            return ()
        return self._remember(decode_object(change.entry.raw))

    def _forget(self, volume: Json) -> None:
        name, claim = volume["metadata"]["name"], _claim_key(volume)
        free = self._free.get(volume["spec"].get("storageClassName") or "", [])
        position = bisect_left(free, (_size(volume), name))
        if position < len(free) and free[position][1] == name:
            del free[position]
        if claim in self._held:
            self._held[claim].pop(name, None)
            if not self._held[claim]:
                del self._held[claim]

    def _remember(self, volume: Json) -> list[Key]:
        """Index a volume; returns the claims that it may satisfy, and its own key (no namespace) when it is new."""
        name, claim = volume["metadata"]["name"], _claim_key(volume)
        if claim != _NO_CLAIM:
            self._held.setdefault(claim, {})[name] = None
            return [claim]
        storage_class = volume["spec"].get("storageClassName") or ""
        insort(self._free.setdefault(storage_class, []), (_size(volume), name))
        is_new = volume.get("status", {}).get("phase") in (None, "", "Pending")
        return [("", name)] if is_new else list(self._waiting.get(storage_class, ()))

    def reconcile(self, key: Key) -> float | None:
        if not key[0]:
            self._set_phase(key, "Available")
            return None
        claim = self.client.get(CLAIMS, key)
        for waiting in self._waiting.values():
            waiting.pop(key, None)
        if claim is None:
            self._release(key)
            return None
        if "deletionTimestamp" in claim["metadata"] or claim.get("status", {}).get("phase") == "Bound":
            return None
        volume = self._volume_for(claim)
        if volume is not None:
            self._bind(claim, volume)
        else:
            self._waiting.setdefault(claim["spec"].get("storageClassName") or "", {})[key] = None
            if self._waits_for_pod(claim):
                message = "waiting for first consumer to be created before binding"
                self.client.event(claim, "WaitForFirstConsumer", message)
        return None

    # ---- choosing

    def _waits_for_pod(self, claim: Json) -> bool:
        storage_class = self.client.get(CLASSES, ("", claim["spec"].get("storageClassName") or ""))
        waits = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
        return waits and SELECTED_NODE not in (claim["metadata"].get("annotations") or {})

    def _volume_for(self, claim: Json) -> Json | None:
        if claim["spec"].get("volumeName"):
            volume = self.client.get(VOLUMES, ("", claim["spec"]["volumeName"]))
            return volume if volume is not None and _may_take(volume, claim) else None
        for name in self._held.get(key_of(claim), ()):
            volume = self.client.get(VOLUMES, ("", name))
            if volume is not None and _is_reserved_for(volume, claim):
                return volume
        class_name = claim["spec"].get("storageClassName") or ""
        storage_class = self.client.get(CLASSES, ("", class_name))
        waits = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
        if self._waits_for_pod(claim):
            return None
        for _, name in () if waits else self._free.get(class_name, ()):
            volume = self.client.get(VOLUMES, ("", name))
            if volume is not None and _fits(volume, claim):
                return volume
        return self._provision(claim, storage_class)

    def _provision(self, claim: Json, storage_class: Json | None) -> Json | None:
        """Make a volume as the class's provisioner would; there is no storage behind it."""
        if storage_class is None or storage_class.get("provisioner") == NO_PROVISIONER:
            return None
        name = f"pvc-{claim['metadata']['uid']}"
        node = self.client.get("nodes", ("", (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")))
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
        return self.client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec})

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

        self.client.update(VOLUMES, key_of(volume), take)
        self._set_phase(key_of(volume), "Bound")
        self.client.update(CLAIMS, key_of(claim), give)
        capacity, modes = volume["spec"].get("capacity"), volume["spec"].get("accessModes")
        self.client.set_status(CLAIMS, key_of(claim), {"phase": "Bound", "accessModes": modes, "capacity": capacity})

    def _set_phase(self, key: Key, wanted: str) -> None:
        volume = self.client.get(VOLUMES, key)
        if volume is not None and volume.get("status", {}).get("phase") != wanted:
            self.client.set_status(VOLUMES, key, {"phase": wanted, "lastPhaseTransitionTime": self.client.now()})

    def _release(self, key: Key) -> None:
        """Release the volume of a deleted claim: kept as Released, or deleted, by its reclaim policy."""
        for name in list(self._held.get(key, ())):
            volume = self.client.get(VOLUMES, ("", name))
            if volume is None or not (volume["spec"].get("claimRef") or {}).get("uid"):
                continue
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                self.client.delete(VOLUMES, key_of(volume))
            else:
                self._set_phase(key_of(volume), "Released")


def _size(volume: Json) -> Decimal:
    return parse_quantity(str((volume["spec"].get("capacity") or {}).get("storage", "0")))


def _claim_key(volume: Json) -> Key:
    reference = volume["spec"].get("claimRef") or {}
    return (reference.get("namespace", ""), reference.get("name", ""))


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
