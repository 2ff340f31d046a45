"""The least that nodes for some pods can cost, however pods are placed: how far a policy is from the best possible.

A pod is its requests and the nodes that it may run on; what pods demand of each other is left out, so the true price is
never lower. With OR-Tools (`bayplan[plan]`) CP-SAT packs the pods, and what it proves counts even where it does not
find the best packing in time. Without, each resource by itself is covered at its best price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import msgspec

__all__ = ["Bound", "EqualPods", "PackedBin", "least_price"]

_MOST_VARIABLES = 100_000
_FINE = 1_000_000
"""Amounts are counted in so many parts of the largest node, rounded in favour of a lower price."""
_CENTS = 10_000


class Bound(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """No placement costs less than `price` an hour."""

    price: float
    nodes: int | None
    """Of the best packing that was found; None where none was looked for."""
    method: str
    """`CP-SAT` or `totals`"""
    is_best: bool
    """Whether a packing at this price was found."""


@dataclass(frozen=True, kw_only=True)
class EqualPods:
    """Pods that ask for the same, and may run on the same nodes."""

    count: int
    amounts: dict[str, int]
    """`pods` is 1 where nodes limit their number."""
    bins: frozenset[int] | None = None
    """Places in the list of bins; None for all of them."""


@dataclass(frozen=True, kw_only=True)
class PackedBin:
    """A node: what it offers to the pods that may move, and its price."""

    offers: dict[str, int]
    price: float
    kind: str = ""
    """Equal for nodes that are alike in every way."""
    is_taken: bool = False
    """Whether it is paid for in any case."""


def least_price(groups: Sequence[EqualPods], bins: Sequence[PackedBin], *, effort: float = 10.0) -> Bound:
    """`effort` limits the search, in CP-SAT's deterministic seconds: the answer is the same on every machine."""
    totals = _by_totals(groups, bins)
    if len(groups) * len(bins) > _MOST_VARIABLES:
        return totals
    try:
        cp_model = import_module("ortools.sat.python.cp_model")
    except ImportError:
        return totals
    found = _pack(cp_model, groups, bins, effort)
    return found if found is not None and found.price >= totals.price else totals


def _by_totals(groups: Sequence[EqualPods], bins: Sequence[PackedBin]) -> Bound:
    """For each resource, the price of as much of it as is asked for, from the nodes that offer it cheapest."""
    taken = math.fsum(each.price for each in bins if each.is_taken)
    best = taken
    for resource in dict.fromkeys(name for group in groups for name in group.amounts):
        missing = sum(group.count * group.amounts.get(resource, 0) for group in groups)
        missing -= sum(each.offers.get(resource, 0) for each in bins if each.is_taken)
        price = taken
        free = [each for each in bins if not each.is_taken and each.offers.get(resource, 0) > 0]
        for each in sorted(free, key=lambda each: each.price / each.offers[resource]):
            if missing <= 0:
                break
            price += each.price * min(1.0, missing / each.offers[resource])
            missing -= each.offers[resource]
        best = max(best, price)
    return Bound(price=round(best, 6), nodes=None, method="totals", is_best=False)


def _pack(cp_model: Any, groups: Sequence[EqualPods], bins: Sequence[PackedBin], effort: float) -> Bound | None:
    """None where the pods do not fit, or where nothing was proven in time."""
    model = cp_model.CpModel()
    used = [model.new_bool_var(f"use {place}") for place in range(len(bins))]
    counts = [
        {
            place: model.new_int_var(0, group.count, f"{number} on {place}")
            for place in range(len(bins))
            if group.bins is None or place in group.bins
        }
        for number, group in enumerate(groups)
    ]
    for group, places in zip(groups, counts, strict=True):
        model.add(sum(places.values()) == group.count)
    for resource in dict.fromkeys(name for group in groups for name in group.amounts):
        unit = max(1, max((each.offers.get(resource, 0) for each in bins), default=0) // _FINE)
        for place, each in enumerate(bins):
            asked = [
                group.amounts[resource] // unit * places[place]
                for group, places in zip(groups, counts, strict=True)
                if place in places and group.amounts.get(resource, 0)
            ]
            if asked:
                model.add(sum(asked) <= -(-each.offers.get(resource, 0) // unit) * used[place])
    for place, each in enumerate(bins):
        if each.is_taken:
            model.add(used[place] == 1)
    _order_equal_bins(model, bins, used)
    model.minimize(sum(math.floor(each.price * _CENTS) * used[place] for place, each in enumerate(bins)))
    solver = cp_model.CpSolver()
    solver.parameters.max_deterministic_time = effort
    solver.parameters.num_workers = 8
    solver.parameters.interleave_search = True
    solver.parameters.random_seed = 0
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        return None
    is_found = status != cp_model.UNKNOWN
    nodes = sum(solver.value(each) for each in used) if is_found else None
    price = max(solver.best_objective_bound, 0.0) / _CENTS
    return Bound(price=round(price, 6), nodes=nodes, method="CP-SAT", is_best=status == cp_model.OPTIMAL)


def _order_equal_bins(model: Any, bins: Sequence[PackedBin], used: Sequence[Any]) -> None:
    """Of nodes that are alike, the first ones are used: fewer packings to look at."""
    latest: dict[str, int] = {}
    for place, each in enumerate(bins):
        if each.kind and not each.is_taken:
            if each.kind in latest:
                model.add(used[latest[each.kind]] >= used[place])
            latest[each.kind] = place
