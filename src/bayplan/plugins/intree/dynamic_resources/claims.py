"""The claims of a pod: which they are, and what keeps them from being used."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.framework.columns import Objects
from bayplan.framework.devices import DeviceClass, Devices, ExactDeviceRequest, ResourceClaim
from bayplan.framework.objects import Pod, PodResourceClaim

__all__ = ["NOT_SERVED", "ClaimProblem", "class_problem", "is_reserved_for", "pod_claims"]


NOT_SERVED = "the API server does not serve resource.k8s.io/v1, which claims need (Kubernetes 1.34 and later do)"


class ClaimProblem(Exception):
    """A claim of the pod that cannot be used as it is; the text is for the user."""


def pod_claims(pod: Pod, devices: Devices) -> list[ResourceClaim]:
    """In the order of the pod's spec. Raises ClaimProblem."""
    if pod.spec.resource_claims and not devices.is_served:
        raise ClaimProblem(NOT_SERVED)
    found = []
    for entry in pod.spec.resource_claims or ():
        name, is_generated = _claim_name(pod, entry)
        if name is None:
            continue
        claim = devices.claim(f"{pod.namespace}/{name}")
        if claim is None:
            raise ClaimProblem(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.is_terminating:
            raise ClaimProblem(f'resourceclaim "{claim.name}" is being deleted')
        if is_generated and not _is_owned_by(claim, pod):
            whose = f"Pod {pod.namespace}/{pod.name} (Pod is not owner)"
            raise ClaimProblem(f"ResourceClaim {claim.key} was not created for {whose}")
        found.append(claim)
    return found


def _claim_name(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """The name of the claim (None where the template made none), and whether it was made from a template."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        where = f'pod "{pod.namespace}/{pod.name}", spec.resourceClaim "{entry.name}"'
        raise ClaimProblem(f"{where}: none of the supported fields are set")
    for status in pod.status.resource_claim_statuses or ():
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise ClaimProblem(f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet')


def _is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    owner = claim.controller
    return owner is not None and owner.uid == pod.uid


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for or ())


def class_problem(claim: ResourceClaim, objects: Objects) -> str:
    """What is wrong with the classes that a claim names, before any node is looked at; empty when nothing is."""
    for request in claim.spec.devices.requests or ():
        if request.exactly is None and not request.first_available:
            return f"resource claim {claim.key}, request {request.name}: unknown request type"
        for name, asked in _named(request.name, request.exactly, request.first_available or ()):
            if asked.device_class_name and objects.get(DeviceClass, asked.device_class_name) is None:
                return f"request {name}: device class {asked.device_class_name} does not exist"
    return ""


def _named(
    name: str, exactly: ExactDeviceRequest | None, listed: list[ExactDeviceRequest] | tuple[()]
) -> Iterator[tuple[str, ExactDeviceRequest]]:
    if exactly is not None:
        yield name, exactly
    for each in listed:
        yield f"{name}/{each.name}", each
