"""Part of the contract: devices, for plugins that allocate or look at them.

    from bayplan.framework.devices import Devices, ResourceClaim

`self.handle.cluster.devices` knows what is published and what is taken, and `self.handle.cluster.device_classes` which
class stands for an extended resource. A plugin that does not deal with devices needs none of this.
"""

from __future__ import annotations

from bayplan.api.devices import (
    AllocatedDevice,
    AllocatedDeviceStatus,
    AllocationConfiguration,
    AllocationResult,
    CapacityRange,
    CapacityRequestPolicy,
    ClaimConfiguration,
    DeviceAllocation,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumer,
    ResourceSlice,
)
from bayplan.cel import CompileError, EvaluationError
from bayplan.cel.devices import DeviceVariable, compile_selector, device_variable
from bayplan.cluster.device_classes import IMPLICIT_PREFIX, DeviceClassNames
from bayplan.cluster.device_slices import (
    Attribute,
    Capacity,
    DeviceId,
    DeviceLook,
    NodeChoice,
    PoolId,
    PublishedDevice,
    PublishedSlice,
)
from bayplan.cluster.devices import Devices, DeviceUse

__all__ = [
    "IMPLICIT_PREFIX",
    "AllocatedDevice",
    "AllocatedDeviceStatus",
    "AllocationConfiguration",
    "AllocationResult",
    "Attribute",
    "Capacity",
    "CapacityRange",
    "CapacityRequestPolicy",
    "ClaimConfiguration",
    "CompileError",
    "DeviceAllocation",
    "DeviceClass",
    "DeviceClassNames",
    "DeviceConstraint",
    "DeviceId",
    "DeviceLook",
    "DeviceRequest",
    "DeviceSelector",
    "DeviceTaint",
    "DeviceToleration",
    "DeviceUse",
    "DeviceVariable",
    "Devices",
    "EvaluationError",
    "ExactDeviceRequest",
    "NodeChoice",
    "PoolId",
    "PublishedDevice",
    "PublishedSlice",
    "ResourceClaim",
    "ResourceClaimConsumer",
    "ResourceSlice",
    "compile_selector",
    "device_variable",
]
