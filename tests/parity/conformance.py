"""The conformance table: every golden case of kube-scheduler, compared in full.

    python -m tests.parity.conformance [--category NAME] [--verbose] [FILE ...]

Compared are the infeasible nodes with the deciding plugin and reasons, the scores of every feasible node by plugin, the
best set, the messages, and candidates, victims and budget violations of preemption. Exit status 1 if anything differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bayplan.explain.offline.cases import evaluate_case

GOLDEN = Path(__file__).parent / "golden"


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    for line in text.splitlines():
        yield json.loads(line)


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """Where two results differ; a missing score and a zero are the same."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        found = []
        for key in sorted(expected.keys() | actual.keys()):
            left, right = expected.get(key), actual.get(key)
            if path.startswith("/scores/") and not left and not right:
                continue
            if (left is None and right in ({}, [], "")) or (right is None and left in ({}, [], "")):
                continue
            found += differences(left, right, f"{path}/{key}")
        return found
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            d for i, (e, a) in enumerate(zip(expected, actual, strict=True)) for d in differences(e, a, f"{path}/{i}")
        ]
    return [] if expected == actual else [f"{path}: expected {expected!r}, got {actual!r}"]


def check_file(path: Path) -> tuple[int, list[tuple[str, list[str]]]]:
    """How many cases there are, and the differences of those that fail."""
    total, failed = 0, []
    for case in read_cases(path):
        total += 1
        try:
            found = differences(case["expect"], evaluate_case(case))
        except Exception as error:  # one broken case must not hide the others
            found = [f"raised {type(error).__name__}: {error}"]
        if found:
            failed.append((case["id"], found))
    return total, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="case files (default: all golden cases)")
    parser.add_argument("--category", help="only this category")
    parser.add_argument("--verbose", action="store_true", help="print every difference")
    options = parser.parse_args()
    files = options.files or sorted(GOLDEN.glob(f"{options.category or '*'}.jsonl.gz"))
    print(f"{'category':<22}{'cases':>7}{'agree':>7}")
    cases = agreed = 0
    for path in files:
        total, failed = check_file(path)
        cases, agreed = cases + total, agreed + total - len(failed)
        print(f"{path.name.removesuffix('.jsonl.gz'):<22}{total:>7}{total - len(failed):>7}", flush=True)
        for name, found in failed if options.verbose else failed[:3]:
            shown = found if options.verbose else found[:3]
            print(f"    {name}: " + "\n        ".join(shown))
    print(f"{'all':<22}{cases:>7}{agreed:>7}   {100 * agreed / max(cases, 1):.1f} %")
    return 0 if cases and cases == agreed else 1


if __name__ == "__main__":
    sys.exit(main())
