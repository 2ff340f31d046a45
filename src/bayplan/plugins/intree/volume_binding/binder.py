"""Binding of volumes: reserve them for a pod, write them to the API server, wait for the volume controller.

Reserved volumes count as taken for other pods. The wait goes by the state of the API server, never by reservations; it
is checked at every change of a claim, and every second in case a change was missed. What is written is not undone: when
binding fails, the pod is scheduled again with whatever is bound by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from bayplan.framework import Handle, NodeInfo, PodInfo
from bayplan.framework.objects import CSINode, KubeObject, ObjectReference, PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.intree.volume_binding.assumed_objects import AssumedObjects
from bayplan.plugins.intree.volume_binding.places import is_reachable
from bayplan.plugins.intree.volume_binding.pod_volumes import Binding, PodVolumes, volume_places
from bayplan.plugins.volumes.claims import BOUND_BY_CONTROLLER, SELECTED_NODE, is_bound, is_volume_of, not_found
from bayplan.plugins.volumes.csi_migration import TranslationError

__all__ = ["BindingFailed", "VolumeBinder", "bound_volume", "chosen_claim"]

_POLL_SECONDS = 1.0


class BindingFailed(Exception):
    """The volumes of a pod will not be bound as decided; the message says why."""


class VolumeBinder:
    def __init__(
        self,
        handle: Handle,
        volumes: AssumedObjects[PersistentVolume],
        claims: AssumedObjects[PersistentVolumeClaim],
    ) -> None:
        self._handle, self._volumes, self._claims = handle, volumes, claims
        self._waits: dict[str, list[_Wait]] = {}
        """By claim, the waits for it to be bound."""
        handle.cluster.objects.on_change(PersistentVolume, self._volume_changed)
        handle.cluster.objects.on_change(PersistentVolumeClaim, self._claim_changed)

    def reserve(self, found: PodVolumes, node_name: str) -> PodVolumes:
        """Reserve the volumes for the pod, to be written later. Raises BindingFailed, with nothing reserved."""
        reserved = PodVolumes()
        for binding in found.bindings:
            volume, is_changed = bound_volume(binding.volume, binding.claim)
            problem = self._volumes.assume(volume) if is_changed else ""
            self._check_reserved(problem, reserved)
            reserved = reserved._replace(bindings=(*reserved.bindings, Binding(volume, binding.claim)))
        for claim in found.provisions:
            chosen = chosen_claim(claim, node_name)
            self._check_reserved(self._claims.assume(chosen), reserved)
            reserved = reserved._replace(provisions=(*reserved.provisions, chosen))
        return reserved

    def _check_reserved(self, problem: str, reserved: PodVolumes) -> None:
        if problem:
            self.release(reserved)
            raise BindingFailed(problem)

    def release(self, reserved: PodVolumes) -> None:
        """Release the volumes. May be repeated."""
        for binding in reserved.bindings:
            self._volumes.restore(binding.volume)
        for claim in reserved.provisions:
            self._claims.restore(claim)

    async def write(self, reserved: PodVolumes) -> PodVolumes:
        """Send volumes, then claims, to the API server. Returns the stored objects.

        Each carries the version that the decision was based on, so that a volume that another client took in the
        meantime is a conflict and not overwritten. On failure, reservations that were not written are released.
        """
        bindings: list[Binding] = []
        provisions: list[PersistentVolumeClaim] = []
        try:
            for binding in reserved.bindings:
                volume = await self._handle.api.update(binding.volume, _volume_change(binding.volume))
                bindings.append(Binding(_as(PersistentVolume, volume), binding.claim))
            for claim in reserved.provisions:
                written = await self._handle.api.update(claim, _claim_change(claim))
                provisions.append(_as(PersistentVolumeClaim, written))
        finally:
            left = PodVolumes(reserved.bindings[len(bindings) :], reserved.provisions[len(provisions) :])
            self.release(left)
        return PodVolumes(tuple(bindings), tuple(provisions))

    async def wait(self, pod: PodInfo, written: PodVolumes, node_name: str, timeout_seconds: float) -> None:
        """Check at every change of the claims, and every second, until all are bound. Raises BindingFailed."""
        clock = self._handle.clock
        deadline = clock.monotonic() + timeout_seconds
        keys = {binding.claim.key for binding in written.bindings} | {claim.key for claim in written.provisions}
        with self._waiting_for(keys) as wait:
            while True:
                left = deadline - clock.monotonic()
                is_news = await wait.for_news(clock.sleep(max(0.0, min(_POLL_SECONDS, left))))
                if left < _POLL_SECONDS and not is_news:
                    raise BindingFailed("context deadline exceeded")
                if self._is_done(pod, written, node_name):
                    return

    @contextmanager
    def _waiting_for(self, keys: Collection[str]) -> Iterator[_Wait]:
        wait = _Wait()
        for key in keys:
            self._waits.setdefault(key, []).append(wait)
        try:
            yield wait
        finally:
            for key in keys:
                self._waits[key].remove(wait)
                if not self._waits[key]:
                    del self._waits[key]

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        claim = new or old
        if claim is not None and self._waits:
            self._tell_those_who_wait_for(claim.key)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        """A change of a volume may arrive after that of its claim."""
        volume = new or old
        reference = volume.spec.claim_ref if volume is not None else None
        if reference is not None and self._waits:
            self._tell_those_who_wait_for(f"{reference.namespace}/{reference.name}")

    def _tell_those_who_wait_for(self, key: str) -> None:
        for wait in self._waits.get(key, ()):
            wait.tell()

    def _is_done(self, pod: PodInfo, written: PodVolumes, node_name: str) -> bool:
        node = self._handle.cluster.node(node_name)
        if node is None:
            raise BindingFailed(f'failed to get node "{node_name}": {not_found("node", node_name)}')
        if pod.uid not in node.pods:
            raise BindingFailed(f"pod does not exist any more: {not_found('pod', pod.name)}")
        # In order, and no further than the first claim that is not bound: a failure of a later one is reported only
        # once the earlier ones are bound.
        return all(self._is_volume_done(binding, node) for binding in written.bindings) and all(
            self._is_claim_done(claim, node) for claim in written.provisions
        )

    def _is_volume_done(self, binding: Binding, node: NodeInfo) -> bool:
        volume, claim = self._volumes.stored(binding.volume.name), self._claims.stored(binding.claim.key)
        if volume is None:
            raise BindingFailed(f"failed to check binding: {not_found('persistentvolumes', binding.volume.name)}")
        if claim is None:
            raise BindingFailed(f"failed to check binding: {not_found('persistentvolumeclaims', binding.claim.key)}")
        if _is_older(volume, binding.volume):
            return False
        self._check_reachable(volume, node, "failed to translate pv to csi: ")
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingFailed(f'ClaimRef got reset for pv "{volume.name}"')
        if is_bound(claim) and claim.spec.volume_name != volume.name:
            # An earlier write, whose answer was lost, gave the claim another volume, on another node perhaps.
            raise BindingFailed(f'pvc "{claim.name}" is bound to pv "{claim.spec.volume_name}", not to "{volume.name}"')
        return is_bound(claim)

    def _is_claim_done(self, written: PersistentVolumeClaim, node: NodeInfo) -> bool:
        claim = self._claims.stored(written.key)
        if claim is None:
            missing = not_found("persistentvolumeclaims", written.key)
            raise BindingFailed(f"failed to check provisioning pvc: {missing}")
        if _is_older(claim, written):
            return False
        if not claim.annotations:
            raise BindingFailed(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.annotations.get(SELECTED_NODE, "") != node.name:
            raise BindingFailed(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.stored(claim.spec.volume_name)
            if volume is None:
                # A change of the volume may arrive after that of the claim.
                return False
            self._check_reachable(volume, node, "")
        return is_bound(claim)

    def _check_reachable(self, volume: PersistentVolume, node: NodeInfo, prefix: str) -> None:
        csi_node = self._handle.cluster.objects.get(CSINode, node.name)
        try:
            places = volume_places(volume, csi_node)
        except TranslationError as error:
            raise BindingFailed(f"{prefix}{error}") from error
        if not is_reachable(places, node.labels):
            mismatch = f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}"'
            raise BindingFailed(f"{mismatch}: no matching NodeSelectorTerms")


class _Wait:
    """One wait for a change, or for the next check."""

    def __init__(self) -> None:
        self._sleeping: asyncio.Future[None] | None = None

    async def for_news(self, sleep: Awaitable[None]) -> bool:
        """Whether there was a change before the sleep was over."""
        sleeping = self._sleeping = asyncio.ensure_future(sleep)
        try:
            await asyncio.wait([sleeping])
            return sleeping.cancelled()
        finally:
            self._sleeping = None
            sleeping.cancel()

    def tell(self) -> None:
        if self._sleeping is not None:
            self._sleeping.cancel()


def bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, bool]:
    """The volume bound to the claim, and whether that differs from the given one."""
    metadata, spec, reference = volume.metadata, volume.spec, volume.spec.claim_ref
    wanted = (claim.name, claim.namespace, claim.uid)
    if reference is None or (reference.name, reference.namespace, reference.uid) != wanted:
        spec = msgspec.structs.replace(spec, claim_ref=_reference_to(claim))
    if not is_volume_of(volume, claim) and BOUND_BY_CONTROLLER not in volume.annotations:
        metadata = msgspec.structs.replace(metadata, annotations={**volume.annotations, BOUND_BY_CONTROLLER: "yes"})
    is_changed = spec is not volume.spec or metadata is not volume.metadata
    return msgspec.structs.replace(volume, metadata=metadata, spec=spec), is_changed


def chosen_claim(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim with the annotation that tells its provisioner the node of the pod."""
    metadata = msgspec.structs.replace(claim.metadata, annotations={**claim.annotations, SELECTED_NODE: node_name})
    return msgspec.structs.replace(claim, metadata=metadata)


def _reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    return ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )


def _volume_change(volume: PersistentVolume) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
    if BOUND_BY_CONTROLLER in volume.annotations:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: volume.annotations[BOUND_BY_CONTROLLER]}
    return {"metadata": metadata, "spec": {"claimRef": msgspec.to_builtins(volume.spec.claim_ref)}}


def _claim_change(claim: PersistentVolumeClaim) -> dict[str, Any]:
    annotations = {SELECTED_NODE: claim.annotations[SELECTED_NODE]}
    return {"metadata": {"resourceVersion": claim.metadata.resource_version, "annotations": annotations}}


def _as(kind: type[Any], item: object) -> Any:
    if not isinstance(item, kind):
        raise BindingFailed(f"the API server answered with {type(item).__name__} where {kind.__name__} was written")
    return item


def _is_older(seen: KubeObject, written: KubeObject) -> bool:
    """Whether the stored version is older than the written one. Versions are increasing numbers; others cannot be
    compared."""
    before, after = seen.metadata.resource_version, written.metadata.resource_version
    return before.isdigit() and after.isdigit() and int(before) < int(after)
