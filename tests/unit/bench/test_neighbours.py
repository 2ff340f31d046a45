"""Objects of one namespace cost plain pods of another next to nothing; `make bench-neighbours` measures all kinds."""

from __future__ import annotations

import pytest
from bench.neighbours import measure

MOST_CPU, MOST_MEMORY = 3.0, 1.6
"""Wider than the benchmark's: this machine is busy with other tests."""


@pytest.mark.parametrize("kind", ["running, preferred affinity", "labels", "PodGroups", "NodeResourceTopologies"])
async def test_hostile_objects_are_paid_for_by_their_owner(kind: str) -> None:
    found = await measure(kind, nodes=60, pods=60, rounds=3)

    assert found["cpu"] < MOST_CPU, found
    assert found["left"] < MOST_MEMORY, found
    assert found["kept"] < MOST_MEMORY, found
