"""What a reading took for fixed: methods, arguments, attributes, names of files and builtins, as they were then.

Source shows who changes a value only as far as it is read. Another file, a debugger or a test may replace a method or
an attribute at any time, so the engine compares before every decision, and keeps no answers once something differs.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from types import FunctionType
from typing import Any

__all__ = ["Premises"]

_ABSENT = object()


class Premises:
    """Values by the place that they were found in."""

    __slots__ = ("_contents", "_values")

    def __init__(self) -> None:
        self._values: dict[tuple[int, str], tuple[Callable[[str, object], object], str, object]] = {}
        self._contents: list[tuple[object, object]] = []
        """Collections that could be changed in place, each with a copy."""

    def item(self, place: Any, name: str, value: object = _ABSENT) -> None:
        """A mapping has this value; without one: has nothing of this name."""
        self._values[id(place), name] = (place.get, name, value)

    def attribute(self, owner: object, name: str, value: object) -> None:
        self._values[id(owner), name] = (partial(getattr, owner), name, value)

    def content(self, collection: object) -> None:
        self._contents.append((collection, deepcopy(collection)))

    def function(self, function: FunctionType) -> None:
        self.attribute(function, "__code__", function.__code__)

    def builtin(self, function: FunctionType, name: str) -> None:
        """A function calls a builtin, which its file could hide."""
        self.item(function.__globals__, name)
        self.item(vars(builtins), name, vars(builtins)[name])

    def looked_up(self, cls: type, name: str) -> None:
        """The value that a class has of this name, wherever in the order of its bases."""
        for owner in cls.__mro__:
            self.item(vars(owner), name, vars(owner).get(name, _ABSENT))
            if name in vars(owner):
                return

    def hold(self) -> bool:
        """Whether everything is as it was."""
        for get, name, value in self._values.values():
            if get(name, _ABSENT) is not value:
                return False
        for collection, copy in self._contents:  # noqa: SIM110 - a generator costs more, every decision asks
            if collection != copy:
                return False
        return True
