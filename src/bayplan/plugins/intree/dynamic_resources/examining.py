"""What keeps each device of a node from a pod, in the order in which the search looks at it. For explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from bayplan.framework import NodeInfo
from bayplan.framework.device_findings import (
    ConstraintFinding,
    DeviceFinding,
    DeviceState,
    NodeFindings,
    RequestFindings,
    taint_text,
)
from bayplan.framework.devices import DeviceId, DeviceUse, PublishedDevice, ResourceClaim
from bayplan.framework.objects import binary_quantity
from bayplan.plugins.intree.dynamic_resources.capacity import consumption
from bayplan.plugins.intree.dynamic_resources.counters import CounterBook
from bayplan.plugins.intree.dynamic_resources.pools import NodeDevices, Pool
from bayplan.plugins.intree.dynamic_resources.requests import ALL, AllocationError, Ask, ClaimAsks
from bayplan.plugins.intree.dynamic_resources.search import InvalidPools, Search
from bayplan.plugins.intree.dynamic_resources.selectors import first_refusal

__all__ = ["DeviceExamination", "Holders"]

Holders = Mapping[DeviceId, Sequence[ResourceClaim]]
_BILLION = 10**9


class DeviceExamination:
    """One node, and the claims that are to be allocated there."""

    def __init__(
        self,
        node: NodeInfo,
        there: NodeDevices,
        claims: Sequence[ClaimAsks],
        *,
        use: DeviceUse,
        holders: Holders,
        check_deadline: Callable[[str], None],
    ) -> None:
        self._node, self._there, self._claims, self._use = node, there, claims, use
        self._holders = holders
        self._counters = CounterBook(use)
        self._check_deadline = check_deadline

    def run(self) -> NodeFindings:
        fits, error = False, ""
        constraints: tuple[ConstraintFinding, ...] = ()
        requests = tuple(self._request(ask) for asks in self._claims for listed in asks.requests for ask in listed.asks)
        found = NodeFindings(node=self._node.name, fits=False, requests=requests)
        try:
            fits = self._finds(self._claims)
            constraints = () if fits or found.missing else self._constraints()
        except AllocationError as problem:
            error = str(problem)
        except InvalidPools:
            pass
        return NodeFindings(
            node=self._node.name,
            fits=fits,
            requests=requests,
            constraints=constraints,
            is_contested=not fits and not found.missing and not constraints and not error,
            pools=self._unused_pools(),
            error=error,
        )

    def _finds(self, claims: Sequence[ClaimAsks]) -> bool:
        search = Search(self._node, self._there, claims, self._use, self._counters, self._check_deadline)
        return search.run() is not None

    def _unused_pools(self) -> dict[str, str]:
        return {
            "/".join(pool.id): "some of its slices are missing" if pool.is_incomplete else pool.problem
            for pool in self._there.pools
            if not pool.is_usable
        }

    # One device

    def _request(self, ask: Ask) -> RequestFindings:
        return RequestFindings(
            claim=ask.claim_key,
            request=ask.full_name,
            device_class=ask.device_class.name,
            count=None if ask.mode == ALL else ask.count,
            devices=tuple(self._device(ask, device, pool) for device, pool in self._there.devices),
        )

    def _device(self, ask: Ask, device: PublishedDevice, pool: Pool) -> DeviceFinding:
        if not ask.has_admin_access and device.id in self._use.dedicated:
            return self._taken(device)
        refused = first_refusal(ask.named_selectors(), device.look)
        if refused is not None:
            return DeviceFinding(
                device=device.id,
                state=DeviceState.REFUSED,
                selector=refused.whose,
                term=refused.term,
                values=refused.values,
                error=refused.error,
            )
        if device.slice.is_chosen_by_device and not device.nodes.includes(self._node.name, self._node.labels):
            return DeviceFinding(device=device.id, state=DeviceState.ELSEWHERE)
        short = self._short_of_capacity(ask, device) or self._short_of_counter(device, pool)
        if short is not None:
            return short
        taint = next((each for each in device.taints if not ask.tolerates_taint(each)), None)
        if taint is not None:
            return DeviceFinding(device=device.id, state=DeviceState.TAINTED, taint=taint_text(taint))
        return DeviceFinding(device=device.id, state=DeviceState.FREE)

    def _taken(self, device: PublishedDevice) -> DeviceFinding:
        holders = self._holders.get(device.id, ())
        return DeviceFinding(
            device=device.id,
            state=DeviceState.TAKEN,
            claims=tuple(claim.key for claim in holders),
            pods=tuple(user for claim in holders for user in claim.users),
        )

    def _short_of_capacity(self, ask: Ask, device: PublishedDevice) -> DeviceFinding | None:
        used: Mapping[str, int] = self._use.consumed.get(device.id, {})
        taken = consumption(device, ask.capacity)
        wanted = taken if taken is not None else ask.capacity
        for name, amount in wanted.items():
            offered = device.capacity[name].amount if name in device.capacity else 0
            left = offered - used.get(name, 0)
            if amount.nano > left:
                return _short(device, f"capacity {name}", amount.nano, left)
        if taken is not None:
            return None
        name = next(iter(ask.capacity), "")
        return _short(device, f"capacity {name}, which cannot be had in such an amount", ask.capacity[name].nano, None)

    def _short_of_counter(self, device: PublishedDevice, pool: Pool) -> DeviceFinding | None:
        is_shared_already = device.is_shareable and device.id in self._use.consumed
        if not device.counters or is_shared_already:
            return None
        for set_name, counters in self._counters.available(pool).items():
            needed = device.counters.get(set_name, {})
            for name, left in counters.items():
                if needed.get(name, 0) > left:
                    return _short(device, f"counter {name} of {set_name}", needed.get(name, 0), left)
        return None

    # All together

    def _constraints(self) -> tuple[ConstraintFinding, ...]:
        """Those in the way: each whose absence would be enough, or all where only the absence of several would."""
        declared = [
            (number, place)
            for number, asks in enumerate(self._claims)
            for place, _ in enumerate(asks.claim.spec.devices.constraints or ())
        ]
        alone = [each for each in declared if self._finds(_without(self._claims, {each}))]
        if not alone and declared and self._finds(_without(self._claims, set(declared))):
            alone = declared
        return tuple(self._constraint(number, place) for number, place in alone)

    def _constraint(self, number: int, place: int) -> ConstraintFinding:
        asks = self._claims[number]
        constraint = (asks.claim.spec.devices.constraints or [])[place]
        named = constraint.requests or ()
        attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        values: dict[str, list[str]] = {}
        for device, pool in self._there.devices:
            concerned = [
                ask
                for listed in asks.requests
                for ask in listed.asks
                if not named or ask.base_name in named or ask.full_name in named
            ]
            if any(self._device(ask, device, pool).state is DeviceState.FREE for ask in concerned):
                found = device.look.attribute(attribute)
                values.setdefault("" if found is None else str(found[1]), []).append("/".join(device.id))
        return ConstraintFinding(
            claim=asks.claim.key,
            attribute=attribute,
            is_distinct=constraint.match_attribute is None,
            values={value: tuple(devices) for value, devices in sorted(values.items())},
        )


def _short(device: PublishedDevice, what: str, needs: int, left: int | None) -> DeviceFinding:
    return DeviceFinding(
        device=device.id,
        state=DeviceState.SHORT,
        shortage=what,
        needs=_amount(needs),
        left="" if left is None else _amount(left),
    )


def _amount(billionths: int) -> str:
    whole, rest = divmod(billionths, _BILLION)
    return binary_quantity(whole) if not rest else f"{billionths / _BILLION:g}"


def _without(claims: Sequence[ClaimAsks], left_out: set[tuple[int, int]]) -> list[ClaimAsks]:
    """The claims without some of their constraints, each given as (claim, constraint)."""
    changed = []
    for number, asks in enumerate(claims):
        kept = [
            each
            for place, each in enumerate(asks.claim.spec.devices.constraints or ())
            if (number, place) not in left_out
        ]
        devices = msgspec.structs.replace(asks.claim.spec.devices, constraints=kept)
        spec = msgspec.structs.replace(asks.claim.spec, devices=devices)
        changed.append(asks._replace(claim=msgspec.structs.replace(asks.claim, spec=spec)))
    return changed
