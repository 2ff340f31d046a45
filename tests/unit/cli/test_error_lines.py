"""Exceptions of lower rooms as lines."""

from __future__ import annotations

import pytest
from cyclopts import CycloptsError

from bayplan.api.decode import InputError
from bayplan.api.quantity import QuantityError
from bayplan.app.settings import SettingsError
from bayplan.cli.error_lines import error_lines, usage_of
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


def test_errors_of_the_command_line_name_the_command_whose_help_to_read() -> None:
    assert usage_of(CycloptsError(msg="no"), "up") == "up"
    assert usage_of(CycloptsError(msg="no", command_chain=("plan", "drain")), "plan") == "plan drain"
    assert usage_of(CONFIG, "up") == ""
