"""The least price of nodes for pods, proven by CP-SAT or by totals."""

from __future__ import annotations

import sys
from itertools import product

import pytest

from bayplan.plan.bound import EqualPods, PackedBin, least_price


def bins(*sizes: int, price: float = 1.0) -> list[PackedBin]:
    return [PackedBin(offers={"cpu": size}, price=price * size, kind=str(size)) for size in sizes]


def group(count: int, cpu: int, places: frozenset[int] | None = None) -> EqualPods:
    return EqualPods(count=count, amounts={"cpu": cpu}, bins=places)


def test_pods_that_cannot_share_a_node_need_one_each() -> None:
    found = least_price([group(3, 3)], bins(4, 4, 4, 4))

    assert (found.price, found.nodes, found.method, found.is_best) == (12.0, 3, "CP-SAT", True)


def test_without_the_library_totals_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)

    found = least_price([group(3, 3)], bins(4, 4, 4, 4))

    assert (found.price, found.nodes, found.method, found.is_best) == (9.0, None, "totals", False)


def test_where_pods_may_run_counts_and_taken_nodes_are_paid_for() -> None:
    nodes = [*bins(4, 4), PackedBin(offers={"cpu": 8}, price=1.0, is_taken=True)]

    assert least_price([group(1, 3, frozenset((0,)))], nodes).price == 5.0
    assert least_price([group(2, 3)], nodes).price == 1.0


def test_a_bound_is_never_above_the_best_packing() -> None:
    """Against all placements of five pods on three nodes."""
    for sizes in ((1, 2, 3, 3, 4), (2, 2, 2, 5, 5), (1, 1, 1, 1, 7)):
        nodes = [PackedBin(offers={"cpu": 9}, price=1.5), PackedBin(offers={"cpu": 7}, price=1.2)]
        nodes.append(PackedBin(offers={"cpu": 14}, price=2.1))
        prices = []
        for places in product(range(3), repeat=5):
            loads = [sum(size for size, place in zip(sizes, places, strict=True) if place == each) for each in range(3)]
            if all(load <= bin.offers["cpu"] for load, bin in zip(loads, nodes, strict=True)):
                prices.append(sum(bin.price for load, bin in zip(loads, nodes, strict=True) if load))

        found = least_price([group(1, size) for size in sizes], nodes)

        assert found.price == pytest.approx(min(prices))
        assert found.is_best


def test_pods_that_fit_nowhere_leave_the_totals() -> None:
    assert least_price([group(1, 9)], bins(4, 4)).method == "totals"
