"""Declares options of commands: their help, and `-` as a value of any of them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyclopts import Parameter, Token

__all__ = ["Names", "counting_option", "named_path", "option", "path_of", "plugin_option", "verbosity_option"]

_NUMBERS = ("NUMBER", "PORT", "SECONDS")
"""Values of options that are numbers."""
Names = list[str] | None
"""Of an option that may be repeated."""


def option(*names: str, metavar: str = "", about: str) -> Parameter:
    """For `Annotated`. A `metavar` says that the option takes a value; flags have none and get no `--no-` twin."""
    return Parameter(
        name=names,
        metavar=metavar or None,
        negative=(),
        help=about,
        show_default=False,
        allow_leading_hyphen=bool(metavar),
        converter=_number if metavar in _NUMBERS else None,
        validator=_refuse_option,
    )


def counting_option(*names: str, about: str) -> Parameter:
    """An option whose value is a number of 1 or more."""
    return Parameter(
        name=names,
        metavar="NUMBER",
        negative=(),
        help=about,
        show_default=False,
        allow_leading_hyphen=True,
        converter=_number,
        validator=_refuse_less_than_one,
    )


def named_path(given: str) -> Path:
    """What an option names; `~` is the home folder, and `~name` of nobody a name like any other."""
    return Path(os.path.expanduser(given))


def path_of(given: str | None) -> Path | None:
    return None if given is None else named_path(given)


def plugin_option(what_for: str) -> Parameter:
    """`--plugin`, the same for all commands: `Registry.load` says what it may name."""
    about = f"plugin to {what_for}: FILE.py, FOLDER, ZIP or wheel, MODULE:CLASS, or the name of an installed one"
    return option("--plugin", metavar="PLUGIN", about=about)


def verbosity_option() -> Parameter:
    """`-v`, by klog's levels; `bayplan.app.decision_logger` writes the lines about pods."""
    about = "log verbosity: 2 decisions, 4 queue moves, 5 filters, 10 scores (0)"
    return option("--v", "-v", metavar="NUMBER", about=about)


def _number(kind: Any, tokens: Sequence[Token]) -> Any:
    """Cyclopts rounds 1.5 to a whole number, and accepts one that is none."""
    text = tokens[0].value
    if kind is int and not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ValueError(f"expected a whole number, found `{text}`")
    try:
        number = kind(text)
    except ValueError:
        raise ValueError(f"expected a number, found `{text}`") from None
    if not math.isfinite(number):
        raise ValueError(f"expected a number, found `{text}`")
    return number


def _refuse_less_than_one(_: object, value: object) -> None:
    if isinstance(value, int) and value < 1:
        raise ValueError(f"expected a number of 1 or more, found {value}")


def _refuse_option(_: object, value: object) -> None:
    """`-` is a value (standard input); another option in its place means that the value is missing."""
    for given in value if isinstance(value, list) else [value]:
        if isinstance(given, str) and given.startswith("-") and given != "-":
            raise ValueError(f"expected a value, found the option `{given}`")
