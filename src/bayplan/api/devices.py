"""Devices: what drivers publish (ResourceSlice), what is offered (DeviceClass), what pods claim (ResourceClaim).

Group `resource.k8s.io/v1`. Configuration for drivers is opaque: it is carried from classes and claims to allocations
as it came.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.api.meta import KubeObject, Struct
from bayplan.api.node import NodeSelector
from bayplan.api.pod import PodCondition
from bayplan.api.quantity import Quantity

__all__ = [
    "AllocatedDevice",
    "AllocatedDeviceStatus",
    "AllocationConfiguration",
    "AllocationResult",
    "CapacityRange",
    "CapacityRequestPolicy",
    "ClaimConfiguration",
    "CounterSet",
    "Device",
    "DeviceAllocation",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceClass",
    "DeviceClassSpec",
    "DeviceConstraint",
    "DeviceCounter",
    "DeviceCounterConsumption",
    "DeviceRequest",
    "DeviceSelector",
    "DeviceTaint",
    "DeviceTaintRule",
    "DeviceTaintRuleSpec",
    "DeviceTaintSelector",
    "DeviceToleration",
    "ExactDeviceRequest",
    "ResourceClaim",
    "ResourceClaimConsumer",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceSlice",
]


class DeviceAttribute(Struct):
    """One of the four is set."""

    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRange(Struct):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Struct):
    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(Struct):
    value: Quantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class DeviceCounter(Struct):
    value: Quantity = "0"


class CounterSet(Struct):
    name: str = ""
    counters: dict[str, DeviceCounter] | None = None


class DeviceCounterConsumption(Struct):
    counter_set: str = ""
    counters: dict[str, DeviceCounter] | None = None


class DeviceTaint(Struct):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class DeviceToleration(Struct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Device(Struct):
    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[DeviceCounterConsumption] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(Struct):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Struct):
    driver: str = ""
    pool: ResourcePool = msgspec.field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(KubeObject):
    spec: ResourceSliceSpec = msgspec.field(default_factory=ResourceSliceSpec)


class DeviceTaintSelector(Struct):
    """Devices by what is set; nothing set is all devices."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = msgspec.field(default_factory=DeviceTaint)


class DeviceTaintRule(KubeObject):
    """A taint that an administrator, not the driver, puts on devices."""

    spec: DeviceTaintRuleSpec = msgspec.field(default_factory=DeviceTaintRuleSpec)


class CelSelector(Struct):
    expression: str = ""


class DeviceSelector(Struct):
    cel: CelSelector | None = None


class ClassConfiguration(Struct):
    opaque: dict[str, Any] | None = None


class DeviceClassSpec(Struct):
    selectors: list[DeviceSelector] | None = None
    config: list[ClassConfiguration] | None = None
    extended_resource_name: str | None = None


class DeviceClass(KubeObject):
    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class CapacityRequirements(Struct):
    requests: dict[str, Quantity] | None = None


class ExactDeviceRequest(Struct):
    """What a request asks for. A sub-request of a prioritized list has a name besides and no admin access."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None


class DeviceRequest(Struct):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[ExactDeviceRequest] | None = None


class DeviceConstraint(Struct):
    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimConfiguration(Struct):
    requests: list[str] | None = None
    opaque: dict[str, Any] | None = None


class DeviceClaim(Struct):
    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[ClaimConfiguration] | None = None


class ResourceClaimSpec(Struct):
    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class AllocatedDevice(Struct):
    """A result of an allocation: one device, or a share of one."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] | None = None


class AllocationConfiguration(Struct):
    source: str = ""
    requests: list[str] | None = None
    opaque: dict[str, Any] | None = None


class DeviceAllocation(Struct):
    results: list[AllocatedDevice] | None = None
    config: list[AllocationConfiguration] | None = None


class AllocationResult(Struct):
    devices: DeviceAllocation = msgspec.field(default_factory=DeviceAllocation)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumer(Struct):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Struct):
    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: list[PodCondition] | None = None


class ResourceClaimStatus(Struct):
    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumer] | None = None
    devices: list[AllocatedDeviceStatus] | None = None


class ResourceClaim(KubeObject):
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)

    @property
    def users(self) -> list[str]:
        """What it is reserved for: pods, as `namespace/name`, as a rule."""
        return [f"{self.namespace}/{each.name}" for each in self.status.reserved_for or ()]
