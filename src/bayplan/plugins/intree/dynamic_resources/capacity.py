"""How much of a device's capacity a request takes, by the policy that the driver published for it.

Amounts are exact, in billionths. Steps of a range are counted in whole units, as kube-scheduler counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bayplan.framework.devices import Capacity, CapacityRange, CapacityRequestPolicy, PublishedDevice
from bayplan.framework.objects import Quantity, binary_quantity, nano_value, value

__all__ = ["Amount", "consumption", "fits"]


class Amount(NamedTuple):
    nano: int
    text: Quantity

    @classmethod
    def of(cls, text: Quantity) -> Amount:
        return cls(nano_value(text), text)


def consumption(device: PublishedDevice, requested: Mapping[str, Amount]) -> dict[str, Amount] | None:
    """What an allocation takes of each capacity; None when the request breaks a policy or names what is not there."""
    if any(name not in device.capacity for name in requested):
        return None
    taken = {name: _taken(requested.get(name), capacity) for name, capacity in device.capacity.items()}
    if any(_breaks(taken[name], capacity.policy) for name, capacity in device.capacity.items()):
        return None
    return taken


def fits(device: PublishedDevice, taken: Mapping[str, Amount], *used: Mapping[str, int]) -> bool:
    """Whether there is room for it besides what is used already."""
    return all(
        amount.nano + sum(each.get(name, 0) for each in used) <= device.capacity[name].amount
        for name, amount in taken.items()
    )


def _taken(requested: Amount | None, capacity: Capacity) -> Amount:
    policy = capacity.policy
    if requested is None:
        default = policy.default if policy is not None else None
        return Amount(capacity.amount, capacity.text) if default is None else Amount.of(default)
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(requested, policy.valid_range, policy.valid_range.min)
    for allowed in map(Amount.of, policy.valid_values or ()):
        if requested.nano <= allowed.nano:
            return allowed
    return requested


def _rounded_up(requested: Amount, allowed: CapacityRange, least: Quantity) -> Amount:
    minimum = Amount.of(least)
    if requested.nano < minimum.nano:
        return minimum
    if allowed.step is None or not value(allowed.step):
        return requested
    start, step = value(least), value(allowed.step)
    steps = -(-(value(requested.text) - start) // step)
    return Amount.of(binary_quantity(start + steps * step))


def _breaks(taken: Amount, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and taken.nano == nano_value(policy.default)):
        return False
    if policy.valid_range is not None:
        return _is_outside(taken, policy.valid_range)
    allowed = policy.valid_values or ()
    return bool(allowed) and all(taken.nano != nano_value(each) for each in allowed)


def _is_outside(taken: Amount, allowed: CapacityRange) -> bool:
    if allowed.max is not None and taken.nano > nano_value(allowed.max):
        return True
    step = value(allowed.step) if allowed.step is not None else 0
    start = value(allowed.min) if allowed.min is not None else 0
    return bool(step) and (value(taken.text) - start) % step != 0
