"""One node at a time: whether a pod fits on its NUMA cells, and the score of each strategy. The scalar form of
`columns`; both must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bayplan.framework import MAX_NODE_SCORE, NodeInfo
from bayplan.framework.objects import Amounts, is_scalar_resource
from bayplan.plugins.community.node_resource_topology_match.requests import NumaRequests, is_affine, is_host_level
from bayplan.plugins.community.node_resource_topology_match.topology import POD_SCOPE, NumaTopology

__all__ = ["alignment_failure", "strategy_score"]


def alignment_failure(topology: NumaTopology, asked: NumaRequests, node: NodeInfo) -> str:
    """Why the kubelet would refuse the pod; empty when it would not."""
    cells = [dict(cell.available) for cell in topology.cells]
    if topology.settings.scope == POD_SCOPE:
        return "" if _first_cell(cells, asked.whole, asked, node) is not None else "cannot align pod"
    for container in asked.containers:
        chosen = _first_cell(cells, container.requests, asked, node)
        if chosen is None:
            return container.failure
        if not container.is_init and chosen < len(cells):
            _take(cells[chosen], container.requests, asked)
    return ""


def _first_cell(cells: list[Amounts], requests: Amounts, asked: NumaRequests, node: NodeInfo) -> int | None:
    suits = [True] * max(len(cells), 1)
    for name, amount in requests.items():
        if not amount:
            continue
        if is_scalar_resource(name) and not node.allocatable_of(name):
            return None
        listed = [name in cell for cell in cells] or [False]
        if not any(listed) and is_host_level(name):
            continue
        takes_any = is_affine(name) and not asked.is_guaranteed
        for place, is_listed in enumerate(listed):
            suits[place] = suits[place] and is_listed and (takes_any or cells[place][name] >= amount)
    return next((place for place, suitable in enumerate(suits) if suitable), None)


def _take(cell: Amounts, requests: Amounts, asked: NumaRequests) -> None:
    for name, amount in requests.items():
        if name in cell and (asked.is_guaranteed or not is_affine(name)):
            cell[name] -= amount


def strategy_score(topology: NumaTopology, asked: NumaRequests, strategy: str, weights: Mapping[str, int]) -> int:
    """MostAllocated, LeastAllocated or BalancedAllocation."""
    cells = [cell.available for cell in topology.cells]
    if topology.settings.scope == POD_SCOPE:
        return _worst(cells, asked.whole, strategy, weights)
    scores = [_worst(cells, each.requests, strategy, weights) for each in asked.containers]
    return sum(scores) // len(scores) if scores else 0


def _worst(cells: Sequence[Amounts], requests: Amounts, strategy: str, weights: Mapping[str, int]) -> int:
    """The lowest score above zero of any cell."""
    if not requests:
        return 0
    scores = [_score(cell, requests, strategy, weights) for cell in cells]
    return min((score for score in scores if score > 0), default=0)


def _score(cell: Amounts, requests: Amounts, strategy: str, weights: Mapping[str, int]) -> int:
    pairs = [(name, _whole(name, amount), _whole(name, cell.get(name, 0))) for name, amount in requests.items()]
    if strategy == "BalancedAllocation":
        return _balanced([asked / capacity if capacity else 1.0 for _, asked, capacity in pairs])
    total = weight = 0
    for name, asked, capacity in pairs:
        share = max(weights.get(name, 1), 1)
        weight += share
        if capacity and asked <= capacity:
            part = asked if strategy == "MostAllocated" else capacity - asked
            total += part * MAX_NODE_SCORE // capacity * share
    return total // weight


def _balanced(fractions: list[float]) -> int:
    if any(fraction > 1 for fraction in fractions):
        return 0
    if len(fractions) < 2:
        return MAX_NODE_SCORE
    mean = sum(fractions) / len(fractions)
    spread = sum((fraction - mean) ** 2 for fraction in fractions) / (len(fractions) - 1)
    return int((1.0 - spread) * MAX_NODE_SCORE)


def _whole(name: str, amount: int) -> int:
    """Cpus are counted whole, rounded up."""
    return -(-amount // 1000) if name == "cpu" else amount
