"""Assignability of types, and what type parameters are bound to."""

from __future__ import annotations

from bayplan.cel.types import (
    ANY,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    Bindings,
    display,
    list_of,
    map_of,
    most_general,
    object_type,
    optional_of,
    parameter,
    type_of,
)

A = parameter("A")


def test_parameters_are_bound_to_what_they_meet() -> None:
    bindings = Bindings()

    assert bindings.assign([list_of(INT)], [list_of(A)])
    assert bindings.substitute(map_of(A, A), free_is_dyn=False) == map_of(INT, INT)
    assert not bindings.assign([STRING], [A])


def test_a_failed_assignment_binds_nothing() -> None:
    bindings = Bindings()

    assert not bindings.assign([INT, INT], [A, STRING])
    assert bindings.substitute(A, free_is_dyn=True) == DYN


def test_a_parameter_cannot_contain_itself() -> None:
    assert not Bindings().assign([list_of(A)], [A])


def test_dynamic_types_and_null_are_assignable() -> None:
    bindings = Bindings()

    assert bindings.assign([DYN, ANY, NULL, NULL], [INT, STRING, TIMESTAMP, optional_of(INT)])
    assert not bindings.assign([NULL], [INT])
    assert bindings.assign([type_of(INT)], [type_of(STRING)])
    assert not bindings.assign([object_type("a")], [object_type("b")])


def test_the_more_general_type_wins() -> None:
    assert most_general(list_of(INT), list_of(DYN)) == list_of(DYN)
    assert most_general(DYN, INT) == DYN


def test_types_have_names_for_messages() -> None:
    assert [display(each) for each in (ANY, DURATION, NULL, list_of(TIMESTAMP), A)] == [
        "any",
        "duration",
        "null",
        "list(timestamp)",
        "A",
    ]
    assert str(map_of(STRING, A)) == "map(string, <A>)"
