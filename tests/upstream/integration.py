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
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import TextIO

from tests.controlplane.programs import cache_folder as controlplane
from tests.controlplane.programs import program
from tests.upstream import module, record

ROOT = "k8s.io/kubernetes/test/integration"
PACKAGES = (
    "scheduler",
    "scheduler/batch",
    "scheduler/eventhandler",
    "scheduler/extender",
    "scheduler/filters",
    "scheduler/preemption",
    "scheduler/preemption/misc",
    "scheduler/preemption/nominatednodename",
    "scheduler/queueing",
    "scheduler/queueing/queueinghint",
    "scheduler/scoring",
    "scheduler/taint",
    "volumescheduling",
    "dra/all",
    "dra/default",
    "dra/ga",
)
SUBJECTS = ("bayplan", "kube-scheduler")
# Plugins of a package's tests that let every pod pass but in leaves of the list of exceptions: a program goes without.
_PASSING_PLUGINS = {"scheduler/preemption": ("filter-plugin",)}
# Plugins of features that are alpha in 1.36, which tests may enable beside what they are about. Bayplan goes without.
_ALPHA_PLUGINS = ("GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount")
# What a program writes to its log when it has read the cluster.
_READY = {"bayplan": "scheduling begins", "kube-scheduler": '"Handlers synced"'}
# What a program writes to its log at each attempt to schedule a pod.
_ATTEMPTS = {
    "bayplan": r'(?m)(?:node chosen|no node found).*pod="?POD"?(?:\s|$)',
    "kube-scheduler": r'"Attempting to schedule pod" pod="POD"',
}
# A leaf that takes longer has failed. The longest takes four minutes on a machine that is not busy with other things.
_LEAF_SECONDS = 900.0
# How often a test is run at most, until each of its leaves has asked a scheduler.
_TURNS = 8
# A control character stands before each of these lines, wherever in a line of other output they are.
_RUN = re.compile(r"(?:^|\x16)=== (RUN|CONT|NAME|PAUSE)\s+(\S+)$")
_END = re.compile(r"(?:^\s*|\x16)--- (PASS|FAIL|SKIP): (\S+) ")
_STARTED = "EXTERNAL-SCHEDULER started"
_SERVES = re.compile(r"EXTERNAL-SCHEDULER serves (\S+)$")
_GO_PLUGINS = "EXTERNAL-SCHEDULER needs plugins written in Go"


@dataclass
class Outcome:
    """What one run of a test program said of its tests."""

    results: dict[str, str] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    served: set[str] = field(default_factory=set)
    needs_go: set[str] = field(default_factory=set)
    unfinished: set[str] = field(default_factory=set)

    def leaves(self) -> Iterator[str]:
        """The tests that have no subtests, in the order in which they ended."""
        parents = {name.rsplit("/", depth)[0] for name in self.results for depth in range(1, name.count("/") + 1)}
        return (name for name in self.results if name not in parents)

    def verdict(self, leaf: str) -> str:
        """`pass`, `fail`, `skip`, or why the leaf says nothing about the program."""
        if self._concerns(leaf, self.needs_go):
            return "needs Go plugins"
        if self.results[leaf] == "skip":
            return "skip"
        concerns = self.results[leaf] == "fail" or self._concerns(leaf, self.served or self.started)
        return self.results[leaf] if concerns else "starts no scheduler"

    def is_to_be_asked_again(self, leaf: str) -> bool:
        """Whether a leaf failed before it had a scheduler."""
        return self.results[leaf] == "fail" and not self._concerns(leaf, self.served or self.started | self.needs_go)

    def verdicts(self) -> dict[str, str]:
        return {leaf: self.verdict(leaf) for leaf in self.leaves()}

    @staticmethod
    def _concerns(leaf: str, names: set[str]) -> bool:
        """Whether the leaf itself or a test around it is among the names."""
        return any(leaf == name or leaf.startswith(f"{name}/") for name in names)


