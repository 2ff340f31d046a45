"""Device selectors: what their variable holds, and what is told of them. The cases are in test_selector_cases."""

from __future__ import annotations

import pytest

from bayplan.cel import EvaluationError
from bayplan.cel.devices import compile_selector, device_variable

MODEL = 'device.attributes["gpu.example.com"].model == "a100"'
MEMORY = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'


def test_terms_tell_which_part_refuses_a_device() -> None:
    selector = compile_selector(f"{MODEL} && {MEMORY} && (true || false)")
    device = device_variable(
        driver="gpu.example.com", attributes={"model": {"string": "a100"}}, capacity={"memory": {"value": "16Gi"}}
    )

    assert [term.expression for term in selector.terms()] == [MODEL, MEMORY, "(true || false)"]
    assert [term.matches(device) for term in selector.terms()] == [True, False, True]


def test_an_expression_without_terms_is_its_own_term() -> None:
    selector = compile_selector("true || false && true")

    assert [term.expression for term in selector.terms()] == ["true || false && true"]


def test_devices_that_look_alike_have_the_same_key() -> None:
    first = device_variable(driver="d", attributes={"a": {"int": 1}, "b": {"version": "1.0.0"}}, capacity={"m": "1Gi"})
    second = device_variable(driver="d", attributes={"b": {"version": "1.0.0"}, "a": {"int": 1}}, capacity={"m": "1Gi"})
    third = device_variable(
        driver="d", attributes={"a": {"string": "1"}, "b": {"version": "1.0.0"}}, capacity={"m": "1Gi"}
    )

    assert first.key == second.key != third.key


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ({}, "attribute x: unsupported attribute value"),
        ({"int": "1"}, "attribute x: unsupported attribute value"),
        ({"version": "1"}, "attribute x: parse semantic version: No Major.Minor.Patch elements found"),
    ],
)
def test_an_attribute_that_cannot_be_read_fails_every_selector(attribute: dict[str, object], expected: str) -> None:
    device = device_variable(driver="d", attributes={"x": attribute})
    selector = compile_selector("true")

    assert str(selector.evaluate(device).error) == expected
    with pytest.raises(EvaluationError) as raised:
        selector.matches(device)
    assert str(raised.value) == expected


def test_a_result_that_is_no_boolean_is_an_error() -> None:
    device = device_variable(driver="d", attributes={"x": {"int": 1}})

    with pytest.raises(EvaluationError, match="CEL result of type int could not be converted to bool"):
        compile_selector('device.attributes["d"].x').matches(device)


A100 = device_variable(
    driver="gpu.example.com", attributes={"model": {"string": "a100"}}, capacity={"memory": {"value": "16Gi"}}
)


@pytest.mark.parametrize(
    ("expression", "term"),
    [
        (f"{MODEL} && {MEMORY}", MEMORY),
        (f"(true && ({MODEL} && {MEMORY}))", MEMORY),
        (f"true && (false || {MEMORY})", f"(false || {MEMORY})"),
        (f"(true) && ({MEMORY})", f"({MEMORY})"),
        (f'{MODEL} && // large ones && no others\n"&&" != "&&"', '// large ones && no others\n"&&" != "&&"'),
        (f"!({MODEL} && true)", f"!({MODEL} && true)"),
        (f"{MODEL} ? {MEMORY} && true : true", f"{MODEL} ? {MEMORY} && true : true"),
    ],
)
def test_the_smallest_false_term_is_found(expression: str, term: str) -> None:
    assert compile_selector(expression).false_term(A100).expression == term


def test_readings_have_the_values_of_what_an_expression_reads() -> None:
    selector = compile_selector(f'{MODEL} && {MEMORY} && !("x" in device.attributes["other.example.com"])')

    assert selector.readings(A100) == {
        'device.attributes["gpu.example.com"].model': '"a100"',
        'device.attributes["other.example.com"].x': "absent",
        'device.capacity["gpu.example.com"].memory': "16Gi",
    }
