"""The contract suite: in-tree plugins keep it, and each way of breaking it is found and named."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.testing import plugins

from bayplan.framework import Plugin
from bayplan.framework.objects import Metadata, Namespace
from bayplan.framework.promises import ByValue
from bayplan.plugins.intree import default_registry, intree_plugins
from bayplan.plugins.shipped import COMMUNITY
from bayplan.testing import node
from bayplan.testing.contract import PROMISES, ContractBroken, PluginContract, check_plugin, time_budget


@pytest.mark.parametrize("plugin", intree_plugins(), ids=lambda plugin: plugin.name)
def test_every_in_tree_plugin_keeps_the_contract(plugin: type[Plugin]) -> None:
    check_plugin(plugin, clusters=2)


@pytest.mark.parametrize("plugin", [plugins.ScoreByLabel, plugins.Licences, plugins.HoldsAtPermit, plugins.SortsByName])
def test_an_honest_plugin_keeps_the_contract(plugin: type[Plugin]) -> None:
    check_plugin(plugin, nodes=[node("fast", labels={"speed": "10"}), node("slow", labels={"speed": "1"})])


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [
        (plugins.ScoresTooHigh, "scores are within 0 to 100"),
        (plugins.ChangesItsMind, "filter gives the same answer twice and changes nothing"),
        (plugins.MovesPods, "filter gives the same answer twice and changes nothing"),
        (plugins.KeepsReservations, "unreserve undoes reserve"),
        (plugins.StumblesOverOddPods, "odd pods are answered, not raised on"),
        (plugins.LooksAtNames, "pods of the same shape get the same answer"),
        (plugins.FormsDisagree, "the column form equals the one-node form"),
        (plugins.DependsOnMoreThanItSays, "decisions with caches equal decisions without"),
        (plugins.DependsOnMoreThanItSays, "the code reads no more than depends states"),
        (plugins.FollowsOtherLabels, "decisions with caches equal decisions without"),
        (plugins.ReadsLabelsOfPods, "counts are all that a filter reads of pods where that is promised"),
        (plugins.BindsTwice, "a binding waits for one request where that is promised"),
        (plugins.BindsLater, "a binding waits for one request where that is promised"),
        (plugins.ForgetsToRelease, "released pods are named"),
        (plugins.AddsUpWrongly, "combined scores equal their sum"),
        (plugins.PromisesBounds, "scores are within bounds where that is promised"),
        (plugins.PromisesSilence, "an idle plugin rejects and prefers nothing"),
        (plugins.PromisesRoom, "a filter that accepts all nodes rejects none"),
        (plugins.PromisesKinds, "pods of one kind get different answers only where that is allowed"),
        (plugins.PromisesPins, "a pin is named where that is promised"),
        (plugins.GoesBeforeItself, "the order of the queue is an order"),
        (plugins.ComparesApplesAndPears, "the order of the queue is an order"),
    ],
)
def test_a_broken_promise_is_named(plugin: type[Plugin], promise: str) -> None:
    with pytest.raises(ContractBroken, match=plugin.name) as caught:
        check_plugin(plugin, promises=[promise], objects=[Namespace(metadata=Metadata(name="open"))])

    assert list(caught.value.problems) == [promise]
    assert promise in str(caught.value)


@pytest.mark.parametrize("name", [name for name in COMMUNITY if name != "BlockAllScheduler"])
def test_every_shipped_community_plugin_keeps_the_contract(name: str) -> None:
    """Those that order the queue as well: one of them takes the place of PrioritySort. All but the one whose reason,
    as published, names the pod, so that no two pods get the same answer."""
    check_plugin(default_registry().get(name), clusters=2)


def test_arguments_reach_the_plugin() -> None:
    check_plugin(plugins.ScoreByLabel, args={"labelKey": "gen"}, clusters=2)


class TestAsAClass(PluginContract):
    """The suite as a class has a test for each promise."""

    plugin = plugins.ScoreByLabel

    def test_every_promise_has_its_test(self) -> None:
        tests = [name for name in dir(self) if name.startswith("test_") and name != "test_every_promise_has_its_test"]

        assert len(tests) == len(PROMISES)


def test_the_time_budget_is_reported_in_words() -> None:
    budget = time_budget(plugins.ScoreByLabel, nodes=50)

    assert budget.first_seconds > 0
    assert budget.per_second == pytest.approx(1 / budget.later_seconds)
    assert "ms" in str(budget)


def test_scores_by_value_that_differ_from_those_by_node_are_found() -> None:
    class ByZone(Plugin):
        def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
            return nodes.pod_count * 0 + 3

        def score_by_value(self, state: Any, pod: Any, nodes: Any) -> Any:
            places = nodes.label("kubernetes.io/hostname").domains + 1
            return ByValue("kubernetes.io/hostname", [4] * places, [4] * places)

    with pytest.raises(ContractBroken, match="score_by_value gives"):
        check_plugin(ByZone, promises=["scores by value equal scores by node"])
