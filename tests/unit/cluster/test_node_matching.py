"""Node selectors and taints as columns say what the one-node forms say."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plugins.small_cluster import KEYS, VALUES, SmallCluster, clusters, node, terms, tolerations

from bayplan.api.node import NodeSelectorTerm, Taint
from bayplan.api.node_selectors import NodeTerm, RequiredNodes, compile_term
from bayplan.api.pod import Toleration
from bayplan.api.tolerations import first_untolerated
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_matching import by_taint_set, has_untolerated_taint, match_required, match_term


def compiled(term: dict[str, Any]) -> NodeTerm:
    return compile_term(msgspec.convert(term, NodeSelectorTerm))


def expression(key: str, operator: str, *values: str) -> NodeTerm:
    return compiled({"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]})


def views(nodes: NodeColumns) -> list[NodeColumns]:
    """All rows, and every second node."""
    return [nodes, nodes.take(np.flatnonzero(nodes.valid)[::2])]


@settings(max_examples=100, deadline=None)
@given(cluster=clusters(), term=terms)
def test_a_term_matches_the_same_nodes_in_both_forms(cluster: SmallCluster, term: dict[str, Any]) -> None:
    wanted = compiled(term)
    for view in views(cluster.columns):
        mask = match_term(wanted, view)
        for position in np.flatnonzero(view.valid).tolist():
            info = view.info(position)
            assert bool(mask[position]) == wanted.matches(info.labels, info.name)


@settings(max_examples=100, deadline=None)
@given(
    cluster=clusters(),
    labels=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2),
    listed=st.none() | st.lists(terms, max_size=3),
)
def test_requirements_match_the_same_nodes_in_both_forms(
    cluster: SmallCluster, labels: dict[str, str], listed: list[dict[str, Any]] | None
) -> None:
    found = None if listed is None else tuple(compiled(term) for term in listed)
    required = RequiredNodes(tuple(sorted(labels.items())), found)
    for view in views(cluster.columns):
        mask = match_required(required, view)
        for position in np.flatnonzero(view.valid).tolist():
            info = view.info(position)
            assert bool(mask[position]) == required.matches(info.labels, info.name)


@settings(max_examples=100, deadline=None)
@given(cluster=clusters(), tolerated=tolerations)
def test_taints_are_refused_alike_in_both_forms(cluster: SmallCluster, tolerated: list[dict[str, str]]) -> None:
    found = msgspec.convert(tolerated, list[Toleration])
    for view in views(cluster.columns):
        mask = has_untolerated_taint(found, view)
        for position in np.flatnonzero(view.valid).tolist():
            refused = first_untolerated(view.info(position).taints, found) is not None
            assert bool(mask[position]) == refused


def test_nothing_required_matches_every_node() -> None:
    cluster = SmallCluster(node("a"), node("b"))

    assert match_required(RequiredNodes((), None), cluster.columns).tolist() == [True, True]


def test_no_terms_at_all_match_no_node() -> None:
    cluster = SmallCluster(node("a"), node("b"))

    assert match_required(RequiredNodes((), ()), cluster.columns).tolist() == [False, False]


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_numbers_are_compared_for_the_values_that_occur(operator: str) -> None:
    """Two nodes at issue of twenty with distinct values: the others' values are not even read."""
    cluster = SmallCluster(*(node(f"n{i}", labels={"gen": str(i)}) for i in range(20)))
    some = cluster.columns.take(np.array([3, 15], dtype=np.intp))

    assert match_term(expression("gen", operator, "9"), some).tolist() == [operator == "Lt", operator == "Gt"]


def test_a_node_without_the_label_is_not_taken_for_the_last_value() -> None:
    cluster = SmallCluster(node("a", labels={"k": "1"}), node("b"), node("c", labels={"k": "2"}))

    assert match_term(expression("k", "In", "2", "9"), cluster.columns).tolist() == [False, False, True]
    assert match_term(expression("k", "Gt", "1"), cluster.columns).tolist() == [False, False, True]
    assert match_term(expression("k", "NotIn", "2", "9"), cluster.columns).tolist() == [True, True, False]


def test_a_name_is_found_among_some_rows() -> None:
    cluster = SmallCluster(node("a"), node("b"), node("c"))
    some = cluster.columns.take(np.array([2, 0], dtype=np.intp))
    named = compiled({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]})
    others = compiled({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]})

    assert match_term(named, some).tolist() == [False, True]
    assert match_term(others, some).tolist() == [True, False]


def test_each_set_of_taints_is_asked_about_once() -> None:
    tainted = [{"key": "k", "effect": "NoSchedule"}]
    cluster = SmallCluster(*(node(f"n{i}", taints=tainted if i % 2 else []) for i in range(10)))
    asked: list[int] = []

    def count(taints: list[Taint]) -> int:
        asked.append(len(taints))
        return len(taints)

    answers = by_taint_set(cluster.columns, count)

    assert sorted(asked) == [0, 1]
    assert answers.tolist() == [0, 1] * 5


def test_a_cluster_without_nodes_has_no_answers() -> None:
    columns = SmallCluster().columns

    assert match_term(expression("k", "In", "a", "b"), columns).tolist() == []
    assert has_untolerated_taint([], columns).tolist() == []
