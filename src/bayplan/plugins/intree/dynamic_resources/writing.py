"""What the plugin writes to the API server: allocations, reservations, the claims of extended resources.

Every write of a claim is for the version that was read; when somebody else wrote in between, the claim is read anew and
looked at again. What was written counts at once, before it comes back on the watch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from bayplan.framework import Conflict, Handle, PodInfo
from bayplan.framework.devices import AllocationResult, Devices, ResourceClaim, ResourceClaimConsumer
from bayplan.framework.objects import Pod
from bayplan.plugins.intree.dynamic_resources.extended import RequestMapping

__all__ = ["FINALIZER", "ClaimWriter", "WriteFailed"]

FINALIZER = "resource.kubernetes.io/delete-protection"
_ATTEMPTS = 5
_FIRST_WAIT_SECONDS = 0.01
_STATUS = "status"


class WriteFailed(Exception):
    """The claims of a pod could not be written as decided; the text says why."""


class ClaimWriter:
    def __init__(self, handle: Handle, devices: Devices) -> None:
        self._handle, self._devices = handle, devices

    async def reserve(self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None) -> ResourceClaim:
        """Write the allocation, if one was decided, and the reservation for the pod. Raises WriteFailed."""
        what = "add allocation and reservation to" if allocation is not None else "add reservation to"
        for attempt in range(_ATTEMPTS):
            if attempt:
                await self._handle.clock.sleep(_FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
                claim = await self._read_again(claim)
            _check(claim, allocation)
            try:
                if allocation is not None and FINALIZER not in (claim.metadata.finalizers or ()):
                    finalizers = [*(claim.metadata.finalizers or ()), FINALIZER]
                    claim = await self._write(claim, {"metadata": {"finalizers": finalizers}}, "add finalizer to")
                return await self._write(claim, self._reservation(pod, claim, allocation), what, _STATUS)
            except Conflict as error:
                conflict = error
        raise WriteFailed(f"{what} claim {claim.key}: {conflict}") from conflict

    async def _read_again(self, claim: ResourceClaim) -> ResourceClaim:
        try:
            found = await self._handle.api.get(ResourceClaim, claim.name, claim.namespace)
        except Exception as error:
            raise WriteFailed(f"get updated claim {claim.key} after conflict: {error}") from error
        if found is None:
            missing = f'resourceclaims.resource.k8s.io "{claim.name}" not found'
            raise WriteFailed(f"get updated claim {claim.key} after conflict: {missing}")
        return found

    async def _write(
        self, claim: ResourceClaim, change: dict[str, Any], what: str, subresource: str = ""
    ) -> ResourceClaim:
        """Raises Conflict for the caller to try again, WriteFailed for everything else."""
        metadata = {**change.get("metadata", {}), "resourceVersion": claim.metadata.resource_version}
        try:
            written = await self._handle.api.update(claim, {**change, "metadata": metadata}, subresource=subresource)
        except Conflict:
            raise
        except Exception as error:
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
            raise WriteFailed(f"create claim for extended resources {claim.namespace}/: {error}") from error
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
        """Take the reservation for the pod back."""
        gone = [{"$patch": "delete", "uid": pod.uid}]
        await self._handle.api.patch(
            claim, {"metadata": {"uid": claim.uid}, "status": {"reservedFor": gone}}, subresource=_STATUS
        )

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
