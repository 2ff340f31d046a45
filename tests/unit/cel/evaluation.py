"""Evaluation of expressions without variables, for tests of single functions."""

from __future__ import annotations

from bayplan.cel import Environment, EvaluationError
from bayplan.cel.library import KUBERNETES
from bayplan.cel.types import DYN
from bayplan.cel.values import Value

ENVIRONMENT = Environment({"a": DYN}, KUBERNETES)


def value(text: str, a: Value = None) -> Value:
    """The value of an expression; exact and fast evaluation have to agree on it."""
    program = ENVIRONMENT.compile(text)
    evaluation = program.evaluate(a=a)
    if evaluation.error is not None:
        raise evaluation.error
    fast = program.value(a=a)
    assert repr(fast) == repr(evaluation.value) or str(fast) == str(evaluation.value)
    return evaluation.value


def error(text: str, a: Value = None) -> str:
    """The error of an expression."""
    evaluation = ENVIRONMENT.compile(text).evaluate(a=a)
    assert isinstance(evaluation.error, EvaluationError)
    return str(evaluation.error)


def cost(text: str, a: Value = None) -> int:
    """What an expression costs."""
    return ENVIRONMENT.compile(text).evaluate(a=a).cost
