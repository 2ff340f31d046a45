"""VolumeBinding: place a pod where its volumes are or can be provisioned, and bind them before it starts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bayplan.framework import (
    SKIP,
    ActionType,
    ClusterEvent,
    CycleState,
    Error,
    EventHint,
    Hint,
    NodeColumns,
    NodeInfo,
    Permission,
    Plugin,
    PluginArgs,
    PodInfo,
    Remedy,
    Resource,
    StateKey,
    Status,
    Unresolvable,
    Verdicts,
)
from bayplan.framework.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    value,
)
from bayplan.plugins.intree.volume_binding.assumed_objects import AssumedObjects
from bayplan.plugins.intree.volume_binding.binder import BindingFailed, VolumeBinder
from bayplan.plugins.intree.volume_binding.pod_volumes import REASONS, PodClaims, PodVolumeFinder, PodVolumes
from bayplan.plugins.intree.volume_binding.provisioning import capacity_limit
from bayplan.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    PodClaim,
    claim_class,
    find_claim,
    is_bound,
    is_for_pod,
    not_found,
    pod_claims,
    uses_claim,
    wrong_owner,
)
from bayplan.plugins.volumes.csi_migration import MIGRATED_PLUGINS

__all__ = ["VolumeBinding"]

UNBOUND_IMMEDIATE = Unresolvable("pod has unbound immediate PersistentVolumeClaims")


class BindingState:
    """From PreFilter to PreBind: the pod's claims, and what is reserved for it on the chosen node."""

    __slots__ = ("claims", "reserved")

    def __init__(self, claims: PodClaims) -> None:
        self.claims = claims
        self.reserved: PodVolumes | None = None
        """None until Reserve, and when all claims are bound already."""


BINDING = StateKey[BindingState]("VolumeBinding/binding")


