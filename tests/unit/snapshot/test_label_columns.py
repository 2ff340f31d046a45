"""Label columns: value ids by row, what is present, and bins for counting."""

from __future__ import annotations

from bayplan.snapshot.axes import ABSENT
from bayplan.snapshot.label_columns import LabelColumn


def test_equal_values_share_an_id_and_absence_is_no_value() -> None:
    column = LabelColumn("zone", 4)
    column.set(0, "a")
    column.set(1, "b")
    column.set(2, "a")

    assert column.values.tolist() == [0, 1, 0, ABSENT]
    assert column.names == ["a", "b"]
    assert column.id_of("b") == 1
    assert column.id_of("c") == ABSENT
    assert column.present == 3
    assert column.values_in_use() == 2


def test_a_value_that_nobody_has_any_more_keeps_its_id_but_is_not_in_use() -> None:
    column = LabelColumn("zone", 2)
    column.set(0, "a")
    column.set(0, "b")
    column.set(0, None)

    assert column.domains == 2
    assert column.values_in_use() == 0
    assert column.present == 0


def test_bins_put_rows_without_the_key_last_and_change_with_the_column() -> None:
    column = LabelColumn("zone", 3)
    column.set(0, "a")
    first = column.bins()
    assert first.tolist() == [0, 1, 1]
    assert column.bins() is first

    column.set(1, "b")

    assert column.bins().tolist() == [0, 1, 2]
    assert first.tolist() == [0, 1, 1], "who counts by the old bins must not see them change"


def test_a_column_is_injective_while_no_two_nodes_share_a_value() -> None:
    column = LabelColumn("host", 3)
    column.set(0, "a")
    column.set(1, "b")
    assert column.is_injective
    column.set(1, "a")
    assert not column.is_injective
    column.set(0, None)
    assert column.is_injective


def test_growing_adds_rows_without_the_key() -> None:
    column = LabelColumn("zone", 1)
    column.set(0, "a")
    before = column.version
    column.grow(3)

    assert column.values.tolist() == [0, ABSENT, ABSENT]
    assert column.version > before
