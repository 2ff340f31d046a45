"""The contract suite: put any plugin through what the engine, and its users, rely on.

    from bayplan.testing.contract import PluginContract, check_plugin

    def test_my_plugin_keeps_the_contract():
        check_plugin(MyPlugin, args={"labelKey": "speed"})

    class TestMyPlugin(PluginContract):      # the same, one test a promise
        plugin = MyPlugin

Each promise is a function that returns problems as sentences; none for a plugin that lacks the extension point. The
plugin runs alone in its profile, so that its own answers are seen; `objects`, `nodes` and `pods` add to the clusters
that are made up. `time_budget` is apart, because time does not belong into a unit test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.framework.plugin import Plugin
from bayplan.testing.contract_promises import (
    accepting_all_means_silent,
    cached_equals_uncached,
    columns_equal_one_node,
    filter_is_pure,
    idle_means_silent,
    kinds_are_settled_alike,
    odd_pods_are_answered,
    pins_are_named,
    raw_scores_are_in_bounds,
    reserve_is_undone,
    same_shape_same_answer,
    scores_are_in_range,
    values_score_as_nodes,
)
from bayplan.testing.contract_queue import queue_order_is_strict
from bayplan.testing.contract_trial import PluginTrial
from bayplan.testing.generate import random_cluster

__all__ = ["PROMISES", "ContractBroken", "PluginContract", "Subject", "check_plugin", "time_budget"]

Promise = Callable[[PluginTrial], list[str]]

PROMISES: dict[str, Promise] = {
    "scores are within 0 to 100": scores_are_in_range,
    "filter gives the same answer twice and changes nothing": filter_is_pure,
    "unreserve undoes reserve": reserve_is_undone,
    "odd pods are answered, not raised on": odd_pods_are_answered,
    "pods of the same shape get the same answer": same_shape_same_answer,
    "the column form equals the one-node form": columns_equal_one_node,
    "decisions with caches equal decisions without": cached_equals_uncached,
    "scores are within bounds where that is promised": raw_scores_are_in_bounds,
    "scores by value equal scores by node": values_score_as_nodes,
    "an idle plugin has nothing to say": idle_means_silent,
    "a filter that accepts all nodes rejects none": accepting_all_means_silent,
    "pods of one kind are told apart only where that is allowed": kinds_are_settled_alike,
    "a pin is named where that is promised": pins_are_named,
    "the order of the queue is an order": queue_order_is_strict,
}
"""What is checked, by name."""


class ContractBroken(AssertionError):
    """A plugin that does not keep the contract; `problems` by promise."""

    def __init__(self, plugin: str, problems: Mapping[str, list[str]]) -> None:
        self.problems = dict(problems)
        lines = [f"plugin `{plugin}` breaks the contract"]
        for promise, found in problems.items():
            lines += [f"  {promise}:", *(f"    - {problem}" for problem in found[:5])]
            if len(found) > 5:
                lines.append(f"    and {len(found) - 5} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A plugin and the world to try it in."""

    plugin: type[Plugin]
    args: Mapping[str, Any] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    """Nodes that the plugin cares about, beside random ones."""
    pods: tuple[Pod, ...] = ()
    """Pods to ask about, beside random ones."""
    objects: tuple[KubeObject, ...] = ()
    clusters: int = 6
    seed: int = 0

    def trials(self) -> list[PluginTrial]:
        """The plugin in each of a few clusters."""
        rng = Random(self.seed)
        return [
            PluginTrial(
                self.plugin,
                self.args,
                random_cluster(rng),
                nodes=self.nodes,
                pods=self.pods,
                objects=self.objects,
                seed=rng.randrange(10**6),
            )
            for _ in range(self.clusters)
        ]


