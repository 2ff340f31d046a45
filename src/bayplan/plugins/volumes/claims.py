"""The claims of a pod: which there are, who owns them, and whether they are bound.

A pod claims storage by naming a PersistentVolumeClaim or by a generic ephemeral volume, whose claim is named after pod
and volume and must be owned by the pod. Nodes are not considered here.
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.framework import PodInfo
from bayplan.framework.columns import Objects
from bayplan.framework.objects import PersistentVolume, PersistentVolumeClaim

__all__ = [
    "BIND_COMPLETED",
    "BOUND_BY_CONTROLLER",
    "SELECTED_NODE",
    "WAIT_FOR_FIRST_CONSUMER",
    "PodClaim",
    "claim_class",
    "find_claim",
    "is_bound",
    "is_for_pod",
    "is_volume_of",
    "names_claim",
    "not_found",
    "pod_claims",
    "uses_claim",
    "volume_class",
    "wrong_owner",
]

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


class PodClaim(NamedTuple):
    name: str
    is_ephemeral: bool


def pod_claims(pod: PodInfo) -> tuple[PodClaim, ...]:
    """The claims of a pod's volumes, in the order of the volumes."""
    return pod.shape.note(PodClaim, lambda: _claims(pod))


def _claims(pod: PodInfo) -> tuple[PodClaim, ...]:
    found = []
    for volume in pod.shape.volumes:
        if volume.persistent_volume_claim is not None:
            found.append(PodClaim(volume.persistent_volume_claim.claim_name, is_ephemeral=False))
        elif volume.ephemeral is not None:
            found.append(PodClaim(f"{pod.name}-{volume.name}", is_ephemeral=True))
    return tuple(found)


def find_claim(objects: Objects, namespace: str, name: str) -> PersistentVolumeClaim | None:
    return objects.get(PersistentVolumeClaim, f"{namespace}/{name}")


def uses_claim(pod: PodInfo, claim: PersistentVolumeClaim) -> bool:
    """Whether one of the pod's volumes uses the claim."""
    return pod.namespace == claim.namespace and any(used.name == claim.name for used in pod_claims(pod))


def names_claim(pod: PodInfo, claim: PersistentVolumeClaim) -> bool:
    """Whether one of the pod's volumes names the claim; ephemeral volumes do not."""
    return pod.namespace == claim.namespace and claim.name in pod.shape.claim_names


def is_for_pod(pod: PodInfo, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim of an ephemeral volume is owned by this pod."""
    owner = claim.controller
    return claim.namespace == pod.namespace and owner is not None and owner.uid == pod.pod.uid


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether claim and volume are bound to each other."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.annotations


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The storage class that a claim requests; empty when it requests none."""
    beta = claim.annotations.get(_BETA_CLASS)
    return beta if beta is not None else claim.spec.storage_class_name or ""


def volume_class(volume: PersistentVolume) -> str:
    beta = volume.annotations.get(_BETA_CLASS)
    return beta if beta is not None else volume.spec.storage_class_name


def is_volume_of(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to, or set aside for, the claim. A reference without a uid is compared by name."""
    reference = volume.spec.claim_ref
    if reference is None or reference.name != claim.name or reference.namespace != claim.namespace:
        return False
    return not reference.uid or reference.uid == claim.uid


def not_found(kind: str, name: str) -> str:
    """The message for an object that does not exist."""
    return f'{kind} "{name}" not found'


def wrong_owner(pod: PodInfo, claim: PersistentVolumeClaim) -> str:
    return f"PVC {claim.namespace}/{claim.name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
