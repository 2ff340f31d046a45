"""Numbers for what rows have in common: label values, sets of taints.

Equal keys share a number, so columns can hold numbers in place of keys, and questions are answered once per number.
A number whose last holder is gone is given to the next new key: nodes come and go for years, and most bring a name
that never comes again, so numbers that were never reused would grow without end. A number is therefore valid only as
long as the row that holds it does not change.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from bayplan.cluster.axes import ABSENT

__all__ = ["Interned"]

K = TypeVar("K", bound=Hashable)


class Interned(Generic[K]):
    """`keys[number]` is a key that is held, or the last one that was."""

    __slots__ = ("_free", "_holders", "_numbers", "keys")

    def __init__(self) -> None:
        self.keys: list[K] = []
        self._numbers: dict[K, int] = {}
        self._holders: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """How many keys are held."""
        return len(self._numbers)

    def find(self, key: K) -> int:
        """The number of a key, ABSENT when no row holds it."""
        return self._numbers.get(key, ABSENT)

    def holders(self, number: int) -> int:
        return self._holders[number]

    def hold(self, key: K) -> int:
        """The number of a key, with one holder more."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._number_for(key)
        self._holders[number] += 1
        return number

    def release(self, number: int) -> None:
        """One holder less."""
        self._holders[number] -= 1
        if not self._holders[number]:
            del self._numbers[self.keys[number]]
            self._free.append(number)

    def _number_for(self, key: K) -> int:
        if self._free:
            number = self._free.pop()
            self.keys[number] = key
            return number
        self.keys.append(key)
        self._holders.append(0)
        return len(self.keys) - 1
