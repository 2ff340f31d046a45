"""One pod's attempt to get its devices, from PreFilter to PreBind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from bayplan.framework import NodeColumns, NodeInfo, PodInfo
from bayplan.framework.columns import BoolN, ClusterState, Rows, match_required
from bayplan.framework.device_findings import NodeFindings
from bayplan.framework.devices import AllocationResult, DeviceClass, DeviceRequest, ResourceClaim
from bayplan.framework.objects import RequiredNodes, compile_node_selector
from bayplan.plugins.intree.dynamic_resources.columns import AllocationColumns
from bayplan.plugins.intree.dynamic_resources.counters import CounterBook
from bayplan.plugins.intree.dynamic_resources.examining import DeviceExamination, Holders
from bayplan.plugins.intree.dynamic_resources.extended import (
    IN_MEMORY,
    DelegationColumns,
    RequestMapping,
    delegated_on,
    device_requests,
    with_requests,
)
from bayplan.plugins.intree.dynamic_resources.pools import NodePools
from bayplan.plugins.intree.dynamic_resources.requests import ClaimAsks, prepare
from bayplan.plugins.intree.dynamic_resources.results import allocation_of
from bayplan.plugins.intree.dynamic_resources.search import Search, Taken

__all__ = ["Delegation", "DeviceAttempt", "FilterTimeout", "Inventory", "Solution", "with_allocation"]


class FilterTimeout(Exception):
    """The search took longer than `filterTimeout`, and was then on this node."""

    def __init__(self, node_name: str) -> None:
        super().__init__(f"node {node_name}: timed out trying to allocate devices")


class Inventory:
    """What a profile's plugin keeps from attempt to attempt."""

    def __init__(self, cluster: ClusterState) -> None:
        self.cluster, self.devices = cluster, cluster.devices
        self.pools = NodePools(cluster.devices)
        self.columns = AllocationColumns(cluster.devices, cluster.nodes, self.pools)
        self.delegations = DelegationColumns(cluster.nodes, cluster.device_classes)

    def device_class(self, name: str) -> DeviceClass | None:
        return self.cluster.objects.get(DeviceClass, name)


class Delegation(NamedTuple):
    """What the claim of extended resources asks for on some nodes."""

    requests: list[DeviceRequest]
    mappings: list[RequestMapping]


class Solution(NamedTuple):
    """What a search found on a node: for each claim what is taken, and which alternative of each request."""

    asks: Sequence[ClaimAsks]
    taken: Sequence[Sequence[Taken]]
    chosen: Sequence[Sequence[int]]

    def allocations(self, node_name: str) -> list[AllocationResult]:
        """One for each claim. Raises AllocationError."""
        return [
            allocation_of(asks, chosen, taken, node_name)
            for asks, taken, chosen in zip(self.asks, self.taken, self.chosen, strict=True)
        ]


