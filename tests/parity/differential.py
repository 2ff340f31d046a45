"""Differential test: recombined cases, decided by kube-scheduler's own code and by Bayplan, compared in full.

    (cd tests/controlplane/go/kubernetes && go build -o ~/oracle ./oracle)
    python -m tests.parity.differential --oracle ~/oracle --count 500 --seed 7

Needs Go, once, for the oracle: a small program around kube-scheduler's packages.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayplan.explain.offline.cases import evaluate_case
from tests.parity.conformance import GOLDEN, differences, read_cases
from tests.parity.generate_devices import generate_devices
from tests.parity.recombine import Case, recombine
from tests.parity.recombine_devices import recombine_devices


def ask_oracle(oracle: Path, cases: list[Case], flags: Sequence[str] = ()) -> list[dict[str, Any]]:
    lines = "\n".join(json.dumps(case) for case in cases)
    done = subprocess.run([oracle, *flags], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(case: Case, answer: dict[str, Any]) -> list[str]:
    """Where we differ from the oracle; cases that it cannot decide are left out by the caller."""
    expected = answer["result"]
    try:
        actual = evaluate_case(case)
    except Exception as error:
        return [f"raised {type(error).__name__}: {error}"]
    if answer.get("failures"):
        return _compare_failure(answer["failures"], actual)
    if isinstance(expected, dict) and isinstance(actual, dict) and expected.get("preemption"):
        # The oracle nominates one of the nodes that tie.
        wanted, ours = expected["preemption"]["nominatedNodes"], actual.get("preemption", {}).get("nominatedNodes", [])
        if set(wanted) <= set(ours) and bool(wanted) == bool(ours):
            expected["preemption"]["nominatedNodes"] = ours
    return differences(expected, actual)


def _compare_failure(expected: list[str], actual: Any) -> list[str]:
    """Filters of several nodes may fail; kube-scheduler reports the failure of any of them."""
    message = actual.get("message", "") if isinstance(actual, dict) else ""
    return [] if message in expected else [f"expected to fail with one of {expected}, got {message!r}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", type=Path, required=True, help="the built oracle program")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", action="store_true", help="cases with devices")
    parser.add_argument("--made", action="store_true", help="cases with devices on larger clusters, made from nothing")
    parser.add_argument("--taint-rules", action="store_true", help="with --made: DeviceTaintRules besides")
    parser.add_argument("--verbose", action="store_true", help="say why the oracle could not decide a case")
    parser.add_argument("--save", type=Path, help="write cases that differ, with what the oracle expects, to this file")
    options = parser.parse_args()
    golden = [case for path in sorted(GOLDEN.glob("*.jsonl.gz")) for case in read_cases(path)]
    if options.made:
        cases = list(generate_devices(options.seed, options.count, with_taint_rules=options.taint_rules))
    else:
        make = recombine_devices if options.devices else recombine
        cases = list(make(golden, options.seed, options.count))
    answers = ask_oracle(options.oracle, cases, ["--feature-gates=DRADeviceTaintRules=true"] * options.taint_rules)
    undecided = differing = failed = 0
    saved = []
    for case, answer in zip(cases, answers, strict=True):
        if answer.get("error"):
            undecided += 1
            if options.verbose:
                print(f"{case['id']}: undecided: {answer['error']}")
            continue
        failed += bool(answer.get("failures"))
        found = compare(case, answer)
        if found:
            differing += 1
            saved.append(case | {"expect": answer["result"], "failures": answer.get("failures", [])})
            print(f"{case['id']}:\n    " + "\n    ".join(found[:4]))
    if options.save:
        options.save.write_text("".join(json.dumps(case) + "\n" for case in saved))
    decided = len(cases) - undecided
    print(f"{decided - differing} agree ({failed} of all are errors), {differing} differ, {undecided} undecided")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
