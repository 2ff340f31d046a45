"""The Score phase: remembered sums and answers by label give what asking each plugin about each node gives."""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest

from bayplan.api.pod import Pod
from bayplan.cluster.axes import Int64N, Rows
from bayplan.framework import CycleState, Depends, NodeColumns, NodeInfo, Plugin, PodInfo
from bayplan.framework.promises import ByValue
from bayplan.loop.decide import Decision
from bayplan.loop.points import best_nodes
from bayplan.testing import HOSTNAME, ZONE, Harness, apart, near, node, pod, spread

WEB = {"app": "web"}
PODS: dict[str, dict[str, Any]] = {
    "near a zone": {"affinity": near(ZONE, WEB)},
    "rather near a zone": {"affinity": near(ZONE, WEB, weight=7)},
    "rather near a host": {"affinity": near(HOSTNAME, WEB, weight=7)},
    "rather away from a zone": {"affinity": apart(ZONE, WEB, weight=3)},
    "away from hosts": {"affinity": apart(HOSTNAME, WEB)},
    "spread over zones": {"spread": [spread(ZONE, WEB, max_skew=2)]},
    "rather spread over zones": {"spread": [spread(ZONE, WEB, max_skew=2, soft=True)]},
    "spread both ways": {"spread": [spread(ZONE, WEB, max_skew=9), spread(HOSTNAME, WEB, soft=True)]},
}


def some_cluster(rng: Random, nodes: int) -> Harness:
    """Some nodes are full, and in some clusters some lack a zone."""
    lacking = rng.choice((0.0, 0.1))
    made = [
        node(f"n{i}", cpu=rng.choice((1, 4, 8)), zone=None if rng.random() < lacking else f"z{rng.randrange(4)}")
        for i in range(nodes)
    ]
    running = [pod(f"r{i}", cpu=1, labels=WEB, node=f"n{rng.randrange(nodes)}") for i in range(nodes // 2)]
    return Harness(nodes=made, pods=running)


def decided(harness: Harness, new: Pod, **how: Any) -> tuple[Decision, list[int]]:
    """The decision, and the rows between which it was drawn."""
    drawn: list[int] = []

    def first(ties: Rows) -> int:
        drawn.extend(ties.tolist())
        return int(ties[0])

    return harness.scheduler.decide(harness.info(new), tie_break=first, always_score=True, **how), drawn


@pytest.mark.parametrize("kind", PODS)
@pytest.mark.parametrize(("seed", "nodes"), [(1, 12), (2, 40), (3, 400)])
def test_the_short_way_ends_at_the_same_totals_and_ties(kind: str, seed: int, nodes: int) -> None:
    harness = some_cluster(Random(seed), nodes)
    for number in range(6):
        new = pod(f"new-{number}", cpu="500m", labels=WEB, **PODS[kind])
        short, drawn = decided(harness, new)
        explained, also_drawn = decided(harness, new, explains=True)

        assert (short.node_name, short.total, short.ties) == (explained.node_name, explained.total, explained.ties)
        assert drawn == also_drawn
        assert short.message == explained.message
        assert _shares(short) == _shares(explained)
        if short.node_name:
            harness.scheduler.assume(harness.info(new), short.node_name)


def _shares(decision: Decision) -> dict[str, dict[str, tuple[int, int | None]]]:
    """What each plugin gave the best nodes, as records tell it."""
    found = best_nodes(decision, most=1)
    return {
        each.node: {p: (s.weighted, s.raw) for p, s in each.points.items() if s.weighted or s.raw} for each in found
    }


class Zoned(Plugin):
    """Scores by zone, wrongly in one way or another."""

    fails = False
    highest = 100

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        return np.arange(len(nodes), dtype=np.int64)

    def score_by_value(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> ByValue:
        if self.fails:
            raise ValueError("no zones today")
        scores = [0] * (nodes.label(ZONE).domains + 1)
        scores[0] = self.highest
        return ByValue(ZONE, scores, scores)


def zoned(**changes: Any) -> Harness:
    made = [node("a", zone="east"), node("b", zone="west"), node("c", zone="west")]
    return Harness(nodes=made, plugins=[type("Zoned", (Zoned,), changes)])


def test_a_plugin_that_answers_by_value_is_not_asked_about_each_node() -> None:
    decision, _ = decided(zoned(), pod("web"))

    assert decision.node_name == "a"


def test_a_plugin_whose_short_answer_fails_is_asked_about_each_node() -> None:
    harness = zoned(fails=True)
    decision, _ = decided(harness, pod("web"))

    assert decision.node_name == "c"
    assert [(plugin, promise) for plugin, promise, _ in harness.complaints] == [("Zoned", "score_by_value")]


def test_scores_by_value_must_be_within_bounds_too() -> None:
    decision, _ = decided(zoned(highest=101), pod("web"))

    assert 'plugin "Zoned" returns an invalid score 101' in decision.message


class OwnNormalize(Plugin):
    """Prefers nodes with few pods, and stretches the scores in a way of its own, in place."""

    depends = Depends.ROW
    scored: ClassVar[list[str]] = []

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        self.scored.append(node.name)
        return 1000 - len(node.pods)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Int64N) -> Int64N:
        scores -= scores.min()
        scores *= 10
        return scores


def test_raw_scores_are_kept_where_a_plugin_normalises_them_itself() -> None:
    OwnNormalize.scored.clear()
    made = [node(f"n{number}") for number in range(6)]
    keeping = Harness(nodes=made, plugins=[OwnNormalize])
    anew = Harness(nodes=made, plugins=[OwnNormalize], remember=False)

    for number in range(12):
        new = pod(f"web-{number}")
        before = len(OwnNormalize.scored)
        kept, _ = decided(keeping, new)
        calls = OwnNormalize.scored[before:]
        assert len(calls) == (6 if number < 2 else 1), "from the third on, the node of the last pod alone"
        computed, _ = decided(anew, new)
        assert _shares(kept) == _shares(computed)
        for harness in (keeping, anew):
            harness.scheduler.assume(harness.info(new), kept.node_name)
