"""Pods, as far as scheduling reads them."""

from __future__ import annotations

import msgspec

from bayplan.api.meta import KubeObject, LabelSelector, Struct
from bayplan.api.node import NodeSelector, NodeSelectorTerm
from bayplan.api.quantity import Quantity

__all__ = [
    "Affinity",
    "Container",
    "ContainerStatus",
    "EphemeralVolume",
    "NodeAffinity",
    "PersistentVolumeClaimVolume",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodCondition",
    "PodPort",
    "PodResourceClaim",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "ResourceRequirements",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "WeightedPodAffinityTerm",
]


class ResourceRequirements(Struct):
    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None


class PodPort(Struct):
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class RestartPolicyRule(Struct):
    action: str = ""


class Container(Struct):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[PodPort] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartPolicyRule] | None = None


class Toleration(Struct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PreferredSchedulingTerm(Struct):
    weight: int = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(Struct):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = None

    @property
    def required(self) -> NodeSelector | None:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> list[PreferredSchedulingTerm] | None:
        return self.preferred_during_scheduling_ignored_during_execution


class PodAffinityTerm(Struct):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Struct):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(Struct):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = None

    @property
    def required(self) -> list[PodAffinityTerm]:
        return self.required_during_scheduling_ignored_during_execution or []

    @property
    def preferred(self) -> list[WeightedPodAffinityTerm]:
        return self.preferred_during_scheduling_ignored_during_execution or []


class Affinity(Struct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class PersistentVolumeClaimVolume(Struct):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolume(Struct):
    """A generic ephemeral volume; only its presence matters, the claim is named after pod and volume."""


class GcePersistentDisk(Struct):
    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(Struct):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class Iscsi(Struct):
    iqn: str = ""
    read_only: bool = False


class Rbd(Struct):
    monitors: list[str] | None = None
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class CsiVolume(Struct):
    driver: str = ""


class ImageVolume(Struct):
    reference: str = ""


class AzureDisk(Struct):
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class NamedVolume(Struct):
    """Cinder, Portworx and the like: a volume known by its id alone."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class AzureFile(Struct):
    share_name: str = ""


class VsphereVolume(Struct):
    volume_path: str = ""


class Volume(Struct):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None
    csi: CsiVolume | None = None
    image: ImageVolume | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: NamedVolume | None = None
    portworx_volume: NamedVolume | None = None
    vsphere_volume: VsphereVolume | None = None


class PodResourceClaim(Struct):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGate(Struct):
    name: str = ""


class PodSpec(Struct):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    overhead: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None
    volumes: list[Volume] | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: int | None = None


class PodCondition(Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: int | None = None


class ContainerStatus(Struct):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] | None = None


class PodResourceClaimStatus(Struct):
    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Struct):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Struct):
    """The claim that was made for extended resources of the pod."""

    resource_claim_name: str = ""
    request_mappings: list[ContainerExtendedResourceRequest] | None = None


_MIRROR = "kubernetes.io/config.mirror"


class PodStatus(Struct):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(KubeObject):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def is_finished(self) -> bool:
        """Succeeded and Failed pods hold nothing on their node."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_of_daemon_set(self) -> bool:
        return self.controller is not None and self.controller.kind == "DaemonSet"

    @property
    def is_of_kubelet(self) -> bool:
        """A static pod, of which the API server has a mirror: deleting that ends nothing."""
        return _MIRROR in self.annotations or (self.controller is not None and self.controller.kind == "Node")

    @property
    def ends_with_its_node(self) -> bool:
        """Whether a drain leaves it alone: deleted, it comes back to its node, or it is on its way out."""
        return self.is_of_daemon_set or self.is_of_kubelet or self.is_terminating

    @property
    def is_unready(self) -> bool:
        """Whether its kubelet reports that it is not ready; of a pod without that condition nothing is known."""
        ready = self.condition("Ready")
        return ready is not None and ready.status != "True"

    def condition(self, kind: str) -> PodCondition | None:
        for condition in self.status.conditions or ():
            if condition.type == kind:
                return condition
        return None
