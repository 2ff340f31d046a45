"""Environments and programs."""

from __future__ import annotations

import pytest

from bayplan.cel import CompileError, Environment, EvaluationError
from bayplan.cel.library import KUBERNETES
from bayplan.cel.types import BOOL, INT, Type


def test_a_program_knows_its_type_text_and_largest_cost() -> None:
    program = Environment({"x": INT}).compile("x + 1 > 2")

    assert (program.text, program.result_type, program.max_cost) == ("x + 1 > 2", BOOL, 3)


def test_values_and_errors_come_out() -> None:
    program = Environment({"x": INT}).compile("10 / x")

    assert program.value(x=5) == program.call(5) == program.evaluate(x=5).value == 2
    assert str(program.evaluate(x=0).error) == "division by zero"
    with pytest.raises(EvaluationError, match="division by zero"):
        program.value(x=0)


def test_the_type_of_the_whole_may_be_refused() -> None:
    def accept(result: Type) -> str | None:
        return None if result == BOOL else f"not {result}"

    environment = Environment({})

    assert environment.compile("true", accept=accept).value() is True
    with pytest.raises(CompileError, match="not int"):
        environment.compile("1", accept=accept)


def test_libraries_add_functions() -> None:
    with pytest.raises(CompileError, match="undeclared reference to 'quantity'"):
        Environment({}).compile("quantity('1')")
    assert str(Environment({}, KUBERNETES).compile("quantity('1.50')").value()) == "1.5"


def test_constants_without_a_value_are_no_program() -> None:
    with pytest.raises(CompileError) as raised:
        Environment({}, KUBERNETES).compile("'a'.find('(')")
    assert str(raised.value) == "program instantiation failed: error parsing regexp: missing closing ): `(`"


def test_text_with_halves_of_characters_is_read() -> None:
    assert Environment({}).compile("'\ud800'").value() == "?"
