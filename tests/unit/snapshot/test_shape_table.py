"""Shapes are shared while somebody has them, and gone afterwards: unique labels must not fill the memory."""

from __future__ import annotations

import gc

from bayplan.snapshot.resources import ResourceAxis
from bayplan.snapshot.shapes import ShapeTable
from bayplan.testing import pod


def test_pods_of_one_template_share_a_shape() -> None:
    table = ShapeTable(ResourceAxis())
    first = table.shape_of(pod("a", labels={"app": "web"}))

    assert table.shape_of(pod("b", labels={"app": "web"})) is first


def test_a_shape_that_no_pod_has_is_let_go() -> None:
    table = ShapeTable(ResourceAxis())
    for number in range(100):
        table.shape_of(pod("job", labels={"job": str(number)}))
    gc.collect()

    assert len(table) == 0


def test_a_shape_that_comes_again_gets_another_number() -> None:
    table = ShapeTable(ResourceAxis())
    first = table.shape_of(pod("a")).number
    gc.collect()

    assert table.shape_of(pod("a")).number != first
