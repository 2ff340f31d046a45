"""The terms of running pods: grouped by what they say, counted by row."""

from __future__ import annotations

import random

from bayplan.cluster.pod_info import PodInfo, pod_info
from bayplan.cluster.resources import ResourceAxis
from bayplan.cluster.shapes import ShapeTable
from bayplan.cluster.term_index import TermIndex, TermKind
from bayplan.testing.build import pod
from bayplan.testing.parts import apart, near

SHAPES = ShapeTable(ResourceAxis())
ZONE = "topology.kubernetes.io/zone"


def _info(name: str, app: str = "x") -> PodInfo:
    sides = [apart(ZONE, {"app": app}), near(ZONE, {"app": app}, weight=5)]
    return pod_info(pod(name, labels={"app": app}, affinity=sides), SHAPES)


def test_pods_of_one_template_share_their_groups() -> None:
    index = TermIndex()
    index.add(_info("a"), 0)
    index.add(_info("b"), 0)
    index.add(_info("c"), 3)

    groups = {group.rule.kind: group for group in index.groups()}
    assert set(groups) == {TermKind.REQUIRED_ANTI_AFFINITY, TermKind.PREFERRED_AFFINITY}
    assert groups[TermKind.PREFERRED_AFFINITY].rule.weight == 5
    assert groups[TermKind.REQUIRED_ANTI_AFFINITY].rows(5).tolist() == [2, 0, 0, 1, 0]


def test_the_column_follows_and_survives_growth() -> None:
    index = TermIndex()
    index.add(_info("a"), 0)
    group = next(iter(index.groups()))
    assert group.rows(2).tolist() == [1, 0]

    index.add(_info("b"), 1)
    index.add(_info("c"), 6)

    assert group.rows(8).tolist() == [1, 1, 0, 0, 0, 0, 1, 0]
    assert group.column(8).rows is group.rows(8)


def test_a_group_without_pods_is_gone() -> None:
    index = TermIndex()
    index.add(_info("a"), 0)
    index.remove(_info("a"), 0)

    assert len(index) == 0
    assert all(not group.counts for group in index.additions)


def test_dead_groups_are_swept_now_and_then_and_readers_can_tell() -> None:
    index = TermIndex()
    rng = random.Random(2)
    for number in range(200):
        index.add(_info("p", app=f"app-{number}"), rng.randrange(4))
        index.remove(_info("p", app=f"app-{number}"), next(iter(next(iter(index.groups())).counts)))

    assert index.compactions > 0
    assert len(index.additions) <= 66


def test_pods_that_no_term_tells_apart_share_a_view() -> None:
    index = TermIndex()
    index.add(_info("a", app="x"), 0)

    first = index.view("default", {"app": "web", "number": "1"})
    assert first is index.view("default", {"number": "2", "app": "db"})
    assert first is not index.view("default", {"number": "2", "app": "x"})
    assert first is not index.view("default", {"number": "2"})
    assert first is not index.view("other", {"app": "web"})
    assert index.view("default", {"app": "x"}).labels == {"app": "x"}
    assert all(first.labels["app"] != value for value in ("web", "db", "another value"))


def test_a_value_that_a_term_names_later_leaves_the_view_of_other_values() -> None:
    index = TermIndex()
    index.add(_info("a", app="x"), 0)
    naming, wide = index.naming, index.view("default", {"app": "web"})
    index.add(_info("b", app="x"), 1)
    assert index.naming == naming

    index.add(_info("c", app="web"), 0)

    assert index.naming > naming
    assert index.view("default", {"app": "db"}) is wide
    assert index.view("default", {"app": "web"}) is not wide

    index.remove(_info("c", app="web"), 0)
    assert index.view("default", {"app": "web"}) is wide


def test_without_terms_no_view_keeps_anything() -> None:
    index = TermIndex()
    index.add(_info("a", app="x"), 0)
    view = index.view("default", {"app": "web"})
    kept = view.note("key", list)
    assert view.note("key", list) is kept

    index.remove(_info("a", app="x"), 0)

    assert view.note("key", list) is not kept
    assert not index._named and not index._naming
