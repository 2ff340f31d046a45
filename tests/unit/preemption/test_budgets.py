"""Budgets: who would break one, evicted in order of importance."""

from __future__ import annotations

from typing import Any

from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.preemption.budgets import Budgets
from bayplan.testing import pdb, pod, selector

WEB = {"app": "web"}


def breaking(budgets: list[Any], *pods: Pod) -> list[str]:
    cache = Cache()
    violating, others = Budgets(budgets).split([cache.info(each) for each in pods])
    assert len(violating) + len(others) == len(pods)
    return [each.name for each in violating]


def web(name: str, **more: Any) -> Pod:
    return pod(name, labels=WEB, **more)


def test_as_many_may_go_as_the_budget_allows() -> None:
    pods = [web("a"), web("b"), web("c")]

    assert breaking([pdb("x", WEB, allowed=2)], *pods) == ["c"]
    assert breaking([pdb("x", WEB, allowed=0)], *pods) == ["a", "b", "c"]
    assert breaking([], *pods) == []


def test_every_budget_that_means_a_pod_is_used_up() -> None:
    budgets = [pdb("x", WEB, allowed=1), pdb("y", selector(exists=["app"]), allowed=5)]

    assert breaking(budgets, web("a"), web("b"), pod("db", labels={"app": "db"})) == ["b"]


def test_a_pod_that_breaks_one_budget_still_uses_up_the_other() -> None:
    budgets = [pdb("x", WEB, allowed=0), pdb("y", selector(exists=["app"]), allowed=1)]

    assert breaking(budgets, web("a"), pod("db", labels={"app": "db"})) == ["a", "db"]


def test_budgets_mean_labelled_pods_of_their_own_namespace() -> None:
    everything = pdb("x", selector(not_in={"app": ["none"]}))

    assert breaking([pdb("x", WEB)], web("other", namespace="elsewhere")) == []
    assert breaking([everything], pod("bare")) == []
    assert breaking([everything], web("a")) == ["a"]


def test_an_empty_or_absent_selector_means_nobody() -> None:
    assert breaking([pdb("x", selector()), pdb("y", None)], web("a")) == []
    assert not Budgets([pdb("x", selector())])


def test_a_selector_nobody_can_read_means_nobody() -> None:
    assert breaking([pdb("x", selector(is_in={"app": []}))], web("a")) == []


def test_a_pod_whose_eviction_is_already_counted_costs_nothing_more() -> None:
    assert breaking([pdb("x", WEB, allowed=0, disrupted=["a"])], web("a"), web("b")) == ["b"]
