"""Remembered columns: every way of mending ends with the answers the plugin would give now."""

from __future__ import annotations

import pytest
from tests.unit.framework.runtime.toys import Changes, Crowd, Emptier, Reds, Room, RoomOneByOne, Zones

from bayplan.framework.cycle import CycleState
from bayplan.framework.runtime.node_calls import FilterCall, ScoreCall
from bayplan.framework.runtime.remembered.columns import FEW_ROWS, FilterColumn, ScoreColumn
from bayplan.framework.status import SUCCESS
from bayplan.testing.build import node, pod


def _complain(plugin: str, point: str, exception: BaseException) -> None:
    raise AssertionError(f"{plugin} failed at {point}") from exception


@pytest.mark.parametrize("kind", [Room, RoomOneByOne, Zones, Crowd, Reds])
def test_a_filter_column_keeps_up(kind: type[Room]) -> None:
    changes = Changes(9)
    table, waiting = changes.cache.cluster.nodes, changes.cache.info(pod("waiting"))
    call = FilterCall(kind(), 1, _complain)
    column = FilterColumn(call)
    for _ in range(120):
        changes.step()
        column.refresh(table, waiting)
        verdicts = call.verdicts(CycleState(), waiting, changes.cache.cluster.columns())
        for row in table.row_of.values():
            right = verdicts.status(int(verdicts.ids[row])).by(call.name) if verdicts.ids[row] else SUCCESS
            told = column.status(int(column.ids[row])) if column.ids[row] else SUCCESS
            assert told == right
        assert column.rejects_any or not verdicts.ids.any()


def test_a_score_column_keeps_up() -> None:
    changes = Changes(10)
    table, waiting = changes.cache.cluster.nodes, changes.cache.info(pod("waiting"))
    call = ScoreCall(Emptier(), 1, _complain)
    column = ScoreColumn(call)
    for _ in range(120):
        changes.step()
        column.refresh(table, waiting)
        right = call.raw(CycleState(), waiting, changes.cache.cluster.columns())
        assert [column.values[row] for row in table.row_of.values()] == [right[row] for row in table.row_of.values()]


@pytest.mark.parametrize("changed", [1, FEW_ROWS, FEW_ROWS + 1])
def test_few_rows_and_many_rows_are_mended_alike(changed: int) -> None:
    changes = Changes(11)
    cache, waiting = changes.cache, changes.cache.info(pod("waiting"))
    for number in range(40):
        cache.add_node(node(f"more{number}"))
    column = FilterColumn(FilterCall(Room(), 1, _complain))
    column.refresh(cache.cluster.nodes, waiting)
    epoch = column.epoch
    for number in range(changed):
        for place in range(4):
            cache.add_pod(pod(f"p{number}-{place}", node=f"more{number}"))
        column.refresh(cache.cluster.nodes, waiting)

    rows = [cache.cluster.nodes.row_of[f"more{number}"] for number in range(40)]
    assert [bool(column.ids[row]) for row in rows] == [number < changed for number in range(40)]
    assert column.epoch == epoch


def test_a_raised_version_asks_everything_anew() -> None:
    changes = Changes(12)
    plugin = Room()
    column = FilterColumn(FilterCall(plugin, 1, _complain))
    waiting = changes.cache.info(pod("waiting"))
    column.refresh(changes.cache.cluster.nodes, waiting)
    assert not column.rejects_any

    plugin.most, plugin.version = 0, 1
    column.refresh(changes.cache.cluster.nodes, waiting)

    assert column.rejects_any
