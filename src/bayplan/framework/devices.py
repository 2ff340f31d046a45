"""Part of the contract: devices, for plugins that allocate or look at them.

    from bayplan.framework.devices import Devices, ResourceClaim

`self.handle.cluster.devices` knows what is published and what is taken, and `self.handle.cluster.device_classes` which
class stands for an extended resource. A plugin that does not deal with devices needs none of this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from bayplan.cel import CompileError, EvaluationError
    from bayplan.cel.devices import DeviceVariable, compile_selector, device_variable

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

_OF_EXPRESSIONS = {
    "CompileError": "bayplan.cel",
    "DeviceVariable": "bayplan.cel.devices",
    "EvaluationError": "bayplan.cel",
    "compile_selector": "bayplan.cel.devices",
    "device_variable": "bayplan.cel.devices",
}


def __getattr__(name: str) -> Any:
    """What belongs to the expression language, which is loaded when first used."""
    if name not in _OF_EXPRESSIONS:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    return getattr(import_module(_OF_EXPRESSIONS[name]), name)
