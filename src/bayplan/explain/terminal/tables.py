"""Tables and lines on a terminal, as all answers have them.

Every string that comes from a cluster goes through `plain`. Where a terminal is narrow, columns of prose give way; the
words and figures that are read as a whole keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

__all__ = ["NARROW", "below", "indent", "keep_words", "plain", "prose_and_sample", "sample_of", "simple_table"]

NARROW = 80
"""Columns of a terminal below which prose and samples of names share a column."""
_LONGEST_WORD = 24
_UNBOUNDED = 10_000


def plain(text: str) -> str:
    """The text with control characters written out, so that it cannot steer a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


class _FittedTable(Table):
    """Where it is wider than the terminal, columns with kept words are as wide as the longest of them.

    Rich has minimal widths, but first distributes the width without them and then cuts off what is too much.
    """

    kept: dict[int, int]
    """By column, the letters of its longest word."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for place in self.kept:
            self.columns[place].width = None
        if Measurement.get(console, options.update(width=_UNBOUNDED), self).maximum > options.max_width:
            for place, word in self.kept.items():
                self.columns[place].width = word
        yield from super().__rich_console__(console, options)


def simple_table(*columns: str, figures: Sequence[str] = ()) -> _FittedTable:
    """Those of the columns that are `figures` stand to the right and are never broken."""
    table = _FittedTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.kept = {}
    for column in columns:
        is_figure = column in figures
        table.add_column(column, overflow="fold", justify="right" if is_figure else "left", no_wrap=is_figure)
    return table


def keep_words(table: _FittedTable, column: int, texts: Iterable[str]) -> None:
    """Make the column wide enough for every word in it that is not overlong."""
    shown = [*texts, str(table.columns[column].header)]
    words = [len(word) for text in shown for word in text.split()]
    if words:
        table.kept[column] = min(max(words), _LONGEST_WORD)


def prose_and_sample(prose: str, sample: str, *, width: int) -> list[Text]:
    """The last two cells of a row: in a narrow terminal they share one column, below each other."""
    if width >= NARROW:
        return [Text(prose), Text(sample)]
    return [Text("\n").join([Text(prose), Text(sample, style="dim")]) if sample else Text(prose)]


def below(table: Table) -> RenderableType:
    return Padding(table, (1, 0, 0, 2), expand=False)


def indent(text: Text, *, is_apart: bool = False) -> RenderableType:
    """`is_apart`: below a blank line."""
    return Padding(text, (1 if is_apart else 0, 0, 0, 2), expand=False)


def sample_of(names: Sequence[str], *, most: int = 3) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
