"""Memory that was freed goes back to the machine."""

from __future__ import annotations

import sys
from pathlib import Path

from bayplan.observe.freed_memory import FreedMemory

MIB = 1 << 20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_what_large_objects_took_is_given_back_once() -> None:
    freed = FreedMemory()
    if sys.platform != "linux":
        assert not freed.give_back()
        return
    freed.give_back()
    before = resident()
    # Too small to be mapped one by one, and with gaps in between, so that the library keeps what is freed.
    large = [bytes(100_000) for _ in range(400)]
    kept = large[::40]
    grown = resident()
    del large

    assert freed.give_back()
    assert resident() - before < (grown - before) / 2
    assert not freed.give_back()
    assert len(kept) == 10
