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
from time import perf_counter
from typing import Any, ClassVar

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.framework.plugin import Plugin
from bayplan.testing.build import node, pod
from bayplan.testing.contract import answers, speed
from bayplan.testing.contract.trial import PluginTrial
from bayplan.testing.generate import random_cluster
from bayplan.testing.harness import Harness

__all__ = ["PROMISES", "ContractBroken", "PluginContract", "Subject", "check_plugin", "time_budget"]

Promise = Callable[[PluginTrial], list[str]]

PROMISES: dict[str, Promise] = {
    "scores are within 0 to 100": answers.scores_are_in_range,
    "filter gives the same answer twice and changes nothing": answers.filter_is_pure,
    "unreserve undoes reserve": answers.reserve_is_undone,
    "odd pods are answered, not raised on": answers.odd_pods_are_answered,
    "pods of the same shape get the same answer": answers.same_shape_same_answer,
    "the column form equals the one-node form": answers.columns_equal_one_node,
    "the order of the queue is an order": answers.queue_order_is_strict,
    "the code reads no more than depends states": speed.stated_depends_is_enough,
    "decisions with caches equal decisions without": speed.cached_equals_uncached,
    "scores are within bounds where that is promised": speed.raw_scores_are_in_bounds,
    "scores by value equal scores by node": speed.values_score_as_nodes,
    "an idle plugin rejects and prefers nothing": speed.idle_means_no_effect,
    "a filter that accepts all nodes rejects none": speed.accepting_all_rejects_none,
    "pods of one kind get different answers only where that is allowed": speed.kinds_are_settled_alike,
    "a pin is named where that is promised": speed.pins_are_named,
    "counts are all that a filter reads of pods where that is promised": speed.counts_are_enough,
    "a binding waits for one request where that is promised": speed.bindings_wait_for_one_request,
    "released pods are named": speed.released_pods_are_named,
    "combined scores equal their sum": speed.combined_scores_equal_their_sum,
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


def _test_of(promise: str) -> Callable[[PluginContract], None]:
    def test(self: PluginContract) -> None:
        self._check(promise)

    return test


for _promise in PROMISES:
    setattr(PluginContract, f"test_{_promise.replace(',', '').replace(' ', '_').replace('-', '_')}", _test_of(_promise))


def time_budget(plugin: type[Plugin], *, args: Mapping[str, Any] | None = None, nodes: int = 5000) -> Budget:
    """How long one decision takes with this plugin alone: the first of a shape, and those that follow. Opt in."""
    return Budget(*_measured(plugin, args or {}, nodes))


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


_LATER = 200


def _measured(plugin: type[Plugin], args: Mapping[str, Any], nodes: int) -> tuple[float, float]:
    """(seconds of the first decision, seconds of each that follows); every pod is counted on the node it gets."""
    harness = Harness(
        nodes=[node(f"n{number}", zone="abc"[number % 3]) for number in range(nodes)],
        plugins=[plugin],
        args={plugin.name: args} if args else None,
        default_plugins=False,
    )
    pods = [harness.info(pod(f"p{number}", cpu="100m", labels={"app": "web"})) for number in range(_LATER + 1)]
    first = _decide(harness, pods[0])
    start = perf_counter()
    for info in pods[1:]:
        _decide(harness, info)
    return first, (perf_counter() - start) / _LATER


def _decide(harness: Harness, info: Any) -> float:
    start = perf_counter()
    decision = harness.scheduler.decide(info)
    if decision.node_name:
        harness.scheduler.assume(info, decision.node_name)
    return perf_counter() - start
