"""Exceptions of lower rooms as lines."""

from __future__ import annotations

import pytest
from cyclopts import CycloptsError

from bayplan.api.decode import InputError
from bayplan.api.quantity import QuantityError
from bayplan.app.settings import SettingsError
from bayplan.cli.error_lines import error_lines, is_usage_error
from bayplan.config.errors import ConfigError, Problem
from bayplan.framework.errors import PluginError

CONFIG = ConfigError([Problem("a", "is wrong", line=3), Problem("b", "is too", "write c")], source="c.yaml")
LINES = ["c.yaml: line 3: a: is wrong", "c.yaml: b: is too; write c"]


def wrapped(cause: Exception | None) -> SettingsError:
    try:
        raise SettingsError(["first", "second"]) from cause
    except SettingsError as error:
        return error


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (CONFIG, LINES),
        (wrapped(CONFIG), LINES),
        (wrapped(None), ["first", "second"]),
        (PluginError("p.py", ["is odd", "is even"]), ["p.py: is odd", "p.py: is even"]),
        (InputError("is empty", source="f", where="line 1"), ["f: line 1: is empty"]),
        (OverflowError(), ["a number in the input is larger than the 64 bits that Kubernetes has for it"]),
        (QuantityError("`x` is not a quantity"), ["`x` is not a quantity"]),
        (KeyError("cpu"), []),
    ],
)
def test_every_problem_stands_alone(error: Exception, lines: list[str]) -> None:
    assert error_lines(error) == lines


def test_usage_errors_are_told_apart() -> None:
    assert is_usage_error(CycloptsError(msg="no"))
    assert not is_usage_error(CONFIG)
