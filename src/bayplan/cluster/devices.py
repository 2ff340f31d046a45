"""Devices of the cluster: what is published, what is taken, and which nodes either concerns.

Follows ResourceSlices and ResourceClaims as they change. Allocations that were decided and not written yet (in flight)
and those that were written and have not come back on the watch (written) count like stored ones, for every profile
of the scheduler: there is one `Devices` per cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from bayplan.api.devices import AllocationResult, DeviceTaintRule, ResourceClaim, ResourceSlice
from bayplan.api.quantity import nano_value
from bayplan.cluster.changes import NameLog
from bayplan.cluster.device_slices import DeviceId, PoolId, PublishedSlice, concerns, tainted
from bayplan.cluster.objects import Objects
from bayplan.observe.metrics import Counter as CounterMetric
from bayplan.observe.metrics import Histogram, Metric
from bayplan.observe.scheduler_metrics import BINDING_CONDITIONS, BINDING_CONDITIONS_WAIT, CLAIM_CREATES

__all__ = ["DeviceMetrics", "DeviceUse", "Devices"]


class DeviceUse:
    """Which devices are taken, whole or in shares. Allocations with admin access take nothing."""

    def __init__(self) -> None:
        self.dedicated: Counter[DeviceId] = Counter()
        """How many allocations have the whole device; more than one only where another scheduler overcommitted it."""
        self._shares: Counter[DeviceId] = Counter()
        self.consumed: dict[DeviceId, Counter[str]] = {}
        """Capacity taken by shares, in billionths."""

    def is_allocated(self, device: DeviceId) -> bool:
        return device in self.dedicated or device in self._shares

    def add(self, allocation: AllocationResult, sign: int) -> list[DeviceId]:
        """Count the devices of an allocation, or with `sign` -1 no longer; answers them."""
        touched: list[DeviceId] = []
        for result in allocation.devices.results or ():
            if result.admin_access:
                continue
            device = (result.driver, result.pool, result.device)
            touched.append(device)
            if result.share_id is None:
                _count(self.dedicated, device, sign)
                continue
            _count(self._shares, device, sign)
            if result.consumed_capacity:
                consumed = self.consumed.setdefault(device, Counter())
                for name, amount in result.consumed_capacity.items():
                    consumed[name] += sign * nano_value(amount)
                if device not in self._shares:
                    del self.consumed[device]
        return touched


def _count(counter: Counter[DeviceId], device: DeviceId, sign: int) -> None:
    counter[device] += sign
    if counter[device] <= 0:
        del counter[device]


class Devices:
    """`slice_changes` and `use_changes` name nodes whose slices, or whose devices in use, changed; an empty name stands
    for all nodes."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.use = DeviceUse()
        self.metrics = DeviceMetrics()
        self.is_served = True
        """Whether the API server knows resource claims at all."""
        self.slice_changes = NameLog()
        self.use_changes = NameLog()
        self._slices: dict[str, PublishedSlice] = {}
        self._by_node: dict[str, dict[str, PublishedSlice]] = {}
        self._shared: dict[str, PublishedSlice] = {}
        self._counters: dict[str, PublishedSlice] = {}
        self._by_pool: dict[PoolId, dict[str, PublishedSlice]] = {}
        self._counted: dict[str, AllocationResult] = {}
        """By claim, the allocation that `use` counts."""
        self._in_flight: dict[str, ResourceClaim] = {}
        self._written: dict[str, ResourceClaim] = {}
        self._owned: dict[str, dict[str, None]] = {}
        """By the uid of a controller, the keys of its claims."""
        self.releases: set[tuple[str, str]] = set()
        """(uid of the claim, uid of the pod) of reservations that are being taken back."""
        self._rules: dict[str, DeviceTaintRule] = {rule.name: rule for rule in objects.list(DeviceTaintRule)}
        for slice_ in objects.list(ResourceSlice):
            self._slice_changed(None, slice_)
        for claim in objects.list(ResourceClaim):
            self._claim_changed(None, claim)
        objects.on_change(ResourceSlice, self._slice_changed)
        objects.on_change(DeviceTaintRule, self._rule_changed)
        objects.on_change(ResourceClaim, self._claim_changed)

    # What is published

    def slices_on(self, node_name: str) -> Iterator[PublishedSlice]:
        """Slices with devices that only this node has, then those that any node may reach."""
        yield from self._by_node.get(node_name, {}).values()
        yield from self._shared.values()

    def slices_of(self, pool: PoolId) -> Iterable[PublishedSlice]:
        return self._by_pool.get(pool, {}).values()

    def counter_slices(self) -> Iterable[PublishedSlice]:
        """Slices that hold the counters of pools, and no devices."""
        return self._counters.values()

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if old is not None and (gone := self._slices.pop(old.name, None)) is not None:
            self._place(gone, is_there=False)
        if new is not None:
            self._slices[new.name] = made = PublishedSlice(tainted(new, self._rules.values()))
            self._place(made, is_there=True)

    def _rule_changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if old is not None:
            self._rules.pop(old.name, None)
        if new is not None:
            self._rules[new.name] = new
        rules = [rule for rule in (old, new) if rule is not None]
        for slice_ in self._objects.list(ResourceSlice):
            if any(concerns(rule, slice_) for rule in rules):
                self._slice_changed(slice_, slice_)

    def _place(self, slice_: PublishedSlice, *, is_there: bool) -> None:
        tables = [self._table_of(slice_), self._by_pool.setdefault(slice_.pool_id, {})]
        for table in tables:
            if is_there:
                table[slice_.name] = slice_
            else:
                table.pop(slice_.name, None)
        # A pool may be complete, or not, by what its slices on other nodes say.
        for name in {slice_.only_node, *(other.only_node for other in tables[1].values())}:
            self.slice_changes.record(name)
        if not tables[1]:
            del self._by_pool[slice_.pool_id]
        if slice_.only_node and not tables[0]:
            del self._by_node[slice_.only_node]

    def _table_of(self, slice_: PublishedSlice) -> dict[str, PublishedSlice]:
        if slice_.has_counters:
            return self._counters
        return self._by_node.setdefault(slice_.only_node, {}) if slice_.only_node else self._shared

    # What is claimed

    def claim(self, key: str) -> ResourceClaim | None:
        """The claim as last known: as written by us, until the watch has caught up with that."""
        stored, written = self._objects.get(ResourceClaim, key), self._written.get(key)
        return written if written is not None and stored is not None and _is_older(stored, written) else stored

    def claims(self, namespace: str | None = None) -> Iterator[ResourceClaim]:
        for claim in self._objects.list(ResourceClaim, namespace):
            yield self.claim(claim.key) or claim

    def claims_of(self, owner_uid: str) -> list[ResourceClaim]:
        """The claims that an object, a pod say, is the controller of."""
        found = (self.claim(key) for key in self._owned.get(owner_uid, ()))
        return [claim for claim in found if claim is not None]

    def holders(self) -> dict[DeviceId, list[ResourceClaim]]:
        """By device, the claims that have it, whole or in shares."""
        found: dict[DeviceId, list[ResourceClaim]] = {}
        for claim in self.claims():
            known = self._in_flight.get(claim.uid) or claim
            allocation = known.status.allocation
            for result in allocation.devices.results or () if allocation is not None else ():
                if not result.admin_access:
                    found.setdefault((result.driver, result.pool, result.device), []).append(known)
        return found

    def in_flight(self, uid: str) -> ResourceClaim | None:
        """The claim with the allocation that was decided for it and is not written yet."""
        return self._in_flight.get(uid)

    def put_in_flight(self, claim: ResourceClaim) -> None:
        self._in_flight[claim.uid] = claim
        self._count(claim.uid, claim.status.allocation)

    def drop_in_flight(self, claim: ResourceClaim) -> None:
        if self._in_flight.pop(claim.uid, None) is not None:
            self._recount(claim)

    def wrote(self, claim: ResourceClaim) -> None:
        """The API server answered with this version; it counts until the watch brings it or a newer one."""
        stored = self._objects.get(ResourceClaim, claim.key)
        if stored is None or _is_older(stored, claim):
            self._written[claim.key] = claim
        self._recount(claim)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new if new is not None else old
        if claim is None:
            return
        self._note_owner(old, new)
        written = self._written.get(claim.key)
        if written is not None and (new is None or not _is_older(new, written)):
            del self._written[claim.key]
        if old is not None and (new is None or new.uid != old.uid):
            self._count(old.uid, None)
        if new is not None:
            self._recount(new)

    def _note_owner(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before = old.controller if old is not None else None
        after = new.controller if new is not None else None
        if old is not None and before is not None and (after is None or after.uid != before.uid):
            owned = self._owned.get(before.uid, {})
            owned.pop(old.key, None)
            if not owned:
                self._owned.pop(before.uid, None)
        if new is not None and after is not None:
            self._owned.setdefault(after.uid, {})[new.key] = None

    def _recount(self, claim: ResourceClaim) -> None:
        in_flight = self._in_flight.get(claim.uid)
        known = in_flight or self.claim(claim.key)
        self._count(claim.uid, known.status.allocation if known is not None and known.uid == claim.uid else None)

    def _count(self, uid: str, allocation: AllocationResult | None) -> None:
        counted = self._counted.pop(uid, None)
        if allocation is not None:
            self._counted[uid] = allocation
        if counted is allocation or (counted is not None and allocation is not None and counted == allocation):
            return
        touched = self.use.add(counted, -1) if counted is not None else []
        if allocation is not None:
            touched += self.use.add(allocation, 1)
        for pool in {device[:2] for device in touched}:
            for name in {slice_.only_node for slice_ in self.slices_of(pool) if slice_.devices}:
                self.use_changes.record(name)


def _is_older(first: ResourceClaim, second: ResourceClaim) -> bool:
    """Whether `first` was read before `second`. Versions that are no numbers cannot be compared; then it was not."""
    before, after = first.metadata.resource_version, second.metadata.resource_version
    return before.isdigit() and after.isdigit() and int(before) < int(after)


class DeviceMetrics:
    """What happened to claims while pods were bound, counted for kube-scheduler's metrics of devices. Plugins feed them
    through `Devices.metrics`; `bayplan.app.metrics` shows them."""

    def __init__(self) -> None:
        self.creates = Metric(CLAIM_CREATES, CounterMetric)
        self.conditions = Metric(BINDING_CONDITIONS, CounterMetric)
        self.waits = Metric(BINDING_CONDITIONS_WAIT, lambda: Histogram(BINDING_CONDITIONS_WAIT.buckets))

    def created(self, *, is_made: bool) -> None:
        """A claim for extended resources was created, or could not be."""
        self.creates.labels("success" if is_made else "failure").inc()

    def waited(self, claims: Iterable[ResourceClaim], *, profile: str, status: str, seconds: float) -> None:
        """A pod waited for the conditions of its devices. As in kube-scheduler, the wait is observed for every device
        of the pod, and the outcome counted for those that have conditions."""
        for claim in claims:
            allocation = claim.status.allocation
            for result in allocation.devices.results or () if allocation is not None else ():
                self.waits.labels(profile, result.driver, status).observe(seconds)
                if result.binding_conditions:
                    self.conditions.labels(profile, result.driver, status).inc()
