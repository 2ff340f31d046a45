"""What calls cost."""

from __future__ import annotations

import pytest

from bayplan.cel.cost import Meter, call_cost
from bayplan.cel.errors import CostExceeded, EvaluationError
from bayplan.cel.library.quantity import parse_quantity


@pytest.mark.parametrize(
    ("function", "overload_id", "arguments", "expected"),
    [
        ("_==_", "equals", ["a" * 25, "b" * 15], 2),
        ("_==_", "equals", [parse_quantity("1"), parse_quantity("2")], 1),
        ("_+_", "add_string", ["a" * 11, "b" * 10], 3),
        ("_+_", "add_list", [[1] * 100, [2]], 1),
        ("@in", "in_list", [1, [1, 2, 3]], 3),
        ("matches", "matches_string", ["a" * 9, "abcd"], 1),
        ("matches", "matches", ["a" * 900, "abcd"], 1),
        ("contains", "contains_string", ["a" * 20, "b" * 11], 4),
        ("max", "list_string_max_string", [["a" * 20, "b" * 9]], 2),
        ("replace", None, ["a" * 10, "b", "c"], 2),
        ("quantity", "string_to_quantity", ["10Gi"], 1),
        ("sets.equivalent", "list_sets_equivalent_list", [[1, 2], [3, 4, 5]], 13),
        ("sort", "list_string_sort", [["a", "b", "c"]], 29),
        ("sort", None, [["a", "b", "c"]], 1),
        ("flatten", "list_flatten_int", [[1, 2], 3], 17),
        ("startsWith", "starts_with_string", [EvaluationError("x"), "a"], 1),
    ],
)
def test_calls_cost_by_their_arguments(
    function: str, overload_id: str | None, arguments: list[object], expected: int
) -> None:
    assert call_cost(function, overload_id)(arguments, None) == expected


def test_some_calls_cost_by_their_result() -> None:
    assert call_cost("join", "list_join")([["a"]], "a" * 50) == 10
    assert call_cost("lists.range", "lists_range")([3], [0, 1, 2]) == 14


def test_a_meter_stops_beyond_its_limit() -> None:
    meter = Meter(3)
    meter.charge(3)

    with pytest.raises(CostExceeded):
        meter.charge(1)
    assert meter.cost == 4
