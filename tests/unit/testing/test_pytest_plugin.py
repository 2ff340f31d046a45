"""The pytest plugin: a fixture, and tables under failed comparisons."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.testing import Harness, cluster, expect, node, pod
from bayplan.testing.pytest_plugin import pytest_assertrepr_compare


def test_the_fixture_makes_harnesses(harness: Callable[..., Harness]) -> None:
    expect(harness(nodes=[node("n1")]).schedule(pod("web"))).scheduled_on("n1")


def test_a_failed_comparison_of_scores_shows_where_the_number_is_from() -> None:
    outcome = Harness(nodes=["n1"]).explain(pod())
    score = expect(outcome).score("TaintToleration", "n1")

    for lines in (pytest_assertrepr_compare("==", score, 50), pytest_assertrepr_compare("<", 50, score)):
        assert lines is not None
        assert "TaintToleration on n1" in lines[0]
        assert "goes to `n1`" in lines[2]


def test_a_failed_comparison_of_the_node_shows_the_decision_as_a_table() -> None:
    outcome = Harness(nodes=["n1", "n2"]).explain(pod())

    for left, right in ((outcome.node_name, "n9"), ("n9", outcome.node_name), (outcome, None)):
        lines = pytest_assertrepr_compare("==", left, right)
        assert lines is not None
        assert "goes to `n" in lines[2]
        assert any("NodeResourcesFit ×1" in line for line in lines)


async def test_on_a_cluster_the_node_of_a_pod_knows_its_decision_too() -> None:
    async with cluster(nodes=2) as local:
        await local.create(pod("web"))
        placed = await local.node_of("web", within=60)

    lines = pytest_assertrepr_compare("==", placed, "elsewhere")
    assert lines is not None
    assert lines[2].startswith(f"pod `default/web` goes to `{placed}`")
    assert any("NodeResourcesFit ×1" in line for line in lines)


def test_other_comparisons_are_left_alone() -> None:
    assert pytest_assertrepr_compare("==", 1, 2) is None
