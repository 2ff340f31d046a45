"""Sets as lists (`sets.contains`, …), optional values, `cel.bind` and loops with two variables."""

from __future__ import annotations

from bayplan.cel.declarations import Function, Library, function, member, overload
from bayplan.cel.errors import EvaluationError
from bayplan.cel.macros import BINDING_MACROS, OPTIONAL_MACROS, TWO_VARIABLE_MACROS
from bayplan.cel.types import BOOL, DYN, INT, STRING, list_of, map_of, optional_of, parameter
from bayplan.cel.values import AccumulatorMap, Map, Optional, Special, Value, contains, find, show

__all__ = ["BINDINGS", "OPTIONALS", "SETS", "TWO_VARIABLES"]

_T, _K, _V = parameter("T"), parameter("K"), parameter("V")


def _contains_all(elements: list[Value], others: list[Value]) -> bool:
    return all(contains(elements, other) for other in others)


def _intersects(elements: list[Value], others: list[Value]) -> bool:
    return any(contains(others, element) for element in elements)


def _equivalent(elements: list[Value], others: list[Value]) -> bool:
    return _contains_all(elements, others) and _contains_all(others, elements)


_PAIR = (list_of(_T), list_of(_T))
SETS = Library(
    "sets",
    (
        function("sets.contains", overload("list_sets_contains_list", _PAIR, BOOL, _contains_all)),
        function("sets.equivalent", overload("list_sets_equivalent_list", _PAIR, BOOL, _equivalent)),
        function("sets.intersects", overload("list_sets_intersects_list", _PAIR, BOOL, _intersects)),
    ),
)

BINDINGS = Library("bindings", macros=BINDING_MACROS)


def _of_non_zero(value: Value) -> Value:
    return Optional.NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Value) -> bool:
    return value.is_zero if isinstance(value, Special) else not value


def _none() -> Value:
    return Optional.NONE


def _unwrapped(elements: list[Value]) -> Value:
    present: list[Value] = []
    for element in elements:
        if not isinstance(element, Optional):
            raise EvaluationError(f"value {show(element)} is not optional")
        if element.is_present:
            present.append(element.content)
    return present


def _first(elements: list[Value]) -> Value:
    return Optional(elements[0]) if elements else Optional.NONE


def _last(elements: list[Value]) -> Value:
    return Optional(elements[-1]) if elements else Optional.NONE


_OPTIONAL, _LIST, _MAP = optional_of(_V), list_of(_V), map_of(_K, _V)
OPTIONALS = Library(
    "optional",
    (
        function("optional.of", overload("optional_of", (_V,), _OPTIONAL, Optional)),
        function("optional.ofNonZeroValue", overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero)),
        function("optional.none", overload("optional_none", (), _OPTIONAL, _none)),
        function("value", member("optional_value", (_OPTIONAL,), _V, Optional.get)),
        function("hasValue", member("optional_hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.is_present)),
        function("or", member("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL)),
        function("orValue", member("optional_orValue_value", (_OPTIONAL, _V), _V)),
        function("_?._", overload("select_optional_field", (DYN, STRING), _OPTIONAL)),
        function(
            "_[?_]",
            overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
            overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
            overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
            overload("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL),
        ),
        function(
            "_[_]",
            overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL),
            overload("optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL),
        ),
        function("last", member("list_last", (_LIST,), _OPTIONAL, _last)),
        function("first", member("list_first", (_LIST,), _OPTIONAL, _first)),
        function("optional.unwrap", overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrapped)),
        function("unwrapOpt", member("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrapped)),
    ),
    OPTIONAL_MACROS,
    {"optional_type": optional_of(DYN)},
)


def _insert(into: Map, key: Value, value: Value) -> Value:
    if find(into, key)[0]:
        raise EvaluationError(f"insert failed: key {show(key)} already exists")
    if isinstance(into, AccumulatorMap):
        into[key] = value
        return into
    return {key: value, **into}


def _insert_all(into: Map, entries: Map) -> Value:
    result: Value = into
    for key, value in entries.items():
        assert isinstance(result, dict)
        result = _insert(result, key, value)
    return result


TWO_VARIABLES = Library(
    "two-variable comprehensions",
    (
        Function(
            "cel.@mapInsert",
            (
                overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert),
                overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
            ),
        ),
    ),
    TWO_VARIABLE_MACROS,
)
