"""What device drivers publish: slices of pools with their devices, ready to be searched.

A `PublishedSlice` is a ResourceSlice with everything parsed once: node selectors compiled, amounts as exact numbers,
taints that keep devices from being allocated, and the `DeviceLook` of each device. The look is what a selector can
see of a device; devices of one model share one look, so an expression is evaluated once for all of them.
DeviceTaintRules are applied before: they add taints of administrators to those that drivers publish.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from bayplan.api.devices import (
    CapacityRequestPolicy,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
)
from bayplan.api.node import NodeSelector
from bayplan.api.node_selectors import NodeTerm, compile_node_selector
from bayplan.api.quantity import Quantity, nano_value

__all__ = [
    "Attribute",
    "Capacity",
    "DeviceId",
    "DeviceLook",
    "NodeChoice",
    "PoolId",
    "PublishedDevice",
    "PublishedSlice",
    "concerns",
    "tainted",
]

DeviceId = tuple[str, str, str]
"""(driver, pool, device)."""
PoolId = tuple[str, str]
"""(driver, pool)."""
Attribute = tuple[str, object]
"""(type, value); the type is `int`, `bool`, `string`, `version`, or empty where none of them is set."""

_MOST_ANSWERS = 256
"""Answers of selectors kept with a look; more expressions than that about one model of device are an attack."""


class DeviceLook:
    """What a selector sees of a device: driver, attributes, capacity, and whether it can be shared."""

    __slots__ = ("__weakref__", "answers", "attributes", "capacity", "driver", "is_shareable")

    def __init__(
        self, driver: str, attributes: dict[str, Attribute], capacity: dict[str, Quantity], is_shareable: bool
    ) -> None:
        self.driver, self.attributes, self.capacity, self.is_shareable = driver, attributes, capacity, is_shareable
        self.answers: dict[str, bool | Exception] = {}
        """By expression: whether it selects such devices, or what went wrong."""

    def remember(self, expression: str, answer: bool | Exception) -> bool | Exception:
        if len(self.answers) >= _MOST_ANSWERS:
            self.answers.clear()
        self.answers[expression] = answer
        return answer

    def attribute(self, name: str) -> Attribute | None:
        """By fully qualified name. A name without a domain on the device stands in the domain of its driver."""
        found = self.attributes.get(name)
        if found is None:
            domain, _, identifier = name.partition("/")
            if domain == self.driver and identifier:
                found = self.attributes.get(identifier)
        return found


_looks: weakref.WeakValueDictionary[object, DeviceLook] = weakref.WeakValueDictionary()


def _look_of(driver: str, device: Device) -> DeviceLook:
    attributes = {name: _attribute(value) for name, value in (device.attributes or {}).items()}
    capacity = {name: value.value for name, value in (device.capacity or {}).items()}
    is_shareable = bool(device.allow_multiple_allocations)
    # True equals 1 in Python, but the types beside them differ.
    key = (driver, frozenset(attributes.items()), frozenset(capacity.items()), is_shareable)
    look = _looks.get(key)
    if look is None:
        look = _looks[key] = DeviceLook(driver, attributes, capacity, is_shareable)
    return look


def _attribute(attribute: DeviceAttribute) -> Attribute:
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.int_ is not None:
        return "int", attribute.int_
    if attribute.bool_ is not None:
        return "bool", attribute.bool_
    return ("", None) if attribute.version is None else ("version", attribute.version)


class NodeChoice(NamedTuple):
    """The nodes that reach a slice or a device."""

    node_name: str
    is_all: bool
    selector: NodeSelector | None
    terms: tuple[NodeTerm, ...]

    @classmethod
    def of(cls, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> NodeChoice:
        return cls(node_name or "", bool(all_nodes), selector, compile_node_selector(selector) if selector else ())

    @property
    def is_made(self) -> bool:
        return bool(self.node_name) or self.is_all or self.selector is not None

    def includes(self, name: str, labels: dict[str, str]) -> bool:
        if self.node_name:
            return name == self.node_name
        return self.is_all or any(term.matches(labels, name) for term in self.terms)


class Capacity(NamedTuple):
    """A capacity of a device, in billionths, and the rule for what a request may take of it."""

    amount: int
    text: Quantity
    policy: CapacityRequestPolicy | None


class PublishedDevice:
    """A device of a slice. `counters` is what it takes of the pool's shared counters: {set: {counter: amount}}."""

    __slots__ = ("capacity", "counters", "id", "look", "nodes", "raw", "slice", "taints")

    def __init__(self, raw: Device, slice_: PublishedSlice) -> None:
        self.raw, self.slice = raw, slice_
        self.id: DeviceId = (slice_.driver, slice_.pool, raw.name)
        self.look = _look_of(slice_.driver, raw)
        self.capacity = {name: _capacity(given) for name, given in (raw.capacity or {}).items()}
        self.counters = {
            taken.counter_set: {name: nano_value(counter.value) for name, counter in (taken.counters or {}).items()}
            for taken in raw.consumes_counters or ()
        }
        self.taints: tuple[DeviceTaint, ...] = tuple(
            taint for taint in raw.taints or () if taint.effect in ("NoSchedule", "NoExecute")
        )
        """Those that keep it from being allocated."""
        chosen = slice_.is_chosen_by_device
        self.nodes = NodeChoice.of(raw.node_name, raw.all_nodes, raw.node_selector) if chosen else slice_.nodes

    @property
    def is_shareable(self) -> bool:
        return self.look.is_shareable

    @property
    def is_plain(self) -> bool:
        """Whether free or taken is all that there is to say about it: no counters, shares or capacity policies."""
        return not self.counters and not self.is_shareable and all(not c.policy for c in self.capacity.values())


