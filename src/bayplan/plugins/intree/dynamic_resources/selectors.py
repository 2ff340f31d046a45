"""Selectors of devices: CEL expressions, each evaluated once for all devices that look alike."""

from __future__ import annotations

from bayplan.framework.devices import CompileError, DeviceLook, EvaluationError, compile_selector, device_variable

__all__ = ["ExpressionFailure", "select"]


class ExpressionFailure(Exception):
    """An expression that does not compile, or fails for a device."""


def select(expression: str, look: DeviceLook) -> bool | Exception:
    """Whether the expression is true of such devices, or the SelectorError."""
    known = look.answers.get(expression)
    return look.remember(expression, _evaluate(expression, look)) if known is None else known


def _evaluate(expression: str, look: DeviceLook) -> bool | Exception:
    try:
        selector = compile_selector(expression)
    except CompileError as error:
        return ExpressionFailure(f"CEL compile error: {error}")
    variable = device_variable(
        driver=look.driver,
        attributes={name: {type_: value} for name, (type_, value) in look.attributes.items()},
        capacity=look.capacity,
        allow_multiple_allocations=look.is_shareable,
    )
    try:
        return selector.matches(variable)
    except EvaluationError as error:
        return ExpressionFailure(f"CEL runtime error: {error}")
