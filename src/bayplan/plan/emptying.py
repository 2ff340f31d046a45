"""Nodes to empty: those that are named (a drain), or those whose price is worth the moves (a defragmentation)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum

import msgspec

from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.plan.bound import Bound, EqualPods, PackedBin, least_price
from bayplan.plan.eviction_order import move_pods
from bayplan.plan.moves import MovableCluster, Move, Stuck
from bayplan.sim.ledger import price_of

__all__ = ["DefragTerms", "MovePlan", "plan_defrag", "plan_drain"]


class MovePlan(msgspec.Struct, kw_only=True, rename="camel"):
    """What to do in order. Each node is cordoned before its first move."""

    verdict: str
    cordon: list[str]
    """Before anything else."""
    moves: list[Move]
    stuck: list[Stuck] = []
    """Pods that keep a node from being emptied."""
    emptied: list[str] = []
    """Nodes that run nothing but what ends with them, once all is done."""
    empty_before: list[str] = []
    pending: list[str] = []
    """Pods that fit nowhere even before the first move."""
    gain: float = 0.0
    """Price of the emptied nodes for the hours that count."""
    price: float = 0.0
    """Of the moves."""
    stopped: str = ""
    """Why no more nodes are emptied."""
    price_per_hour: float = 0.0
    """Of the nodes that are still in use afterwards."""
    bound: Bound | None = None
    commands: list[str] = []


def plan_drain(cluster: MovableCluster, names: Sequence[str], *, force: bool = False) -> MovePlan:
    """Empty the named nodes. Raises InputError for one that is not there."""
    names = list(dict.fromkeys(names))
    for name in names:
        cluster.node(name)
    pending = cluster.place_waiting()
    for name in names:
        cluster.set_unschedulable(name, True)
    moves, stuck = move_pods(cluster, [pod for name in names for pod in cluster.pods_to_move(name)], force=force)
    held = {each.node for each in stuck}
    said = f"{len(moves)} pods move off {_count(len(names), 'node')}, and each has a place."
    if stuck:
        said = f"{len(stuck)} of {len(moves) + len(stuck)} pods cannot be moved off {_count(len(names), 'node')}."
    return MovePlan(
        verdict=said,
        cordon=names,
        moves=moves,
        stuck=stuck,
        emptied=[name for name in names if name not in held],
        pending=pending,
        price_per_hour=_total_price([node for node in cluster.nodes() if not _is_empty(node)], _pricing(cluster)),
    )


@dataclass(frozen=True, kw_only=True)
class DefragTerms:
    move_price: float = 0.1
    """What the eviction of one pod counts, in the unit of node prices."""
    hours: float = 720.0
    """How long an emptied node is not paid for."""
    most_moves: int = 1000
    force: bool = False
    wants_bound: bool = False


def plan_defrag(
    cluster: MovableCluster, terms: DefragTerms | None = None, *, step: Callable[[], None] = lambda: None
) -> MovePlan:
    """Empty nodes while that is worth more than the moves, the most profitable first. No pod is moved twice.

    Nodes that are empty already are cordoned first, because replacements would go there.
    """
    terms = terms or DefragTerms()
    pending = cluster.place_waiting()
    price = _pricing(cluster)
    bound = _bound(cluster, price, force=terms.force) if terms.wants_bound else None
    empty = sorted(node.name for node in cluster.nodes() if _is_empty(node) and not node.unschedulable)
    for name in empty:
        cluster.set_unschedulable(name, True)
    search = _Search(cluster, terms, price)
    while search.empty_one():
        step()
    kept = [node for node in cluster.nodes() if not _is_empty(node)]
    gain = terms.hours * fsum(price(cluster.node(name)) for name in search.emptied)
    cost = terms.move_price * len(search.moves)
    verdict = f"{_count(len(search.emptied), 'node')} can be emptied by {_count(len(search.moves), 'move')}"
    return MovePlan(
        verdict=f"{verdict}: worth {gain:,.2f}, at a price of {cost:,.2f}." if search.moves else f"{verdict}.",
        cordon=empty,
        moves=search.moves,
        stuck=search.stuck,
        emptied=search.emptied,
        empty_before=empty,
        pending=pending,
        gain=gain,
        price=cost,
        stopped=search.stopped,
        price_per_hour=_total_price(kept, price),
        bound=bound,
    )


class _Search:
    def __init__(self, cluster: MovableCluster, terms: DefragTerms, price: Callable[[NodeInfo], float]) -> None:
        self._cluster = cluster
        self._terms = terms
        self._price = price
        self._closed: set[str] = set()
        """Nodes that were emptied, cannot be, or received a pod."""
        self.moves: list[Move] = []
        self.emptied: list[str] = []
        self.stuck: list[Stuck] = []
        self.stopped = "no other node can be emptied"

    def empty_one(self) -> bool:
        """Empty the most profitable node that can be; False if there is none."""
        for profit, name in self._candidates():
            if profit <= 0.0:
                self.stopped = f"emptying {name} would cost as much as it is worth, or more"
                return False
            if self._empty(name):
                return True
        return False

    def _candidates(self) -> list[tuple[float, str]]:
        found = []
        for node in self._cluster.nodes():
            if node.name in self._closed or node.unschedulable:
                continue
            count = sum(not pod.pod.ends_with_its_node for pod in node.pods.values())
            if count:
                found.append((self._terms.hours * self._price(node) - self._terms.move_price * count, node.name))
        return sorted(found, key=lambda entry: (-entry[0], entry[1]))

    def _empty(self, name: str) -> bool:
        """Move every pod away, or nothing at all."""
        cluster, mark = self._cluster, self._cluster.mark()
        pods = cluster.pods_to_move(name)
        cluster.set_unschedulable(name, True)
        self._closed.add(name)
        if len(self.moves) + len(pods) > self._terms.most_moves:
            self.stopped = f"more than {self._terms.most_moves} moves are not wanted (--most-moves)"
            cluster.undo_to(mark)
            return False
        moves, stuck = move_pods(cluster, pods, force=self._terms.force, all_or_none=True)
        if stuck:
            self.stuck.append(stuck[0])
            cluster.undo_to(mark)
            return False
        self.moves += moves
        self._closed.update(move.target for move in moves)
        self.emptied.append(name)
        return True


_OF_THE_NODE = frozenset(("NodeAffinity", "NodeName", "NodeUnschedulable", "TaintToleration"))
"""Plugins whose refusal does not depend on other pods."""


def _bound(cluster: MovableCluster, price: Callable[[NodeInfo], float], *, force: bool) -> Bound:
    """The least price of nodes that hold all pods, where pods that may not be evicted stay."""
    nodes, places, bins = cluster.nodes(), dict[int, int](), list[PackedBin]()
    free, homes = dict[int, list[PodInfo]](), dict[str, int]()
    for place, node in enumerate(nodes):
        places[node.row] = place
        offers = {name: node.allocatable_of(name) for name in node.resources.names} | {"pods": node.allowed_pods}
        is_taken = False
        for pod in node.pods.values():
            if not pod.pod.ends_with_its_node and not cluster.objection(pod, force=force):
                free.setdefault(pod.shape.number, []).append(pod)
                homes[pod.uid] = place
                continue
            is_taken |= not pod.pod.ends_with_its_node
            offers["pods"] -= 1
            for name, amount in pod.shape.amounts.items():
                offers[name] = offers.get(name, 0) - amount
        offers = {name: max(amount, 0) for name, amount in offers.items()}
        kind = f"{sorted(offers.items())}/{price(node)}/{sorted(node.labels.items())}/{node.taints}"
        bins.append(PackedBin(offers=offers, price=price(node), kind=kind, is_taken=is_taken))
    groups = [
        EqualPods(
            count=len(pods),
            amounts={**pods[0].shape.amounts, "pods": 1},
            bins=frozenset(range(len(nodes)))
            - (
                {places[row] for row in cluster.refusing_rows(pods[0], _OF_THE_NODE)} - {homes[pod.uid] for pod in pods}
            ),
        )
        for pods in free.values()
    ]
    return least_price(groups, bins)


def _is_empty(node: NodeInfo) -> bool:
    return all(pod.pod.ends_with_its_node for pod in node.pods.values())


def _pricing(cluster: MovableCluster) -> Callable[[NodeInfo], float]:
    """Prices by annotation; where no node has one, each counts 1."""
    return price_of if any(price_of(node) for node in cluster.nodes()) else lambda _: 1.0


def _total_price(nodes: Sequence[NodeInfo], price: Callable[[NodeInfo], float]) -> float:
    return round(fsum(map(price, nodes)), 6)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
