"""The NUMA cell of each container, as a node's agent writes it into its NodeResourceTopology.

The agent and the scheduler both know the containers with exclusive resources, and both sort the XXH64 of `namespace NUL
pod NUL container` in ascending order. So a cell only states places in that list: the first as it is, each further one
as the distance from the one before, written in LEB89 (89 characters that JSON does not escape: 64 that end a number, 25
that continue it). The cell with the most containers states nothing: containers of no other cell are there.

A text that is inconsistent (another version, another number of containers, a place twice) counts as no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bayplan.plugins.community.node_resource_topology_match.fingerprint import xxh64

__all__ = ["METADATA_ATTRIBUTE", "VECTOR_ATTRIBUTE", "ContainerName", "PlacementText", "decode_numbers", "placement"]

METADATA_ATTRIBUTE = "topology.node.k8s.io/numaplacement-metadata"
VECTOR_ATTRIBUTE = "topology.node.k8s.io/numaplacement-vector"
_HEAD = "npv0v001"
_ALPHABET = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"&<>\\')
_VALUES = {symbol: value for value, symbol in enumerate(_ALPHABET)}
_ENDS, _MORE = 64, 25
_LARGEST = 1 << 31

ContainerName = tuple[str, str, str]
"""(namespace, pod, container)"""


class PlacementText(NamedTuple):
    """The text of an object, not yet decoded."""

    metadata: str = ""
    vectors: tuple[tuple[int, str], ...] = ()
    """(cell, vector)"""


def placement(text: PlacementText, containers: Iterable[ContainerName]) -> Mapping[ContainerName, int] | None:
    """The cell of each of the containers; None when the text is about others, or invalid."""
    facts = _facts(text.metadata)
    if facts is None:
        return None
    count, cells, busiest = facts
    named = sorted((xxh64("\0".join(name).encode()), name) for name in set(containers))
    if len(named) != count or len({number for number, _ in named}) != count:
        return None
    found: dict[ContainerName, int] = {name: busiest for _, name in named}
    taken: set[int] = set()
    for cell, vector in text.vectors:
        places = _places(vector, count)
        if places is None or not 0 <= cell < cells or cell == busiest or taken.intersection(places):
            return None
        taken.update(places)
        found.update((named[place][1], cell) for place in places)
    return found


def _facts(metadata: str) -> tuple[int, int, int] | None:
    """Containers, cells, and the busiest cell."""
    head, *pairs = metadata.split("::")
    given = dict(pair.partition("=")[::2] for pair in pairs)
    numbers = [given.get(name, "") for name in ("cc", "nn", "bn")]
    if head != _HEAD or given.get("ve") != "leb89" or not all(n.isascii() and n.isdigit() for n in numbers):
        return None
    count, cells, busiest = (int(number[:10]) for number in numbers)
    return (count, cells, busiest) if busiest < cells else None


def _places(vector: str, count: int) -> list[int] | None:
    """Ascending places in a list of that many; None for anything else."""
    distances = decode_numbers(vector)
    if distances is None:
        return None
    places: list[int] = []
    for distance in distances:
        places.append(places[-1] + distance if places else distance)
        if places[-1] >= count or (len(places) > 1 and not distance):
            return None
    return places


def decode_numbers(text: str) -> list[int] | None:
    """LEB89; None for an invalid symbol, a number that does not end, or one that is too large."""
    numbers, high, has_more = [], 0, False
    for symbol in text:
        value = _VALUES.get(symbol)
        if value is None or high >= _LARGEST:
            return None
        if value >= _ENDS:
            high, has_more = high * _MORE + value - _ENDS, True
        else:
            numbers.append(high * _ENDS + value + _ENDS if has_more else value)
            high, has_more = 0, False
    return None if has_more else numbers