def parse(lines: Iterable[str]) -> Outcome:
    """The outcome of `go test -v`; a test that began and never ended, as after a panic, has failed."""
    outcome = Outcome()
    current = ""
    running: dict[str, bool] = {}
    for line in lines:
        if match := _RUN.search(line):
            current = match[2]
            running[current] = match[1] != "PAUSE"
        elif match := _END.search(line):
            outcome.results[match[2]] = match[1].lower()
        elif _STARTED in line:
            outcome.started.add(current)
        elif match := _SERVES.search(line):
            outcome.served.add(match[1])
        elif _GO_PLUGINS in line:
            outcome.needs_go.add(current)
    outcome.unfinished = running.keys() - outcome.results.keys()
    for name, is_running in running.items():
        if is_running:
            outcome.results.setdefault(name, "fail")
    return outcome


def run_package(package: str, subject: str, *, only: str, logs: Path, resume: bool) -> dict[str, str]:
    """The verdicts of all top-level tests of a package, with the subject as the scheduler."""
    path = module.build(f"{ROOT}/{package}", f"{package.replace('/', '-')}.test")
    listed = subprocess.run([path, "-test.list", only], env=_environment(), capture_output=True, text=True, check=True)
    total: dict[str, str] = {}
    for name in [line for line in listed.stdout.splitlines() if line.startswith("Test")]:
        folder = logs / subject / package.replace("/", "-") / name
        kept = folder / "verdicts.json"
        if not (resume and kept.exists()):
            if not resume:
                shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(_run_test(path, package, name, subject, folder), indent=1))
        verdicts = json.loads(kept.read_text())
        total |= verdicts
        failed = sum(verdict == "fail" for verdict in verdicts.values())
        print(f"{subject}: {package} {name}: {failed} of {len(verdicts)} failed", file=sys.stderr, flush=True)
    return total


def _run_test(path: Path, package: str, name: str, subject: str, folder: Path) -> dict[str, str]:
    """One top-level test. Leaves that never got to ask their scheduler are run again, without those that are done.

    That happens when a leaf ends the whole process, or when the API server of a test does not start on a busy machine.
    """
    verdicts = _interrupted(folder)
    never = list(record.left_out()["leaves"].get(package, {})) if subject == "bayplan" else []
    for turn in range(1, _TURNS + 1):
        arguments = ["-test.v=test2json", "-test.timeout=0", f"-test.run=^{name}$", *_skipping(verdicts, never)]
        log = folder / f"test-{len(list(folder.glob('test-*.log'))) + 1}.log"
        outcome = _run_program([str(path), *arguments], package, subject, log)
        found = {leaf: verdict for leaf, verdict in outcome.verdicts().items() if leaf not in verdicts}
        again = [leaf for leaf in found if outcome.is_to_be_asked_again(leaf)] if turn < _TURNS else []
        verdicts |= {leaf: verdict for leaf, verdict in found.items() if leaf not in again}
        if not again and not outcome.unfinished:
            break
    return {leaf: verdict for leaf, verdict in verdicts.items() if leaf != name or len(verdicts) == 1}


def _interrupted(folder: Path) -> dict[str, str]:
    """The verdicts on leaves that had ended when a run was interrupted."""
    verdicts: dict[str, str] = {}
    for log in folder.glob("test-*.log"):
        outcome = parse(log.read_text(errors="replace").split("\n"))
        ended = {leaf: verdict for leaf, verdict in outcome.verdicts().items() if leaf not in outcome.unfinished}
        verdicts |= {leaf: verdict for leaf, verdict in ended.items() if not outcome.is_to_be_asked_again(leaf)}
    return verdicts


def _skipping(leaves: Iterable[str], patterns: Iterable[str]) -> list[str]:
    names = ["/".join(f"^{re.escape(part)}$" for part in leaf.split("/")) for leaf in leaves]
    return [f"-test.skip={'|'.join([*names, *patterns])}"] if names or patterns else []


