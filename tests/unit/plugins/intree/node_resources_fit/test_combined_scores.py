"""Joined scores are the sum of the scores, to the last point, whatever nodes offer and pods ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.plugins.small_cluster import STATE, SmallCluster, node

from bayplan.cluster.overlay import OverlayColumns
from bayplan.framework import NodeColumns, PodInfo
from bayplan.framework.promises import Shares, Totals
from bayplan.plugins.intree.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.plugins.intree.node_resources_fit import NodeResourcesFit
from bayplan.plugins.intree.node_resources_fit.combined_scores import CpuMemoryScores

_CPU = st.one_of(
    st.sampled_from((1, 2, 3, 100, 999, 4000, 32000)),
    st.integers(1, 1 << 20),
    st.integers((1 << 46) - 50, (1 << 46) - 1),
)
_MEMORY = st.one_of(
    st.sampled_from((1, 7, 1 << 20, 1 << 33, (1 << 35) + 1)),
    st.integers(1, 1 << 40),
    st.integers((1 << 42) - 50, (1 << 42) + 50),
    st.integers((1 << 46) - 50, (1 << 46) - 1),
)
_NONE_OR_HUGE = st.sampled_from((0, 1 << 46, (1 << 46) + 1, 1 << 50, 1 << 53, (1 << 62) - 1))
_AMOUNT = st.one_of(
    st.integers(0, 300),
    st.integers(0, 1 << 40),
    st.integers((1 << 45) - 9, (1 << 46) + 9),
    st.sampled_from((0, 1, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, 1 << 55)),
)
_ASKED = st.tuples(st.none() | _AMOUNT, st.none() | _AMOUNT)
_NODES = st.lists(st.tuples(_CPU, _MEMORY, st.lists(_ASKED, max_size=3)), min_size=1, max_size=6)


def _requests(asked: tuple[int | None, int | None]) -> dict[str, Any]:
    named = {"cpu": None if asked[0] is None else f"{asked[0]}m", "memory": asked[1]}
    requests = {name: amount for name, amount in named.items() if amount is not None}
    return {"containers": [{"name": "c", "image": "app", "resources": {"requests": requests}}]}


def _cluster(nodes: list[tuple[int, int, list[tuple[int | None, int | None]]]]) -> SmallCluster:
    offered = [{"cpu": f"{cpu}m", "memory": str(memory), "pods": "3"} for cpu, memory, _ in nodes]
    cluster = SmallCluster(*(node(f"n{i}", status={"allocatable": each}) for i, each in enumerate(offered)))
    for number, (_, _, running) in enumerate(nodes):
        for place, asked in enumerate(running):
            cluster.run(f"r{number}-{place}", f"n{number}", **_requests(asked))
    return cluster


def _joined(cluster: SmallCluster, *, fit: int, balance: int) -> tuple[CpuMemoryScores, list[tuple[Any, int]]]:
    plugins = (cluster.plugin(NodeResourcesFit), fit), (cluster.plugin(NodeResourcesBalancedAllocation), balance)
    joint = plugins[0][0].combine_scores({plugin.name: (plugin, weight) for plugin, weight in plugins})
    assert isinstance(joint, CpuMemoryScores)
    return joint, list(plugins)


def _check(cluster: SmallCluster, pod: PodInfo, views: list[NodeColumns], *, fit: int = 1, balance: int = 1) -> None:
    joint, plugins = _joined(cluster, fit=fit, balance=balance)
    for view in views:
        out, first = np.zeros(len(view), dtype=np.int32), _room(view)
        scores = [plugin.score_nodes(STATE, pod, view) for plugin, _ in plugins]
        right = sum(score * weight for score, (_, weight) in zip(scores, plugins, strict=True))
        if joint.totals(pod, view, out, first):
            assert out[view.valid].tolist() == right[view.valid].tolist()
            assert first[view.valid].tolist() == scores[0][view.valid].tolist()
    for info in cluster.columns:
        alone = [plugin.score(STATE, pod, info) for plugin, _ in plugins]
        expected = sum(score * weight for score, (_, weight) in zip(alone, plugins, strict=True))
        assert joint.total(pod, info) in (None, (expected, alone[0]))


def _sums(view: NodeColumns) -> Totals:
    return np.zeros(len(view), dtype=np.int32)


def _room(view: NodeColumns) -> Shares:
    return np.zeros(len(view), dtype=np.uint8)


@settings(max_examples=300, deadline=None)
@given(nodes=_NODES, asked=_ASKED, weights=st.sampled_from(((1, 1), (1, 3), (2, 1), (100, 7))))
@example(nodes=[(3, 7, [])], asked=(1, 1), weights=(1, 1))
@example(nodes=[(1000, 1000, [(100, 300)])], asked=(200, 0), weights=(1, 1))
@example(nodes=[((1 << 46) - 1, (1 << 46) - 1, [(1, 1)])], asked=((1 << 46) - 2, (1 << 46) - 2), weights=(1, 1))
def test_the_sum_is_that_of_both_scores(
    nodes: list[tuple[int, int, list[tuple[int | None, int | None]]]],
    asked: tuple[int | None, int | None],
    weights: tuple[int, int],
) -> None:
    cluster = _cluster(nodes)
    columns = cluster.columns
    some = columns.take(np.arange(0, len(columns), 2))
    pod = cluster.pod(**_requests(asked))

    _check(cluster, pod, [columns, some], fit=weights[0], balance=weights[1])
    assert _joined(cluster, fit=1, balance=1)[0].totals(
        pod, columns, np.zeros(len(columns), dtype=np.int32), _room(columns)
    )


@settings(max_examples=100, deadline=None)
@given(nodes=_NODES, cpu=_NONE_OR_HUGE, memory=_NONE_OR_HUGE, asked=_ASKED)
def test_there_is_no_joint_answer_where_a_node_offers_nothing_or_more_than_floats_hold(
    nodes: list[tuple[int, int, list[tuple[int | None, int | None]]]],
    cpu: int,
    memory: int,
    asked: tuple[int | None, int | None],
) -> None:
    cluster = _cluster([*nodes, (cpu, memory, [])])
    pod = cluster.pod(**_requests(asked))

    joint, _ = _joined(cluster, fit=1, balance=1)

    assert not joint.totals(
        pod, cluster.columns, np.zeros(len(cluster.columns), dtype=np.int32), _room(cluster.columns)
    )
    _check(cluster, pod, [])
    assert joint.total(pod, cluster.columns.info(len(nodes))) is None


@settings(max_examples=200, deadline=None)
@given(nodes=_NODES, more=st.lists(st.tuples(_NONE_OR_HUGE, _NONE_OR_HUGE), max_size=1), asked=_ASKED)
def test_who_has_room_is_the_same_by_facts_and_by_looking_at_each_node(
    nodes: list[tuple[int, int, list[tuple[int | None, int | None]]]],
    more: list[tuple[int, int]],
    asked: tuple[int | None, int | None],
) -> None:
    """Places for pods are scarce, too: some nodes hold as many as they may."""
    cluster = _cluster([*nodes, *((cpu, memory, []) for cpu, memory in more)])
    plugin, pod = cluster.plugin(NodeResourcesFit), cluster.pod(**_requests(asked))

    columns = cluster.columns
    right = [plugin.filter(STATE, pod, info) for info in columns]
    for view in (columns, columns.take(np.arange(0, len(columns), 2))):
        found = plugin.filter_nodes(STATE, pod, view)
        told = [found.status(number) if number else None for number in found.ids.tolist()]
        assert told == [right[row] for row in view.rows.tolist()]
    if plugin.accepts_all(pod, columns):
        assert right == [None] * len(right)


@settings(max_examples=60, deadline=None)
@given(nodes=_NODES, asked=_ASKED, gone=st.integers(0, 5))
def test_a_row_without_a_node_changes_nothing_for_the_others(
    nodes: list[tuple[int, int, list[tuple[int | None, int | None]]]],
    asked: tuple[int | None, int | None],
    gone: int,
) -> None:
    cluster = _cluster([*nodes, (4000, 1 << 33, [])])
    cluster.cache.remove_node(f"n{gone % len(nodes)}")

    _check(cluster, cluster.pod(**_requests(asked)), [cluster.columns])


def test_a_dry_run_has_no_joint_answer() -> None:
    cluster = _cluster([(4000, 1 << 33, [])])
    joint, _ = _joined(cluster, fit=1, balance=1)
    overlay = OverlayColumns(cluster.state.nodes, np.array([0], dtype=np.intp))

    assert not joint.totals(cluster.pod(**_requests((1, 1))), overlay, np.zeros(1, dtype=np.int32), _room(overlay))


@pytest.mark.parametrize(
    ("fit", "balance"),
    [
        ({"scoringStrategy": {"type": "MostAllocated"}}, {}),
        ({"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]}}, {}),
        (
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 2}],
                }
            },
            {},
        ),
        ({}, {"resources": [{"name": "memory", "weight": 1}, {"name": "cpu", "weight": 1}]}),
        ({}, {"resources": [{"name": "cpu", "weight": 1}]}),
    ],
)
def test_scores_are_joined_only_as_both_plugins_are_by_default(fit: dict[str, Any], balance: dict[str, Any]) -> None:
    cluster = SmallCluster()
    plugins = [cluster.plugin(NodeResourcesFit, **fit), cluster.plugin(NodeResourcesBalancedAllocation, **balance)]

    assert plugins[0].combine_scores({plugin.name: (plugin, 1) for plugin in plugins}) is None


def test_absurd_weights_are_not_joined() -> None:
    cluster = SmallCluster()
    plugins = [cluster.plugin(NodeResourcesFit), cluster.plugin(NodeResourcesBalancedAllocation)]

    assert plugins[0].combine_scores({plugin.name: (plugin, 1 << 40) for plugin in plugins}) is None
    assert plugins[0].combine_scores({plugins[0].name: (plugins[0], 1)}) is None


def test_a_plugin_that_scores_otherwise_is_not_joined() -> None:
    class Contrary(NodeResourcesBalancedAllocation):
        name = "NodeResourcesBalancedAllocation"

    cluster = SmallCluster()
    fit, contrary = cluster.plugin(NodeResourcesFit), cluster.plugin(Contrary)

    assert fit.combine_scores({fit.name: (fit, 1), contrary.name: (contrary, 1)}) is None
