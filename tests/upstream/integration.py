"""`make upstream`: the integration tests of kube-scheduler, with a program of its own in the scheduler's place.

Each test starts an API server, asks for a scheduler with some configuration, and watches what happens to its pods. The
copy that `module` builds starts an external program at that point: Bayplan, and kube-scheduler as the control. Leaves
(tests without subtests) that never start a scheduler, because they call the Go code themselves, prove nothing about a
program and are counted apart.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.controlplane.programs import cache_folder as controlplane
from tests.controlplane.programs import program
from tests.upstream import module, record

ROOT = "k8s.io/kubernetes/test/integration"
PACKAGES = (
    "scheduler",
    "scheduler/extender",
    "scheduler/filters",
    "scheduler/preemption",
    "scheduler/preemption/misc",
    "scheduler/preemption/nominatednodename",
    "scheduler/queueing",
    "scheduler/scoring",
    "scheduler/taint",
    "volumescheduling",
)
SUBJECTS = ("bayplan", "kube-scheduler")
_LIMIT = "10m"
_RUN = re.compile(r"^=== (?:RUN|CONT|NAME)\s+(\S+)$")
_END = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) ")
_STARTED = "EXTERNAL-SCHEDULER started"
_GO_PLUGINS = "EXTERNAL-SCHEDULER needs plugins written in Go"


@dataclass
class Outcome:
    """What one run of a test program said of its tests."""

    results: dict[str, str] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    needs_go: set[str] = field(default_factory=set)

    def leaves(self) -> Iterator[str]:
        """The tests that have no subtests, in the order in which they ended."""
        parents = {name.rsplit("/", 1)[0] for name in self.results if "/" in name}
        return (name for name in self.results if name not in parents)

    def verdict(self, leaf: str) -> str:
        """`pass`, `fail`, `skip`, or why the leaf says nothing about the program."""
        if self._concerns(leaf, self.needs_go):
            return "needs Go plugins"
        if self.results[leaf] == "skip":
            return "skip"
        return self.results[leaf] if self._concerns(leaf, self.started) else "starts no scheduler"

    @staticmethod
    def _concerns(leaf: str, names: set[str]) -> bool:
        """Whether the leaf itself or a test around it is among the names."""
        return any(leaf == name or leaf.startswith(f"{name}/") for name in names)


def parse(lines: Iterable[str]) -> Outcome:
    """The outcome of `go test -v`; a test that never ended, as after a panic, has failed."""
    outcome = Outcome()
    current = ""
    seen: dict[str, None] = {}
    for line in lines:
        if match := _RUN.match(line):
            current = match[1]
            seen[current] = None
        elif match := _END.match(line):
            outcome.results[match[2]] = match[1].lower()
        if _STARTED in line:
            outcome.started.add(current)
        elif _GO_PLUGINS in line:
            outcome.needs_go.add(current)
    for name in seen:
        outcome.results.setdefault(name, "fail")
    return outcome


def run_package(package: str, subject: str, *, only: str, logs: Path) -> Outcome:
    """All top-level tests of a package, each in a process of its own, with the subject as the scheduler."""
    path = module.build(f"{ROOT}/{package}", f"{package.replace('/', '-')}.test")
    listed = subprocess.run([path, "-test.list", only], env=_environment(), capture_output=True, text=True, check=True)
    total = Outcome()
    for name in [line for line in listed.stdout.splitlines() if line.startswith("Test")]:
        folder = logs / subject / package.replace("/", "-") / name
        folder.mkdir(parents=True, exist_ok=True)
        outcome = _run_test(path, package, name, subject, folder)
        total.results |= outcome.results
        total.started |= outcome.started
        total.needs_go |= outcome.needs_go
        failed = [leaf for leaf in outcome.leaves() if outcome.verdict(leaf) == "fail"]
        print(f"{subject}: {package} {name}: {len(failed)} failed", file=sys.stderr, flush=True)
    return total


def _run_test(path: Path, package: str, name: str, subject: str, folder: Path) -> Outcome:
    environment = _environment() | {
        "EXTERNAL_SCHEDULER": str(_launcher(subject, folder)),
        "EXTERNAL_SCHEDULER_LOGS": str(folder),
    }
    log = folder / "test.log"
    with log.open("w") as stream:
        subprocess.run(
            [path, "-test.v", "-test.timeout", _LIMIT, "-test.run", f"^{name}$"],
            cwd=module.source(f"{ROOT}/{package}"),
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return parse(log.read_text(errors="replace").splitlines())


def _environment() -> dict[str, str]:
    """The programs find our etcd, and none that happens to listen on its usual port."""
    path = f"{controlplane()}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "KUBE_INTEGRATION_ETCD_URL": "http://127.0.0.1:1"}


def _launcher(subject: str, folder: Path) -> Path:
    """A script that takes kube-scheduler's flags; feature gates that a test changes reach kube-scheduler alone."""
    calls = {
        "bayplan": f'{Path(sys.executable).with_name("bayplan")} run "$@"',
        "kube-scheduler": f'{program("kube-scheduler")} "$@" --feature-gates="$CHANGED_FEATURE_GATES" '
        '--emulated-version="$EMULATED_VERSION"',
    }
    path = folder / "scheduler"
    path.write_text(f"#!/bin/sh\nexec {calls[subject]}\n")
    path.chmod(0o755)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.upstream.integration", description=__doc__)
    parser.add_argument("--package", action="append", choices=PACKAGES, help="only these packages")
    parser.add_argument("--subject", action="append", choices=SUBJECTS, help="only this scheduler")
    parser.add_argument("--run", default=".", help="only top-level tests that match this pattern")
    parser.add_argument("--logs", type=Path, help="where the logs are kept")
    parser.add_argument("-o", "--output", type=Path, help="write all verdicts to this file as JSON")
    parser.add_argument("--record", action="store_true", help="keep the verdicts, and write the table of the docs anew")
    options = parser.parse_args()
    logs = options.logs or Path(tempfile.mkdtemp(prefix="upstream-"))
    verdicts: record.Outcomes = {}
    for package in options.package or PACKAGES:
        for subject in options.subject or SUBJECTS:
            outcome = run_package(package, subject, only=options.run, logs=logs)
            verdicts.setdefault(package, {})[subject] = {leaf: outcome.verdict(leaf) for leaf in outcome.leaves()}
        if options.output:
            options.output.write_text(json.dumps(verdicts, indent=1))
        if options.record:
            record.keep(record.LEAVES, record.merge_leaves(record.load(record.LEAVES), verdicts, PACKAGES))
    return report(verdicts, logs)


def report(verdicts: record.Outcomes, logs: Path) -> int:
    """Print the table; the exit status is 1 if a leaf fails for Bayplan that is not on the list of exceptions."""
    known = record.left_out()
    surprises = []
    print(record.leaves_table(verdicts))
    for package, by_subject in verdicts.items():
        surprises += [
            f"{package} {leaf}"
            for leaf, verdict in by_subject.get("bayplan", {}).items()
            if verdict == "fail" and not any(re.search(pattern, leaf) for pattern in known)
        ]
    for surprise in surprises:
        print(f"FAILED: {surprise}")
    print(f"logs: {logs}")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
