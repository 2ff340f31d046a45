"""Decisions a second, without an API server: the full default profile, every node scored, on one core.

    python -m bench.decide [--nodes 1000 5000 15000] [--workload NAME ...] [--quick] [--json FILE] [--profile]

A decision is what the scheduling loop does between taking a pod from the queue and starting to bind it: find the node
and assume the pod there. With preemption it is finding the victims and the nomination; removing the victims and placing
the pod is then not counted. Reading a pod and finding its shape is a line of its own. Each workload runs in rounds that
start from the same cluster; the figures are medians of rounds, in CPU time, with wall time beside them.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import sys
from pathlib import Path

from bench.calibration import REFERENCE_SECONDS, calibrate
from bench.measuring import Bench, Result
from bench.workloads import find_workloads

SIZES = (1_000, 5_000, 15_000)
_NAMES = ("per s", "ref/s", "wall/s", "p50 µs", "p99 µs")
_HEAD = f"{'workload':<36}{'nodes':>7}{''.join(f'{name:>9}' for name in _NAMES)}{'target':>8}{'ratio':>7}"


def main() -> int:
    options = _options()
    try:
        workloads = find_workloads(options.workload)
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    speed = REFERENCE_SECONDS / calibrate()
    print(f"calibration: this machine runs at {speed:.2f} of the reference right now")
    print(f"per s: by CPU time; ref/s: the same at the reference speed; ratio: per s to target\n\n{_HEAD}")
    results = []
    for nodes in options.nodes:
        bench = Bench(nodes, rounds=3 if options.quick else 5, share=0.25 if options.quick else 1.0, tell=_progress)
        for workload in workloads:
            profiler = cProfile.Profile() if options.profile else None
            result = bench.measure(workload, profiler)
            results.append(result)
            _progress("")
            print(_line(result), flush=True)
            if profiler is not None:
                pstats.Stats(profiler).sort_stats("tottime").print_stats(options.top)
        cost = bench.pod_info_cost()
        _progress("")
        print(f"  a pod to its PodInfo: {cost.known_us:.1f} µs of a known template, {cost.new_us:.1f} µs of a new one")
    if options.json:
        record = {"calibration_speed": speed, "results": [result.as_json() for result in results]}
        options.json.write_text(json.dumps(record, indent=2) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", nargs="+", type=_size, default=SIZES, metavar="N", help="sizes of the cluster")
    parser.add_argument("--workload", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--quick", action="store_true", help="a quarter of the decisions, three rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--profile", action="store_true", help="show where the time goes (figures are then slower)")
    parser.add_argument("--top", type=int, default=25, help="lines of the profile")
    return parser.parse_args()


def _size(text: str) -> int:
    number = int(text)
    if number < 10:
        raise argparse.ArgumentTypeError("at least 10 nodes")
    return number


def _line(result: Result) -> str:
    target = f"{result.target:>8}{result.per_second / result.target:>7.2f}" if result.target else f"{'-':>8}{'-':>7}"
    rates = f"{result.per_second:>9.0f}{result.reference_per_second:>9.0f}{result.wall_per_second:>9.0f}"
    return f"{result.title:<36}{result.nodes:>7}{rates}{result.p50_us:>9.1f}{result.p99_us:>9.1f}{target}"


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