def check_plugin(
    plugin: type[Plugin],
    *,
    args: Mapping[str, Any] | None = None,
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    objects: Iterable[KubeObject] = (),
    promises: Iterable[str] | None = None,
    clusters: int = 6,
    seed: int = 0,
) -> None:
    """Check every promise (or those named), and raise `ContractBroken` with all that is wrong."""
    subject = Subject(
        plugin=plugin,
        args=args or {},
        nodes=tuple(nodes),
        pods=tuple(pods),
        objects=tuple(objects),
        clusters=clusters,
        seed=seed,
    )
    wanted = PROMISES if promises is None else {name: PROMISES[name] for name in promises}
    broken = {name: found for name, promise in wanted.items() if (found := _problems(subject, promise))}
    if broken:
        raise ContractBroken(plugin.name, broken)


def _problems(subject: Subject, promise: Promise) -> list[str]:
    """Distinct problems over all clusters, in the order they came up."""
    return list(dict.fromkeys(problem for trial in subject.trials() for problem in promise(trial)))


class PluginContract:
    """Inherit it in a test module: one test for each promise. Override the attributes that matter."""

    plugin: ClassVar[type[Plugin]]
    args: ClassVar[Mapping[str, Any]] = {}
    nodes: ClassVar[tuple[Node, ...]] = ()
    pods: ClassVar[tuple[Pod, ...]] = ()
    objects: ClassVar[tuple[KubeObject, ...]] = ()

    def _check(self, promise: str) -> None:
        check_plugin(
            self.plugin,
            args=self.args,
            nodes=self.nodes,
            pods=self.pods,
            objects=self.objects,
            promises=[promise],
        )

    def test_scores_are_within_0_to_100(self) -> None:
        self._check("scores are within 0 to 100")

    def test_filter_gives_the_same_answer_twice_and_changes_nothing(self) -> None:
        self._check("filter gives the same answer twice and changes nothing")

    def test_unreserve_undoes_reserve(self) -> None:
        self._check("unreserve undoes reserve")

    def test_odd_pods_are_answered_not_raised_on(self) -> None:
        self._check("odd pods are answered, not raised on")

    def test_pods_of_the_same_shape_get_the_same_answer(self) -> None:
        self._check("pods of the same shape get the same answer")

    def test_the_column_form_equals_the_one_node_form(self) -> None:
        self._check("the column form equals the one-node form")

    def test_decisions_with_caches_equal_decisions_without(self) -> None:
        self._check("decisions with caches equal decisions without")

    def test_scores_are_within_bounds_where_that_is_promised(self) -> None:
        self._check("scores are within bounds where that is promised")

    def test_scores_by_value_equal_scores_by_node(self) -> None:
        self._check("scores by value equal scores by node")

    def test_an_idle_plugin_has_nothing_to_say(self) -> None:
        self._check("an idle plugin has nothing to say")

    def test_a_filter_that_accepts_all_nodes_rejects_none(self) -> None:
        self._check("a filter that accepts all nodes rejects none")

    def test_pods_of_one_kind_are_told_apart_only_where_that_is_allowed(self) -> None:
        self._check("pods of one kind are told apart only where that is allowed")

    def test_a_pin_is_named_where_that_is_promised(self) -> None:
        self._check("a pin is named where that is promised")

    def test_the_order_of_the_queue_is_an_order(self) -> None:
        self._check("the order of the queue is an order")


def time_budget(plugin: type[Plugin], *, args: Mapping[str, Any] | None = None, nodes: int = 5000) -> Budget:
    """How long one decision takes with this plugin alone: the first of a shape, and those that follow. Opt in."""
    from bayplan.testing.contract_timing import measure

    return Budget(*measure(plugin, args or {}, nodes))


@dataclass(frozen=True)
class Budget:
    """Seconds a decision; `per_second` of those that follow the first."""

    first_seconds: float
    later_seconds: float

    @property
    def per_second(self) -> float:
        return 1 / self.later_seconds

    def __str__(self) -> str:
        first, later = self.first_seconds * 1e3, self.later_seconds * 1e3
        return f"first decision {first:.2f} ms, later ones {later:.3f} ms ({self.per_second:.0f}/s)"
