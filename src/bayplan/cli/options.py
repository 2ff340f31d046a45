"""Declares options of commands: their help, and `-` as a value of any of them."""

from __future__ import annotations

from cyclopts import Parameter

__all__ = ["Names", "option", "plugin_option", "verbosity_option"]

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


def plugin_option(what_for: str) -> Parameter:
    """`--plugin`, the same for all commands: `Registry.load` says what it may name."""
    about = f"plugin to {what_for}: FILE.py, FOLDER, ZIP or wheel, MODULE:CLASS, or the name of an installed one"
    return option("--plugin", metavar="PLUGIN", about=about)


def verbosity_option() -> Parameter:
    """`-v`, by klog's levels; `bayplan.app.decision_logger` writes the lines about pods."""
    about = "log verbosity: 2 decisions, 4 queue moves, 5 filters, 10 scores (0)"
    return option("--v", "-v", metavar="NUMBER", about=about)


def _refuse_option(_: object, value: object) -> None:
    """`-` is a value (standard input); another option in its place means that the value is missing."""
    for given in value if isinstance(value, list) else [value]:
        if isinstance(given, str) and given.startswith("-") and given != "-":
            raise ValueError(f"expected a value, found the option `{given}`")
