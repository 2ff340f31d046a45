"""Label columns: value ids by row, what is present, and bins for counting."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.axes import ABSENT
from bayplan.cluster.label_columns import MOST_COLUMNS, LabelColumn, LabelColumns


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


def test_the_id_of_a_value_that_nobody_has_any_more_goes_to_the_next_new_value() -> None:
    column = LabelColumn("zone", 2)
    column.set(0, "a")
    column.set(1, "b")
    column.set(0, None)

    assert column.id_of("a") == ABSENT
    assert (column.domains, column.values_in_use(), column.present) == (2, 1, 1)

    column.set(0, "c")

    assert column.names == ["c", "b"]
    assert column.values.tolist() == [0, 1]
    assert (column.domains, column.values_in_use(), column.present) == (2, 2, 2)


def test_a_value_keeps_its_id_while_one_node_has_it() -> None:
    column = LabelColumn("zone", 3)
    for row in range(3):
        column.set(row, "a")
    column.set(0, "b")
    column.set(1, None)

    assert column.id_of("a") == 0
    assert column.values.tolist() == [1, ABSENT, 0]


def test_a_row_that_says_the_same_again_changes_nothing() -> None:
    column = LabelColumn("zone", 2)
    column.set(0, "a")
    version = column.version
    column.set(0, "a")
    column.set(1, None)

    assert column.version == version
    column.set(0, None)
    assert column.values_in_use() == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, "", "a", "b", "c", "d", "e"])), max_size=60))
def test_whatever_comes_and_goes_a_column_says_what_the_rows_say(changes: list[tuple[int, str | None]]) -> None:
    column, rows = LabelColumn("zone", 4), dict.fromkeys(range(4))
    for row, value in changes:
        column.set(row, value)
        rows[row] = value
    held = [value for value in rows.values() if value is not None]

    names = [None if number == ABSENT else column.names[number] for number in column.values.tolist()]
    assert names == list(rows.values())
    assert column.values_in_use() == len(set(held))
    assert column.present == len(held)
    assert column.is_injective == (len(set(held)) == len(held))
    assert column.domains <= 4, "no more ids than rows"
    assert {value for value in "abcde" if column.id_of(value) != ABSENT} == set(held) - {""}


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
    found = []
    for row, value in ((1, "b"), (1, "a"), (0, None)):
        column.set(row, value)
        found.append(column.is_injective)

    assert found == [True, False, True]


def test_growing_adds_rows_without_the_key() -> None:
    column = LabelColumn("zone", 1)
    column.set(0, "a")
    before = column.version
    column.grow(3)

    assert column.values.tolist() == [0, ABSENT, ABSENT]
    assert column.version > before


def test_columns_that_nobody_needs_any_more_make_room_when_a_node_changes() -> None:
    """Pods may name any number of keys. What was asked for last stays; the rest comes back when asked for again."""
    columns = LabelColumns(2)
    keys = [f"key-{number}" for number in range(MOST_COLUMNS + 1)]
    columns.set_row(1, dict.fromkeys(keys, "x"))
    for key in keys[:-1]:
        columns.column(key)
    columns.set_row(0, {})
    assert len(list(columns)) == MOST_COLUMNS
    asked_last = columns.column(keys[-1])
    assert len(list(columns)) == MOST_COLUMNS + 1, "a column must not vanish while a decision may be using it"

    columns.set_row(0, {keys[-1]: "y"})

    assert len(list(columns)) == MOST_COLUMNS // 2
    assert columns.column(keys[-1]) is asked_last
    assert asked_last.values.tolist() == [1, 0]
    assert columns.column(keys[0]).values.tolist() == [ABSENT, 0]


def test_keys_that_no_node_has_take_no_memory_until_one_has_them() -> None:
    columns = LabelColumns(2)
    columns.set_row(0, {"zone": "a"})
    absent = {columns.column(f"made-up-{number}") for number in range(1000)}
    assert len(absent) == 1
    assert absent.pop().values.tolist() == [ABSENT, ABSENT]
    assert list(columns) == []

    columns.grow(3)
    columns.set_row(2, {"made-up-7": "x"})
    assert columns.column("made-up-7").values.tolist() == [ABSENT, ABSENT, 0]
    assert columns.column("made-up-8").values.tolist() == [ABSENT] * 3

    columns.set_row(2, {})
    assert columns.column("made-up-7").values.tolist() == [ABSENT] * 3


def test_ids_of_values_that_some_node_has_are_known() -> None:
    column = LabelColumn("zone", 4)
    for row, zone in enumerate("abac"):
        column.set(row, zone)
    assert column.ids_in_use() == [0, 1, 2]

    column.set(1, None)

    assert column.ids_in_use() == [0, 2]


def test_a_column_whose_ids_are_the_rows_says_so_until_they_are_not() -> None:
    column = LabelColumn("host", 4)
    for row in range(3):
        column.set(row, f"n{row}")
    column.bins()
    assert column.is_rows

    column.set(1, None)
    column.bins()
    assert not column.is_rows

    column.set(1, "n0")
    column.bins()
    assert not column.is_rows
