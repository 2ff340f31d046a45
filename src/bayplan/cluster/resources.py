"""The resource axis: which resource has which place in the R×N columns.

cpu, memory and ephemeral-storage come first; scalar resources are given a place when something first names them.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.api.quantity import Quantity, value
from bayplan.api.requests import Amounts, is_scalar_resource, to_amounts

__all__ = ["CPU", "EPHEMERAL_STORAGE", "MEMORY", "ResourceAxis", "Vector"]

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
_MOST_OFFERS = 512

Vector = tuple[tuple[int, int], ...]
"""Sparse amounts: (place, amount) pairs. An explicit zero is kept, a resource that is not named is not there."""


class ResourceAxis:
    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "ephemeral-storage"]
        self._places = {name: place for place, name in enumerate(self.names)}
        self._offers: dict[tuple[tuple[str, Quantity], ...], tuple[Vector, int]] = {}

    def __len__(self) -> int:
        return len(self.names)

    def place(self, name: str) -> int:
        """The place of a resource, made if it is new."""
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = len(self.names)
            self.names.append(name)
        return place

    def find(self, name: str) -> int | None:
        return self._places.get(name)

    def vector(self, amounts: Amounts) -> Vector:
        """Amounts in axis order; `pods` and names that nothing counts are left out."""
        counted = {n: a for n, a in amounts.items() if n in self._places or is_scalar_resource(n)}
        return tuple(sorted((self.place(name), amount) for name, amount in counted.items()))

    def offer(self, quantities: Mapping[str, Quantity] | None) -> tuple[Vector, int]:
        """What a node offers, and how many pods it takes. Nodes are of a few sizes, so each is read once."""
        if not quantities:
            return (), 0
        key = tuple(quantities.items())
        offer = self._offers.get(key)
        if offer is None:
            if len(self._offers) >= _MOST_OFFERS:
                self._offers.clear()
            offer = self._offers[key] = (self.vector(to_amounts(quantities)), value(quantities.get("pods", 0)))
        return offer
