"""Declares options of commands: their help, and `-` as a value of any of them."""

from __future__ import annotations

import os
from pathlib import Path

from cyclopts import Parameter

__all__ = ["Names", "counting_option", "named_path", "option", "path_of", "plugin_option", "verbosity_option"]

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


def _refuse_less_than_one(_: object, value: object) -> None:
    if isinstance(value, int) and value < 1:
        raise ValueError(f"expected a number of 1 or more, found {value}")


def _refuse_option(_: object, value: object) -> None:
    """`-` is a value (standard input); another option in its place means that the value is missing."""
    for given in value if isinstance(value, list) else [value]:
        if isinstance(given, str) and given.startswith("-") and given != "-":
            raise ValueError(f"expected a value, found the option `{given}`")