class VolumeBinding(Plugin):
    """Find, reserve and bind the volumes of a pod.

    *What it does*: sorts the pod's claims into bound ones and those that wait for a first consumer. A node must reach
    the bound volumes, and for each of the others have an open volume or be able to get one made. The chosen node's
    volumes are reserved for the pod at Reserve and written at PreBind, which waits until they are bound.

    *Rejects when*: a claim is missing, lost, being deleted, not the pod's own, or of a class with immediate binding and
    not bound (at PreFilter); a node does not reach a bound volume, finds no volume, or has too little free storage.

    *Scores by*: nothing; scoring by storage capacity is an alpha feature of kube-scheduler that is off.

    *Retries on*: claims of the pod, volumes, classes, new nodes and node labels, CSINodes, CSIDrivers and capacities,
    where the change can help.

    *Arguments*: `bindTimeoutSeconds`, how long to wait for volumes to be bound (600).

    *Differs from kube-scheduler*: of equally small volumes the first by name is taken, not a random one. `shape` is not
    offered, because storage capacity scoring is not.
    """

    default_weight = 0
    remedies = (Remedy.VOLUMES,)

    class Args(PluginArgs):
        bind_timeout_seconds: int = 600

        def validate(self) -> list[str]:
            if self.bind_timeout_seconds < 0:
                return [f"bindTimeoutSeconds: must be 0 or more, not {self.bind_timeout_seconds}"]
            return []

    filter_reads_counts_only: ClassVar[bool] = True
    allow_parallel_pre_bind: ClassVar[bool] = True
    settles_by_kind = True
    reasons: ClassVar[tuple[str, ...]] = (
        *REASONS.values(),
        *UNBOUND_IMMEDIATE.reasons,
        'persistentvolumeclaim "<name>" not found',
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "<name>"',
        'persistentvolumeclaim "<name>" bound to non-existent persistentvolume "<name>"',
        'persistentvolumeclaim "<name>" is being deleted',
        "PVC <namespace>/<name> was not created for pod <namespace>/<name> (pod is not owner)",
    )
    permissions: ClassVar[tuple[Permission, ...]] = (
        Permission("", "persistentvolumes", ("get", "list", "watch", "update", "patch")),
        Permission("", "persistentvolumeclaims", ("get", "list", "watch", "update", "patch")),
    )

    def setup(self) -> None:
        if self._handle is None:
            return
        objects = self.handle.cluster.objects
        self._volumes = AssumedObjects(objects, PersistentVolume)
        self._claims = AssumedObjects(objects, PersistentVolumeClaim)
        self._finder = PodVolumeFinder(self.handle.cluster, self._volumes)
        self._binder = VolumeBinder(self.handle, self._volumes, self._claims)

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(pod_claims(pod))

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        used = pod_claims(pod)
        if not used:
            return SKIP
        for entry in used:
            problem = self._problem_of(pod, entry)
            if problem:
                return Unresolvable(problem)
        claims = self._classified(pod)
        if isinstance(claims, Status):
            return claims
        state.put(BINDING, BindingState(claims))
        return None

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        known = state.get(BINDING)
        if known is None:
            return Verdicts.accept(len(nodes))
        return self._finder.on_nodes(known.claims, nodes)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        known = state.get(BINDING)
        if known is None:
            return None
        found = self._finder.on_node(known.claims, node)
        return found if isinstance(found, Status) else None

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        return SKIP

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> np.ndarray:
        return np.zeros(len(nodes), dtype=np.int64)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        known = state.get(BINDING)
        if known is None or not known.claims.delayed:
            return None
        node = self.handle.cluster.node(node_name)
        if node is None:
            return Error(not_found("node", node_name))
        found = self._finder.on_node(known.claims, node)
        if isinstance(found, Status):
            return found
        try:
            known.reserved = self._binder.reserve(found, node_name)
        except BindingFailed as error:
            return Error(str(error), exception=error)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        known = state.get(BINDING)
        if known is not None and known.reserved is not None:
            self._binder.release(known.reserved)
            known.reserved = None

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        known = state.get(BINDING)
        return SKIP if known is None or known.reserved is None else None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        known = state.get(BINDING)
        if known is None or known.reserved is None:
            return None
        try:
            written = await self._binder.write(known.reserved)
        except Exception as error:
            # Whatever the API server rejects, the pod is scheduled again; it is not an error of the plugin.
            return Error(str(error), exception=error)
        try:
            await self._binder.wait(pod, written, node_name, self.args.bind_timeout_seconds)
        except BindingFailed as error:
            return Error(f"binding volumes: {error}", exception=error)
        return None

    def events_to_register(self) -> list[EventHint]:
        change = ActionType.ADD | ActionType.UPDATE
        return [
            EventHint(ClusterEvent(Resource.STORAGE_CLASS, change), _after_class),
            EventHint(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, change), _after_claim),
            EventHint(ClusterEvent(Resource.PERSISTENT_VOLUME, change)),
            EventHint(ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            EventHint(ClusterEvent(Resource.CSI_NODE, change), _after_csi_node),
            EventHint(ClusterEvent(Resource.CSI_DRIVER, ActionType.UPDATE), _after_csi_driver),
            EventHint(ClusterEvent(Resource.CSI_STORAGE_CAPACITY, change), _after_capacity),
        ]

    def _problem_of(self, pod: PodInfo, used: PodClaim) -> str:
        """Why a claim cannot be met on any node; empty when it can."""
        claim = find_claim(self.handle.cluster.objects, pod.namespace, used.name)
        if claim is None and used.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{used.name}"'
        if claim is None:
            return not_found("persistentvolumeclaim", used.name)
        if claim.status.phase == "Lost":
            lost = claim.spec.volume_name
            return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{lost}"'
        if claim.is_terminating:
            return f'persistentvolumeclaim "{claim.name}" is being deleted'
        if used.is_ephemeral and not is_for_pod(pod, claim):
            return wrong_owner(pod, claim)
        return ""

    def _classified(self, pod: PodInfo) -> PodClaims | Status:
        bound, delayed, is_immediate = [], [], False
        for used in pod_claims(pod):
            claim = self._claims.get(f"{pod.namespace}/{used.name}")
            if claim is None:
                return Error(f'error getting PVC "{pod.namespace}/{used.name}"')
            waits = self._waits_for_consumer(claim) if not is_bound(claim) else False
            if isinstance(waits, Status):
                return waits
            if is_bound(claim):
                bound.append(claim)
            elif waits and not claim.spec.volume_name:
                delayed.append(claim)
            else:
                is_immediate = True
        return UNBOUND_IMMEDIATE if is_immediate else PodClaims(tuple(bound), tuple(delayed))

    def _waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool | Status:
        name = claim_class(claim)
        storage_class = self.handle.cluster.objects.get(StorageClass, name) if name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            return Error(f'VolumeBindingMode not set for StorageClass "{name}"')
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _queue_if(is_helpful: bool) -> Hint:
    return Hint.QUEUE if is_helpful else Hint.SKIP


def _after_class(pod: PodInfo, old: StorageClass | None, new: StorageClass) -> Hint:
    return _queue_if(old is None or (old.allowed_topologies or []) != (new.allowed_topologies or []))


def _after_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
    return _queue_if(uses_claim(pod, new))


def _after_csi_node(pod: PodInfo, old: CSINode | None, new: CSINode) -> Hint:
    if old is None:
        return Hint.QUEUE
    return _queue_if(old.annotations.get(MIGRATED_PLUGINS, "") != new.annotations.get(MIGRATED_PLUGINS, ""))


def _after_csi_driver(pod: PodInfo, old: CSIDriver, new: CSIDriver) -> Hint:
    is_named = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.shape.volumes)
    return _queue_if(is_named and bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def _after_capacity(pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> Hint:
    if old is None:
        return Hint.QUEUE
    before, after = capacity_limit(old), capacity_limit(new)
    return _queue_if(after is not None and (before is None or value(after) > value(before)))
