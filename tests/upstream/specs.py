"""`make kubernetes-e2e`: Kubernetes' own end-to-end specs on the embedded cluster, with the suite's default flags.

Each spec runs in a process of its own with a time limit, on one of several clusters; a cluster on which a spec failed
is replaced, so that no failure causes another. `specs.yaml` names the specs that need real containers, networks or an
aggregated API server, which are not run unless asked for, and the causes of known failures. With `--real`, they run
on the real control plane, where no kubelet runs pods: what passes there needs no node.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.programs import BUILD_SCRIPT
from tests.controlplane.programs import cache_folder as controlplane
from tests.upstream import module, record
from tests.upstream.clusters import EmbeddedCluster, RealCluster, SpecCluster
from tests.upstream.record import Outcomes

LIST = Path(__file__).with_name("specs.yaml")
_REAL_PROGRAMS = "etcd,kube-apiserver,kube-scheduler,kube-controller-manager,kubectl"
# One waits for five minutes; what needs a kubelet waits for ever.
_LIMITS = {"embedded": 420.0, "real": 60.0}
# Off by default upstream, in need of another cloud, or of minutes of waiting for each spec.
_SKIPPED = r"\[Alpha\]|\[Slow\]|\[Flaky\]|OffByDefault|GPU|\[Feature:(?!Example)"
GROUPS = {
    "sig-scheduling": r"\[sig-scheduling\]",
    "taint manager": r"\[sig-node\] NoExecuteTaintManager",
    "api-machinery": r"\[sig-api-machinery\].*\[Conformance\]",
    "apps": r"\[sig-apps\].*\[Conformance\]",
    "auth": r"\[sig-auth\].*\[Conformance\]",
    "node": r"\[sig-node\].*\[Conformance\]",
    "network": r"\[sig-network\].*\[Conformance\]",
    "cli": r"\[sig-cli\].*\[Conformance\]",
    "others": r"\[sig-(?:architecture|instrumentation)\].*\[Conformance\]",
}


@dataclass(frozen=True)
class Result:
    group: str
    spec: str
    verdict: str
    seconds: float
    message: str


def list_specs(suite: Path) -> Iterator[tuple[str, str]]:
    """Group and full text of every spec that belongs to a group, in the order of the suite."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [suite, "--ginkgo.dry-run", f"--ginkgo.json-report={report}", "--provider=skeleton"]
        subprocess.run(command, check=True, capture_output=True)
        found = [_full_text(spec) for spec in json.loads(report.read_text())[0]["SpecReports"]]
    for group, pattern in GROUPS.items():
        for text in found:
            if re.search(pattern, text) and not re.search(_SKIPPED, text):
                yield group, text


def _full_text(spec: dict[str, Any]) -> str:
    """The text that the suite's `focus` is matched with: hierarchy and leaf, then the labels in brackets."""
    return " ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]])


