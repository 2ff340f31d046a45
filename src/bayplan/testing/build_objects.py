"""Builders for what a decision reads besides pods and nodes: namespaces, services, controllers, budgets, volumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bayplan.api.meta import LabelSelector, Metadata, OwnerReference
from bayplan.api.node import NodeSelector, NodeSelectorTerm
from bayplan.api.quantity import Quantity
from bayplan.api.storage import (
    ClaimResources,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CsiVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PhaseStatus,
    StorageClass,
    VolumeLimits,
    VolumeNodeAffinity,
)
from bayplan.api.workload import (
    Namespace,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    SelectorMapSpec,
    SelectorSpec,
    Service,
    StatefulSet,
)
from bayplan.testing.build import LONG_AGO
from bayplan.testing.parts import ZONE, node_term, selector

__all__ = [
    "csi_node",
    "namespace",
    "owned_by",
    "pdb",
    "priority_class",
    "pv",
    "pvc",
    "replica_set",
    "replication_controller",
    "service",
    "stateful_set",
    "storage_class",
]

_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
Match = Mapping[str, str] | LabelSelector | None


def namespace(name: str, *, labels: Mapping[str, str] | None = None) -> Namespace:
    """A namespace, with the label that names it as the API server sets it."""
    return Namespace(metadata=_metadata(name, labels={"kubernetes.io/metadata.name": name, **(labels or {})}))


def service(name: str, match: Mapping[str, str] | None = None, *, namespace: str = "default") -> Service:
    """A service that selects pods by these labels."""
    spec = SelectorMapSpec(selector=dict(match) if match is not None else None)
    return Service(metadata=_metadata(name, namespace), spec=spec)


def replication_controller(name: str, match: Mapping[str, str], *, namespace: str = "default") -> ReplicationController:
    return ReplicationController(metadata=_metadata(name, namespace), spec=SelectorMapSpec(selector=dict(match)))


def replica_set(name: str, match: Match, *, namespace: str = "default") -> ReplicaSet:
    return ReplicaSet(metadata=_metadata(name, namespace), spec=SelectorSpec(selector=_selector(match)))


def stateful_set(name: str, match: Match, *, namespace: str = "default") -> StatefulSet:
    return StatefulSet(metadata=_metadata(name, namespace), spec=SelectorSpec(selector=_selector(match)))


def owned_by(controller: ReplicaSet | StatefulSet | ReplicationController) -> OwnerReference:
    """The owner reference of a pod that a controller made: `pod("web-1", owner=owned_by(rs))`."""
    version = "v1" if isinstance(controller, ReplicationController) else "apps/v1"
    kind = type(controller).__name__
    return OwnerReference(kind=kind, name=controller.name, uid=controller.uid, api_version=version, controller=True)


def pdb(
    name: str,
    match: Match,
    *,
    allowed: int = 0,
    namespace: str = "default",
    disrupted: Iterable[str] = (),
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
) -> PodDisruptionBudget:
    """A budget that lets so many more pods be evicted; `disrupted` names pods already counted as leaving.

    Simulations count `allowed` anew where it is stated how many pods must stay or may be missing."""
    status = PodDisruptionBudgetStatus(
        disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, LONG_AGO) or None
    )
    spec = PodDisruptionBudgetSpec(
        selector=_selector(match), min_available=min_available, max_unavailable=max_unavailable
    )
    return PodDisruptionBudget(metadata=_metadata(name, namespace), spec=spec, status=status)


def priority_class(
    name: str, value: int, *, is_default: bool = False, preemption_policy: str | None = None
) -> PriorityClass:
    return PriorityClass(
        metadata=_metadata(name), value=value, global_default=is_default, preemption_policy=preemption_policy
    )


def storage_class(name: str, *, provisioner: str = "kubernetes.io/no-provisioner", waits: bool = True) -> StorageClass:
    """A storage class; with `waits` volumes are bound when a pod that uses them is scheduled."""
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    return StorageClass(metadata=_metadata(name), provisioner=provisioner, volume_binding_mode=mode)


def pvc(
    name: str,
    *,
    namespace: str = "default",
    volume: str = "",
    storage_class: str | None = None,
    size: Quantity = "1Gi",
    access_modes: Sequence[str] = ("ReadWriteOnce",),
    selected_node: str = "",
    phase: str | None = None,
) -> PersistentVolumeClaim:
    """A claim; with `volume` it is bound to that volume."""
    annotations = dict(_BOUND) if volume else {}
    if selected_node:
        annotations[_SELECTED_NODE] = selected_node
    return PersistentVolumeClaim(
        metadata=_metadata(name, namespace, annotations=annotations),
        spec=PersistentVolumeClaimSpec(
            volume_name=volume,
            storage_class_name=storage_class,
            access_modes=list(access_modes),
            resources=ClaimResources(requests={"storage": size}),
        ),
        status=PhaseStatus(phase=("Bound" if volume else "Pending") if phase is None else phase),
    )


def pv(
    name: str,
    *,
    size: Quantity = "1Gi",
    storage_class: str = "",
    claim: str = "",
    access_modes: Sequence[str] = ("ReadWriteOnce",),
    zone: str | None = None,
    nodes: Sequence[NodeSelectorTerm] = (),
    driver: str = "",
    labels: Mapping[str, str] | None = None,
) -> PersistentVolume:
    """A volume. `claim` (`namespace/name`) is who has it; `zone` or `nodes` say from where it can be reached."""
    terms = [*nodes, *([node_term({ZONE: zone})] if zone else [])]
    owner_namespace, _, owner_name = claim.partition("/")
    reference = ObjectReference(
        kind="PersistentVolumeClaim", namespace=owner_namespace, name=owner_name, uid=f"uid-{claim.replace('/', '-')}"
    )
    return PersistentVolume(
        metadata=_metadata(name, labels=labels),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=list(access_modes),
            storage_class_name=storage_class,
            claim_ref=reference if claim else None,
            node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms)) if terms else None,
            csi=CsiVolumeSource(driver=driver, volume_handle=name) if driver else None,
        ),
        status=PhaseStatus(phase="Bound" if claim else "Available"),
    )


def csi_node(name: str, limits: Mapping[str, int | None]) -> CSINode:
    """What CSI drivers say about a node: how many volumes each may attach; None for no limit."""
    drivers = [
        CSINodeDriver(name=driver, node_id=name, allocatable=None if count is None else VolumeLimits(count=count))
        for driver, count in limits.items()
    ]
    return CSINode(metadata=_metadata(name), spec=CSINodeSpec(drivers=drivers))


def _metadata(
    name: str,
    namespace: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Metadata:
    return Metadata(
        name=name,
        namespace=namespace,
        uid="-".join(part for part in ("uid", namespace, name) if part),
        labels=dict(labels) if labels else None,
        annotations=dict(annotations) if annotations else None,
    )


def _selector(match: Match) -> LabelSelector | None:
    return match if match is None or isinstance(match, LabelSelector) else selector(match)