class DeviceAttempt:
    def __init__(self, inventory: Inventory, pod: PodInfo, claims: list[ResourceClaim]) -> None:
        self._inventory, self.pod, self.claims = inventory, pod, claims
        self.extended: ResourceClaim | None = None
        """The claim for extended resources; last of `claims` where there is one."""
        self.resources: tuple[str, ...] = ()
        """Extended resources that the pod asks for; a class stands for at least one of them."""
        self.unavailable: set[int] = set()
        """Claims that are allocated where the pod cannot go."""
        self.reserved: dict[int, AllocationResult] = {}
        """Allocations decided at Reserve, by claim."""
        self.delegated = Delegation([], [])
        """What the claim for extended resources asks for on the reserved node."""
        self._to_allocate: list[int] | None = None
        self._counters = CounterBook(inventory.devices.use)
        self._asks: dict[tuple[str, ...], list[ClaimAsks]] = {}
        self._delegations: dict[tuple[str, ...], Delegation] = {}
        self._solutions: dict[str, Solution | None] = {}
        self._holders: Holders | None = None

    def add_extended(self, claim: ResourceClaim, resources: tuple[str, ...]) -> None:
        self.extended, self.resources = claim, resources
        self.claims = [*self.claims, claim]
        self._to_allocate = None

    @property
    def has_user_claims(self) -> bool:
        return len(self.claims) > (self.extended is not None)

    @property
    def is_extended_in_memory(self) -> bool:
        return self.extended is not None and self.extended.name == IN_MEMORY

    def to_allocate(self) -> list[int]:
        """The claims, by number, that had no allocation when the attempt began."""
        if self._to_allocate is None:
            self._to_allocate = [n for n, claim in enumerate(self.claims) if claim.status.allocation is None]
        return self._to_allocate

    # Extended resources

    def delegated_on(self, node: NodeInfo) -> tuple[str, ...]:
        return delegated_on(node, self.resources, self._inventory.cluster.device_classes)

    def by_delegation(self, rows: Rows) -> tuple[dict[tuple[str, ...], Rows], Rows]:
        """See `DelegationColumns.of`."""
        return self._inventory.delegations.of(self.resources, rows)

    def delegation(self, resources: tuple[str, ...]) -> Delegation:
        found = self._delegations.get(resources)
        if found is None:
            made = device_requests(self.pod.pod, resources, self._inventory.cluster.device_classes)
            found = self._delegations[resources] = Delegation(*made)
        return found

    def asks(self, resources: tuple[str, ...]) -> list[ClaimAsks]:
        """What is to be allocated on nodes that leave these resources to devices. Raises AllocationError."""
        found = self._asks.get(resources)
        if found is None:
            found = self._asks[resources] = [
                prepare(self._as_asked(claim, resources), self._inventory.device_class)
                for claim in (self.claims[number] for number in self.to_allocate())
            ]
        return found

    def _as_asked(self, claim: ResourceClaim, resources: tuple[str, ...]) -> ResourceClaim:
        return with_requests(claim, self.delegation(resources).requests) if claim is self.extended else claim

    # Nodes

    def reached(self, nodes: NodeColumns, number: int) -> BoolN | None:
        """Where an allocated claim can be used; None for everywhere."""
        allocation = self.claims[number].status.allocation
        if allocation is None or allocation.node_selector is None:
            return None
        return match_required(RequiredNodes((), compile_node_selector(allocation.node_selector)), nodes)

    def is_reached_from(self, node: NodeInfo, number: int) -> bool:
        reached = self.reached(NodeColumns(self._inventory.cluster.nodes, np.array([node.row], dtype=np.intp)), number)
        return reached is None or bool(reached[0])

    def codes(
        self, resources: tuple[str, ...], rows: Rows, check_deadline: Callable[[str], None]
    ) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return self._inventory.columns.codes(self.asks(resources), rows, check_deadline)

    def solve(self, node: NodeInfo, check_deadline: Callable[[str], None]) -> Solution | None:
        """The devices that the pod gets on a node. Raises AllocationError and InvalidPools."""
        if node.name not in self._solutions:
            asks = self.asks(self.delegated_on(node))
            there = self._inventory.pools.of(node)
            search = Search(node, there, asks, self._inventory.devices.use, self._counters, check_deadline)
            taken = search.run()
            chosen = [
                [search.chosen(claim, request) for request in range(len(each.requests))]
                for claim, each in enumerate(asks)
            ]
            self._solutions[node.name] = None if taken is None else Solution(asks, taken, chosen)
        return self._solutions[node.name]

    def examine(self, node: NodeInfo, check_deadline: Callable[[str], None]) -> NodeFindings:
        """What each device of a node is to the claims that have none yet. Raises AllocationError."""
        devices = self._inventory.devices
        if self._holders is None:
            self._holders = devices.holders()
        examination = DeviceExamination(
            node,
            self._inventory.pools.of(node),
            self.asks(self.delegated_on(node)),
            use=devices.use,
            holders=self._holders,
            check_deadline=check_deadline,
        )
        return examination.run()

    def rank(self, node: NodeInfo, check_deadline: Callable[[str], None]) -> int:
        """Points for getting the alternatives that are listed first."""
        total = 0
        fresh = iter(self._fresh_ranks(node, check_deadline))
        for claim in self.claims:
            allocation = claim.status.allocation
            total += next(fresh, 0) if allocation is None else _allocated_rank(claim, allocation)
        return total

    def _fresh_ranks(self, node: NodeInfo, check_deadline: Callable[[str], None]) -> list[int]:
        solution = self.solve(node, check_deadline) if self.to_allocate() else None
        if solution is None:
            return []
        return [
            sum(
                _MOST_ALTERNATIVES - number
                for listed, number in zip(asks.requests, chosen, strict=True)
                if listed.is_prioritized
            )
            for asks, chosen in zip(solution.asks, solution.chosen, strict=True)
        ]

    def is_prioritized(self) -> bool:
        """Whether some claim lists alternatives, and nodes can differ because something is to be allocated."""
        return bool(self.to_allocate()) and any(
            request.first_available for claim in self.claims for request in claim.spec.devices.requests or ()
        )


_MOST_ALTERNATIVES = 8


def _allocated_rank(claim: ResourceClaim, allocation: AllocationResult) -> int:
    allocated = {result.request for result in allocation.devices.results or ()}
    return sum(
        _MOST_ALTERNATIVES - number
        for request in claim.spec.devices.requests or ()
        for number, each in enumerate(request.first_available or ())
        if f"{request.name}/{each.name}" in allocated
    )


def with_allocation(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=allocation))
