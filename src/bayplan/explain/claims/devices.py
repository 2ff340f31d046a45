"""Claims about devices: what a pod has, and what each device of a node is to a pod that waits.

Devices are named as in Kubernetes' own messages: `driver/pool/device`. Requests are those of a resource claim, named
`claim/request`, or `claim/request/alternative` in a prioritized list.
"""

from __future__ import annotations

from bayplan.explain.claims.base import ClaimAboutPod

__all__ = [
    "ABOUT_NODE",
    "ABOUT_ONE",
    "DEVICES",
    "ClaimUnreachable",
    "DeviceElsewhere",
    "DeviceFails",
    "DeviceFree",
    "DeviceRefused",
    "DeviceShort",
    "DeviceTainted",
    "DeviceTaken",
    "DevicesContested",
    "DevicesSplit",
    "HasDevices",
    "LacksDevices",
    "NoDevices",
    "PoolUnused",
]


class HasDevices(ClaimAboutPod, frozen=True, tag="hasDevices"):
    """A placed pod uses these devices through one of its claims."""

    owner: str
    """The claim, as `namespace/name`."""
    devices: dict[str, tuple[str, ...]]
    """By request."""


class LacksDevices(ClaimAboutPod, frozen=True, tag="lacksDevices"):
    """No node takes the pod, and on most of them devices are missing: how the nearest of them stands."""

    nodes: int
    refused: int
    """Nodes without the devices."""
    node: str
    """The one where the fewest are missing."""
    request: str
    asked: int
    """0 for all devices."""
    usable: int
    """Devices of the node that would do."""
    states: dict[str, int]
    """The other devices of the node: how many are taken, tainted, refused, short or elsewhere."""
    split: tuple[str, ...] = ()
    """Attributes in which the devices that would do must agree or differ, and do not."""
    looked_at: int = 0
    """How many nodes were looked at, where that is not all of them."""


class _AboutDevice(ClaimAboutPod, frozen=True):
    node: str
    device: str
    request: str


class DeviceFree(_AboutDevice, frozen=True, tag="deviceFree"):
    """It would do for the request."""


class DeviceTaken(_AboutDevice, frozen=True, tag="deviceTaken"):
    owners: tuple[str, ...]
    """Resource claims that have it."""
    users: tuple[str, ...] = ()
    """Pods for which these are reserved."""


class DeviceTainted(_AboutDevice, frozen=True, tag="deviceTainted"):
    taint: str


class DeviceRefused(_AboutDevice, frozen=True, tag="deviceRefused"):
    """A selector is false of the device."""

    by: str
    """`class NAME` or `claim NAMESPACE/NAME`."""
    term: str
    """The part of the expression that is false."""
    values: dict[str, str] = {}
    """What the device has where the term looks."""


class DeviceFails(_AboutDevice, frozen=True, tag="deviceFails"):
    """A selector cannot be evaluated for the device, which keeps the pod from every node."""

    by: str
    expression: str
    error: str


class DeviceShort(_AboutDevice, frozen=True, tag="deviceShort"):
    """Of a counter that it shares, or of capacity, it needs more than there is left."""

    of: str
    needs: str
    left: str = ""


class DeviceElsewhere(_AboutDevice, frozen=True, tag="deviceElsewhere"):
    """It is in a pool of the node, and not reachable from it."""


class NoDevices(ClaimAboutPod, frozen=True, tag="noDevices"):
    """No driver publishes devices for the node."""

    node: str


class DevicesSplit(ClaimAboutPod, frozen=True, tag="devicesSplit"):
    """Enough devices would do, and no choice of them satisfies a constraint of the claim."""

    node: str
    owner: str
    attribute: str
    is_distinct: bool
    values: dict[str, int]
    """How many of them have each value of the attribute."""


class DevicesContested(ClaimAboutPod, frozen=True, tag="devicesContested"):
    """Every request finds devices by itself, and not all of them together."""

    node: str


class PoolUnused(ClaimAboutPod, frozen=True, tag="poolUnused"):
    """A pool of the node is incomplete or invalid, so its devices are not allocated."""

    node: str
    pool: str
    problem: str


class ClaimUnreachable(ClaimAboutPod, frozen=True, tag="claimUnreachable"):
    """A claim of the pod has its devices already, and they cannot be used from the node."""

    node: str
    owner: str


ABOUT_ONE = DeviceFree | DeviceTaken | DeviceTainted | DeviceRefused | DeviceFails | DeviceShort | DeviceElsewhere
ABOUT_NODE = NoDevices | DevicesSplit | DevicesContested | PoolUnused | ClaimUnreachable
DEVICES = HasDevices | LacksDevices | ABOUT_ONE | ABOUT_NODE
