"""The pod index: standing counts stay right while pods come and go, whichever index finds them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from bayplan.api.selectors import EVERYTHING, Requirement, Selector, from_labels
from bayplan.cluster.pod_index import PodIndex, PodQuery
from bayplan.cluster.pod_info import PodInfo, pod_info
from bayplan.cluster.resources import ResourceAxis
from bayplan.cluster.shapes import ShapeTable
from bayplan.cluster.state import ClusterState
from bayplan.testing import namespace
from bayplan.testing.build import pod

SHAPES = ShapeTable(ResourceAxis())


def _info(name: str, *, namespace: str = "default", terminating: bool = False, **labels: str) -> PodInfo:
    return pod_info(pod(name, namespace=namespace, labels=labels, terminating=terminating), SHAPES)


def _index(capacity: int = 4, **limits: int) -> PodIndex:
    index = PodIndex(**limits)
    index.grow(capacity)
    return index


def _query(namespace: str | None = "default", **labels: str) -> PodQuery:
    return PodQuery(((None if namespace is None else frozenset((namespace,)), from_labels(labels)),))


def test_a_counter_counts_what_is_there_and_what_comes() -> None:
    index = _index()
    index.add(_info("a", app="x"), 0)
    counter = index.counter(_query(app="x"))
    index.add(_info("b", app="x"), 2)
    index.add(_info("c", app="y"), 2)
    index.remove(_info("a", app="x"), 0)

    assert counter.rows.tolist() == [0, 0, 1, 0]
    assert index.counter(_query(app="x")) is counter


def test_a_class_that_appears_later_is_met_by_every_kind_of_query() -> None:
    index = _index()
    exists = Selector((Requirement("app", "Exists", frozenset()),))
    queries = [
        _query(app="x"),
        _query(None, app="x"),
        PodQuery(((frozenset(("default",)), exists),)),
        PodQuery(((frozenset(("default", "other")), EVERYTHING),)),
        PodQuery(((None, EVERYTHING), (frozenset(("default",)), from_labels({"app": "x"})))),
    ]
    counters = [index.counter(query) for query in queries]

    index.add(_info("late", app="x", tier="1"), 1)

    assert [int(counter.rows[1]) for counter in counters] == [1] * 5


def test_terminating_pods_count_only_where_asked_for() -> None:
    index = _index()
    index.add(_info("going", app="x", terminating=True), 3)

    assert index.counter(_query(app="x")).rows[3] == 1
    assert index.counter(_query(app="x")._replace(counts_terminating=False)).rows[3] == 0


def test_counters_that_nobody_asks_for_are_dropped_and_come_back_right() -> None:
    index = _index(most_counters=2)
    first = index.counter(_query(app="x"))
    index.counter(_query(app="y"))
    index.counter(_query(app="z"))

    index.add(_info("a", app="x"), 0)

    assert first.rows[0] == 0, "dropped, so it no longer follows"
    assert index.counter(_query(app="x")).rows[0] == 1
    assert len(list(index.counters())) == 2


def test_growing_keeps_the_counts() -> None:
    index = _index(2)
    index.add(_info("a", app="x"), 1)
    counter = index.counter(_query(app="x"))
    index.grow(5)
    index.add(_info("b", app="x"), 4)

    assert counter.rows.tolist() == [0, 1, 0, 0, 1]


def test_long_histories_end_where_counting_anew_would() -> None:
    rng = random.Random(5)
    index = _index(6, most_counters=5)
    queries = [_query(ns, app=app) for ns in ("default", "other", None) for app in ("x", "y")]
    queries += [
        PodQuery(((None, EVERYTHING),)),
        PodQuery(((frozenset(("other",)), EVERYTHING),), counts_terminating=False),
    ]
    placed: list[tuple[PodInfo, int]] = []
    for step in range(400):
        if placed and rng.random() < 0.4:
            info, row = placed.pop(rng.randrange(len(placed)))
            index.remove(info, row)
        else:
            namespace, app = rng.choice(("default", "other")), rng.choice("xyz")
            info = _info(f"p{step}", namespace=namespace, app=app, terminating=rng.random() < 0.2)
            placed.append((info, row := rng.randrange(6)))
            index.add(info, row)
        query = rng.choice(queries)
        right = np.zeros(6, dtype=np.int32)
        for info, row in placed:
            right[row] += query.matches(info.namespace, info.labels, is_terminating=info.is_terminating)
        assert index.counter(query).rows.tolist() == right.tolist()


def test_counters_that_nobody_reads_are_dropped_and_come_back_right() -> None:
    index = _index()
    read = _query(None, app="x")
    unread = [PodQuery(((None, Selector((Requirement("k", "NotIn", frozenset((str(i),))),))),)) for i in range(100)]
    for query in unread:
        index.counter(query)
    for number in range(300):
        index.add(_info(f"p{number}", app="x"), number % 4)
        assert index.counter(read).rows.sum() == number + 1

    assert [counter.query for counter in index.counters()] == [read]
    assert index.counter(unread[7]).rows.tolist() == [75] * 4


def test_counters_that_are_asked_about_new_classes_and_never_read_are_dropped_and_come_back_right() -> None:
    index = _index()
    others = [Selector((Requirement("app", "NotIn", (f"x{number}",)),)) for number in range(1000)]
    for selector in others:
        index.counter(PodQuery(((None, selector),)))
    for number in range(5):
        index.add(_info(f"job-{number}", job=str(number)), 1)

    assert not list(index.counters())
    assert index.counter(PodQuery(((None, others[0]),))).rows.tolist() == [0, 5, 0, 0]


def test_pods_with_very_many_labels_are_counted_and_fill_no_index() -> None:
    index, many = _index(), {f"l{number}": "v" for number in range(1000)}
    index.add(_info("a", app="x", **many), 0)
    counter = index.counter(_query(app="x"))
    index.add(_info("b", app="x"), 1)
    index.add(_info("c", app="x", **many, c="c"), 2)

    assert counter.rows.tolist() == [1, 1, 1, 0]
    assert len(index._by_label) == 1
    index.remove(_info("a", app="x", **many), 0)
    index.remove(_info("c", app="x", **many, c="c"), 2)
    assert counter.rows.tolist() == [0, 1, 0, 0]
    assert index._much_labelled == {}


def test_terms_that_select_many_namespaces_do_not_fill_the_index() -> None:
    index = _index()
    index.add(_info("a", namespace="n7", app="x"), 1)
    many = frozenset(f"n{number}" for number in range(1000))
    counter = index.counter(PodQuery(((many, from_labels({"app": "x"})),)))
    index.add(_info("b", namespace="n8", app="x"), 1)
    index.add(_info("c", namespace="elsewhere", app="x"), 1)

    assert int(counter.rows[1]) == 2
    assert len(index._counters_at) == 1


def test_a_query_of_many_parts_is_compared_once_with_classes_that_it_does_not_tell_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index, compared = _index(), []
    matches = PodQuery.matches

    def counting(query: PodQuery, namespace: str, labels: Any, **more: Any) -> bool:
        compared.append(labels)
        return matches(query, namespace, labels, **more)

    monkeypatch.setattr(PodQuery, "matches", counting)
    parts = tuple((None, Selector((Requirement("app", "NotIn", frozenset((f"x{i}",))),))) for i in range(100))
    for number in range(20):
        index.add(_info(f"p{number}", app="web", index=str(number)), number % 4)
    counter = index.counter(PodQuery(parts))
    for number in range(20, 40):
        index.add(_info(f"p{number}", app="web", index=str(number)), number % 4)
        index.counter(PodQuery(parts))
    index.add(_info("other", app="x7", index="1"), 0)

    assert counter.rows.tolist() == [10, 10, 10, 10]
    assert len(compared) == 2


def test_counters_for_namespaces_that_changed_are_dropped() -> None:
    cluster, index = ClusterState(), _index()
    for number in range(300):
        cluster.objects.put(namespace(f"n{number}", labels={"name": f"n{number}"}))
    many = cluster.namespaces.select(frozenset(), Selector((Requirement("name", "Exists", frozenset()),)))
    counter = index.counter(PodQuery(((many, from_labels({"app": "x"})),)))
    index.add(_info("a", namespace="n7", app="x"), 1)
    assert counter.rows.tolist() == [0, 1, 0, 0]

    cluster.objects.put(namespace("n7"))
    index.add(_info("b", namespace="elsewhere", app="y"), 0)

    assert not list(index.counters()) and not index._ruled and not index._counters_at


def test_counters_that_mean_no_pod_are_dropped_when_nobody_reads_them() -> None:
    index = _index()
    read, unread = _query(app="x"), [_query("nowhere", app=f"y{number}") for number in range(50)]
    for query in unread:
        index.counter(query)
    for number in range(2100):
        index.counter(read)
        index.add(_info(f"p{number}", app="x"), number % 4)

    assert [counter.query for counter in index.counters()] == [read]
    assert index.counter(read).rows.sum() == 2100
