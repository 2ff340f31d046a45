"""The help of a command as text: options and commands in one column, what they do in another.

Cyclopts calls the formatter for each panel. Lines are wrapped at the width of the terminal, and continue below the
beginning of their column.
"""

from __future__ import annotations

import io
import textwrap
from typing import Any

from cyclopts.help import HelpEntry, HelpPanel, PlainFormatter
from rich.console import Console, ConsoleOptions

__all__ = ["AlignedFormatter"]

_INDENT = "  "
_WIDEST_LABEL = 34
"""A longer label has a line of its own."""
_MAX_WIDTH = 120
_TITLES = {"Parameters": "options"}
"""As the list of all commands says it."""


class AlignedFormatter(PlainFormatter):
    """Plain text in two columns."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        rows = [(_label(entry, panel.format), _description(entry)) for entry in panel.entries if entry.display_labels]
        if not rows:
            return
        fitting = [len(label) for label, _ in rows if len(label) <= _WIDEST_LABEL]
        width = max(fitting, default=_WIDEST_LABEL)
        text = "\n".join(_row(label, about, width, min(console.width, _MAX_WIDTH)) for label, about in rows)
        title = _TITLES.get(panel.title, panel.title.lower()) if isinstance(panel.title, str) else _text(panel.title)
        _print(console, f"{title}:\n{text}" if title == "options" else f"{title}:\n{text}\n")

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        if usage:
            _print(console, f"usage: {_text(usage).removeprefix('Usage:').strip()}\n")

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        text = _text(description)
        width = min(console.width, _MAX_WIDTH)
        paragraphs = ["\n".join(textwrap.wrap(" ".join(part.split()), width)) for part in text.split("\n\n")]
        if text:
            _print(console, "\n\n".join(paragraphs) + "\n")


def _label(entry: HelpEntry, panel_format: str) -> str:
    labels = entry.display_labels_with_metavar if panel_format == "parameter" else entry.display_labels
    return ", ".join(labels)


def _description(entry: HelpEntry) -> str:
    text = _text(entry.description)
    choices = f"[{', '.join(entry.choices)}]" if entry.choices else ""
    required = "[required]" if entry.required else ""
    return " ".join(part for part in (" ".join(text.split()), choices, required) if part)


def _text(renderable: Any) -> str:
    """What a Rich renderable shows, unwrapped."""
    if renderable is None:
        return ""
    console = Console(file=io.StringIO(), width=100_000, no_color=True, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip()


def _row(label: str, about: str, label_width: int, width: int) -> str:
    start = f"{_INDENT}{label:<{label_width}}  "
    margin = " " * (len(_INDENT) + label_width + 2)
    lines = textwrap.wrap(about, max(20, width - len(margin))) or [""]
    if len(label) > label_width:
        return "\n".join([f"{_INDENT}{label}", *(margin + line for line in lines)]).rstrip()
    return "\n".join([start + lines[0], *(margin + line for line in lines[1:])]).rstrip()


def _print(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
