"""The evaluation of a shape: mended a thousand times, it says what a new one says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.framework.runtime.toys import (
    NAMES,
    ByNodes,
    ByPods,
    ByZone,
    Changes,
    Crowd,
    Emptier,
    Glancing,
    OutOfRange,
    Reds,
    Room,
    RoomOneByOne,
    Zones,
    framework_of,
)

from bayplan.framework import Depends, Plugin
from bayplan.framework.runtime.remembered.evaluation import ShapeEvaluation
from bayplan.testing.build import node, pod

MIXES = {
    "final scores": (Room, Zones, Emptier),
    "normalised": (Room, Emptier, ByZone),
    "normalised by row": (RoomOneByOne, Zones, ByPods),
    "all nodes": (Room, Zones, Emptier, ByZone, ByNodes),
    "filters alone": (Room, Zones),
    "use": (Crowd, Zones, Emptier),
    "use alone": (Crowd, Zones),
    "use and labels": (Zones, Crowd, Reds, ByZone),
    "nodes first": (Zones, Room, Emptier, ByZone),
    "scores alone": (Emptier, ByZone, ByPods),
    "a glance": (Glancing, Emptier),
    "a glance between others": (Zones, RoomOneByOne, Glancing, ByPods, Crowd),
}


def _numbers(evaluation: ShapeEvaluation) -> dict[str, Any]:
    size = evaluation.table.size
    feasible = evaluation.feasible()
    totals = np.where(feasible, evaluation.key[:size] + evaluation.offset, -1)
    return {
        "rank": evaluation.rank[:size].tolist(),
        "totals": totals.tolist(),
        "counts": evaluation.rank_counts,
    }


def _told(evaluation: ShapeEvaluation) -> dict[str, Any]:
    size = evaluation.table.size
    return _numbers(evaluation) | {
        "groups": sorted((str(status), rows.tolist()) for status, rows in evaluation.rejected_groups()),
        "statuses": [str(evaluation.status(row)) for row in range(size)],
    }


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("seed", range(3))
def test_mending_equals_computing_anew(mix: str, seed: int) -> None:
    changes = Changes(seed)
    weights = {"Emptier": 3, "ByZone": 2}
    remembering = framework_of(changes.cache, *MIXES[mix], weights=weights)
    forgetful = framework_of(changes.cache, *MIXES[mix], weights=weights, remember=False)
    waiting = changes.cache.info(pod("waiting"))
    for _ in range(150):
        changes.step()
        kept = remembering.plan(waiting).evaluation
        fresh = forgetful.plan(waiting).evaluation
        kept.refresh(waiting)
        fresh.refresh(waiting)

        assert _told(kept) == _told(fresh)
    assert remembering.plan(waiting).evaluation is kept


@pytest.mark.parametrize("mix", [mix for mix, kinds in MIXES.items() if Glancing in kinds])
@pytest.mark.parametrize("seed", range(6))
def test_a_filter_that_tells_at_a_glance_gets_a_column_when_it_rejects_somebody(mix: str, seed: int) -> None:
    """Who is rejected by whom is not asked on the way: whoever asks has every column made."""
    changes = Changes(seed)
    for name in NAMES[:7]:
        changes.cache.add_node(node(name))
    remembering = framework_of(changes.cache, *MIXES[mix])
    forgetful = framework_of(changes.cache, *MIXES[mix], remember=False)
    waiting = changes.cache.info(pod("waiting"))
    for number in range(200):
        changes.step()
        if number == 100:
            for each in range(Glancing.most):
                changes.cache.add_pod(pod(f"crowd-{each}", node=NAMES[0]))
        kept, fresh = (framework.plan(waiting).evaluation for framework in (remembering, forgetful))
        kept.refresh(waiting)
        fresh.refresh(waiting)

        assert _numbers(kept) == _numbers(fresh)
    assert _told(kept) == _told(fresh)


def test_while_a_glance_tells_no_column_is_asked_for() -> None:
    changes = Changes(1)
    cache = changes.cache
    for name in NAMES[:7]:
        cache.add_node(node(name))
    framework = framework_of(cache, Glancing, Emptier)
    waiting = cache.info(pod("waiting"))
    for number in range(40):
        cache.add_pod(pod(f"p{number}", node=NAMES[number % 7]))
        framework.plan(waiting).evaluation.refresh(waiting)

    assert framework.plugins["Glancing"].columns == 0
    assert framework.plan(waiting).evaluation.filters[0][1].rejects_any is False
    assert framework.plan(waiting).evaluation.status(0) is None


def test_other_annotations_of_a_pod_on_the_node_are_seen_by_what_depends_on_the_row() -> None:
    class Annotated(Plugin):
        depends = Depends.ROW

        def score(self, state: Any, pod: Any, node: Any) -> int:
            return 10 * sum(len(each.annotations) for each in node.pods.values())

    cache = Changes(1).cache
    cache.add_pod(pod("there", node=NAMES[0]))
    framework, waiting = framework_of(cache, Annotated), cache.info(pod("waiting"))
    for _ in range(2):
        evaluation = framework.plan(waiting).evaluation
        evaluation.refresh(waiting)
    assert evaluation.best()[0] == 0

    cache.add_pod(pod("there", node=NAMES[0], annotations={"seen": "yes"}))
    evaluation.refresh(waiting)
    assert evaluation.best()[0] == 10


def test_other_labels_of_a_pod_that_is_there_concern_only_those_who_look_at_them() -> None:
    changes = Changes(1)
    cache = changes.cache
    for name in ("n1", "n2"):
        cache.add_pod(pod(f"on-{name}", node=name))
    waiting = cache.info(pod("waiting"))
    asked = {}
    for kinds in ((Crowd,), (Crowd, Reds)):
        framework = framework_of(cache, *kinds)
        for _ in range(3):
            evaluation = framework.plan(waiting).evaluation
            evaluation.refresh(waiting)
        framework.plugins["Crowd"].asked.clear()
        totals = [int(evaluation.key[cache.cluster.nodes.row_of["n1"]])]
        cache.add_pod(pod("on-n1", node="n1", labels={"colour": "red"} if len(kinds) == 2 else {"colour": "blue"}))
        evaluation.refresh(waiting)
        totals.append(int(evaluation.key[cache.cluster.nodes.row_of["n1"]]))
        asked[len(kinds)] = (framework.plugins["Crowd"].asked, totals[1] - totals[0])

    assert asked == {1: ([], 0), 2: ([], 20)}


def test_shapes_with_one_sign_share_a_column() -> None:
    changes = Changes(1)
    framework = framework_of(changes.cache, Room, Emptier)
    pods = [changes.cache.info(pod(f"w{number}", cpu=number)) for number in range(1, 4)]
    for _ in range(2):
        columns = [framework.plan(each).evaluation.filters[0][1] for each in pods]

    assert columns[0] is columns[1] is columns[2]


def test_two_shapes_taking_turns_stay_right() -> None:
    """Their shared columns are mended for one and found mended by the other."""
    changes = Changes(4)
    framework = framework_of(changes.cache, Room, Zones, Emptier, ByZone)
    forgetful = framework_of(changes.cache, Room, Zones, Emptier, ByZone, remember=False)
    pods = [changes.cache.info(pod(f"w{number}", cpu=number)) for number in (1, 2)]
    for _ in range(200):
        changes.step()
        waiting = changes.rng.choice(pods)
        kept, fresh = framework.plan(waiting).evaluation, forgetful.plan(waiting).evaluation
        kept.refresh(waiting)
        fresh.refresh(waiting)

        assert _told(kept) == _told(fresh)


def test_the_best_rows_are_those_with_the_highest_total() -> None:
    changes = Changes(2)
    framework = framework_of(changes.cache, Room, Emptier, ByZone)
    waiting = changes.cache.info(pod("waiting"))
    for _ in range(60):
        changes.step()
        evaluation = framework.plan(waiting).evaluation
        evaluation.refresh(waiting)
        if not evaluation.feasible_count:
            continue
        total, rows = evaluation.best()
        totals = np.where(evaluation.feasible(), evaluation.key[: evaluation.table.size] + evaluation.offset, -1)

        assert total == totals.max()
        assert rows.tolist() == np.flatnonzero(totals == total).tolist()


def test_absurd_weights_do_not_overflow() -> None:
    changes = Changes(3)
    framework = framework_of(changes.cache, Emptier, weights={"Emptier": 2**40})
    waiting = changes.cache.info(pod("waiting"))
    evaluation = framework.plan(waiting).evaluation
    evaluation.refresh(waiting)

    assert evaluation.best()[0] == 100 * 2**40


@pytest.mark.parametrize("others", [0, 9])
def test_a_score_that_outgrows_its_bounds_does_not_overflow(others: int) -> None:
    """Normalised with the bounds of before, the new score would be a hundred thousand times the highest."""

    class Leap(ByZone):
        name = "ByZone"

        def score(self, state: Any, pod: Any, node: Any) -> int:
            return 100_000 if node.labels.get("leaps") else 1

    changes = Changes(3)
    cache = changes.cache
    cache.add_node(node("n0", labels={"other": "1"}))
    cache.add_node(node("n1", labels={"leaps": "1"}))
    cache.add_node(node("n1"))
    framework = framework_of(cache, Leap, Emptier, weights={"ByZone": 2})
    waiting = cache.info(pod("waiting"))
    for name in ("n2", "n3"):
        cache.add_node(node(name, labels={"leaps": "1"}))
    for _ in range(3):
        evaluation = framework.plan(waiting).evaluation
        evaluation.refresh(waiting)
    for name in ("n2", "n3"):
        cache.add_node(node(name))
    evaluation.refresh(waiting)
    for number in (1, *range(4, 4 + others)):
        cache.add_node(node(f"n{number}", labels={"leaps": "1"}))
    evaluation.refresh(waiting)
    fresh = framework_of(cache, Leap, Emptier, weights={"ByZone": 2}, remember=False).plan(waiting).evaluation
    fresh.refresh(waiting)

    assert _told(evaluation) == _told(fresh)


@pytest.mark.parametrize("number", [40_000, -7, 2**40])
def test_an_absurd_score_of_one_node_does_not_overflow(number: int) -> None:
    class Absurd(Plugin):
        depends = Depends.ROW

        def score(self, state: Any, pod: Any, node: Any) -> int:
            return number if node.pods else 50

    changes = Changes(5)
    framework = framework_of(changes.cache, Absurd)
    waiting = changes.cache.info(pod("waiting"))
    for _ in range(2):
        evaluation = framework.plan(waiting).evaluation
        evaluation.refresh(waiting)
    changes.cache.add_pod(pod("there", node="n0"))
    evaluation.refresh(waiting)

    assert evaluation.is_suspect


def test_a_score_out_of_range_is_noticed_when_it_first_appears() -> None:
    changes = Changes(5)
    cache = changes.cache
    framework = framework_of(cache, OutOfRange)
    waiting = cache.info(pod("waiting"))
    for _ in range(2):
        evaluation = framework.plan(waiting).evaluation
        evaluation.refresh(waiting)
    assert not evaluation.is_suspect

    for number in range(2):
        cache.add_pod(pod(f"p{number}", node="n0"))
    evaluation.refresh(waiting)

    assert evaluation.is_suspect


@pytest.mark.parametrize("is_promised", [False, True])
def test_nobody_looks_for_scores_out_of_range_where_the_plugin_promises_that_there_are_none(is_promised: bool) -> None:
    class Excess(Emptier):
        name = "Excess"
        is_within_bounds = is_promised

        def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
            return np.full(len(nodes), 101, dtype=np.int64)

    changes = Changes(5)
    waiting = changes.cache.info(pod("waiting"))
    evaluation = framework_of(changes.cache, Excess).plan(waiting).evaluation
    evaluation.refresh(waiting)

    assert evaluation.is_suspect is not is_promised


def test_a_node_that_fills_a_hole_is_seen() -> None:
    changes = Changes(6)
    cache = changes.cache
    framework = framework_of(cache, Room, Zones, Emptier)
    waiting = cache.info(pod("waiting"))
    for _ in range(2):
        evaluation = framework.plan(waiting).evaluation
        evaluation.refresh(waiting)
    before = evaluation.feasible_count
    cache.remove_node("n3")
    evaluation.refresh(waiting)
    assert evaluation.feasible_count == before - 1

    cache.add_node(node("other", zone="c"))
    evaluation.refresh(waiting)
    assert evaluation.feasible_count == before - 1
    assert "wrong zone" in str(evaluation.status(cache.cluster.nodes.row_of["other"]))
