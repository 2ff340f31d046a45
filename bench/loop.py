"""What a pod costs the scheduler process, API server aside: `bayplan run` against a stand-in that answers at once.

    python -m bench.loop [--nodes 5000] [--pods 3000] [--workload plain] [--rounds 5]

CPU time of the process (user and system, all threads) in three ways, the lowest of several rounds, because whatever
else runs on the machine only ever adds:

- from the first binding to the last, start-up left out. The clock starts when the stand-in records the first binding,
  20 ms after it was sent, and stops when it records the last. So connections and decisions of the first 20 ms are left
  out, the answers to the last 64 bindings too, and nearly all events: they wait until few pods are left to be bound.
- from the first binding to the last event, with which all work for these pods is done.
- with the start: since the process began, to the last binding.

The stand-in is a process of its own, whose time does not count. The workloads are those of `bench.versus` with the pods
that they begin with, churn and companions left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from tests.controlplane.access import write_token_kubeconfig
from tests.controlplane.certificates import Authority

from bench.bytecode import compile_sources
from bench.stand_in import StandIn
from bench.versus.workload import Workload, load_workloads

_GIVE_UP_SECONDS = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")
_CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 10_000, "burst": 10_000},
    "leaderElection": {"leaderElect": False},
}


class Round:
    """Watches one process from its first binding to its last, and on to the event about it."""

    def __init__(self, pods: int) -> None:
        self._left = self._unannounced = pods
        self.pid = 0
        self.began: float | None = None
        self.seconds = 0.0
        self.seconds_with_events = 0.0
        self.all_seconds = 0.0
        self.is_over = asyncio.Event()

    def bound(self, _: str) -> None:
        if self.began is None:
            self.began = _cpu_seconds(self.pid)
        self._left -= 1
        if not self._left:
            self.all_seconds = _cpu_seconds(self.pid)
            self.seconds = self.all_seconds - self.began

    def announced(self) -> None:
        self._unannounced -= 1
        if not self._unannounced and self.began is not None:
            self.seconds_with_events = _cpu_seconds(self.pid) - self.began
            self.is_over.set()


def main() -> None:
    options = _options()
    compile_sources()
    (workload,) = load_workloads([options.workload])
    pods = workload.pod_count(options.nodes, options.pods)
    rounds = [asyncio.run(_round(workload, options.nodes, pods)) for _ in range(options.rounds)]
    print(f"{workload.name}, {options.nodes} nodes, {pods} pods:")
    for what, costs in (
        ("from the first binding", [1e6 * watched.seconds / pods for watched in rounds]),
        ("with all events", [1e6 * watched.seconds_with_events / pods for watched in rounds]),
        ("with the start", [1e6 * watched.all_seconds / pods for watched in rounds]),
    ):
        print(f"  {min(costs):.0f} µs of CPU a pod {what} ({_listed(costs)})")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=3_000)
    parser.add_argument("--workload", default="plain")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def _listed(costs: list[float]) -> str:
    return ", ".join(f"{cost:.0f}" for cost in costs)


async def _round(workload: Workload, nodes: int, pods: int) -> Round:
    watched = Round(pods)
    begin_with = workload.initial_pods(nodes, pods)
    waiting_and_placed = _numbered(chain(workload.pods(nodes, pods), begin_with), _priorities(workload))
    server = StandIn(
        workload.nodes(nodes),
        waiting_and_placed,
        others=workload.objects,
        bound=watched.bound,
        announced=watched.announced,
    )
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        pair = authority.server_pair()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        listening = await server.serve(context)
        url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        kubeconfig = Path(folder) / "kubeconfig"
        write_token_kubeconfig(kubeconfig, url=url, ca_file=authority.certificate_file, token="stand-in")
        config = Path(folder) / "config.yaml"
        config.write_text(yaml.safe_dump(_CONFIG))
        await _run_scheduler(config, kubeconfig, watched)
        listening.close()
    return watched


async def _run_scheduler(config: Path, kubeconfig: Path, watched: Round) -> None:
    command = [sys.executable, "-m", "bayplan.cli", "run", "--config", str(config), "--kubeconfig", str(kubeconfig)]
    log = config.with_suffix(".log")
    with log.open("w") as written:
        process = subprocess.Popen([*command, "--secure-port", "0"], stderr=written)  # noqa: ASYNC220 - returns at once
    watched.pid = process.pid
    try:
        async with asyncio.timeout(_GIVE_UP_SECONDS):
            await watched.is_over.wait()
    except TimeoutError:
        raise SystemExit(f"not all pods were bound; the scheduler said:\n{log.read_text()[-2000:]}") from None
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


def _priorities(workload: Workload) -> dict[str, int]:
    return {each["metadata"]["name"]: each["value"] for each in workload.objects if each["kind"] == "PriorityClass"}


def _numbered(pods: Iterable[dict[str, Any]], priorities: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """The pods as the API server would hand them out: with an identity and the defaults that a scheduler reads."""
    for number, pod in enumerate(pods, start=1):
        identity = {"uid": f"00000000-0000-0000-0000-{number:012}", "resourceVersion": str(number)}
        priority = priorities.get(pod["spec"].get("priorityClassName", ""), 0)
        spec = {"schedulerName": "default-scheduler", "priority": priority, "preemptionPolicy": "PreemptLowerPriority"}
        yield pod | {
            "metadata": pod["metadata"] | identity,
            "spec": spec | pod["spec"],
            "status": {"phase": "Running" if "nodeName" in pod["spec"] else "Pending"},
        }


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
