"""Who is on which NUMA cell: the numbers, the lists, and what is not believed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.plugins.community.node_resource_topology_match.fingerprint import xxh64
from bayplan.plugins.community.node_resource_topology_match.placement import PlacementText, decode_numbers, placement

SYMBOLS = [chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"&<>\\']
NAMES = [("default", f"pod-{number}", "main") for number in range(12)]


def encoded(number: int) -> str:
    """LEB89, the other way round."""
    if number < 64:
        return SYMBOLS[number]
    high, low = divmod(number - 64, 64)
    digits = [high % 25]
    while high >= 25:
        high //= 25
        digits.append(high % 25)
    return "".join(SYMBOLS[64 + digit] for digit in reversed(digits)) + SYMBOLS[low]


def written(cells: dict[tuple[str, str, str], int], *, count: int = 2) -> PlacementText:
    """What an agent writes for containers on cells."""
    order = sorted(cells, key=lambda name: xxh64("\0".join(name).encode()))
    places = {cell: [i for i, name in enumerate(order) if cells[name] == cell] for cell in range(count)}
    busiest = max(places, key=lambda cell: (len(places[cell]), -cell))
    vectors = tuple((cell, vector(found)) for cell, found in places.items() if cell != busiest and found)
    return PlacementText(f"npv0v001::ve=leb89::cc={len(cells)}::nn={count}::bn={busiest}", vectors)


def vector(places: list[int]) -> str:
    return "".join(encoded(place - before) for before, place in zip([0, *places], places, strict=False))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", []), ("!", [0]), ("#", [1]), ("!#", [0, 1]), ("e", [63]), ("f!", [64]), ("fe", [127]), ("g!", [128])],
)
def test_small_numbers_take_one_symbol_and_larger_ones_more(text: str, numbers: list[int]) -> None:
    assert decode_numbers(text) == numbers


@given(st.lists(st.integers(min_value=0, max_value=1 << 31)))
def test_numbers_are_read_as_they_were_written(numbers: list[int]) -> None:
    assert decode_numbers("".join(map(encoded, numbers))) == numbers


@pytest.mark.parametrize("text", ['"', "&", " ", "é", "f", "!f", "~" * 40])
def test_what_is_no_number_is_not_read(text: str) -> None:
    assert decode_numbers(text) is None


@pytest.mark.parametrize("seed", range(5))
def test_every_container_is_found_on_its_cell(seed: int) -> None:
    rng = Random(seed)
    cells = {name: rng.randrange(4) for name in NAMES}

    assert placement(written(cells, count=4), reversed(NAMES)) == cells


HALF = dict.fromkeys(NAMES[:5], 0) | dict.fromkeys(NAMES[5:9], 1)
GOOD = written(HALF)


@pytest.mark.parametrize(
    "text",
    [
        PlacementText(),
        PlacementText("pfp0v001::ve=leb89::cc=9::nn=2::bn=0"),
        GOOD._replace(metadata=GOOD.metadata.replace("leb89", "plain")),
        GOOD._replace(metadata=GOOD.metadata.replace("cc=9", "cc=8")),
        GOOD._replace(metadata=GOOD.metadata.replace("cc=9", "cc=x")),
        GOOD._replace(metadata=GOOD.metadata.replace("bn=0", "bn=2")),
        GOOD._replace(metadata=GOOD.metadata.replace("::bn=0", "")),
        GOOD._replace(vectors=((1, "e"),)),
        GOOD._replace(vectors=((1, "#!"),)),
        GOOD._replace(vectors=((0, "#"),)),
        GOOD._replace(vectors=((7, "#"),)),
        GOOD._replace(vectors=((1, "#"), (1, "#"))),
    ],
)
def test_what_does_not_fit_together_says_nothing(text: PlacementText) -> None:
    assert placement(GOOD, HALF) == HALF
    assert placement(text, HALF) is None
