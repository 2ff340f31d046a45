"""Binding conditions: devices that must become ready, outside of Kubernetes, before their pod is bound."""

from __future__ import annotations

from datetime import datetime

from bayplan.framework.devices import AllocatedDevice, AllocatedDeviceStatus, ResourceClaim

__all__ = ["BindingProblem", "BindingTimeout", "has_timed_out", "is_ready", "waits_for_conditions"]


class BindingProblem(Exception):
    """A device reported that it will not become ready."""


class BindingTimeout(BindingProblem):
    """The devices of a pod were not ready in time."""


def waits_for_conditions(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and any(each.binding_conditions for each in allocation.devices.results or ())


def is_ready(claim: ResourceClaim) -> bool:
    """Whether every device of the claim met its conditions. Raises BindingProblem."""
    allocation = claim.status.allocation
    if allocation is None:
        return True
    known = {(each.driver, each.pool, each.device): each for each in claim.status.devices or ()}
    for result in allocation.devices.results or ():
        if result.binding_conditions:
            status = known.get((result.driver, result.pool, result.device))
            if status is None or not _meets(claim, result, status):
                return False
    return True


def _meets(claim: ResourceClaim, result: AllocatedDevice, status: AllocatedDeviceStatus) -> bool:
    conditions = {each.type: each for each in status.conditions or ()}
    for name in result.binding_failure_conditions or ():
        failed = conditions.get(name)
        if failed is not None and failed.status == "True":
            why = f'reason={failed.reason}, message="{failed.message}"'
            raise BindingProblem(f"device binding failed: claim={claim.name}, {why}")
    return all(name in conditions and conditions[name].status == "True" for name in result.binding_conditions or ())


def has_timed_out(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not waits_for_conditions(claim):
        return False
    try:
        since = datetime.fromisoformat(allocation.allocation_timestamp)
    except ValueError:
        return False
    return since.timestamp() + timeout_seconds < now
