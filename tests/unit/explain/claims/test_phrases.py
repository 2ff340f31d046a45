"""Pieces of sentences."""

from __future__ import annotations

import pytest

from bayplan.explain.claims.phrases import cores


@pytest.mark.parametrize(
    ("quantity", "said"),
    [("492500m", "492.5"), ("36100m", "36.1"), ("1001m", "1.001"), ("250m", "250m"), ("64", "64"), ("8Gi", "8Gi")],
)
def test_cores_are_said_in_cores_and_less_than_one_in_thousandths(quantity: str, said: str) -> None:
    assert cores(quantity) == said
