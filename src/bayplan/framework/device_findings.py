"""Part of the contract: what a plugin that allocates devices finds out about each of them, for explanations.

    from bayplan.framework.device_findings import DeviceFinding, NodeFindings

`examine_devices` of a plugin is called for the nodes that it rejected, and about the node of a pod that has
one. Scheduling does not use any of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, runtime_checkable

from bayplan.api.devices import DeviceTaint
from bayplan.cluster.device_slices import DeviceId
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState

__all__ = [
    "ConstraintFinding",
    "DeviceExaminer",
    "DeviceFinding",
    "DeviceState",
    "NodeFindings",
    "RequestFindings",
    "taint_text",
]


class DeviceState(Enum):
    """What a device is to a request."""

    FREE = "free"
    """It would do."""
    TAKEN = "taken"
    TAINTED = "tainted"
    REFUSED = "refused"
    """A selector is false of it, or fails."""
    SHORT = "short"
    """Of a counter that it shares with others, or of capacity."""
    ELSEWHERE = "elsewhere"
    """The device itself says that this node does not reach it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFinding:
    """One device and one request. Which fields are set follows from the state."""

    device: DeviceId
    state: DeviceState
    claims: tuple[str, ...] = ()
    """That have it."""
    pods: tuple[str, ...] = ()
    """For which it is reserved."""
    taint: str = ""
    selector: str = ""
    """Whose: `class NAME` or `claim NAMESPACE/NAME`."""
    term: str = ""
    """The part of the expression that is false."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What the term reads of the device."""
    error: str = ""
    """Of an expression that fails."""
    shortage: str = ""
    """`counter NAME of SET` or `capacity NAME`."""
    needs: str = ""
    left: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFindings:
    """All devices of a node for one request, or for one alternative of a request."""

    claim: str
    request: str
    device_class: str
    count: int | None
    """None for all devices."""
    devices: tuple[DeviceFinding, ...]

    @property
    def usable(self) -> int:
        return sum(each.state is DeviceState.FREE for each in self.devices)

    @property
    def missing(self) -> int:
        if self.count is None:
            return 0 if self.usable else 1
        return max(self.count - self.usable, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintFinding:
    """A constraint without which the devices of the node would do. `values` has the devices by what they have in the
    attribute; those without it are under an empty text."""

    claim: str
    attribute: str
    is_distinct: bool
    values: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFindings:
    node: str
    fits: bool
    requests: tuple[RequestFindings, ...] = ()
    constraints: tuple[ConstraintFinding, ...] = ()
    is_contested: bool = False
    """Every request could be satisfied by itself, and no constraint is in the way: they want the same devices."""
    pools: Mapping[str, str] = field(default_factory=dict)
    """Pools that are not used, and why."""
    unreachable: tuple[str, ...] = ()
    """Claims that have their devices already, and cannot be used from the node."""
    error: str = ""
    """Of the search."""

    @property
    def missing(self) -> int:
        """How many devices are missing, by the alternatives that come nearest."""
        nearest: dict[tuple[str, str], int] = {}
        for each in self.requests:
            key = (each.claim, each.request.partition("/")[0])
            nearest[key] = min(nearest.get(key, each.missing), each.missing)
        return sum(nearest.values())


@runtime_checkable
class DeviceExaminer(Protocol):
    """A plugin that allocates devices, and that can say what each of them is to a pod."""

    @property
    def name(self) -> str: ...

    def examine_devices(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> NodeFindings | None:
        """None for a pod that asks for no devices on the node."""


def taint_text(taint: DeviceTaint) -> str:
    """`key=value:Effect`"""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
