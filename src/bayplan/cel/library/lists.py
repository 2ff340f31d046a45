"""List functions: Kubernetes' own (`isSorted`, `sum`, `min`, `max`, `indexOf`), and those of the CEL extensions,
version 3 (`slice`, `flatten`, `sort`, `sortBy`, `lists.range`, `reverse`, `distinct`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise

from bayplan.cel.declarations import Function, Library, Overload, function, member, overload
from bayplan.cel.errors import CostExceeded, EvaluationError
from bayplan.cel.library.operators import add
from bayplan.cel.macros import LIST_MACROS
from bayplan.cel.times import Duration
from bayplan.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Type, list_of, parameter
from bayplan.cel.values import MOST_ELEMENTS, Uint, Value, compare, is_equal, no_overload, type_name

__all__ = ["KUBERNETES_LISTS", "LISTS"]

_A, _T = parameter("A"), parameter("T")
_SUMMABLE = (("int", INT, 0), ("uint", UINT, Uint(0)), ("double", DOUBLE, 0.0), ("duration", DURATION, Duration(0)))
_COMPARABLE = (
    ("int", INT),
    ("uint", UINT),
    ("double", DOUBLE),
    ("bool", BOOL),
    ("duration", DURATION),
    ("timestamp", TIMESTAMP),
    ("string", STRING),
    ("bytes", BYTES),
)
_ORDERED = frozenset(type.name for _, type in _COMPARABLE)


def _order(left: Value, right: Value) -> int:
    """The order of two elements; those that cannot be compared count as equal."""
    try:
        return compare(left, right)
    except EvaluationError:
        return 0


ordering = cmp_to_key(_order)
"""A sort key for elements."""


def _assert_ordered(elements: list[Value]) -> None:
    if any(type_name(element) not in _ORDERED for element in elements):
        raise no_overload()


def _is_sorted(elements: list[Value]) -> Value:
    _assert_ordered(elements)
    return all(_order(before, after) <= 0 for before, after in pairwise(elements))


def _sum(zero: Value) -> Callable[[list[Value]], Value]:
    def total(elements: list[Value]) -> Value:
        so_far = zero
        for element in elements:
            so_far = add(so_far, element)
        return so_far

    return total


def _extreme(name: str, preferred: int) -> Callable[[list[Value]], Value]:
    def extreme(elements: list[Value]) -> Value:
        if not elements:
            raise EvaluationError(f"{name} called on empty list")
        _assert_ordered(elements)
        best = elements[0]
        for element in elements[1:]:
            if _order(best, element) == preferred:
                best = element
        return best

    return extreme


def _index_of(elements: list[Value], sought: Value) -> Value:
    return next((index for index, element in enumerate(elements) if is_equal(element, sought)), -1)


def _last_index_of(elements: list[Value], sought: Value) -> Value:
    return next((index for index in reversed(range(len(elements))) if is_equal(elements[index], sought)), -1)


KUBERNETES_LISTS = Library(
    "kubernetes.lists",
    (
        function(
            "isSorted",
            *(member(f"list_{name}_is_sorted_bool", (list_of(each),), BOOL, _is_sorted) for name, each in _COMPARABLE),
        ),
        function(
            "sum",
            *(member(f"list_{name}_sum_{name}", (list_of(each),), each, _sum(zero)) for name, each, zero in _SUMMABLE),
        ),
        function(
            "max",
            *(
                member(f"list_{name}_max_{name}", (list_of(each),), each, _extreme("max", -1))
                for name, each in _COMPARABLE
            ),
        ),
        function(
            "min",
            *(
                member(f"list_{name}_min_{name}", (list_of(each),), each, _extreme("min", 1))
                for name, each in _COMPARABLE
            ),
        ),
        function("indexOf", member("list_a_index_of_int", (list_of(_A), _A), INT, _index_of)),
        function("lastIndexOf", member("list_a_last_index_of_int", (list_of(_A), _A), INT, _last_index_of)),
    ),
)


def _slice(elements: list[Value], start: int, end: int) -> Value:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(elements) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


def _flatten(elements: Value, depth: Value = 1) -> Value:
    if not isinstance(elements, list) or depth.__class__ is not int:
        raise no_overload("flatten", (elements, depth))
    assert isinstance(depth, int)
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Value] = []
    for element in elements:
        if isinstance(element, list) and depth > 0:
            inner = _flatten(element, depth - 1)
            assert isinstance(inner, list)
            flat.extend(inner)
        else:
            flat.append(element)
        if len(flat) > MOST_ELEMENTS:
            raise CostExceeded
    return flat


def _sort(elements: list[Value]) -> Value:
    return _sort_by(elements, elements)


def _sort_by(elements: list[Value], keys: list[Value]) -> Value:
    if len(elements) != len(keys):
        expected = "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got"
        raise EvaluationError(f"{expected} {len(elements)} and {len(keys)} elements respectively")
    if not elements:
        return elements
    if type_name(keys[0]) not in _ORDERED:
        raise EvaluationError("list elements must be comparable")
    if len(keys) > 1 and len({type_name(key) for key in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    ordered = [ordering(key) for key in keys]
    return [elements[position] for position in sorted(range(len(keys)), key=ordered.__getitem__)]


def _range(count: int) -> Value:
    if count > MOST_ELEMENTS:
        raise CostExceeded
    return list(range(count))


def _reverse(elements: list[Value]) -> Value:
    return elements[::-1]


def _distinct(elements: list[Value]) -> Value:
    unique: list[Value] = []
    for element in elements:
        if not any(is_equal(element, known) for known in unique):
            unique.append(element)
    return unique


def _sorting(
    name: str, parameters: Callable[[Type], tuple[Type, ...]], result: Callable[[Type], Type]
) -> tuple[Overload, ...]:
    return tuple(member(f"list_{each.name}_{name}", parameters(each), result(each)) for _, each in _COMPARABLE)


_LIST_TRAIT = frozenset({"list"})

LISTS = Library(
    "lists",
    (
        function("slice", member("list_slice", (list_of(_T), INT, INT), list_of(_T), _slice)),
        Function(
            "flatten",
            (
                Overload(
                    "list_flatten", (list_of(list_of(_T)),), list_of(_T), _flatten, is_member=True, is_guarded=False
                ),
                Overload(
                    "list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten, is_member=True, is_guarded=False
                ),
            ),
        ),
        Function("sort", _sorting("sort", lambda each: (list_of(each),), list_of), _sort, _LIST_TRAIT),
        Function(
            "@sortByAssociatedKeys",
            _sorting("sortByAssociatedKeys", lambda key: (list_of(_T), list_of(key)), lambda key: list_of(_T)),
            _sort_by,
            _LIST_TRAIT,
        ),
        function("lists.range", overload("lists_range", (INT,), list_of(INT), _range)),
        function("reverse", member("list_reverse", (list_of(_T),), list_of(_T), _reverse)),
        function("distinct", member("list_distinct", (list_of(_T),), list_of(_T), _distinct)),
    ),
    LIST_MACROS,
)
