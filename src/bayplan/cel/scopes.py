"""Where names lead to values during an evaluation: the variables given, and the frames of the loops being run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.cel.errors import EvaluationError
from bayplan.cel.values import Accumulator, AccumulatorMap, Value

__all__ = ["Frame", "Scope", "Variables"]


class Variables:
    """The values that an evaluation was given."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def lookup(self, name: str) -> Value:
        """The value of the name, or the error that stands in for it."""
        if name in self._values:
            return self._values[name]
        return EvaluationError(f"no such attribute(s): {name}")


class Frame:
    """The names of one loop: its variables, and the accumulator, which is worked out when it is first read."""

    __slots__ = (
        "accumulated",
        "accumulator",
        "first",
        "first_name",
        "has_started",
        "initial",
        "is_done",
        "is_owned",
        "outer",
        "second",
        "second_name",
    )

    def __init__(
        self,
        outer: Scope,
        accumulator: str,
        names: tuple[str, str | None],
        initial: Callable[[Scope], Value],
    ) -> None:
        self.outer = outer
        self.accumulator = accumulator
        self.first_name, self.second_name = names
        self.initial = initial
        self.accumulated: Value = None
        self.first: Value = None
        self.second: Value = None
        self.has_started = False
        self.is_done = False
        self.is_owned = False

    def lookup(self, name: str) -> Value:
        if name == self.accumulator:
            if not self.has_started:
                self._start()
            return self.accumulated
        if not self.is_done:
            if name == self.first_name:
                return self.first
            if name == self.second_name:
                return self.second
        return self.outer.lookup(name)

    def advance(self, accumulated: Value) -> None:
        self.accumulated = accumulated
        self.has_started = True

    def finish(self, result: Value) -> Value:
        """The result; a list or map that was built in place becomes an ordinary one."""
        if self.is_owned and isinstance(result, Accumulator):
            return list(result)
        if self.is_owned and isinstance(result, AccumulatorMap):
            return dict(result)
        return result

    def _start(self) -> None:
        self.has_started = True
        value = self.initial(self.outer)
        if isinstance(value, list) and not value:
            value, self.is_owned = Accumulator(), True
        elif isinstance(value, dict) and not value:
            value, self.is_owned = AccumulatorMap(), True
        self.accumulated = value


Scope = Variables | Frame
