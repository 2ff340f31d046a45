"""Objects of one namespace cost plain pods of another next to nothing; `make bench-neighbours` measures all of it.

Here the cost is counted in calls of functions, which a busy machine does not change, with fewer objects of each kind
and few pods, so that whatever is done once a round counts more. Pods that wait are tried again by the clock, so the
least of three rounds counts. PodGroups that wait are left to the benchmark, and to
`tests/unit/queue/test_waking_alike.py`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from itertools import islice
from types import FrameType
from typing import Any

import pytest
from bench import hostile
from bench.neighbours import MOST_KEPT, Stage

NODES, PODS, OBJECTS = 110, 40, 100
MOST = 1.6
KINDS = {kind: make for kind, make in hostile.KINDS.items() if kind != "PodGroups"}


class Calls:
    """A clock that shows how many functions were called between its first and its second reading."""

    def __init__(self) -> None:
        self.count = 0
        self._is_on = False

    def __call__(self) -> float:
        self._is_on = not self._is_on
        sys.setprofile(self._note if self._is_on else None)
        return self.count

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        self.count += event in ("call", "c_call")


async def least_cost(stage: Stage, calls: Calls) -> float:
    return min([await stage.cost_of_plain_pods(PODS, 1, calls) for _ in range(3)])


def objects_in_use() -> int:
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("own_labels", [False, True])
async def test_hostile_objects_of_every_kind_are_paid_for_by_their_owner(own_labels: bool) -> None:
    """Also by plain pods that have a label that no other has, as those of a StatefulSet."""
    stage, calls = Stage(NODES, own_labels=own_labels), Calls()
    running = asyncio.create_task(stage.live.run())
    await stage.live.is_ready.wait()
    await stage.cost_of_plain_pods(PODS, 2)
    quiet, kept = await least_cost(stage, calls), objects_in_use()
    costs = {}
    for kind, make in KINDS.items():
        there = await stage.add(islice(make(), OBJECTS))
        costs[kind] = await least_cost(stage, calls) / quiet
        await stage.remove(there)
    after = await least_cost(stage, calls) / quiet
    left = objects_in_use() / kept
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert {kind: round(cost, 2) for kind, cost in costs.items() if cost > MOST} == {}
    assert after <= MOST
    assert left <= MOST_KEPT