def _run_program(command: list[str], package: str, subject: str, log: Path) -> Outcome:
    """Run a test program; end it, with all that it has started, when no test began or ended for too long."""
    passing = _PASSING_PLUGINS.get(package, ()) + (_ALPHA_PLUGINS if subject == "bayplan" else ())
    environment = (
        _environment()
        | module.paths()
        | {
            "EXTERNAL_SCHEDULER": str(_launcher(subject, log.parent)),
            "EXTERNAL_SCHEDULER_LOGS": str(log.parent),
            "EXTERNAL_SCHEDULER_READY": _READY[subject],
            "EXTERNAL_SCHEDULER_ATTEMPT": _ATTEMPTS[subject],
            "EXTERNAL_SCHEDULER_PASSING_PLUGINS": ",".join(passing),
        }
    )
    with tempfile.TemporaryDirectory(prefix="upstream-") as scratch, log.open("w") as kept:
        process = subprocess.Popen(
            command,
            cwd=module.source(f"{ROOT}/{package}"),
            env=environment | {"TMPDIR": scratch},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            _copy_lines(process, kept)
        finally:
            _kill(process.pid)
            process.wait()
    return parse(log.read_text().split("\n"))


def _copy_lines(process: subprocess.Popen[str], kept: TextIO) -> None:
    assert process.stdout is not None
    limit = Timer(_LEAF_SECONDS, _kill, [process.pid])
    limit.start()
    try:
        for line in process.stdout:
            kept.write(line)
            if _RUN.search(line) or _END.search(line):
                limit.cancel()
                limit = Timer(_LEAF_SECONDS, _kill, [process.pid])
                limit.start()
    finally:
        limit.cancel()


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """The programs find our etcd, and none that happens to listen on its usual port."""
    path = f"{controlplane()}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "KUBE_INTEGRATION_ETCD_URL": "http://127.0.0.1:1"}


def _launcher(subject: str, folder: Path) -> Path:
    """A script that takes kube-scheduler's flags, and the feature gates that a test changes.

    Bayplan has a setting for one of them; the others reach kube-scheduler alone. It can emulate three versions back.
    """
    settings = folder / "bayplan.yaml"
    settings.write_text("apiVersion: bayplan.dev/v1alpha1\nkind: BayplanConfiguration\ndeviceTaintRules: true\n")
    calls = {
        "bayplan": f"""case "$CHANGED_FEATURE_GATES" in
*DRADeviceTaintRules=true*) set -- "$@" --bayplan-config {settings} ;;
esac
exec {Path(sys.executable).with_name("bayplan")} run "$@" -v 2
""",
        "kube-scheduler": f"""case "$EMULATED_VERSION" in
1.3[3-6]) set -- "$@" --feature-gates="$CHANGED_FEATURE_GATES" --emulated-version="$EMULATED_VERSION" ;;
*) set -- "$@" --emulated-version=1.33 ;;
esac
exec {program("kube-scheduler")} "$@" --vmodule=schedule_one=3,server=3
""",
    }
    path = folder / "scheduler"
    path.write_text(f"#!/bin/sh\n{calls[subject]}")
    path.chmod(0o755)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.upstream.integration", description=__doc__)
    parser.add_argument("--package", action="append", choices=PACKAGES, help="only these packages")
    parser.add_argument("--subject", action="append", choices=SUBJECTS, help="only this scheduler")
    parser.add_argument("--run", default=".", help="only top-level tests that match this pattern")
    parser.add_argument("--logs", type=Path, help="where the logs are kept")
    parser.add_argument("--resume", action="store_true", help="keep the verdicts of tests whose logs are there already")
    parser.add_argument("-o", "--output", type=Path, help="write all verdicts to this file as JSON")
    parser.add_argument("--record", action="store_true", help="keep the verdicts, and write the table of the docs anew")
    options = parser.parse_args()
    # As on Ctrl-C, end what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logs = options.logs or module.cache_folder() / "logs"
    verdicts: record.Outcomes = {}
    for package in options.package or PACKAGES:
        for subject in options.subject or SUBJECTS:
            found = run_package(package, subject, only=options.run, logs=logs, resume=options.resume)
            verdicts.setdefault(package, {})[subject] = found
        if options.output:
            options.output.write_text(json.dumps(verdicts, indent=1))
        if options.record:
            record.keep(record.LEAVES, record.merge_leaves(record.load(record.LEAVES), verdicts, PACKAGES))
    return report(verdicts, logs)


def report(verdicts: record.Outcomes, logs: Path) -> int:
    """Print the table; the exit status is 1 if a leaf fails for Bayplan that is not on the list of exceptions."""
    known = record.left_out()
    print(record.leaves_table(verdicts, known))
    surprises = [
        f"{package} {leaf}"
        for package, by_subject in verdicts.items()
        for leaf, verdict in by_subject.get("bayplan", {}).items()
        if verdict == "fail" and not record.why_left_out(package, leaf, known)
    ]
    for surprise in surprises:
        print(f"FAILED: {surprise}")
    print(f"logs: {logs}")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
