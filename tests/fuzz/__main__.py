"""`python -m tests.fuzz --target config --minutes 60`: mutated input until the time is up; `all` takes turns."""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from tests.fuzz.targets import TARGETS

_SLOW_SECONDS = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    names = list(TARGETS) if options.target == "all" else [options.target]
    is_bad = False
    for name in names:
        count, slowest = fuzz(name, options.seed, options.minutes * 60 / len(names))
        print(f"{name:14} {count:9,} inputs, the slowest took {slowest:.2f} s", flush=True)
        is_bad |= slowest > _SLOW_SECONDS
    return int(is_bad)


def fuzz(name: str, seed: int, seconds: float) -> tuple[int, float]:
    """Try inputs for so long; how many, and how long the slowest took."""
    target, random = TARGETS[name](), Random(seed)
    end, count, slowest = time.monotonic() + seconds, 0, 0.0
    while (began := time.monotonic()) < end:
        target.attempt(random)
        count, slowest = count + 1, max(slowest, time.monotonic() - began)
    target.close()
    return count, slowest


if __name__ == "__main__":
    sys.exit(main())
