"""Counters that the devices of a pool share: partitions of one GPU, say, take from the memory of the GPU."""

from __future__ import annotations

from bayplan.framework.devices import DeviceUse, PoolId, PublishedDevice
from bayplan.plugins.intree.dynamic_resources.pools import Pool

__all__ = ["CounterBook", "SearchCounters"]

_Counters = dict[str, dict[str, int]]


class CounterBook:
    """What allocated devices leave of the counters of each pool, worked out once per attempt."""

    def __init__(self, use: DeviceUse) -> None:
        self._use = use
        self._available: dict[PoolId, _Counters] = {}

    def available(self, pool: Pool) -> _Counters:
        found = self._available.get(pool.id)
        if found is None:
            found = self._available[pool.id] = self._left(pool)
        return found

    def _left(self, pool: Pool) -> _Counters:
        left = {name: dict(counters) for name, counters in pool.counter_sets.items()}
        for device in (*pool.devices, *pool.other_devices):
            if device.counters and self._use.is_allocated(device.id):
                _add(left, device, -1)
        return left

    def for_search(self) -> SearchCounters:
        return SearchCounters(self)


class SearchCounters:
    """What one search has taken besides."""

    def __init__(self, book: CounterBook) -> None:
        self._book = book
        self._taken: dict[PoolId, _Counters] = {}

    def take(self, device: PublishedDevice, pool: Pool) -> bool:
        """Take what the device needs; False, with nothing taken, when any counter of the pool would fall short."""
        taken = self._taken.setdefault(pool.id, {})
        _add(taken, device, 1)
        for name, counters in self._book.available(pool).items():
            mine = taken.get(name)
            # Others may have overdrawn a counter that this device does not need; nothing fits then.
            if any(amount < (mine.get(counter, 0) if mine else 0) for counter, amount in counters.items()):
                _add(taken, device, -1)
                return False
        return True

    def put_back(self, device: PublishedDevice, pool: Pool) -> None:
        _add(self._taken[pool.id], device, -1)


def _add(to: _Counters, device: PublishedDevice, sign: int) -> None:
    for name, counters in device.counters.items():
        into = to.setdefault(name, {})
        for counter, amount in counters.items():
            into[counter] = into.get(counter, 0) + sign * amount
