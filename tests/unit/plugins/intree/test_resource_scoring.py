"""Percentages as Go computes them, also where the product does not fit into 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from bayplan.cache import Cache
from bayplan.plugins.intree.resource_scoring import percent, percent_of
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
