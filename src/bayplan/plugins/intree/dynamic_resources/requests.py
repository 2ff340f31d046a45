"""What the claims of a pod ask for, prepared once per attempt and the same for every node.

Preparing finds what is wrong with a request on any node. Such a problem ends the attempt with an error (the pod is
tried again later), because claims and classes may be mended; kube-scheduler treats it the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from bayplan.framework.devices import (
    ClaimConfiguration,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    PublishedDevice,
    ResourceClaim,
)
from bayplan.plugins.intree.dynamic_resources.capacity import Amount
from bayplan.plugins.intree.dynamic_resources.selectors import select

__all__ = ["ALL", "MOST_DEVICES", "AllocationError", "Ask", "ClaimAsks", "Listed", "prepare"]

MOST_DEVICES = 32
"""Devices that one allocation can hold."""
ALL, EXACT_COUNT = "All", "ExactCount"

ClassLister = Callable[[str], DeviceClass | None]


class AllocationError(Exception):
    """Devices cannot be allocated for a reason that is not about a node; the text is for the user."""


class Ask:
    """One request, or one of the alternatives of a request, for devices of a class."""

    __slots__ = (
        "capacity",
        "claim_key",
        "class_selectors",
        "count",
        "device_class",
        "has_admin_access",
        "mode",
        "name",
        "parent",
        "selectors",
        "tolerations",
    )

    def __init__(self, claim: ResourceClaim, request: ExactDeviceRequest, name: str, parent: str) -> None:
        self.claim_key, self.name, self.parent = claim.key, name, parent
        self.mode, self.count = request.allocation_mode, request.count
        self.has_admin_access = bool(request.admin_access)
        self.tolerations = tuple(request.tolerations or ())
        wanted = request.capacity.requests if request.capacity is not None else None
        self.capacity = {name: Amount.of(amount) for name, amount in (wanted or {}).items()}
        self.selectors = _expressions(request.selectors or (), f"claim {claim.key}, request {name}")
        self.device_class = DeviceClass()
        self.class_selectors: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """As allocations name it."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_name(self) -> str:
        return self.parent or self.name

    @property
    def sub_name(self) -> str:
        return self.name if self.parent else ""

    @property
    def signature(self) -> Hashable:
        """Requests with one signature are satisfied by the same devices."""
        tolerations = tuple((each.key, each.operator, each.value, each.effect) for each in self.tolerations)
        return self.class_selectors, self.selectors, tolerations

    def selects(self, device: PublishedDevice) -> bool:
        """Whether class and request select such a device. Raises AllocationError when an expression fails."""
        look = device.look
        for number, expression in enumerate(self.class_selectors):
            answer = select(expression, look)
            if isinstance(answer, Exception):
                raise AllocationError(f"class {self.device_class.name}: selector #{number}: {answer}")
            if not answer:
                return False
        for number, expression in enumerate(self.selectors):
            answer = select(expression, look)
            if isinstance(answer, Exception):
                raise AllocationError(f"claim {self.claim_key}: selector #{number}: {answer}")
            if not answer:
                return False
        return True

    def named_selectors(self) -> list[tuple[str, str]]:
        """(whose, expression), in the order in which they are evaluated."""
        by_class = [(f"class {self.device_class.name}", each) for each in self.class_selectors]
        return by_class + [(f"claim {self.claim_key}", each) for each in self.selectors]

    def tolerates(self, device: PublishedDevice) -> bool:
        return not device.taints or all(map(self.tolerates_taint, device.taints))

    def tolerates_taint(self, taint: DeviceTaint) -> bool:
        return any(_matches(each, taint) for each in self.tolerations)


def _matches(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _expressions(selectors: Iterable[DeviceSelector], where: str) -> tuple[str, ...]:
    found = []
    for number, selector in enumerate(selectors):
        if selector.cel is None:
            problem = f"{where}, selector #{number}: CEL expression empty (unsupported selector type?)"
            raise AllocationError(problem)
        found.append(selector.cel.expression)
    return tuple(found)


class Listed(NamedTuple):
    """A request of a claim: its alternatives in order of preference, or its only ask."""

    name: str
    asks: Sequence[Ask]
    is_prioritized: bool


class ClaimAsks(NamedTuple):
    claim: ResourceClaim
    requests: Sequence[Listed]
    config: Sequence[ClaimConfiguration]


def prepare(claim: ResourceClaim, classes: ClassLister) -> ClaimAsks:
    """Raises AllocationError."""
    devices = claim.spec.devices
    listed = [_listed(claim, request, classes) for request in devices.requests or ()]
    return ClaimAsks(claim, listed, devices.config or ())


def _listed(claim: ResourceClaim, request: DeviceRequest, classes: ClassLister) -> Listed:
    if request.first_available:
        asks = [_ask(claim, each, each.name, request.name, classes) for each in request.first_available]
        return Listed(request.name, asks, is_prioritized=True)
    exactly = request.exactly or ExactDeviceRequest()
    return Listed(request.name, [_ask(claim, exactly, request.name, "", classes)], is_prioritized=False)


def _ask(claim: ResourceClaim, request: ExactDeviceRequest, name: str, parent: str, classes: ClassLister) -> Ask:
    ask = Ask(claim, request, name, parent)
    where = f"claim {claim.key}, request {name}"
    class_name = request.device_class_name
    if not class_name:
        raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
    found = classes(class_name)
    if found is None:
        missing = f'deviceclass.resource.k8s.io "{class_name}" not found'
        raise AllocationError(f"{where}: could not retrieve device class {class_name}: {missing}")
    ask.device_class = found
    ask.class_selectors = _expressions(found.spec.selectors or (), f"class {class_name}")
    if ask.mode not in (ALL, EXACT_COUNT):
        raise AllocationError(f"{where}: unsupported count mode {ask.mode}")
    return ask
