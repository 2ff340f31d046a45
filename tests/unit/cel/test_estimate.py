"""Estimates: the most that expressions can cost, with declared sizes and without."""

from __future__ import annotations

import pytest

from bayplan.cel import Environment
from bayplan.cel.library import KUBERNETES
from bayplan.cel.sizes import UNBOUNDED, Range, Sizes
from bayplan.cel.types import INT, STRING, list_of, map_of

SIZES = Sizes({("names",): 10, ("names", "@items"): 20, ("name",): 100, ("m",): 5, ("m", "@keys"): 30})
ENVIRONMENT = Environment(
    {"names": list_of(STRING), "name": STRING, "m": map_of(STRING, INT), "free": STRING}, KUBERNETES, sizes=SIZES
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name == 'abc'", 2),
        ("name + name", 22),
        ("name.matches('abcdefgh')", 1 + 11 * 2),
        ("name.contains('abc')", 11),
        ("names.all(n, n == name)", 1 + 10 * (2 + 1 + 1 + 1 + 2) + 1),
        ("m.exists(k, k == name)", 1 + 5 * (3 + 1 + 1 + 1 + 3) + 1),
        ("'a' in names", 11),
        ("true ? name : 'b'", 1),
        ("free == free", 2 + 1844674407370955264),
        ("[name, 'b'][0]", 12),
        ("{'a': name}.a", 32),
        ("name.split('a').size()", 1 + 20 + 1),
        ("name.replace('a', 'bb').size()", 1 + 20 + 1),
        ("names.join(',')", 1 + 21),
        ("sets.contains(names, names)", 2 + 101),
        ("lists.range(10).map(x, x)", 21 + 10 + 10 * (1 + 11 + 1) + 1),
        ("names.sort()", 1 + 210 + 11),
        ("names.distinct()", 1 + 200 + 11),
        ("names.slice(1, 3)", 1 + 2 + 11),
        ("names.reverse()", 1 + 10 + 11),
        ("dyn(name) == 'a'", 3),
        ("cel.bind(x, name, x + x)", 10 + 1 + 2 + 20),
        ("name.substring(1).lowerAscii()", 1 + 10 + 10),
        ("quantity(name) == quantity('1')", 1 + 10 + 1 + 1),
        ("bytes(name) == b'a'", 1 + 10 + 1),
        ("name < 'b'", 2),
        ("name.startsWith('abc')", 2),
        ("'%s'.format([name])", 12),
        ("names.isSorted()", 1 + 10 * 3),
        ("cidr(name).containsIP('10.0.0.1')", 1 + 10 + 4 + 1),
        ("has(m.a) ? 1 : 2", 1),
    ],
)
def test_estimates_follow_from_sizes(text: str, expected: int) -> None:
    assert ENVIRONMENT.compile(text).max_cost == expected


def test_ranges_stay_within_64_bits() -> None:
    largest = Range(1, UNBOUNDED)

    assert largest + largest == Range(2, UNBOUNDED)
    assert largest * largest == Range(1, UNBOUNDED)
    assert largest.scaled(0.1) == Range(1, 1844674407370955264)
    assert Range(2, 5).union(Range(1, 3)) == Range(1, 5)
