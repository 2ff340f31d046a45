"""Selectors of devices: CEL expressions, each evaluated once for all devices that look alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# As attributes of the module, names of the expression language are loaded by the first device, not by every start.
from bayplan.framework import devices
from bayplan.framework.devices import DeviceLook

__all__ = ["ExpressionFailure", "SelectorRefusal", "first_refusal", "select"]


class ExpressionFailure(Exception):
    """An expression that does not compile, or fails for a device."""


def select(expression: str, look: DeviceLook) -> bool | Exception:
    """Whether the expression is true of such devices, or the SelectorError."""
    known = look.answers.get(expression)
    return look.remember(expression, _evaluate(expression, look)) if known is None else known


def _evaluate(expression: str, look: DeviceLook) -> bool | Exception:
    try:
        selector = devices.compile_selector(expression)
    except devices.CompileError as error:
        return ExpressionFailure(f"CEL compile error: {error}")
    try:
        return selector.matches(_variable(look))
    except devices.EvaluationError as error:
        return ExpressionFailure(f"CEL runtime error: {error}")


def _variable(look: DeviceLook) -> devices.DeviceVariable:
    return devices.device_variable(
        driver=look.driver,
        attributes={name: {type_: value} for name, (type_, value) in look.attributes.items()},
        capacity=look.capacity,
        allow_multiple_allocations=look.is_shareable,
    )


class SelectorRefusal(NamedTuple):
    """Why a device is not selected: the smallest term that is false of it, or the error of an expression."""

    whose: str
    term: str = ""
    values: dict[str, str] = {}
    error: str = ""


def first_refusal(selectors: Iterable[tuple[str, str]], look: DeviceLook) -> SelectorRefusal | None:
    """`selectors` are (whose, expression). None for a device that all of them select."""
    for whose, expression in selectors:
        answer = select(expression, look)
        if isinstance(answer, Exception):
            return SelectorRefusal(whose, expression, error=str(answer))
        if not answer:
            variable = _variable(look)
            term = devices.compile_selector(expression).false_term(variable)
            return SelectorRefusal(whose, term.expression, term.readings(variable))
    return None
