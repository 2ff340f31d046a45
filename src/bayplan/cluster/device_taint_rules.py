"""DeviceTaintRules applied to slices: taints of administrators, beside those that drivers publish."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.api.devices import DeviceTaintRule, DeviceTaintSelector, ResourceSlice

__all__ = ["concerns", "tainted"]

_ALL = DeviceTaintSelector()


def concerns(rule: DeviceTaintRule, slice_: ResourceSlice) -> bool:
    """Whether the rule may select devices of the slice."""
    selector, spec = rule.spec.device_selector or _ALL, slice_.spec
    return selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name)


def tainted(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of the rules on its devices."""
    spec = slice_.spec
    devices = spec.devices
    for rule in rules:
        if not devices or not concerns(rule, slice_):
            continue
        name = (rule.spec.device_selector or _ALL).device
        devices = [
            msgspec.structs.replace(device, taints=[*(device.taints or ()), rule.spec.taint])
            if name in (None, device.name)
            else device
            for device in devices
        ]
    if devices is spec.devices:
        return slice_
    return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(spec, devices=devices))
