"""What the plugin writes to the API server: allocations, reservations, the claims of extended resources.

Every write of a claim is for the version that was read; when another client wrote in between, the claim is read anew
and looked at again. What was written counts at once, before it comes back on the watch. Nothing is taken back from a
pod that is bound: its binding may be that of a leader before this one, or one whose answer was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from bayplan.framework import ApiError, Conflict, Handle, NoAnswer, NotFound, PodInfo
from bayplan.framework.devices import AllocationResult, Devices, ResourceClaim, ResourceClaimConsumer
from bayplan.framework.objects import Pod
from bayplan.plugins.intree.dynamic_resources.claims import is_reserved_for
from bayplan.plugins.intree.dynamic_resources.extended import RequestMapping

__all__ = ["FINALIZER", "ClaimWriter", "WriteFailed", "check_unmoved"]

FINALIZER = "resource.kubernetes.io/delete-protection"
_ATTEMPTS = 5
_FIRST_WAIT_SECONDS = 0.01
_LONGEST_WAIT_SECONDS = 5.0
_SERVER_ERRORS = 500
_STATUS = "status"
_GONE_OR_CHANGED = (NotFound, Conflict)
K = TypeVar("K", Pod, ResourceClaim)


class WriteFailed(Exception):
    """The claims of a pod could not be written as decided; the text says why."""


class _Unknown(Exception):
    """A write that may have been carried out or not."""


class ClaimWriter:
    def __init__(self, handle: Handle, devices: Devices) -> None:
        self._handle, self._devices = handle, devices

    async def reserve(self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None) -> ResourceClaim:
        """Write the allocation, if one was decided, and the reservation for the pod. Raises WriteFailed.

        A write without a clear answer may have been carried out. Devices that it may have allocated must not be given
        to others, so it is never given up before the claim was read again and is known as it is.
        """
        what = "add allocation and reservation to" if allocation is not None else "add reservation to"
        failure: Exception | None = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                await self._handle.clock.sleep(_FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
            _check(claim, allocation)
            try:
                if allocation is not None and FINALIZER not in (claim.metadata.finalizers or ()):
                    finalizers = [*(claim.metadata.finalizers or ()), FINALIZER]
                    claim = await self._write(claim, {"metadata": {"finalizers": finalizers}}, "add finalizer to")
                return await self._write(claim, self._reservation(pod, claim, allocation), what, _STATUS)
            except (Conflict, _Unknown) as error:
                failure = error
            claim = await self._read_again(claim)
            if _is_written(claim, pod, allocation):
                return claim
        raise WriteFailed(f"{what} claim {claim.key}: {failure}") from failure

    async def _read_again(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it is now, which counts from now on."""
        try:
            found = await self._read(ResourceClaim, claim.name, claim.namespace)
        except Exception as error:
            raise WriteFailed(f"get updated claim {claim.key} after conflict: {error}") from error
        if found is None:
            missing = f'resourceclaims.resource.k8s.io "{claim.name}" not found'
            raise WriteFailed(f"get updated claim {claim.key} after conflict: {missing}")
        self._devices.wrote(found)
        return found

    async def _read(self, kind: type[K], name: str, namespace: str) -> K | None:
        """An object as it is now. Waits for an API server that does not answer."""
        delay = _FIRST_WAIT_SECONDS
        while True:
            try:
                return await self._handle.api.get(kind, name, namespace)
            except Exception as error:
                if not _is_unknown(error):
                    raise
            await self._handle.clock.sleep(delay)
            delay = min(2 * delay, _LONGEST_WAIT_SECONDS)

    async def _write(
        self, claim: ResourceClaim, change: dict[str, Any], what: str, subresource: str = ""
    ) -> ResourceClaim:
        """Raises Conflict and _Unknown for the caller to try again, WriteFailed for everything else."""
        metadata = {**change.get("metadata", {}), "resourceVersion": claim.metadata.resource_version}
        try:
            written = await self._handle.api.update(claim, {**change, "metadata": metadata}, subresource=subresource)
        except Conflict:
            raise
        except Exception as error:
            if _is_unknown(error):
                raise _Unknown(str(error)) from error
            raise WriteFailed(f"{what} claim {claim.key}: {error}") from error
        self._devices.wrote(written)
        return written

    def _reservation(self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None) -> dict[str, Any]:
        consumer = ResourceClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)
        status: dict[str, Any] = {
            "reservedFor": msgspec.to_builtins([*(claim.status.reserved_for or ()), consumer]),
        }
        now = datetime.fromtimestamp(self._handle.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if allocation is not None:
            status["allocation"] = {**msgspec.to_builtins(allocation), "allocationTimestamp": now}
        elif claim.status.allocation is not None and claim.status.allocation.allocation_timestamp is None:
            status["allocation"] = {"allocationTimestamp": now}
        return {"status": status}

    async def create(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """The claim of extended resources, under a name that the API server gives it."""
        body = msgspec.to_builtins(claim)
        metadata = {k: v for k, v in body["metadata"].items() if k not in ("name", "uid")}
        metadata["generateName"] = f"{pod.name}-extended-resources-"
        try:
            made = await self._handle.api.create(ResourceClaim, {"metadata": metadata, "spec": body.get("spec", {})})
        except Exception as error:
            self._devices.metrics.created(is_made=False)
            raise WriteFailed(f"create claim for extended resources {claim.namespace}/: {error}") from error
        self._devices.metrics.created(is_made=True)
        self._devices.wrote(made)
        return made

    async def note_extended(self, pod: PodInfo, claim: ResourceClaim, mappings: Sequence[RequestMapping]) -> None:
        """Tell the kubelet, in the pod's status, which container gets which request of the claim."""
        if not mappings:
            what = f"nil or empty request mappings, no update of pod {pod.namespace}/{pod.name}"
            raise WriteFailed(f"{what} ExtendedResourceClaimStatus")
        rows = [
            {"containerName": each.container_name, "resourceName": each.resource_name, "requestName": each.request_name}
            for each in mappings
        ]
        noted = {"resourceClaimName": claim.name, "requestMappings": rows}
        try:
            await self._handle.api.patch_pod(
                pod, {"status": {"extendedResourceClaimStatus": noted}}, subresource=_STATUS
            )
        except Exception as error:
            what = f"update pod {pod.namespace}/{pod.name} ExtendedResourceClaimStatus"
            raise WriteFailed(f"{what}: {error}") from error

    async def release(self, claim: ResourceClaim, pod: Pod) -> None:
        """Take the reservation for the pod back. Until that is written, `Devices.releases` says that it will be.

        A pod that is bound keeps it: another replica, or a request of ours whose answer came too late, bound the pod to
        the node of these devices. The write is for the version that was read, so that a copy of it that is still on
        its way cannot take a later reservation away.
        """
        try:
            delay = _FIRST_WAIT_SECONDS
            while (found := await self._read(ResourceClaim, claim.name, claim.namespace)) is not None:
                if found.uid != claim.uid or not is_reserved_for(found, pod) or await self._is_bound(pod):
                    self._devices.wrote(found)
                    return
                try:
                    self._devices.wrote(await self._handle.api.update(found, _without(found, pod), subresource=_STATUS))
                    return
                except Exception as error:
                    if not isinstance(error, _GONE_OR_CHANGED) and not _is_unknown(error):
                        raise
                await self._handle.clock.sleep(delay)
                delay = min(2 * delay, _LONGEST_WAIT_SECONDS)
        finally:
            self._devices.releases.discard((claim.uid, pod.uid))

    async def _is_bound(self, pod: Pod) -> bool:
        found = await self._read(Pod, pod.name, pod.namespace)
        return found is not None and found.uid == pod.uid and bool(found.spec.node_name)

    async def deallocate(self, claim: ResourceClaim, pod: Pod) -> None:
        """Free the devices, unless the claim has changed or gone, or the pod is bound with them: then the next attempt
        decides again."""
        if await self._is_bound(pod):
            return
        version = {"resourceVersion": claim.metadata.resource_version}
        cleared = {"allocation": None, "reservedFor": None, "devices": None}
        with suppress(*_GONE_OR_CHANGED):
            change = {"metadata": version, "status": cleared}
            self._devices.wrote(await self._handle.api.update(claim, change, subresource=_STATUS))

    async def delete(self, claim: ResourceClaim, pod: Pod) -> None:
        """Delete the claim of extended resources, which no finalizer of others protects, if it is still there, and
        unless the pod that it was made for is bound with it."""
        if await self._is_bound(pod):
            return
        finalizers = [each for each in claim.metadata.finalizers or () if each != FINALIZER]
        with suppress(*_GONE_OR_CHANGED):
            if claim.metadata.finalizers and len(finalizers) < len(claim.metadata.finalizers):
                await self._handle.api.update(claim, {"metadata": {"finalizers": finalizers or None}})
            await self._handle.api.delete(claim)


def _without(claim: ResourceClaim, pod: Pod) -> dict[str, Any]:
    """The change that takes the pod from the users of this version of the claim."""
    users = [user for user in claim.status.reserved_for or () if user.uid != pod.uid]
    version = {"resourceVersion": claim.metadata.resource_version}
    return {"metadata": version, "status": {"reservedFor": msgspec.to_builtins(users) or None}}


def _is_unknown(error: Exception) -> bool:
    """Whether a request that failed may have been carried out all the same: there was no answer, or one that says that
    something went wrong at the server."""
    return isinstance(error, NoAnswer) or (isinstance(error, ApiError) and error.code >= _SERVER_ERRORS)


def _is_written(claim: ResourceClaim, pod: Pod, allocation: AllocationResult | None) -> bool:
    """Whether the claim is as an earlier write without an answer would have made it."""
    stored = claim.status.allocation
    if claim.is_terminating or stored is None or not is_reserved_for(claim, pod):
        return False
    return allocation is None or stored.devices == allocation.devices


def check_unmoved(claim: ResourceClaim, decided: AllocationResult | None) -> None:
    """Raises WriteFailed for a claim that got other devices than those that the pod's node was chosen for."""
    stored = claim.status.allocation
    if stored is not None and decided is not None and stored.devices != decided.devices:
        raise WriteFailed(f"claim {claim.key} got allocated elsewhere in the meantime")


def _check(claim: ResourceClaim, allocation: AllocationResult | None) -> None:
    problem = ""
    if claim.is_terminating:
        problem = "deleted"
    elif allocation is not None and claim.status.allocation is not None:
        problem = "allocated elsewhere"
    elif allocation is None and claim.status.allocation is None:
        problem = "deallocated elsewhere"
    if problem:
        raise WriteFailed(f"claim {claim.key} got {problem} in the meantime")
