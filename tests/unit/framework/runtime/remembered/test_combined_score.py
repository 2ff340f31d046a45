"""Joined scores: one column for the sum, each plugin by itself wherever its share is to be seen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.unit.framework.runtime.toys import ByZone, Changes, Emptier, Room, Zones, framework_of

from bayplan.framework import Depends, Plugin
from bayplan.framework.cycle import CycleState
from bayplan.framework.promises import Shares, Totals
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.runtime.scoring import score_rows
from bayplan.framework.times import PluginTimes
from bayplan.testing.build import pod


class Odd(Plugin):
    """Points for an odd number of pods. Keeps count of how often it is asked."""

    score_depends = Depends.ROW
    is_within_bounds = True
    asked: ClassVar[list[int]] = []

    def sign(self, pod: Any) -> Hashable:
        return 0

    def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
        self.asked.append(len(nodes))
        return nodes.pod_count % 2 * 10


class Together:
    """The sum of Emptier and Odd."""

    members = ("Emptier", "Odd")
    fails = False
    has_answers = True

    def __init__(self, weights: dict[str, int]) -> None:
        self.weights = weights

    def sign(self, pod: Any) -> Hashable:
        return 0

    def totals(self, pod: Any, nodes: Any, out: Totals, first: Shares | None) -> bool:
        if self.fails:
            raise ValueError("lost count")
        if self.has_answers:
            emptier, odd = np.maximum(100 - 7 * nodes.pod_count, 0), nodes.pod_count % 2 * 10
            out[:] = emptier * self.weights["Emptier"] + odd * self.weights["Odd"]
            if first is not None:
                first[:] = emptier
        return self.has_answers

    def total(self, pod: Any, node: Any) -> tuple[int, int] | None:
        count = len(node.pods)
        first = max(100 - 7 * count, 0)
        points = first * self.weights["Emptier"] + count % 2 * 10 * self.weights["Odd"]
        return (points, first) if self.has_answers else None


class Joining(Emptier):
    """Offers to be joined with Odd."""

    name = "Emptier"
    is_within_bounds = True
    joint: Together

    def combine_scores(self, scores: dict[str, tuple[Plugin, int]]) -> Together | None:
        if "Odd" not in scores:
            return None
        self.joint = Together({name: weight for name, (_, weight) in scores.items()})
        return self.joint


@pytest.fixture(autouse=True)
def _nobody_asked() -> None:
    Odd.asked.clear()


def _totals(framework: Framework, waiting: Any) -> list[int]:
    evaluation = framework.plan(waiting).evaluation
    evaluation.refresh(waiting)
    totals: list[int] = (evaluation.key[: evaluation.table.size] + evaluation.offset).tolist()
    return totals


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weights", [{}, {"Emptier": 3, "Odd": 2}, {"Odd": 2**40}])
def test_joined_scores_add_up_to_what_the_plugins_say_one_by_one(seed: int, weights: dict[str, int]) -> None:
    changes = Changes(seed)
    kinds = (Room, Zones, Joining, Odd, ByZone)
    joined = framework_of(changes.cache, *kinds, weights=weights)
    apart = framework_of(changes.cache, *kinds, weights=weights, remember=False)
    waiting = changes.cache.info(pod("waiting"))
    for _ in range(100):
        changes.step()

        assert _totals(joined, waiting) == _totals(apart, waiting)


def test_a_plugin_whose_score_is_joined_is_not_asked() -> None:
    changes = Changes(1)
    framework = framework_of(changes.cache, Joining, Odd)

    _totals(framework, changes.cache.info(pod("waiting")))

    assert Odd.asked == []


def test_nothing_is_joined_without_all_members_or_with_remembering_off() -> None:
    changes = Changes(1)
    waiting = changes.cache.info(pod("waiting"))

    assert _totals(framework_of(changes.cache, Joining), waiting)
    _totals(framework_of(changes.cache, Joining, Odd, remember=False), waiting)

    assert len(Odd.asked) == 1


@pytest.mark.parametrize("unfit", [{"is_within_bounds": False}, {"score_depends": Depends.NODE}])
def test_scores_that_must_be_checked_or_that_no_pod_changes_are_not_joined(unfit: dict[str, Any]) -> None:
    changes = Changes(1)
    framework = framework_of(changes.cache, type("Odd", (Odd,), unfit), Joining)

    _totals(framework, changes.cache.info(pod("waiting")))

    assert len(Odd.asked) == 1


@pytest.mark.parametrize("broken", [{"fails": True}, {"has_answers": False}])
def test_plugins_are_asked_one_by_one_where_there_is_no_joint_answer(broken: dict[str, bool]) -> None:
    changes = Changes(2)
    framework = framework_of(changes.cache, Joining, Odd)
    waiting = changes.cache.info(pod("waiting"))
    right = _totals(framework_of(changes.cache, Joining, Odd, remember=False), waiting)
    joint = framework.plugins["Emptier"].joint
    for name, value in broken.items():
        setattr(joint, name, value)

    assert _totals(framework, waiting) == right


def test_the_share_of_each_plugin_can_be_seen() -> None:
    changes = Changes(3)
    framework = framework_of(changes.cache, Joining, Odd, weights={"Odd": 5})
    waiting = changes.cache.info(pod("waiting"))
    for _ in range(5):
        changes.step()
    plan = framework.plan(waiting)
    plan.evaluation.refresh(waiting)
    nodes = changes.cache.cluster.columns()

    scores = score_rows(plan, CycleState(), waiting, nodes, [])

    assert set(scores.shares) == {"Emptier", "Odd"}
    assert scores.totals[nodes.valid].tolist() == plan.evaluation.key[: len(nodes)][nodes.valid].tolist()
    assert (scores.shares["Odd"] == nodes.pod_count % 2 * 50).all()


def test_the_time_of_joined_scores_is_shared_by_the_plugins() -> None:
    changes = Changes(4)
    framework = framework_of(changes.cache, Joining, Odd)
    clock = iter((0.0, 3.0))
    times = PluginTimes(lambda: next(clock))
    framework.time_plugins(times)

    _totals(framework, changes.cache.info(pod("waiting")))

    assert [(time.plugin, time.point, time.seconds) for time in times.all()] == [
        ("Emptier", "Score", 1.5),
        ("Odd", "Score", 1.5),
    ]
