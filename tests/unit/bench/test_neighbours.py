"""Objects of one namespace cost plain pods of another next to nothing; `make bench-neighbours` measures all kinds.

Here the cost is counted in calls of functions, which a busy machine does not change. PodGroups that wait are tried
again by the clock, so their cost is left to the benchmark, and to `tests/unit/queue/test_waking_alike.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from bench.neighbours import measure

MOST = 1.6


class Calls:
    """A clock that shows how many functions were called in this thread."""

    count = 0

    def __call__(self) -> float:
        return self.count

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        self.count += event in ("call", "c_call")


@pytest.fixture
def calls() -> Iterator[Calls]:
    clock = Calls()
    sys.setprofile(clock.note)
    yield clock
    sys.setprofile(None)


@pytest.mark.parametrize("kind", ["running, preferred affinity", "labels", "NodeResourceTopologies"])
async def test_hostile_objects_are_paid_for_by_their_owner(kind: str, calls: Calls) -> None:
    found = await measure(kind, nodes=60, pods=60, rounds=3, clock=calls)

    assert found["cpu"] < MOST, found
    assert found["left"] < MOST, found
    assert found["kept"] < MOST, found