def run_spec(suite: Path, kubeconfig: Path, group: str, spec: str, *, limit: float, log: Path) -> Result:
    """One spec in a process of its own; one that takes longer than the limit has failed."""
    environment = os.environ | {"PATH": f"{controlplane()}{os.pathsep}{os.environ['PATH']}"}
    command = [
        *(suite, "--kubeconfig", kubeconfig, "--provider=skeleton", f"--ginkgo.focus= {re.escape(spec)}$"),
        *("--ginkgo.no-color", "--ginkgo.poll-progress-after=0", "--dump-logs-on-failure=false"),
    ]
    began = time.monotonic()
    with log.open("w") as stream:
        try:
            subprocess.run(
                command, env=environment, stdout=stream, stderr=subprocess.STDOUT, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return Result(group, spec, "fail", limit, f"not done after {limit:.0f} s")
    text = log.read_text(errors="replace")
    verdict, message = _read_log(text)
    return Result(group, spec, verdict, round(time.monotonic() - began, 1), message)


def _read_log(text: str) -> tuple[str, str]:
    ran = re.search(r"^Ran (\d+) of \d+ Specs", text, re.M)
    if ran and ran[1] == "1" and re.search(r"^SUCCESS! -- 1 Passed", text, re.M):
        return "pass", ""
    if ran and ran[1] == "0":
        skipped = re.search(r"\[SKIPPED\] (.*)", text)
        return "skip", skipped[1] if skipped else "not selected"
    failed = re.findall(r"^\s*\[(?:FAILED|PANICKED)\] (.*)", text, re.M)
    return "fail", failed[-1] if failed else text[-300:]


def run_all(
    specs: list[tuple[str, str]],
    suite: Path,
    new_cluster: Callable[[Path], SpecCluster],
    *,
    jobs: int,
    limit: float,
    logs: Path,
) -> list[Result]:
    """Every spec once, on as many clusters at once as there are jobs."""
    waiting: queue.SimpleQueue[tuple[int, str, str]] = queue.SimpleQueue()
    for number, (group, spec) in enumerate(specs):
        waiting.put((number, group, spec))
    results: list[Result] = []

    def work(worker: int) -> None:
        cluster = new_cluster(logs / f"cluster-{worker}")
        while True:
            try:
                number, group, spec = waiting.get_nowait()
            except queue.Empty:
                break
            log = logs / f"{number:03}.log"
            result = run_spec(suite, cluster.kubeconfig, group, spec, limit=limit, log=log)
            results.append(result)
            print(f"[{len(results)}/{len(specs)}] {result.verdict} {result.seconds} s {log.name} {spec}", flush=True)
            if result.verdict == "fail":
                print(f"    {result.message[:200]}", flush=True)
            if result.verdict == "fail" and new_cluster is EmbeddedCluster:
                cluster.stop()
                cluster = new_cluster(logs / f"cluster-{worker}")
        cluster.stop()

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def lists() -> tuple[dict[str, str], dict[str, str]]:
    """By patterns of their texts: specs that need more than a simulated cluster has, and causes of known failures."""
    entries = yaml.safe_load(LIST.read_text())
    return entries["need more"] or {}, entries["known failures"] or {}


def reason(spec: str, entries: dict[str, str]) -> str | None:
    return next((why for pattern, why in entries.items() if re.search(pattern, spec)), None)


def outcomes(results: list[Result], left_out: list[tuple[str, str, str]], causes: dict[str, str]) -> Outcomes:
    """What is recorded of a run. A spec that skips itself needs something that it looked for and did not find."""
    found: Outcomes = {}
    for group, spec, why in left_out:
        found.setdefault(group, {})[spec] = {"verdict": "left out", "why": why}
    for result in results:
        outcome = {"verdict": "left out" if result.verdict == "skip" else result.verdict}
        if result.verdict != "pass":
            outcome["why"] = reason(result.spec, causes) or result.message.strip()
        found.setdefault(result.group, {})[result.spec] = outcome
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.upstream.specs", description=__doc__)
    parser.add_argument("--group", action="append", choices=list(GROUPS), help="only these groups")
    parser.add_argument("--focus", default="", help="only specs whose text matches this pattern")
    parser.add_argument("--all", action="store_true", help="run the specs that need containers as well")
    parser.add_argument("--real", action="store_true", help="run on the real control plane, which has no kubelets")
    parser.add_argument("--jobs", type=int, default=2, help="clusters at once (2)")
    parser.add_argument("--limit", type=float, help="seconds for each spec (420, or 60 with --real)")
    parser.add_argument("--logs", type=Path, help="where the logs are kept")
    parser.add_argument("-o", "--output", type=Path, help="write all results to this file as JSON")
    parser.add_argument("--record", action="store_true", help="keep the outcomes, and write the table of the docs anew")
    options = parser.parse_args()
    suite = module.build("bayplan.dev/tests/upstream/e2e", "e2e.test")
    need_more, causes = lists()
    existing = list(list_specs(suite))
    chosen = [
        (group, spec)
        for group, spec in existing
        if (not options.group or group in options.group) and re.search(options.focus, spec)
    ]
    needs = {spec: None if options.all else reason(spec, need_more) for _, spec in chosen}
    left_out = [(group, spec, why) for group, spec in chosen if (why := needs[spec]) is not None]
    specs = [(group, spec) for group, spec in chosen if needs[spec] is None]
    logs = options.logs or Path(tempfile.mkdtemp(prefix="kubernetes-e2e-"))
    logs.mkdir(parents=True, exist_ok=True)
    server = "real" if options.real else "embedded"
    if options.real:
        subprocess.run([BUILD_SCRIPT, "--only", _REAL_PROGRAMS], check=True, stdout=subprocess.DEVNULL)
    results = run_all(
        specs,
        suite,
        RealCluster if options.real else EmbeddedCluster,
        jobs=options.jobs,
        limit=options.limit or _LIMITS[server],
        logs=logs,
    )
    found = outcomes(results, left_out, {} if options.real else causes)
    if options.output:
        options.output.write_text(json.dumps([vars(result) for result in results], indent=1))
    if options.record:
        by_group = {group: {spec for of, spec in existing if of == group} for group in GROUPS}
        merge = record.merge_real if options.real else record.merge_specs
        record.keep(record.SPECS, merge(record.load(record.SPECS), found, by_group))
    print(record.specs_table(found))
    print(f"logs: {logs}")
    is_surprised = any(result.verdict == "fail" and not reason(result.spec, causes) for result in results)
    return 1 if is_surprised and not options.real else 0


if __name__ == "__main__":
    sys.exit(main())
