"""What commands print: tables for people, JSON or YAML for programs, errors as one line each, progress for waits.

Results go to standard output and nothing else does; notes, errors and progress go to standard error. Rich and YAML are
imported when something is drawn with them, so that `--help` and errors stay quick.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "BAD_INPUT",
    "CommandError",
    "Format",
    "Progress",
    "WideFormat",
    "escaped",
    "note",
    "one_line",
    "print_error",
    "print_pieces",
    "print_value",
    "progress",
    "result_console",
]

Format = Literal["table", "json", "yaml"]
WideFormat = Literal["table", "wide", "json", "yaml"]
"""`wide`: more columns, and lines as long as they are."""
BAD_INPUT = 2
"""Exit status of every error that the input or the command line caused."""
_WIDTH_WITHOUT_TERMINAL = 120
_WIDEST = 2_000
_PATIENCE_SECONDS = 1.0
_FIRST_PAUSE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 60.0


class CommandError(Exception):
    """A command cannot go on. Each of `problems` becomes a line; `hint` says what to do about them."""

    def __init__(self, *problems: str, hint: str = "", status: int = BAD_INPUT) -> None:
        super().__init__("; ".join(problems))
        self.problems, self.hint, self.status = problems, hint, status


def one_line(text: str) -> str:
    """The text on one line, with control characters escaped, so that it cannot control a terminal."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """The text with control characters and ends of lines written out."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def print_error(problems: Iterable[str], *, hint: str = "") -> None:
    for problem in problems:
        print(f"error: {one_line(problem)}", file=sys.stderr)
    if hint:
        print(f"hint: {one_line(hint)}", file=sys.stderr)


def note(text: str) -> None:
    """Print a note for people on standard error."""
    print(f"note: {one_line(text)}", file=sys.stderr)


def result_console(*, is_wide: bool = False) -> Console:
    """Where tables go. Colours only on a terminal; a fixed width where there is none, so that pipes see whole lines.

    With `is_wide`, lines are as long as they are; a terminal breaks them where it ends.
    """
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            """The command's own end of it, with the same status whatever was printed."""
            raise BrokenPipeError

    is_sized = sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))
    width = _WIDEST if is_wide else None if is_sized else _WIDTH_WITHOUT_TERMINAL
    return PipedConsole(width=width, highlight=False, markup=False, emoji=False)


def print_pieces(console: Console, pieces: Iterable[RenderableType]) -> None:
    for piece in pieces:
        # A line that is meant to be copied stays one.
        console.print(piece, soft_wrap=bool(getattr(piece, "no_wrap", False)))


def print_value(value: Any, form: Literal["json", "yaml"]) -> None:
    """The machine form of a result."""
    sys.stdout.write(_json(value) if form == "json" else _yaml(value))
    sys.stdout.flush()


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _yaml(value: Any) -> str:
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


class Progress:
    """A progress line: what is being done, and how far it is when a count is known."""

    def __init__(self, what: str, *, total: int | None = None) -> None:
        self.what = what
        self.total = total
        self.count = 0
        self.detail: Callable[[], str] = str
        """What to add to the line, asked whenever it is drawn."""

    def step(self, count: int = 1) -> None:
        self.count += count

    def line(self) -> str:
        detail = self.detail()
        more = f" ({detail})" if detail else ""
        if not self.count:
            return f"{one_line(self.what)} …{more}"
        return f"{one_line(self.what)}: {self.count}{f' of {self.total}' if self.total else ''}{more}"


@contextmanager
def progress(what: str, *, total: int | None = None) -> Iterator[Progress]:
    """Report progress on standard error once the block has taken longer than a second."""
    state = Progress(what, total=total)
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(state, done), name="progress", daemon=True)
    teller.start()
    try:
        yield state
    finally:
        done.set()
        teller.join()


def _tell(state: Progress, done: threading.Event) -> None:
    """On a terminal the line is redrawn in place and wiped at the end; elsewhere it is written again now and then."""
    if done.wait(_PATIENCE_SECONDS):
        return
    if not sys.stderr.isatty():
        _tell_log(state, done)
        return
    while not done.wait(0.1):
        print(f"\r\x1b[2K{state.line()}", end="", file=sys.stderr, flush=True)
    print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def _tell_log(state: Progress, done: threading.Event) -> None:
    """Lines for a log: the first at once, and each one that says something new twice as long after the one before."""
    told, pause = "", _FIRST_PAUSE_SECONDS
    while True:
        line = state.line()
        if line != told:
            print(line, file=sys.stderr, flush=True)
            told = line
        if done.wait(pause):
            return
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
