"""Processes that compute and do nothing else, to measure what has to wait for a processor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["busy_loops"]


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Keep so many of them running."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
