"""Claims about devices in words: one sentence for each type of claim, made of its fields and of nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bayplan.explain.claims import devices as d
from bayplan.explain.claims.phrases import counted, ended, listed

__all__ = ["DEVICE_WORDS", "device_phrase"]

_LONGEST = 160


def _has_devices(claim: d.HasDevices) -> str:
    parts = [f"{listed(devices, 'devices')} for request {request}" for request, devices in claim.devices.items()]
    return f"{claim.pod} has {', and '.join(parts) or 'no device'}, through claim {claim.owner}."


def _lacks_devices(claim: d.LacksDevices) -> str:
    nodes = f"{claim.refused:,} of {claim.nodes:,} nodes lack devices" if claim.nodes > 1 else "the node lacks devices"
    looked = f" of {claim.looked_at:,} looked at" if claim.looked_at else ""
    states = [f"{count} {state}" for state, count in claim.states.items()]
    if claim.asked:
        has = f"has {claim.usable} of {claim.asked} for {claim.request}"
    else:
        has = f"cannot give all that {claim.request} asks for"
    also = f" ({', '.join(states)})" if states else ""
    split = f", split by {listed(claim.split, 'attributes')}" if claim.split else ""
    nearest = f"{claim.node} comes nearest{looked} and" if claim.nodes > 1 else claim.node
    return f"{claim.pod} is pending: {nodes}; {nearest} {has}{also}{split}."


def device_phrase(claim: d.ABOUT_ONE) -> str:
    """What a device is to a request, after its name."""
    say: Callable[[Any], str] = _PHRASES[type(claim)]
    return say(claim)


def _free(claim: d.DeviceFree) -> str:
    return "is free and would do"


def _taken(claim: d.DeviceTaken) -> str:
    users = f", reserved for {listed(claim.users, 'pods')}" if claim.users else ""
    return f"is taken by claim {listed(claim.owners, 'claims')}{users}"


def _tainted(claim: d.DeviceTainted) -> str:
    return f"has the taint {claim.taint}, which is not tolerated"


def _refused(claim: d.DeviceRefused) -> str:
    return f"is refused by {claim.by}: {_short(claim.term)} is false{_values(claim.values)}"


def _fails(claim: d.DeviceFails) -> str:
    return f"cannot be judged by {claim.by}: {_short(claim.expression)}: {claim.error}"


def _short_of(claim: d.DeviceShort) -> str:
    left = f" and {claim.left} is left" if claim.left else ""
    return f"is short of {claim.of}: it needs {claim.needs}{left}"


def _elsewhere(claim: d.DeviceElsewhere) -> str:
    return "cannot be reached from this node"


_PHRASES: dict[type, Callable[[Any], str]] = {
    d.DeviceFree: _free,
    d.DeviceTaken: _taken,
    d.DeviceTainted: _tainted,
    d.DeviceRefused: _refused,
    d.DeviceFails: _fails,
    d.DeviceShort: _short_of,
    d.DeviceElsewhere: _elsewhere,
}


def _about_one(claim: d.ABOUT_ONE) -> str:
    return ended(f"For {claim.request}, {claim.device} on {claim.node} {device_phrase(claim)}")


def _no_devices(claim: d.NoDevices) -> str:
    return f"{claim.node} has no devices."


def _split(claim: d.DevicesSplit) -> str:
    rule = "differ" if claim.is_distinct else "agree"
    groups = ", ".join(f"{counted(count, 'device')} {_having(value)}" for value, count in claim.values.items())
    return f"On {claim.node} the devices of claim {claim.owner} would have to {rule} in {claim.attribute}: {groups}."


def _having(value: str) -> str:
    return f"with {value}" if value else "without it"


def _contested(claim: d.DevicesContested) -> str:
    return f"On {claim.node} each request finds devices by itself, and there are not enough for all of them together."


def _pool_unused(claim: d.PoolUnused) -> str:
    return ended(f"Devices of pool {claim.pool} on {claim.node} are not used: {claim.problem}")


def _unreachable(claim: d.ClaimUnreachable) -> str:
    return f"Claim {claim.owner} has its devices already, and they cannot be used from {claim.node}."


def _values(values: Mapping[str, str]) -> str:
    found = " and ".join(f"{name} is {value}" for name, value in values.items())
    return f" ({found})" if found else ""


def _short(expression: str) -> str:
    text = " ".join(expression.split())
    return f"`{text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'}`"


DEVICE_WORDS: dict[type, Callable[[Any], str]] = {
    d.HasDevices: _has_devices,
    d.LacksDevices: _lacks_devices,
    d.NoDevices: _no_devices,
    d.DevicesSplit: _split,
    d.DevicesContested: _contested,
    d.PoolUnused: _pool_unused,
    d.ClaimUnreachable: _unreachable,
    **dict.fromkeys(_PHRASES, _about_one),
}
