"""Candidates: the order of the criteria."""

from __future__ import annotations

from typing import Any

from bayplan.cache import Cache
from bayplan.preemption.candidates import Candidate, importance, pick_cheapest
from bayplan.testing import pod

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
_cache = Cache()


def victim(priority: int = 0, started: str | None = EARLY) -> Any:
    return _cache.info(pod(f"p{priority}", priority=priority, started=started))


def candidate(name: str, *victims: Any, violations: int = 0) -> Candidate:
    return Candidate(0, name, victims, violations)


def cheapest(*candidates: Candidate) -> list[str]:
    return [each.node_name for each in pick_cheapest(candidates)]


def test_broken_budgets_weigh_most() -> None:
    assert cheapest(candidate("a", victim(1), violations=1), candidate("b", victim(9))) == ["b"]


def test_then_the_highest_victim() -> None:
    assert cheapest(candidate("a", victim(5)), candidate("b", victim(4), victim(4))) == ["b"]


def test_then_the_sum_of_priorities_in_which_every_pod_weighs() -> None:
    assert cheapest(candidate("a", victim(4), victim(-9)), candidate("b", victim(4))) == ["b"]
    assert cheapest(candidate("a", victim(4), victim(3)), candidate("b", victim(4), victim(2))) == ["b"]


def test_then_the_number_of_victims() -> None:
    lowest = -(2**31)
    assert cheapest(candidate("a", victim(4), victim(lowest)), candidate("b", victim(4))) == ["b"]


def test_then_the_latest_start_of_the_most_important_victims() -> None:
    assert cheapest(candidate("a", victim(4, EARLY)), candidate("b", victim(4, LATE))) == ["b"]
    assert cheapest(candidate("a", victim(4, LATE)), candidate("b", victim(4, None))) == ["b"]
    less_important = candidate("a", victim(4, LATE), victim(1, EARLY)), candidate("b", victim(4, LATE), victim(1, LATE))
    assert cheapest(*less_important) == ["a", "b"]


def test_what_ties_on_everything_ties() -> None:
    assert cheapest(candidate("a", victim(1)), candidate("b", victim(1))) == ["a", "b"]
    assert cheapest() == []


def test_importance_is_priority_then_time_on_duty() -> None:
    pods = [victim(1, LATE), victim(1, EARLY), victim(5, LATE), victim(1, None)]

    assert sorted(pods, key=importance) == [pods[2], pods[1], pods[0], pods[3]]
