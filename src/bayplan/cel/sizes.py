"""Sizes and costs as ranges, and the declared sizes of what variables lead to.

Those without a bound end at the largest 64-bit number, and arithmetic stays there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from bayplan.cel.syntax import Expression
from bayplan.cel.types import Type, TypeKind

__all__ = [
    "ANY_SIZE",
    "NOTHING",
    "ONE",
    "UNBOUNDED",
    "Range",
    "SizeNode",
    "Sizes",
    "element",
    "is_scalar",
    "known_size",
    "node_size",
]

UNBOUNDED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Range:
    """A size or a cost between two numbers, both at most `UNBOUNDED`."""

    least: int
    most: int

    def __add__(self, other: Range) -> Range:
        return Range(min(self.least + other.least, UNBOUNDED), min(self.most + other.most, UNBOUNDED))

    def __mul__(self, other: Range) -> Range:
        return Range(min(self.least * other.least, UNBOUNDED), min(self.most * other.most, UNBOUNDED))

    def scaled(self, factor: float) -> Range:
        return Range(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def _scaled(number: int, factor: float) -> int:
    product = ceil(float(number) * factor) if factor else 0
    return min(product, UNBOUNDED)


NOTHING, ONE, ANY_SIZE = Range(0, 0), Range(1, 1), Range(0, UNBOUNDED)
_SCALARS = frozenset(
    {TypeKind.BOOL, TypeKind.DOUBLE, TypeKind.DURATION, TypeKind.INT, TypeKind.TIMESTAMP, TypeKind.UINT}
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The largest sizes of what paths such as `device.attributes.@values` lead to; `*` stands for any name.

    `calls` has the most that calls of an environment's own functions cost, by overload.
    """

    largest: Mapping[tuple[str, ...], int]
    calls: Mapping[str, int] = field(default_factory=dict)

    def of(self, path: Sequence[str]) -> Range | None:
        if not path:
            return None
        for known, most in self.largest.items():
            if len(known) == len(path) and all(map(_names_the_same, known, path)):
                return Range(0, most)
        return None


def _names_the_same(known: str, name: str) -> bool:
    return known == name or (known == "*" and not name.startswith("@"))


@dataclass(frozen=True, slots=True)
class SizeNode:
    """An operand of a call: its type, size and where it comes from."""

    part: Expression | None
    type: Type
    path: tuple[str, ...]
    size: Range | None


def known_size(node: SizeNode) -> Range:
    return ANY_SIZE if node.size is None else node.size


def node_size(sizes: Sizes, node: SizeNode) -> Range:
    """As `known_size`, and by path for elements that no part of the expression stands for."""
    if node.size is not None:
        return node.size
    return sizes.of(node.path) or ANY_SIZE


def element(node: SizeNode) -> SizeNode | None:
    """The elements of a list."""
    if not node.type.parameters:
        return None
    path = (*node.path, "@items") if node.path else ()
    return SizeNode(None, node.type.parameters[0], path, None)


def is_scalar(of: Type) -> bool:
    """Whether all values of the type have the same size."""
    return of.kind in _SCALARS or (of.is_optional and bool(of.parameters) and is_scalar(of.parameters[0]))
