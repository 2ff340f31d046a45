"""The change log: readers see every row that changed after their position, or learn that they must start over."""

from __future__ import annotations

import random

from bayplan.cluster.changes import ChangeLog


def test_a_reader_sees_what_changed_after_its_position() -> None:
    log = ChangeLog()
    log.append(3)
    seen = log.position
    log.append(5)
    log.append(3)

    rows = log.since(seen)

    assert rows is not None
    assert rows.tolist() == [5, 3]
    assert log.since(log.position) is not None
    assert len(log.since(log.position)) == 0  # type: ignore[arg-type]


def test_a_reader_that_fell_behind_is_told_so() -> None:
    log = ChangeLog(keep=4)
    start = log.position
    for row in range(5_000):
        log.append(row)

    assert log.since(start) is None
    assert log.since(log.position - 4).tolist() == [4996, 4997, 4998, 4999]  # type: ignore[union-attr]


def test_positions_only_grow_and_never_lie() -> None:
    """Against a plain list of everything ever appended, with readers at random positions."""
    rng = random.Random(7)
    log, everything = ChangeLog(keep=50), []
    for step in range(6_000):
        row = rng.randrange(100)
        log.append(row)
        everything.append(row)
        assert log.position == step + 1
        reader = rng.randrange(step + 2)
        rows = log.since(reader)
        if rows is not None:
            assert rows.tolist() == everything[reader:]
        else:
            assert len(everything) - reader > 50
