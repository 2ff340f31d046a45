"""The gate: fails when a decision has become 30 % dearer than the recorded baseline.

    python -m bench.gate            compare
    python -m bench.gate --record   write bench/baseline.json anew, after a change that is meant to cost more or less

500 nodes, no API server. Costs are in runs of a calibration loop that never changes, so that they can be compared
between machines; a workload that looks too dear is measured again, and the best of the tries counts, because a busy
machine can only make things look dearer than they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.measuring import Bench
from bench.workloads import Workload, find_workloads

BASELINE = Path(__file__).parent / "baseline.json"
NODES = 500
ALLOWED = 1.3
_TRIES = 4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the baseline anew")
    options = parser.parse_args()
    bench = Bench(NODES, rounds=3, share=0.1, tell=lambda _: None)
    baseline: dict[str, float] = {} if options.record else json.loads(BASELINE.read_text())
    costs = {workload.name: _cost(bench, workload, baseline.get(workload.name)) for workload in find_workloads([])}
    if options.record:
        BASELINE.write_text(json.dumps({name: round(cost, 3) for name, cost in costs.items()}, indent=2) + "\n")
    dear = 0
    print(f"{'workload':<28}{'cost':>8}{'baseline':>10}{'ratio':>7}")
    for name, cost in costs.items():
        known = baseline.get(name, cost)
        dear += cost > known * ALLOWED
        print(
            f"{name:<28}{cost:>8.2f}{known:>10.2f}{cost / known:>7.2f}{'  too dear' if cost > known * ALLOWED else ''}"
        )
    if dear:
        print(
            f"{dear} workloads cost over {ALLOWED:.0%} of the baseline; profile with `python -m bench.decide --profile`"
        )
    return 1 if dear else 0


def _cost(bench: Bench, workload: Workload, known: float | None) -> float:
    """The best of some tries; one is enough when it is within the limit."""
    best = float("inf")
    for _ in range(_TRIES):
        best = min(best, bench.measure(workload).calibrated_cost)
        if known is not None and best <= known * ALLOWED:
            break
    return best


if __name__ == "__main__":
    sys.exit(main())
