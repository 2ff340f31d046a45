"""The pools of devices that a node reaches, in the order in which they are searched.

A pool is what one driver publishes under one name, in slices of one generation. It takes part only when all of its
slices have been seen and agree with each other: devices of an incomplete or invalid pool are not allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.framework import NodeInfo
from bayplan.framework.devices import Devices, PoolId, PublishedDevice, PublishedSlice

__all__ = ["NodeDevices", "NodePools", "Pool"]

CounterSets = dict[str, dict[str, int]]


class Pool:
    """One pool as a node sees it. `problem` says why an invalid pool is not used."""

    __slots__ = ("counter_sets", "devices", "id", "is_incomplete", "other_devices", "problem")

    def __init__(
        self,
        id_: PoolId,
        *,
        devices: Sequence[PublishedDevice] = (),
        other_devices: Sequence[PublishedDevice] = (),
        counter_sets: CounterSets | None = None,
        is_incomplete: bool = False,
        problem: str = "",
    ) -> None:
        self.id, self.devices, self.other_devices = id_, devices, other_devices
        self.counter_sets = counter_sets or {}
        self.is_incomplete, self.problem = is_incomplete, problem

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.problem

    @property
    def waits_for_conditions(self) -> bool:
        return any(device.raw.binding_conditions is not None for device in self.devices)


class NodeDevices:
    """All pools of a node, and the devices of the usable ones in the order of the search."""

    __slots__ = ("devices", "is_plain", "node", "pools")

    def __init__(self, pools: list[Pool], node: object) -> None:
        self.pools, self.node = pools, node
        self.devices: list[tuple[PublishedDevice, Pool]] = [
            (device, pool) for pool in pools if pool.is_usable for device in pool.devices
        ]
        self.is_plain = not self.has_invalid_pool and all(device.is_plain for device, _ in self.devices)
        """Whether counting free devices decides a request for a number of them."""

    @property
    def has_invalid_pool(self) -> bool:
        return any(pool.problem for pool in self.pools)


class NodePools:
    """`NodeDevices` by node, kept until slices that concern the node, or its labels, change."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._position = -1
        self._kept: dict[str, NodeDevices] = {}
        self._counters: dict[PoolId, list[PublishedSlice]] = {}
        self._troubled: dict[PoolId, list[PublishedSlice]] = {}

    def of(self, node: NodeInfo) -> NodeDevices:
        if self._position != self._devices.slice_changes.position:
            self._follow()
        kept = self._kept.get(node.name)
        if kept is None or kept.node is not node.node:
            kept = self._kept[node.name] = NodeDevices(self._pools(self._slices(node)), node.node)
        return kept

    def _follow(self) -> None:
        log = self._devices.slice_changes
        names = log.since(self._position)
        self._position = log.position
        self._counters = {}
        for slice_ in self._devices.counter_slices():
            self._counters.setdefault(slice_.pool_id, []).append(slice_)
        before = self._troubled
        self._troubled = {
            id_: slices for id_, slices in self._counters.items() if any(not p.is_usable for p in self._pools(slices))
        }
        if names is None or "" in names or before or self._troubled:
            self._kept.clear()
        else:
            for name in names:
                self._kept.pop(name, None)

    def _slices(self, node: NodeInfo) -> list[PublishedSlice]:
        """Those that the node takes part in. Counters belong to every node, but a sound pool without devices on this
        node changes nothing for it, so only the troubled ones of other nodes are looked at."""
        found = [each for each in self._devices.slices_on(node.name) if each.reaches(node.name, node.labels)]
        here = {each.pool_id for each in found}
        for id_ in here & self._counters.keys():
            found += self._counters[id_]
        for id_ in self._troubled.keys() - here:
            found += self._troubled[id_]
        return found

    def _pools(self, slices: Iterable[PublishedSlice]) -> list[Pool]:
        newest: dict[PoolId, list[PublishedSlice]] = {}
        for slice_ in slices:
            known = newest.setdefault(slice_.pool_id, [])
            if known and slice_.generation > known[0].generation:
                known.clear()
            if not known or slice_.generation == known[0].generation:
                known.append(slice_)
        pools = [pool for id_, known in newest.items() if (pool := self._pool(id_, known)) is not None]
        return sorted(pools, key=lambda pool: (pool.waits_for_conditions, pool.id))

    def _pool(self, id_: PoolId, slices: list[PublishedSlice]) -> Pool | None:
        """None for a pool of which a newer generation exists elsewhere."""
        first = slices[0]
        if len(slices) == first.slice_count:
            return _checked(id_, slices, ())
        whole = list(self._devices.slices_of(id_))
        if any(each.generation > first.generation for each in whole):
            return None
        current = [each for each in whole if each.generation == first.generation]
        if len(current) != first.slice_count:
            return Pool(id_, is_incomplete=True)
        here = {each.name for each in slices}
        return _checked(id_, slices, [each for each in current if each.name not in here])


def _checked(id_: PoolId, here: Iterable[PublishedSlice], elsewhere: Iterable[PublishedSlice]) -> Pool:
    ordered = sorted(here, key=lambda each: each.name)
    devices = [device for each in ordered if not each.has_counters for device in each.devices]
    others = [device for each in elsewhere for device in each.devices]
    counter_sets, problem = _counter_sets(ordered)
    problem = (
        _repeated_name(devices)
        or problem
        or _unknown_counter(counter_sets, [device for each in ordered for device in each.devices])
        or _unknown_counter(counter_sets, others)
    )
    if problem:
        return Pool(id_, problem=problem)
    return Pool(id_, devices=devices, other_devices=others, counter_sets=counter_sets)


def _repeated_name(devices: Iterable[PublishedDevice]) -> str:
    seen: set[str] = set()
    for device in devices:
        if device.raw.name in seen:
            return f"duplicate device name {device.raw.name}"
        seen.add(device.raw.name)
    return ""


def _counter_sets(slices: Iterable[PublishedSlice]) -> tuple[CounterSets, str]:
    found: CounterSets = {}
    for slice_ in slices:
        for name, counters in slice_.counter_sets:
            if name in found:
                return found, f"duplicate counter set name {name}"
            found[name] = counters
    return found, ""


def _unknown_counter(counter_sets: CounterSets, devices: Iterable[PublishedDevice]) -> str:
    for device in devices:
        for name, counters in device.counters.items():
            known = counter_sets.get(name)
            if known is None:
                return f"counter set {name} not found"
            for counter in counters:
                if counter not in known:
                    return f"counter {counter} not found in counter set {name}"
    return ""
