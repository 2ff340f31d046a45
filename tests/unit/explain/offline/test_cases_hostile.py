"""Cases with anything in the place of anything: an answer or a sentence, never a surprise."""

from __future__ import annotations

import copy
import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import structlog

from bayplan.explain.offline.cases import CaseError, CaseEvaluator

GOLDEN = Path(__file__).parents[3] / "parity" / "golden"
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**70, 1e308, "", "\0", "NaN", "-5", "1e30", "10Gi", "0x10", "x" * 300, "9" * 400),
    *([], {}, ["a"], {"a": "b"}, [None], "In", "DoNotSchedule"),
)


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    found = []
    for path in sorted(GOLDEN.glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            found += [json.loads(line) for _, line in zip(range(2), lines, strict=False)]
    return found


@pytest.fixture(autouse=True)
def silence() -> None:
    """Plugins complain about odd values, rightly and at length."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def spoil(case: dict[str, Any], chance: Random) -> None:
    path = chance.choice([place for place in places(case) if len(place) > 1])
    holder: Any = case
    for key in path[:-1]:
        holder = holder[key]
    if chance.random() < 0.2:
        del holder[path[-1]]
    else:
        holder[path[-1]] = copy.deepcopy(chance.choice(ODD))


@pytest.mark.parametrize("seed", range(12))
def test_spoilt_cases_are_answered_or_refused(seed: int, cases: list[dict[str, Any]]) -> None:
    chance, evaluator = Random(seed), CaseEvaluator()
    for _ in range(20):
        case = copy.deepcopy(chance.choice(cases))
        for _ in range(chance.choice((1, 1, 2, 4))):
            spoil(case, chance)
        try:
            json.dumps(evaluator.evaluate(case))
        except CaseError as error:
            assert "\n" not in str(error)