def _capacity(given: DeviceCapacity) -> Capacity:
    return Capacity(nano_value(given.value), given.value, given.request_policy)


class PublishedSlice:
    """A ResourceSlice, parsed."""

    __slots__ = (
        "counter_sets",
        "devices",
        "driver",
        "generation",
        "is_chosen_by_device",
        "name",
        "nodes",
        "pool",
        "slice_count",
    )

    def __init__(self, raw: ResourceSlice) -> None:
        spec = raw.spec
        self.name, self.driver, self.pool = raw.name, spec.driver, spec.pool.name
        self.generation, self.slice_count = spec.pool.generation, spec.pool.resource_slice_count
        self.nodes = NodeChoice.of(spec.node_name, spec.all_nodes, spec.node_selector)
        self.is_chosen_by_device = bool(spec.per_device_node_selection)
        self.counter_sets = [
            (each.name, {name: nano_value(counter.value) for name, counter in (each.counters or {}).items()})
            for each in spec.shared_counters or ()
        ]
        self.devices = tuple(PublishedDevice(device, self) for device in spec.devices or ())

    @property
    def pool_id(self) -> PoolId:
        return self.driver, self.pool

    @property
    def has_counters(self) -> bool:
        return bool(self.counter_sets)

    @property
    def only_node(self) -> str:
        """The one node that has it; empty for slices that others reach too, or that hold counters of a pool."""
        return "" if self.has_counters else self.nodes.node_name

    def reaches(self, name: str, labels: dict[str, str]) -> bool:
        """Whether the node takes part in it. Counters belong to the pool and so to every node."""
        if self.has_counters:
            return True
        if self.nodes.is_made:
            return self.nodes.includes(name, labels)
        return self.is_chosen_by_device and any(device.nodes.includes(name, labels) for device in self.devices)


_ANY_DEVICE = DeviceTaintSelector()


def concerns(rule: DeviceTaintRule, slice_: ResourceSlice) -> bool:
    """Whether the rule may select devices of the slice."""
    selector, spec = rule.spec.device_selector or _ANY_DEVICE, slice_.spec
    return selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name)


def tainted(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of the rules on its devices."""
    spec = slice_.spec
    devices = spec.devices
    for rule in rules:
        if not devices or not concerns(rule, slice_):
            continue
        name = (rule.spec.device_selector or _ANY_DEVICE).device
        devices = [
            msgspec.structs.replace(device, taints=[*(device.taints or ()), rule.spec.taint])
            if name in (None, device.name)
            else device
            for device in devices
        ]
    if devices is spec.devices:
        return slice_
    return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(spec, devices=devices))
