"""Plans: what is worked out before an evaluation, and what then has no program."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import ENVIRONMENT

from bayplan.cel import CompileError
from bayplan.cel.interpreter import Attribute, Constant, Logic, Membership, Stage, Varied
from bayplan.cel.planner import plan


def planned(text: str) -> Stage:
    return plan(ENVIRONMENT.check(text), ENVIRONMENT.functions)


@pytest.mark.parametrize("text", ["[[1], [2]]", "{'a': 1}", "int('5')", "dyn([1])", "1 in []", "int"])
def test_constants_are_folded(text: str) -> None:
    assert isinstance(planned(text), Constant)


def test_a_list_with_a_variable_is_made_anew() -> None:
    assert not isinstance(planned("[a]"), Constant)


def test_selections_of_a_variable_are_one_attribute() -> None:
    step = planned("a.b['c'][a.d]")

    assert isinstance(step, Attribute)
    assert [qualifier.key for qualifier in step.qualifiers] == ["b", "c", None]


def test_membership_in_constants_is_a_look_into_a_set() -> None:
    assert isinstance(planned("a in [1, 2]"), Stage)
    assert isinstance(planned("'x' in ['a', 'b']"), Membership)
    assert not isinstance(planned("b'x' in [b'a']"), Membership)


def test_chains_of_logic_and_dispatched_calls_have_steps_of_their_own() -> None:
    assert isinstance(planned("a == 1 && a == 2"), Logic)
    assert isinstance(planned("a.isGreaterThan(a)"), Varied)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("'a'.findAll('[')", "error parsing regexp: missing closing ]: `[`"),
        ("{'a': 1}[dyn(b'a')]", "invalid qualifier type: types.Bytes"),
        ("cel.bind(t, int, t)", "reference to undefined type: t"),
    ],
)
def test_what_can_have_no_value_is_no_program(text: str, expected: str) -> None:
    with pytest.raises(CompileError) as raised:
        planned(text)
    assert str(raised.value) == f"program instantiation failed: {expected}"
