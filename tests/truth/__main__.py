"""`python -m tests.truth --seed 1 --cases 500`: execute every claim about that many generated cases."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

import structlog

from tests.truth.causes import CAUSES, generate
from tests.truth.proof import Proof, prove

_CASE_SECONDS = 120.0
"""For one case with all its experiments: a hundred times what it takes."""
_NAMED = 5


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
    seconds: dict[str, float] = {}
    for number, part, took in _proofs(options.seed, numbers, jobs):
        proof.add(part)
        seconds[_name(options.seed, number)] = took
        for problem in part.problems:
            print(problem, flush=True)
    gaps = proof.gaps() if len(seconds) >= 2 * len(CAUSES) else []
    for gap in gaps:
        print(gap)
    slowest = sorted(seconds, key=lambda name: -seconds[name])[:_NAMED]
    print("slowest:", "; ".join(f"{name} {seconds[name]:.1f} s" for name in slowest))
    print(f"seed {options.seed}: {proof.summary()}; {time.monotonic() - began:.0f} s")
    return 1 if proof.problems or gaps else 0


def _proofs(seed: int, numbers: Sequence[int], jobs: int) -> Iterator[tuple[int, Proof, float]]:
    """(case, what was found out, seconds) as they end. A process that neither ends nor waits is given up."""
    with ProcessPoolExecutor(jobs, initializer=_quiet) as pool:
        running: dict[Future[tuple[Proof, float]], int] = {pool.submit(_prove_one, seed, n): n for n in numbers}
        while running:
            done, _ = wait(running, timeout=2 * _CASE_SECONDS, return_when=FIRST_COMPLETED)
            if not done:
                _give_up(pool, seed, sorted(running.values())[:jobs])
            for future in done:
                yield running.pop(future), *future.result()


def _give_up(pool: ProcessPoolExecutor, seed: int, numbers: Sequence[int]) -> None:
    names = ", ".join(_name(seed, number) for number in numbers)
    print(f"nothing ended for {2 * _CASE_SECONDS:.0f} s; under way, or next: {names}", flush=True)
    for process in list(pool._processes.values()):
        process.kill()
    os._exit(2)


def _quiet() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _prove_one(seed: int, number: int) -> tuple[Proof, float]:
    began, proof = time.monotonic(), Proof()
    try:
        asyncio.run(asyncio.wait_for(prove(seed, number, proof), _CASE_SECONDS))
    except TimeoutError as problem:
        proof.false.append(f"{_name(seed, number)}: {problem or f'not done after {_CASE_SECONDS:.0f} s'}")
    except Exception:
        proof.false.append(f"{_name(seed, number)}: {traceback.format_exc(limit=-2)}")
    return proof, time.monotonic() - began


def _name(seed: int, number: int) -> str:
    return f"case {number} ({generate(seed, number).cause})"


if __name__ == "__main__":
    sys.exit(main())
