"""Declares options of commands: their help, and `-` as a value of any of them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cyclopts import Parameter, Token

__all__ = ["Names", "counting_option", "named_path", "option", "path_of", "plugin_option", "verbosity_option"]

_NUMBERS = ("NUMBER", "PORT", "SECONDS")
"""Values of options that are numbers."""
_THINGS = ("FILE", "NODE")
"""Values of options that, repeated, name something each."""
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
        validator=(_refuse_option, _refuse_nothing) if metavar in _THINGS else _refuse_option,
    )


def counting_option(*names: str, about: str) -> Parameter:
    """An option whose value is a number of 1 or more."""
    return _number_option(*names, about=about, validator=_refuse_less_than_one)


def named_path(given: str) -> Path:
    """What an option names; `~` is the home folder, and `~name` of nobody a name like any other."""
    return Path(os.path.expanduser(given))


def path_of(given: str | None) -> Path | None:
    """An empty name is none, as for the flags of kube-scheduler."""
    return named_path(given) if given else None


def plugin_option(what_for: str) -> Parameter:
    """`--plugin`, the same for all commands: `Registry.load` says what it may name."""
    about = f"plugin to {what_for}: FILE.py, FOLDER, ZIP or wheel, MODULE:CLASS, or the name of an installed one"
    return option("--plugin", metavar="PLUGIN", about=about)


def verbosity_option(about: str = "") -> Parameter:
    """`-v`, by klog's levels; `bayplan.app.decision_logger` writes the lines about pods."""
    about = about or "log verbosity: 2 decisions, 4 queue moves, 5 filters, 10 scores (0)"
    return _number_option("--v", "-v", about=about, validator=_refuse_verbosity)


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


def _number_option(*names: str, about: str, validator: Callable[[object, object], None]) -> Parameter:
    return Parameter(
        name=names,
        metavar="NUMBER",
        negative=(),
        help=about,
        show_default=False,
        allow_leading_hyphen=True,
        converter=_number,
        validator=validator,
    )


def _refuse_verbosity(_: object, value: object) -> None:
    if isinstance(value, int) and not 0 <= value <= 10:
        raise ValueError(f"the verbosity is a number from 0 to 10, not {value}")


def _refuse_option(_: object, value: object) -> None:
    """`-` is a value (standard input); another option in its place means that the value is missing."""
    for given in value if isinstance(value, list) else [value]:
        if isinstance(given, str) and given.startswith("-") and given != "-":
            raise ValueError(f"expected a value, found the option `{given}`")


def _refuse_nothing(_: object, value: object) -> None:
    """A variable of a shell that is not set."""
    if isinstance(value, list) and "" in value:
        raise ValueError("expected a name, found nothing")
