"""TaintToleration matches the taints of nodes with the tolerations of the pod."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.plugins.small_cluster import STATE, SmallCluster, node, raw_scores, rejected, verdicts

from bayplan.framework import ActionType, Code, Depends, Hint, Resource
from bayplan.plugins.intree.taint_toleration import TaintToleration


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


CLUSTER = SmallCluster(
    node("clean"),
    node("hard", taints=[taint("gpu", "a")]),
    node("execute", taints=[taint("gpu", "a", "NoExecute")]),
    node("soft", taints=[taint("gpu", "a", "PreferNoSchedule"), taint("spot", "", "PreferNoSchedule")]),
    node("both", taints=[taint("spot", "", "PreferNoSchedule"), taint("gpu", "b")]),
)


def test_hard_taints_keep_a_pod_away_and_soft_ones_do_not() -> None:
    answers = verdicts(CLUSTER.plugin(TaintToleration), CLUSTER.pod(), CLUSTER)

    assert {name for name, status in answers.items() if status.is_success} == {"clean", "soft"}
    assert answers["hard"].code is Code.UNRESOLVABLE
    assert answers["hard"].reasons == ("node(s) had untolerated taint(s)",)


@pytest.mark.parametrize(
    ("toleration", "still_rejected"),
    [
        ({"operator": "Exists"}, set()),
        ({"key": "gpu", "operator": "Exists"}, set()),
        ({"key": "gpu", "operator": "Equal", "value": "a"}, {"both"}),
        ({"key": "gpu", "value": "a"}, {"both"}),
        ({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, {"execute"}),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, {"hard", "both"}),
        ({"key": "gpu", "operator": "Equal", "value": "other"}, {"hard", "execute", "both"}),
        ({"key": "spot", "operator": "Exists"}, {"hard", "execute", "both"}),
        ({"key": "gpu", "operator": "Gt", "value": "1"}, {"hard", "execute", "both"}),
    ],
)
def test_a_toleration_lets_matching_taints_through(toleration: dict[str, str], still_rejected: set[str]) -> None:
    assert rejected(CLUSTER.plugin(TaintToleration), CLUSTER.pod(tolerations=[toleration]), CLUSTER) == still_rejected


def test_every_hard_taint_needs_its_toleration() -> None:
    cluster = SmallCluster(node("two", taints=[taint("a"), taint("b")]))
    one, other = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}

    assert rejected(cluster.plugin(TaintToleration), cluster.pod(tolerations=[one]), cluster) == {"two"}
    assert rejected(cluster.plugin(TaintToleration), cluster.pod(tolerations=[one, other]), cluster) == set()


@pytest.mark.parametrize(
    ("tolerations", "soft", "both"),
    [
        ([], 2, 1),
        ([{"key": "spot", "operator": "Exists"}], 1, 0),
        ([{"key": "spot", "operator": "Exists", "effect": "PreferNoSchedule"}], 1, 0),
        ([{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}], 2, 1),
        ([{"operator": "Exists"}], 0, 0),
    ],
)
def test_the_raw_score_counts_soft_taints_that_are_not_tolerated(
    tolerations: list[dict[str, str]], soft: int, both: int
) -> None:
    scores = raw_scores(CLUSTER.plugin(TaintToleration), CLUSTER.pod(tolerations=tolerations), CLUSTER)

    assert scores == {"clean": 0, "hard": 0, "execute": 0, "soft": soft, "both": both}


@pytest.mark.parametrize(("raw", "final"), [([0, 0], [100, 100]), ([0, 1, 3], [100, 67, 0])])
def test_fewer_soft_taints_score_higher(raw: list[int], final: list[int]) -> None:
    plugin: Any = TaintToleration()

    assert plugin.normalize(STATE, CLUSTER.pod(), np.array(raw, dtype=np.int64)).tolist() == final


def test_scoring_is_never_skipped() -> None:
    """A full score on every node still counts in the total."""
    assert CLUSTER.plugin(TaintToleration).pre_score(STATE, CLUSTER.pod(), CLUSTER.columns) is None


def test_many_distinct_taint_sets_are_answered_for_a_few_nodes() -> None:
    """Fewer nodes at issue than there are sets of taints: only the sets that occur are looked at."""
    cluster = SmallCluster(*(node(f"n{i}", taints=[taint(f"k{i}")]) for i in range(20)))
    pod = cluster.pod(tolerations=[{"key": "k3", "operator": "Exists"}])
    some = cluster.columns.take(np.array([3, 4], dtype=np.intp))

    assert cluster.plugin(TaintToleration).filter_nodes(STATE, pod, some).ids.tolist() == [0, 1]


def test_answers_are_shared_by_equal_tolerations_in_any_order() -> None:
    plugin = CLUSTER.plugin(TaintToleration)
    first, second = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists", "tolerationSeconds": 30}

    assert plugin.depends is Depends.NODE
    assert plugin.sign(CLUSTER.pod(tolerations=[first, second])) == plugin.sign(
        CLUSTER.pod(tolerations=[second, first])
    )
    assert plugin.sign(CLUSTER.pod(tolerations=[first])) != plugin.sign(CLUSTER.pod(tolerations=[second]))


def test_a_node_wakes_a_pod_when_its_taints_become_tolerated() -> None:
    event, hint = CLUSTER.plugin(TaintToleration).events_to_register()[0]
    pod = CLUSTER.pod(tolerations=[{"key": "gpu", "operator": "Exists"}])
    tolerated, refused = node(taints=[taint("gpu")]), node(taints=[taint("spot")])

    assert (event.resource, event.action) == (Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
    assert hint(pod, None, tolerated) is Hint.QUEUE
    assert hint(pod, None, refused) is Hint.SKIP
    assert hint(pod, refused, tolerated) is Hint.QUEUE
    assert hint(pod, refused, node()) is Hint.QUEUE
    assert hint(pod, tolerated, node()) is Hint.SKIP
    assert hint(pod, tolerated, refused) is Hint.SKIP


def test_a_change_of_its_own_tolerations_wakes_a_pod() -> None:
    event, hint = CLUSTER.plugin(TaintToleration).events_to_register()[1]
    pod = CLUSTER.pod("p")

    assert (event.resource, event.action) == (Resource.POD, ActionType.UPDATE_POD_TOLERATION)
    assert hint(pod, pod, CLUSTER.pod("p")) is Hint.QUEUE
    assert hint(pod, pod, CLUSTER.pod("other")) is Hint.SKIP
