"""The plugin: what it answers at each extension point, in kube-scheduler's words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bayplan.framework import (
    SKIP,
    ActionType,
    ClusterEvent,
    CycleState,
    Diagnosis,
    Error,
    EventHint,
    Handle,
    Hint,
    NodeColumns,
    NodeInfo,
    Permission,
    Plugin,
    PluginArgs,
    PodInfo,
    Resource,
    StateKey,
    Status,
    StatusTable,
    Unresolvable,
    Unschedulable,
    Verdicts,
    normalize_highest,
)
from bayplan.framework.columns import Int64N, Rows
from bayplan.framework.device_findings import NodeFindings
from bayplan.framework.devices import ResourceClaim
from bayplan.plugins.intree.dynamic_resources.attempt import DeviceAttempt, FilterTimeout, Inventory
from bayplan.plugins.intree.dynamic_resources.binding import BindingProblem, has_timed_out, is_ready
from bayplan.plugins.intree.dynamic_resources.claims import NOT_SERVED, ClaimProblem, class_problem, pod_claims
from bayplan.plugins.intree.dynamic_resources.columns import CANNOT, INVALID, STALE, UNDECIDED
from bayplan.plugins.intree.dynamic_resources.durations import duration_problems, seconds
from bayplan.plugins.intree.dynamic_resources.extended import ANNOTATION, is_backed_name, new_claim
from bayplan.plugins.intree.dynamic_resources.requests import AllocationError
from bayplan.plugins.intree.dynamic_resources.reserving import Reservations
from bayplan.plugins.intree.dynamic_resources.results import shown_allocation
from bayplan.plugins.intree.dynamic_resources.search import InvalidPools
from bayplan.plugins.intree.dynamic_resources.writing import ClaimWriter, WriteFailed

__all__ = ["DynamicResources"]

_CANNOT_ALLOCATE = Unresolvable("cannot allocate all claims")
_INVALID_POOLS = Unresolvable("invalid resource pools were encountered")
_NOT_AVAILABLE = Unresolvable("resourceclaim not available on the node")
_CANNOT_FIT = Unresolvable("cannot fit resource")
_CANNOT_REUSE = Unresolvable("cannot schedule extended resource claim")
_NOTHING_TO_FREE = Unschedulable("no new claims to deallocate")
_DEALLOCATED = Unschedulable("deallocation of ResourceClaim completed")
_DELETED = Unschedulable("deletion of ResourceClaim completed")
_STILL_PENDING = Unschedulable("still not schedulable")
_NO_STATE = Error("not found")

_GROUP = "resource.k8s.io"

_Ids = npt.NDArray[np.int32]

ATTEMPT = StateKey[DeviceAttempt]("DynamicResources/attempt")


def _backed_resources(pod: PodInfo) -> Iterator[str]:
    """The extended resources that the pod requests and a device class may stand for."""
    return (name for name, amount in pod.shape.amounts.items() if amount and is_backed_name(name))


class DynamicResources(Plugin):
    """Allocate the devices that the claims of a pod ask for, on a node that has them.

    *What it does*: finds the claims of the pod (by name, or made from a template) and the devices that satisfy those
    that are not allocated yet: the first way to satisfy all requests, in a fixed order, on each node. The devices of
    the chosen node are taken at Reserve and written to the claims at PreBind, which waits until they are ready.
    Extended resources that a device class stands for become a claim of their own on nodes that do not offer them.

    *Rejects when*: a claim is missing, being deleted, not the pod's own or being allocated, or a class does not exist
    (on all nodes); devices cannot be allocated on a node, or an allocated claim cannot be used there.

    *Scores by*: the alternatives of prioritized lists that a node gives, from eight points for the first to one for the
    eighth.

    *Retries on*: new and changed claims, slices, classes and nodes, and on claims that were made for the pod.

    *Arguments*: `filterTimeout`, the longest search for one pod (10s, 0 for no limit); `bindingTimeout`, the longest
    wait for devices to become ready (10m0s, at least 1s).

    *Differs from kube-scheduler*: `filterTimeout` limits the search over all nodes together and not on each, because
    other pods wait meanwhile. A claim is deallocated, and the claim of extended resources deleted, beside the
    scheduling cycle and not within it. Every class has its implicit resource name, also one that shares its
    `extendedResourceName` with a newer class.
    """

    default_weight = 2
    filter_reads_counts_only = True
    settles_by_kind = True
    allow_parallel_pre_bind = True
    reasons = (
        *_CANNOT_ALLOCATE.reasons,
        *_INVALID_POOLS.reasons,
        *_NOT_AVAILABLE.reasons,
        *_CANNOT_FIT.reasons,
        *_CANNOT_REUSE.reasons,
        *_NOTHING_TO_FREE.reasons,
        *_DEALLOCATED.reasons,
        *_DELETED.reasons,
        *_STILL_PENDING.reasons,
        *_NO_STATE.reasons,
        'pod "<namespace>/<name>": ResourceClaim not created yet',
        'could not find ResourceClaim "<namespace>/<name>"',
        'resourceclaim "<name>" is being deleted',
        "ResourceClaim <namespace>/<name> was not created for Pod <namespace>/<name> (Pod is not owner)",
        "resource claim <namespace>/<name> is in the process of being allocated",
        "request <name>: device class <name> does not exist",
        NOT_SERVED,
    )
    permissions = (
        Permission(_GROUP, "resourceclaims", ("get", "list", "watch", "create", "update", "patch", "delete")),
        Permission(_GROUP, "resourceclaims/status", ("update", "patch")),
        # Since 1.36 a status with another allocation or other reservations needs this besides.
        Permission(_GROUP, "resourceclaims/binding", ("update", "patch")),
        Permission(_GROUP, "resourceslices", ("get", "list", "watch")),
        Permission(_GROUP, "deviceclasses", ("get", "list", "watch")),
        Permission("", "pods/status", ("patch",)),
    )
    normalize = normalize_highest

    class Args(PluginArgs):
        filter_timeout: str = "10s"
        """Longest search for the devices of one pod, over all nodes; 0 for no limit."""
        binding_timeout: str = "10m0s"
        """Longest wait for the devices of a pod to become ready."""

        def validate(self) -> list[str]:
            return [
                *duration_problems("filterTimeout", self.filter_timeout, at_least=0.0),
                *duration_problems("bindingTimeout", self.binding_timeout, at_least=1.0),
            ]

    def setup(self) -> None:
        self._filter_timeout = seconds(self.args.filter_timeout) or 0.0
        self._binding_timeout = seconds(self.args.binding_timeout) or 0.0
        if self._handle is None:
            return
        self._inventory = Inventory(self.handle.cluster)
        self._devices = self.handle.cluster.devices
        self._classes = self.handle.cluster.device_classes
        self._writer = ClaimWriter(self.handle, self._devices)
        self._reservations = Reservations(self.handle, self._writer, self._binding_timeout)

    def sign(self, pod: PodInfo) -> Hashable:
        return None

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(pod.shape.spec.resource_claims) or any(_backed_resources(pod))

    # Queue

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        if not pod.pod.spec.resource_claims:
            return None
        try:
            pod_claims(pod.pod, self._devices)
        except ClaimProblem as problem:
            return Unresolvable(str(problem))
        return None

    def events_to_register(self) -> list[EventHint]:
        change = ActionType.ADD | ActionType.UPDATE
        node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return [
            EventHint(ClusterEvent(Resource.NODE, node)),
            EventHint(ClusterEvent(Resource.RESOURCE_CLAIM, change), self._after_claim),
            EventHint(ClusterEvent(Resource.POD, generated), self._after_pod),
            EventHint(ClusterEvent(Resource.DEVICE_CLASS, change)),
            EventHint(ClusterEvent(Resource.RESOURCE_SLICE, change)),
            EventHint(ClusterEvent("DeviceTaintRule", change | ActionType.DELETE)),
        ]

    def _after_claim(self, pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim) -> Hint:
        try:
            claims = pod_claims(pod.pod, self._devices)
        except ClaimProblem:
            return Hint.SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return Hint.QUEUE
        if all(claim.uid != new.uid for claim in claims):
            return Hint.SKIP
        return Hint.QUEUE if old is None or old.status != new.status else Hint.SKIP

    def _after_pod(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> Hint:
        if new is None or new.uid != pod.uid:
            return Hint.SKIP
        try:
            pod_claims(new.pod, self._devices)
        except ClaimProblem:
            return Hint.SKIP
        return Hint.QUEUE

    # Filter

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        try:
            attempt = DeviceAttempt(self._inventory, pod, pod_claims(pod.pod, self._devices))
        except ClaimProblem as problem:
            return Unresolvable(str(problem))
        # One user's pod may ask for thousands of resources.
        is_backed = self._classes.stand_for_any(pod.shape.amounts)
        wanted = tuple(sorted(_backed_resources(pod))) if is_backed else ()
        if any(self._classes.class_for(name) is not None for name in wanted):
            attempt.add_extended(self._extended_claim(pod) or new_claim(pod.pod), wanted)
        if not attempt.claims:
            return SKIP
        for number in attempt.to_allocate():
            claim = attempt.claims[number]
            if self._devices.in_flight(claim.uid) is not None:
                return Unresolvable(f"resource claim {claim.key} is in the process of being allocated")
            wrong = "" if claim is attempt.extended else class_problem(claim, self.handle.cluster.objects)
            if wrong:
                return Unresolvable(wrong)
        state.put(ATTEMPT, attempt)
        return None

    def _extended_claim(self, pod: PodInfo) -> ResourceClaim | None:
        """The claim that an earlier attempt made for the pod's extended resources."""
        for claim in self._devices.claims_of(pod.uid):
            if claim.namespace == pod.namespace and claim.annotations.get(ANNOTATION) == "true":
                return claim
        return None

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        attempt = state.get(ATTEMPT)
        if attempt is None:
            return Verdicts.accept(len(nodes))
        statuses = StatusTable()
        if attempt.extended is not None and attempt.extended.spec.devices.requests:
            ids = np.full(len(nodes), statuses.number(_CANNOT_REUSE), dtype=np.int32)
            return Verdicts(ids, statuses.status)
        ids = np.zeros(len(nodes), dtype=np.int32)
        for resources, positions in self._by_delegation(attempt, nodes, ids, statuses).items():
            if resources or attempt.has_user_claims:
                self._allocate(attempt, resources, nodes, positions, ids, statuses)
        self._reject_unreached(attempt, nodes, ids, statuses)
        return Verdicts(ids, statuses.status)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        nodes = NodeColumns(self.handle.cluster.nodes, np.array([node.row], dtype=np.intp))
        verdicts = self.filter_nodes(state, pod, nodes)
        return verdicts.status(int(verdicts.ids[0])) if verdicts.ids[0] else None

    def _by_delegation(
        self, attempt: DeviceAttempt, nodes: NodeColumns, ids: _Ids, statuses: StatusTable
    ) -> dict[tuple[str, ...], Rows]:
        """Positions by the extended resources that devices stand for there."""
        if attempt.extended is None:
            return {(): np.arange(len(nodes), dtype=np.intp)}
        groups, missing = attempt.by_delegation(nodes.rows)
        if len(missing):
            ids[missing] = statuses.number(_CANNOT_FIT)
        return groups

    def _allocate(
        self,
        attempt: DeviceAttempt,
        resources: tuple[str, ...],
        nodes: NodeColumns,
        positions: Rows,
        ids: _Ids,
        statuses: StatusTable,
    ) -> None:
        if not attempt.to_allocate():
            return
        try:
            rows = nodes.rows if len(positions) == len(nodes) else nodes.rows.take(positions)
            codes = attempt.codes(resources, rows, self._deadline())
        except (AllocationError, FilterTimeout) as error:
            ids[positions] = statuses.number(Error(str(error)))
            return
        if not codes.any():
            return
        numbers = np.zeros(STALE + 1, dtype=np.int32)
        numbers[CANNOT], numbers[INVALID] = statuses.number(_CANNOT_ALLOCATE), statuses.number(_INVALID_POOLS)
        ids[positions] = numbers.take(codes)
        for position in positions[codes == UNDECIDED].tolist():
            ids[position] = statuses.number(self._failure(attempt, nodes.info(position)))

    def _failure(self, attempt: DeviceAttempt, node: NodeInfo) -> Status | None:
        """Why the search on a node ended in an error."""
        try:
            return None if attempt.solve(node, self._deadline()) is not None else _CANNOT_ALLOCATE
        except InvalidPools:
            return _INVALID_POOLS
        except (AllocationError, FilterTimeout) as error:
            return Error(str(error))

    def _reject_unreached(self, attempt: DeviceAttempt, nodes: NodeColumns, ids: _Ids, statuses: StatusTable) -> None:
        """Nodes on which devices could be allocated, but from which an allocated claim cannot be used."""
        if attempt.extended is not None and not attempt.has_user_claims and not attempt.resources:
            return
        if len(attempt.to_allocate()) == len(attempt.claims):
            return
        passing = ids == 0
        for number, claim in enumerate(attempt.claims):
            if claim.status.allocation is None:
                continue
            reached = attempt.reached(nodes, number)
            lost = np.zeros(len(nodes), dtype=np.bool_) if reached is None else ~reached
            if not self._is_usable(claim):
                lost[:] = True
            lost &= passing & nodes.valid
            if lost.any():
                attempt.unavailable.add(number)
                ids[lost] = statuses.number(_NOT_AVAILABLE)

    def _is_usable(self, claim: ResourceClaim) -> bool:
        try:
            return is_ready(claim) or not has_timed_out(claim, self.handle.clock.now(), self._binding_timeout)
        except BindingProblem:
            return False

    def _deadline(self) -> Callable[[str], None]:
        if not self._filter_timeout:
            return lambda _: None
        clock = self.handle.clock
        end = clock.monotonic() + self._filter_timeout

        def check(node_name: str) -> None:
            if clock.monotonic() > end:
                raise FilterTimeout(node_name)

        return check

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> Status | None:
        # kube-scheduler's plugin looks for what its PreFilter left behind, and fails when an earlier plugin's
        # rejection ended PreFilter before its turn.
        if self.name not in state.reached:
            return _NO_STATE
        attempt = state.get(ATTEMPT)
        if attempt is None:
            return _NOTHING_TO_FREE
        stale = attempt.extended if attempt.extended is not None and not attempt.is_extended_in_memory else None
        for number in sorted(attempt.unavailable):
            claim = attempt.claims[number]
            if claim is attempt.extended:
                if stale is not None:
                    break
                continue
            holders = claim.status.reserved_for or []
            if not holders or [each.uid for each in holders] == [pod.uid]:
                self.handle.start_task(f"deallocate claim {claim.key}", self._writer.deallocate(claim, pod.pod))
                return _DEALLOCATED
        if stale is not None:
            self.handle.start_task(f"delete claim {stale.key}", self._writer.delete(stale, pod.pod))
            return _DELETED
        return _STILL_PENDING

    def dry_copy(self, handle: Handle) -> DynamicResources:
        return type(self)(self.args, handle)

    # Score

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        attempt = state.get(ATTEMPT)
        if attempt is None or not attempt.is_prioritized():
            return np.zeros(len(nodes), dtype=np.int64)
        return np.array(
            [0 if node is None else attempt.rank(node, self._deadline()) for node in nodes.infos()], dtype=np.int64
        )

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        attempt = state.get(ATTEMPT)
        return attempt.rank(node, self._deadline()) if attempt is not None and attempt.is_prioritized() else 0

    def grants(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> dict[str, Any]:
        attempt = state.get(ATTEMPT)
        if attempt is None or (not attempt.has_user_claims and not attempt.delegated_on(node)):
            return {}
        solution = attempt.solve(node, self._deadline()) if attempt.to_allocate() else None
        fresh = dict(zip(attempt.to_allocate(), solution.allocations(node.name), strict=True)) if solution else {}
        found: dict[str, Any] = {}
        for number, claim in enumerate(attempt.claims):
            allocation = fresh.get(number, claim.status.allocation)
            is_made = claim is attempt.extended and attempt.is_extended_in_memory
            if allocation is None or (is_made and not attempt.delegated_on(node)):
                continue
            key = f"{pod.namespace}/{pod.name}-extended-resources-" if is_made else claim.key
            found[key] = {"allocation": shown_allocation(allocation), "fresh": number in fresh}
        return {"allocatedOn": node.name, "allocations": found} if found else {}

    def examine_devices(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> NodeFindings | None:
        """What each device of a node is to the pod; see `DeviceExaminer`."""
        attempt = state.get(ATTEMPT)
        if attempt is None or (not attempt.has_user_claims and not attempt.delegated_on(node)):
            return None
        lost = tuple(
            claim.key
            for number, claim in enumerate(attempt.claims)
            if claim.status.allocation is not None
            and not (attempt.is_reached_from(node, number) and self._is_usable(claim))
        )
        try:
            found = attempt.examine(node, self._deadline())
            return replace(found, fits=found.fits and not lost, unreachable=lost)
        except (AllocationError, FilterTimeout) as error:
            return NodeFindings(node=node.name, fits=False, error=str(error))

    # Reserve and bind

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        attempt, node = state.get(ATTEMPT), self.handle.cluster.node(node_name)
        if attempt is None or node is None or not attempt.to_allocate():
            return None
        try:
            return self._reservations.take(attempt, node, self._deadline())
        except (AllocationError, InvalidPools, FilterTimeout) as error:
            return Error(str(error), exception=error)

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        attempt = state.get(ATTEMPT)
        if attempt is not None:
            self._reservations.give_back(attempt)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return SKIP if state.get(ATTEMPT) is None else None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        attempt = state.get(ATTEMPT)
        if attempt is None:
            return None
        try:
            await self._reservations.write(attempt)
            await self._reservations.wait_until_ready(attempt, node_name)
        except (WriteFailed, BindingProblem) as error:
            return Error(str(error), exception=error)
        return None
