"""The resource axis: which resource has which place in the R×N columns.

cpu, memory and ephemeral-storage come first; a scalar resource is given a place when a node first offers it. What only
pods name has none: a user can invent thousands of names, and a column costs memory on every node. Pods keep such
requests by name (`PodShape.unplaced`), and no node has room for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.api.quantity import Quantity, value
from bayplan.api.requests import Amounts, is_scalar_resource, to_amounts

__all__ = ["CPU", "EPHEMERAL_STORAGE", "MEMORY", "NATIVE", "ResourceAxis", "Vector", "is_counted"]

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
NATIVE = ("cpu", "memory", "ephemeral-storage")
"""Always there, at these places."""
_MOST_OFFERS = 512

Vector = tuple[tuple[int, int], ...]
"""Sparse amounts: (place, amount) pairs. An explicit zero is kept, a resource that is not named is not there."""


def is_counted(name: str) -> bool:
    """Whether nodes are held to it; `pods` and names that Kubernetes does not know are not."""
    return name in NATIVE or is_scalar_resource(name)


class ResourceAxis:
    def __init__(self) -> None:
        self.names: list[str] = list(NATIVE)
        self._places = {name: place for place, name in enumerate(self.names)}
        self._offers: dict[tuple[tuple[str, Quantity], ...], tuple[Vector, int]] = {}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int | None:
        return self._places.get(name)

    def vector(self, amounts: Amounts) -> Vector:
        """Amounts in axis order; what has no place is left out."""
        places = self._places
        return tuple(sorted([(places[name], amount) for name, amount in amounts.items() if name in places]))

    def unplaced(self, amounts: Amounts) -> tuple[str, ...]:
        """What is requested and has no place, because no node offers it."""
        places = self._places
        return tuple(sorted([n for n, a in amounts.items() if a > 0 and n not in places and is_scalar_resource(n)]))

    def new_in(self, quantities: Mapping[str, Quantity] | None) -> list[str]:
        """What a node would be the first to offer."""
        if not quantities or tuple(quantities.items()) in self._offers:
            return []
        return [name for name in quantities if name not in self._places and is_scalar_resource(name)]

    def offer(self, quantities: Mapping[str, Quantity] | None) -> tuple[Vector, int]:
        """What a node offers, and how many pods it takes. Nodes are of a few sizes, so each is read once."""
        if not quantities:
            return (), 0
        key = tuple(quantities.items())
        offer = self._offers.get(key)
        if offer is None:
            if len(self._offers) >= _MOST_OFFERS:
                self._offers.clear()
            self.add(self.new_in(quantities))
            offer = self._offers[key] = (self.vector(to_amounts(quantities)), value(quantities.get("pods", 0)))
        return offer

    def add(self, names: Iterable[str]) -> None:
        """Give places to new names, after all others."""
        for name in names:
            self._places[name] = len(self.names)
            self.names.append(name)

    def keep(self, names: Iterable[str]) -> None:
        """Take their places from all scalar resources but these, which move up. Every vector made before is void."""
        self.names[len(NATIVE) :] = []
        self._places = {name: place for place, name in enumerate(self.names)}
        self._offers.clear()
        self.add(names)
