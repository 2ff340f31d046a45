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


def test_shapes_that_no_pod_has_are_let_go_but_for_the_latest() -> None:
    table = ShapeTable(ResourceAxis())
    for number in range(3_000):
        table.shape_of(pod("job", labels={"job": str(number)}))
    gc.collect()

    assert len(table) <= 1_024


def test_a_shape_stays_while_a_pod_has_it() -> None:
    table = ShapeTable(ResourceAxis())
    kept = table.shape_of(pod("a"))
    for number in range(3_000):
        table.shape_of(pod("job", labels={"job": str(number)}))

    assert table.shape_of(pod("b")) is kept
