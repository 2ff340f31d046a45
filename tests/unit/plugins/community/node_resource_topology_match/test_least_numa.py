"""LeastNUMANodes in columns agrees with the plain form, and layouts are shared and let go."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.unit.plugins.community.node_resource_topology_match.test_plugin import (
    DEVICE,
    NAME,
    _harness,
    _random_pod,
    _topology,
    _zone,
)

from bayplan.framework import CycleState
from bayplan.plugins.community.node_resource_topology_match.least_numa import Layouts, least_numa_scores
from bayplan.plugins.community.node_resource_topology_match.topology import NumaCell, NumaTopology, TopologySettings
from bayplan.testing import node


def _matrix(rng: Random, count: int) -> list[dict[int, int]]:
    """Distances, some of them unknown."""
    costs = [
        {other: 10 if other == one else rng.choice([11, 12, 20]) for other in range(count)} for one in range(count)
    ]
    for row in costs:
        if rng.random() < 0.2:
            row.pop(rng.randrange(count), None)
    return costs


def _machine(rng: Random, name: str, layout: list[dict[int, int]]) -> Any:
    zones = []
    for number, costs in enumerate(layout):
        listed = {"cpu": rng.randint(0, 4), "memory": f"{rng.randint(0, 5)}Gi", "gpu": rng.randint(0, 2)}
        zones.append(_zone(number, costs, **{key: value for key, value in listed.items() if rng.random() < 0.9}))
    most = {"topologyManagerMaxNUMANodes": str(rng.choice([2, 8, 12]))}
    return _topology(
        name, *zones, scope=rng.choice(["pod", "container"]), policy=rng.choice(["none", "restricted"]), **most
    )


@pytest.mark.parametrize("seed", range(8))
def test_columns_agree_with_the_plain_form(seed: int) -> None:
    rng = Random(seed)
    layouts = [_matrix(rng, count) for count in (0, 1, 2, 4, 5)]
    names = [f"n{i}" for i in range(80)]
    topologies = [_machine(rng, name, rng.choice(layouts)) for name in names]
    nodes = [node(name, cpu=64, memory="64Gi", allocatable={DEVICE: 8}) for name in names]
    harness = _harness(*topologies, nodes=nodes, scoringStrategy={"type": "LeastNUMANodes"})
    plugin, columns, state = harness.plugin(NAME), harness.cluster.columns(), CycleState()

    for number in range(12):
        info = harness.info(_random_pod(rng, f"p{number}"))
        plain = [plugin.score(state, info, columns.info(i)) for i in range(len(columns))]

        assert plugin.score_nodes(state, info, columns).tolist() == plain


def _cells(count: int, cost: int = 10) -> NumaTopology:
    cells = tuple(NumaCell(number, {}, {}, {number: cost}) for number in range(count))
    return NumaTopology(TopologySettings(), cells, "", "")


def test_equal_cells_and_distances_are_one_layout() -> None:
    layouts = Layouts()
    first, same, other = layouts.of(_cells(2)), layouts.of(_cells(2)), layouts.of(_cells(2, cost=11))

    assert first is same
    assert first is not other
    assert layouts.numbered(first.number) is first


def test_a_layout_that_no_node_has_is_let_go() -> None:
    layouts = Layouts()
    number = layouts.of(_cells(3)).number
    gc.collect()

    with pytest.raises(KeyError):
        layouts.numbered(number)


@pytest.mark.parametrize(("count", "plain", "optimal"), [(1, 88, 94), (2, 76, 82), (8, 4, 10)])
def test_scores_are_those_of_the_original(count: int, plain: int, optimal: int) -> None:
    """Of eight cells at most: one cell 88, or 94 where there is no nearer choice, and so on."""
    layout = Layouts().of(_cells(8))
    available = {"cpu": np.ones((8, 1), dtype=np.int64)}

    scores = least_numa_scores(
        layout, available, [{"cpu": count}], most_cells=np.array([8], dtype=np.int64), not_listed=-1
    )

    assert scores.tolist() == [optimal]
    assert optimal - plain == 6
