"""The search for devices on one node: the first way to satisfy every request of every claim, in a fixed order.

Claims, requests, alternatives and devices are tried in the order in which they are listed, and the first solution is
taken, so the answer is the same on every machine and the same as kube-scheduler's. The search goes back over every
choice; what bounds it is the number of devices per claim and the deadline of the caller.

Each level is a generator that yields the level below it and receives that level's outcome. A plain loop drives them,
so that a pod with many claims does not run into Python's limit on nested calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from enum import Enum
from typing import Any

from bayplan.framework import NodeInfo
from bayplan.framework.devices import DeviceId, DeviceUse, PublishedDevice
from bayplan.plugins.intree.dynamic_resources.capacity import Amount, consumption, fits
from bayplan.plugins.intree.dynamic_resources.constraints import AttributeConstraint, make_constraint
from bayplan.plugins.intree.dynamic_resources.counters import CounterBook
from bayplan.plugins.intree.dynamic_resources.pools import NodeDevices, Pool
from bayplan.plugins.intree.dynamic_resources.requests import ALL, MOST_DEVICES, AllocationError, Ask, ClaimAsks

__all__ = ["InvalidPools", "Search", "Taken"]


class InvalidPools(Exception):
    """Nothing was found on this node, and some of its pools are invalid. Other nodes may do."""

    def __init__(self) -> None:
        super().__init__("invalid resource pools were encountered")


class _Hopeless(Exception):
    """Some request cannot be satisfied, whatever the others get."""


class _Outcome(Enum):
    FOUND = "a solution"
    NONE = "no solution from here"
    TOO_MANY = "more devices than a claim can hold; no choice further down helps"


_Level = Generator[Any, _Outcome, _Outcome]
_FOUND, _NONE, _TOO_MANY = _Outcome.FOUND, _Outcome.NONE, _Outcome.TOO_MANY
_CHECK_EVERY = 64
"""Devices looked at between two looks at the clock."""
_LONG = 512
"""Devices looked at after which a search asks whether it can end well at all."""


class Taken:
    """A device, or a share of one, chosen for an ask."""

    __slots__ = ("ask", "counts", "device", "pool", "share")

    def __init__(
        self, ask: Ask, device: PublishedDevice, pool: Pool, share: dict[str, Amount] | None, counts: bool
    ) -> None:
        self.ask, self.device, self.pool = ask, device, pool
        self.share = share
        """Capacity that the share takes; None for a whole device."""
        self.counts = counts
        """Whether it takes from the counters of the pool."""


class Search:
    """One search on one node. `run` may be called once."""

    def __init__(
        self,
        node: NodeInfo,
        there: NodeDevices,
        claims: Sequence[ClaimAsks],
        use: DeviceUse,
        counters: CounterBook,
        check_deadline: Callable[[str], None],
    ) -> None:
        self._node, self._there, self._claims, self._use = node, there, claims, use
        self._counters = counters.for_search()
        self._check_deadline = check_deadline
        self._until_check = _CHECK_EVERY
        self._taken: list[list[Taken]] = [[] for _ in claims]
        self._chosen: dict[tuple[int, int], int] = {}
        self._holders: dict[DeviceId, list[int]] = {}
        """Claims for which a whole device is taken."""
        self._shares: dict[DeviceId, list[dict[str, Amount]]] = {}
        self._constraints: list[list[AttributeConstraint]] = []
        self._all: dict[Ask, list[tuple[PublishedDevice, Pool]]] = {}
        self.devices_tried = 0

    def run(self) -> list[list[Taken]] | None:
        """What is taken for each claim, or None. Raises AllocationError and InvalidPools."""
        for asks in self._claims:
            self._check_size(asks)
            self._constraints.append(_constraints(asks))
        try:
            if _drive(self._request(0, 0)) is _FOUND:
                return self._taken
        except _Hopeless:
            pass
        if self._there.has_invalid_pool:
            raise InvalidPools
        return None

    def chosen(self, claim: int, request: int) -> int:
        """Which alternative of a request was taken."""
        return self._chosen.get((claim, request), 0)

    # Before the search

    def _check_size(self, asks: ClaimAsks) -> None:
        least = sum(min(self._number(ask) for ask in listed.asks) for listed in asks.requests)
        if least > MOST_DEVICES:
            problem = f"number of requested devices {least} exceeds the claim limit of {MOST_DEVICES}"
            raise AllocationError(f"claim {asks.claim.key}: {problem}")

    def _number(self, ask: Ask) -> int:
        if ask.mode != ALL:
            return ask.count
        self._all[ask] = self._every_device(ask)
        return len(self._all[ask])

    def _every_device(self, ask: Ask) -> list[tuple[PublishedDevice, Pool]]:
        found: list[tuple[PublishedDevice, Pool]] = []
        for pool in self._there.pools:
            problem = "being updated" if pool.is_incomplete else "invalid" if pool.problem else ""
            if problem:
                asked = f"claim {ask.claim_key}, request {ask.name}: asks for all devices"
                raise AllocationError(f"{asked}, but resource pool {'/'.join(pool.id)} is currently {problem}")
            found += [
                (device, pool)
                for device in pool.devices
                if self._is_selectable(ask, device) and self._has_room(ask, device) is not None
            ]
        return found

    # The levels

    def _request(self, claim: int, request: int) -> _Level:
        if claim >= len(self._claims):
            return _FOUND
        requests = self._claims[claim].requests
        if request >= len(requests):
            outcome = yield self._request(claim + 1, 0)
            # The later claim may fit when devices of this one are chosen otherwise.
            return _NONE if outcome is _TOO_MANY else outcome
        is_hopeless = True
        for number, ask in enumerate(requests[request].asks):
            outcome = yield self._slot(claim, request, ask, 0, 0)
            if outcome is _FOUND:
                self._chosen[claim, request] = number
                return _FOUND
            is_hopeless = is_hopeless and outcome is _TOO_MANY
        return _TOO_MANY if is_hopeless else _NONE

    def _slot(self, claim: int, request: int, ask: Ask, slot: int, start: int) -> _Level:
        """Choose the device number `slot` of an ask among those from `start` on, and everything after it."""
        wanted = len(self._all[ask]) if ask.mode == ALL else ask.count
        if ask.mode == ALL and not wanted:
            return _NONE
        if slot >= wanted:
            return (yield self._request(claim, request + 1))
        if len(self._taken[claim]) + wanted - slot > MOST_DEVICES:
            return _TOO_MANY
        if ask.mode == ALL:
            return (yield self._next_of_all(claim, request, ask, slot))
        devices = self._there.devices
        for place in range(start, len(devices)):
            device, pool = devices[place]
            self._count_step()
            if not self._is_free(claim, ask, device) or not self._is_selectable(ask, device):
                continue
            if not self._take(claim, ask, device, pool):
                continue
            outcome = yield self._slot(claim, request, ask, slot + 1, place + 1)
            if outcome is _FOUND:
                return _FOUND
            self._put_back(claim)
            if outcome is _TOO_MANY:
                return _TOO_MANY
        return _NONE

    def _next_of_all(self, claim: int, request: int, ask: Ask, slot: int) -> _Level:
        device, pool = self._all[ask][slot]
        self._count_step()
        if not self._is_free(claim, ask, device) or not self._take(claim, ask, device, pool):
            return _NONE
        outcome = yield self._slot(claim, request, ask, slot + 1, 0)
        if outcome is not _FOUND:
            self._put_back(claim)
        return outcome

    def _count_step(self) -> None:
        self.devices_tried += 1
        self._until_check -= 1
        if not self._until_check:
            self._until_check = _CHECK_EVERY
            self._check_deadline(self._node.name)
            if self.devices_tried == _LONG and self._is_hopeless():
                raise _Hopeless

    def _is_hopeless(self) -> bool:
        """Whether some request asks for more devices than could be had if it were alone. The whole search, which tries
        every combination of the requests before, would find nothing either; only an error could come up in it (of an
        expression, or of a constraint that all devices break), so nothing is said where one might."""
        for asks in self._claims:
            if asks.claim.spec.devices.constraints and any(a.mode == ALL for r in asks.requests for a in r.asks):
                return False
        try:
            return any(
                all(self._reach(asks, ask) < (1 if ask.mode == ALL else ask.count) for ask in each.asks)
                for asks in self._claims
                for each in asks.requests
            )
        except AllocationError:
            return False

    def _reach(self, asks: ClaimAsks, ask: Ask) -> int:
        """The number of devices that the ask could get without any other. Raises AllocationError."""
        if ask.mode == ALL:
            return len(self._all[ask])
        constraints = _constraints(asks)
        selected = [device for device, _ in self._there.devices if self._is_selectable(ask, device)]
        return sum(self._could_take(ask, device, constraints) for device in selected)

    def _could_take(self, ask: Ask, device: PublishedDevice, constraints: list[AttributeConstraint]) -> bool:
        if not ask.tolerates(device) or not (ask.has_admin_access or device.id not in self._use.dedicated):
            return False
        for each in constraints:
            if not each.add(ask.base_name, ask.sub_name, device.look):
                return False
            each.remove(ask.base_name, ask.sub_name)
        room = consumption(device, ask.capacity)
        return room is not None and (not room or fits(device, room, self._use.consumed.get(device.id, {})))

    # One device

    def _is_selectable(self, ask: Ask, device: PublishedDevice) -> bool:
        if not ask.selects(device):
            return False
        is_by_device = device.slice.is_chosen_by_device
        return not is_by_device or device.nodes.includes(self._node.name, self._node.labels)

    def _is_free(self, claim: int, ask: Ask, device: PublishedDevice) -> bool:
        holders = self._holders.get(device.id)
        if ask.has_admin_access:
            return not holders or claim not in holders
        return not holders and device.id not in self._use.dedicated

    def _has_room(self, ask: Ask, device: PublishedDevice) -> dict[str, Amount] | None:
        """What an allocation takes of the capacity; None when that is not to be had."""
        taken = consumption(device, ask.capacity)
        if taken is None:
            return None
        if not taken:
            return taken
        shares = [{name: amount.nano for name, amount in share.items()} for share in self._shares.get(device.id, ())]
        return taken if fits(device, taken, self._use.consumed.get(device.id, {}), *shares) else None

    def _take(self, claim: int, ask: Ask, device: PublishedDevice, pool: Pool) -> bool:
        # Of all devices none may be left out, so a constraint that one breaks is an error before its room matters.
        room = None
        if ask.mode != ALL:
            room = self._has_room(ask, device)
            if room is None:
                return False
        # The first share of a device takes from the counters for all of them.
        is_shared_already = device.is_shareable and (device.id in self._use.consumed or device.id in self._shares)
        counts = bool(device.counters) and not is_shared_already
        if counts and not self._counters.take(device, pool):
            return False
        is_allowed = ask.tolerates(device) and self._constrain(claim, ask, device)
        if is_allowed and room is None:
            room = self._has_room(ask, device)
        if room is None or not is_allowed:
            if is_allowed:
                self._release(claim, ask)
            if counts:
                self._counters.put_back(device, pool)
            return False
        taken = Taken(ask, device, pool, room if device.is_shareable else None, counts)
        if taken.share is None:
            self._holders.setdefault(device.id, []).append(claim)
        else:
            self._shares.setdefault(device.id, []).append(taken.share)
        self._taken[claim].append(taken)
        return True

    def _constrain(self, claim: int, ask: Ask, device: PublishedDevice) -> bool:
        added: list[AttributeConstraint] = []
        for constraint in self._constraints[claim]:
            if constraint.add(ask.base_name, ask.sub_name, device.look):
                added.append(constraint)
                continue
            for each in reversed(added):
                each.remove(ask.base_name, ask.sub_name)
            if ask.mode == ALL:
                where = f"claim {ask.claim_key}, request {ask.name}: cannot add device {'/'.join(device.id)}"
                raise AllocationError(f"{where} because a claim constraint would not be satisfied")
            return False
        return True

    def _put_back(self, claim: int) -> None:
        taken = self._taken[claim].pop()
        device, ask = taken.device, taken.ask
        table: dict[DeviceId, list[Any]] = self._holders if taken.share is None else self._shares
        table[device.id].pop()
        if not table[device.id]:
            del table[device.id]
        self._release(claim, ask)
        if taken.counts:
            self._counters.put_back(device, taken.pool)

    def _release(self, claim: int, ask: Ask) -> None:
        for constraint in reversed(self._constraints[claim]):
            constraint.remove(ask.base_name, ask.sub_name)


def _constraints(asks: ClaimAsks) -> list[AttributeConstraint]:
    made: list[AttributeConstraint] = []
    for number, declared in enumerate(asks.claim.spec.devices.constraints or ()):
        constraint = make_constraint(declared)
        if constraint is None:
            unknown = f"constraint #{number}: empty constraint (unsupported constraint type?)"
            raise AllocationError(f"claim {asks.claim.key}, {unknown}")
        made.append(constraint)
    return made


def _drive(level: _Level) -> _Outcome:
    """Run a level and all levels that it yields; the outcome of the first."""
    stack = [level]
    outcome: _Outcome | None = None
    while stack:
        try:
            below = stack[-1].send(outcome) if outcome is not None else next(stack[-1])
        except StopIteration as finished:
            stack.pop()
            outcome = finished.value
        else:
            stack.append(below)
            outcome = None
    assert outcome is not None
    return outcome
