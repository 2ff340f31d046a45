"""What is being measured and how long the rest takes: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class ProgressPrinter:
    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        console = Console(stderr=True)
        self._bar = _bar(console) if console.is_terminal else None
        self._task = self._bar.add_task("starting the control plane", total=steps, left="") if self._bar else None

    def __enter__(self) -> ProgressPrinter:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def begin(self, title: str, left_seconds: float) -> None:
        left = f"about {minutes(left_seconds)} left"
        if self._bar and self._task is not None:
            self._bar.update(self._task, description=title, left=left, completed=self._done)
        else:
            self.say(f"[{self._done + 1} of {self._steps}, {left}] {title}")
        self._done += 1

    def say(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {text}"
        if self._bar:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=sys.stderr, flush=True)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
        # The bench shares the machine with those it measures.
        refresh_per_second=2,
    )


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
