"""The pytest plugin: a fixture, and tables under failed comparisons."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.testing import Harness, expect, node, pod
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


def test_other_comparisons_are_left_alone() -> None:
    assert pytest_assertrepr_compare("==", 1, 2) is None
