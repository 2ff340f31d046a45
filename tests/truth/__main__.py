"""`python -m tests.truth --seed 1 --cases 500`: execute every claim about that many generated cases."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import structlog

from tests.truth.proof import Proof, prove


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--only", type=int, help="this case alone")
    parser.add_argument("--jobs", default="1", help="processes, or `auto`")
    options = parser.parse_args()
    numbers = range(options.cases) if options.only is None else [options.only]
    jobs = (os.cpu_count() or 1) if not options.jobs.isdecimal() else int(options.jobs)
    proof, began = Proof(), time.monotonic()
    shares = [list(numbers[place::jobs]) for place in range(jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        for part in pool.map(_share, [options.seed] * jobs, shares):
            proof.add(part)
    for problem in proof.problems:
        print(problem)
    print(f"seed {options.seed}: {proof.summary()}; {time.monotonic() - began:.0f} s")
    return 1 if proof.problems else 0


def _share(seed: int, numbers: list[int]) -> Proof:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    proof = Proof()
    asyncio.run(_prove_all(seed, numbers, proof))
    return proof


async def _prove_all(seed: int, numbers: list[int], proof: Proof) -> None:
    for number in numbers:
        try:
            await prove(seed, number, proof)
        except TimeoutError:
            proof.false.append(f"case {number}: the cluster did not settle")


if __name__ == "__main__":
    sys.exit(main())
