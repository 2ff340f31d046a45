"""What the plugin writes to the API server: allocations, reservations, the claims of extended resources.

Every write of a claim is for the version that was read; when somebody else wrote in between, the claim is read anew and
looked at again. What was written counts at once, before it comes back on the watch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from bayplan.framework import ApiError, Conflict, Handle, NoAnswer, PodInfo
from bayplan.framework.devices import AllocationResult, Devices, ResourceClaim, ResourceClaimConsumer
from bayplan.framework.objects import Pod
from bayplan.plugins.intree.dynamic_resources.claims import is_reserved_for
from bayplan.plugins.intree.dynamic_resources.extended import RequestMapping

__all__ = ["FINALIZER", "ClaimWriter", "WriteFailed"]

FINALIZER = "resource.kubernetes.io/delete-protection"
_ATTEMPTS = 5
_FIRST_WAIT_SECONDS = 0.01
_LONGEST_WAIT_SECONDS = 5.0
_SERVER_ERRORS = 500
_STATUS = "status"


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
        """The claim as it is now, which counts from now on. Waits for an API server that does not answer."""
        delay = _FIRST_WAIT_SECONDS
        while True:
            try:
                found = await self._handle.api.get(ResourceClaim, claim.name, claim.namespace)
                break
            except Exception as error:
                if not _is_unknown(error):
                    raise WriteFailed(f"get updated claim {claim.key} after conflict: {error}") from error
            await self._handle.clock.sleep(delay)
            delay = min(2 * delay, _LONGEST_WAIT_SECONDS)
        if found is None:
            missing = f'resourceclaims.resource.k8s.io "{claim.name}" not found'
            raise WriteFailed(f"get updated claim {claim.key} after conflict: {missing}")
        self._devices.wrote(found)
        return found

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
        """Take the reservation for the pod back. Until that is written, `Devices.releases` says that it will be."""
        entry = (claim.uid, pod.uid)
        gone = [{"$patch": "delete", "uid": pod.uid}]
        try:
            await self._handle.api.patch(
                claim, {"metadata": {"uid": claim.uid}, "status": {"reservedFor": gone}}, subresource=_STATUS
            )
            written = await self._handle.api.get(ResourceClaim, claim.name, claim.namespace)
            if written is not None:
                self._devices.wrote(written)
        finally:
            self._devices.releases.discard(entry)

    async def deallocate(self, claim: ResourceClaim) -> None:
        version = {"resourceVersion": claim.metadata.resource_version}
        cleared = {"allocation": None, "reservedFor": None, "devices": None}
        written = await self._handle.api.update(claim, {"metadata": version, "status": cleared}, subresource=_STATUS)
        self._devices.wrote(written)

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete the claim of extended resources, which nobody else protects."""
        finalizers = [each for each in claim.metadata.finalizers or () if each != FINALIZER]
        if claim.metadata.finalizers and len(finalizers) < len(claim.metadata.finalizers):
            await self._handle.api.update(claim, {"metadata": {"finalizers": finalizers or None}})
        await self._handle.api.delete(claim)


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
