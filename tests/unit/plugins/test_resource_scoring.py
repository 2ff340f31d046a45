"""Percentages as Go computes them, and cpu and memory as floats: rows updated singly equal rows computed at once."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayplan.cache import Cache
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.overlay import overlay_of
from bayplan.plugins.resource_scoring import NO_NEED, CpuMemoryFacts, balance_of, cpu_memory_facts, percent, percent_of
from bayplan.testing import Harness, node, pod

EXBIBYTE = 2**60


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        (1, 3, 33),
        (EXBIBYTE // 1024, EXBIBYTE, 0),
        (EXBIBYTE, EXBIBYTE, 4),  # 100 * 2**60 wraps around to 2**62
        (EXBIBYTE - 1000, EXBIBYTE, 3),
        (EXBIBYTE // 8, EXBIBYTE, -3),  # 12.5 * 2**60 wraps around to -3.5 * 2**60, and division truncates
    ],
)
def test_a_percentage_wraps_around_as_it_does_in_go(part: int, whole: int, expected: int) -> None:
    cache = Cache()
    cache.add_node(node("n1", memory="1Ei"))
    columns = cache.cluster.columns()

    assert percent_of(part, whole) == expected
    assert percent(np.array([part]), np.array([whole]), columns).tolist() == [expected]


def test_a_node_with_an_exbibyte_scores_the_same_whether_mended_or_computed_anew() -> None:
    scores = []
    for remember in (True, False):
        harness = Harness(nodes=[node("huge", cpu="99999m", memory="1Ei"), node("other", cpu=4)], remember=remember)
        for number in range(4):
            outcome = harness.schedule(pod(f"p{number}", cpu="1", memory="3Gi"))
        scores.append(harness.explain(pod("last", cpu="1", memory="3Gi")).scores)

    assert scores[0] == scores[1]
    assert outcome.scores


def test_mended_rows_equal_rows_computed_at_once() -> None:
    rng = random.Random(1)
    cache = Cache()
    table = cache.cluster.nodes
    for step in range(400):
        name = f"n{rng.randrange(12)}"
        action = rng.randrange(10)
        if action == 0:
            cache.remove_node(name)
        elif action == 1:
            cache.add_node(
                node(name, cpu=rng.choice((0, 3, 7)), memory=f"{rng.randrange(1, 90)}Gi", pods=rng.randrange(5))
            )
        elif action < 4 and len(cache):
            cache.remove_pod(rng.choice([each.uid for each in cache.pods()]))
        else:
            asked = {"cpu": f"{rng.randrange(3000)}m"} if rng.random() < 0.8 else {}
            cache.add_pod(pod(f"p{step}", node=name, requests=asked | {"memory": rng.randrange(1 << 35)}))
        kept = table.derived(CpuMemoryFacts).refreshed()[:, : table.size]
        fresh = np.zeros((CpuMemoryFacts.HEIGHT, table.size))
        CpuMemoryFacts(table).write_all(fresh)
        rows = list(table.row_of.values())
        assert (kept[:, rows] == fresh[:, rows]).all()
        assert (table.derived(CpuMemoryFacts).parts(None).lean[rows] == kept[CpuMemoryFacts.LEAN, rows]).all()


def test_what_every_node_has_is_known_without_looking_at_each() -> None:
    """Whatever came and went before, the answer is that of comparing with every node."""
    rng = random.Random(2)
    cache = Cache()
    table = cache.cluster.nodes
    for number in range(9):
        cache.add_node(node(f"n{number}", cpu=4, memory="8Gi", pods=4))
    asked = []
    for step in range(1500):
        name = f"n{rng.randrange(9)}"
        action = rng.randrange(12)
        if action == 0:
            cache.remove_node(name)
        elif action == 1:
            cache.add_node(node(name, cpu=4, memory="8Gi", pods=rng.choice((3, 4, 9))))
        elif action < 6 and len(cache):
            cache.remove_pod(rng.choice([each.uid for each in cache.pods()]))
        else:
            cpu, memory = rng.choice((100, 1000)), rng.choice((1 << 28, 1 << 31))
            cache.add_pod(pod(f"p{step}", node=name, requests={"cpu": f"{cpu}m", "memory": memory}))
        facts = cache.cluster.columns().derivation(CpuMemoryFacts)
        assert facts is not None
        needs = (
            rng.choice((NO_NEED, 1000.0 * 100, 3000.0 * 100)),
            rng.choice((NO_NEED, float(1 << 32) * 100)),
            rng.choice((NO_NEED, 0.0, 1000.0, 4000.0)),
            rng.choice((NO_NEED, float(1 << 32))),
            rng.choice((NO_NEED, 0.0, 1.0, 3.0)),
        )
        columns = facts.refreshed()[list(CpuMemoryFacts.FLOORED), : table.size][:, table.valid[: table.size]]

        asked.append(facts.has_everywhere(needs))

        assert asked[-1] == bool((columns >= np.array(needs)[:, None]).all()), f"step {step}"
    assert {True, False} == set(asked)


@given(st.integers(1, 1 << 42), st.integers(0, 100), st.integers(-2, 2))
@example(1 << 42, 99, -1)
@example((1 << 42) - 1, 100, -1)
@example(3, 33, 0)
@example(100, 29, 0)
def test_a_product_with_the_inverse_gives_whole_shares(offered: int, share: int, beside: int) -> None:
    """Just at, just below and just above every whole share, the floor of the product is that of the quotient."""
    cache = Cache()
    cache.add_node(node("n", cpu="1m", memory=offered))
    spare = min(max(offered * share // 100 + beside, 0), offered)
    facts = NodeColumns(cache.cluster.nodes).derivation(CpuMemoryFacts)
    assert facts is not None and facts.is_exact

    (_, found) = facts.share([[0.0], [spare * 100.0]], facts.parts(None).of_spare)

    assert facts.share is np.multiply
    assert int(found[0]) == spare * 100 // offered


def test_amounts_beyond_that_are_divided() -> None:
    cache = Cache()
    cache.add_node(node("n", cpu=1, memory=(1 << 42) + 1))
    facts = NodeColumns(cache.cluster.nodes).derivation(CpuMemoryFacts)
    assert facts is not None and facts.is_exact

    assert facts.share is np.divide
    assert facts.parts(None).of_spare[1] == (1 << 42) + 1


def test_balance_goes_from_even_to_one_sided() -> None:
    fractions = np.array([[0.5, 1.0, 2.0, 0.25], [0.5, 0.0, 1.0, 0.75]])

    assert balance_of(fractions).tolist() == [100, 50, 100, 75]


def test_facts_are_for_clusters_where_every_node_has_both_and_amounts_are_ordinary() -> None:
    cache = Cache()
    cache.add_node(node("a"))
    assert cpu_memory_facts(cache.cluster.columns()) is not None
    assert cpu_memory_facts(overlay_of(cache.cluster.nodes, 0)) is None
    cache.add_node(node("b", memory=0))
    assert cpu_memory_facts(cache.cluster.columns()) is None
    cache.remove_node("b")
    cache.add_node(node("huge", memory=1 << 50))
    assert cpu_memory_facts(cache.cluster.columns()) is None
