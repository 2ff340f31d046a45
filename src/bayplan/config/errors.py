"""What is wrong with a configuration: every problem at once, each with its path and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

__all__ = ["ConfigError", "Problem", "Problems"]

_SHOWN = 100


class Problem(msgspec.Struct, frozen=True):
    """One sentence about one place. `line` counts from 1; 0 when the value did not come from a text."""

    path: str
    message: str
    hint: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        text = f"{place}{self.path}: {self.message}" if self.path else f"{place}{self.message}"
        return f"{text}; {self.hint}" if self.hint else text


class ConfigError(ValueError):
    """A configuration that cannot be used. `problems` holds all that was found, in the order of the document."""

    def __init__(self, problems: Sequence[Problem], *, source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        prefix = f"{source}: " if source else ""
        if len(self.problems) == 1:
            super().__init__(f"{prefix}{self.problems[0]}")
            return
        shown = [f"\n  {problem}" for problem in self.problems[:_SHOWN]]
        rest = len(self.problems) - len(shown)
        more = f"\n  and {rest} more" if rest else ""
        super().__init__(f"{prefix}{len(self.problems)} problems{''.join(shown)}{more}")


class Problems:
    """Collects problems. A place that has one already, or lies inside such a place, gets no second."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._paths: set[str] = set()

    def add(self, path: str, message: str, *, hint: str = "", line: int = 0) -> None:
        if not self.covers(path):
            self._paths.add(path)
            self._found.append(Problem(path, message, hint, line))

    def covers(self, path: str) -> bool:
        if path in self._paths:
            return True
        ends = (place for place, letter in enumerate(path) if letter in ".[")
        return any(path[:end] in self._paths for end in ends)

    def extend(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.add(problem.path, problem.message, hint=problem.hint, line=problem.line)

    def __len__(self) -> int:
        return len(self._found)

    def sorted(self) -> list[Problem]:
        """In the order of the document; what has no line comes last, in the order it was found."""
        return sorted(self._found, key=lambda problem: (problem.line == 0, problem.line))

    def raise_if_any(self, source: str = "") -> None:
        if self._found:
            raise ConfigError(self.sorted(), source=source)
