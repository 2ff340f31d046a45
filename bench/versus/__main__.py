"""`make bench`: kube-scheduler and Bayplan on the same objects of one real API server, alternating.

    python -m bench.versus [--nodes 5000] [--workload NAME ...] [--rounds 3] [--arrival 200] [--only bayplan]

Client QPS is raised to 10,000 on both sides. Results go to bench/results/ as Markdown, JSON and SVG.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import time
from pathlib import Path

from tests.controlplane import ControlPlane, ControlPlaneOptions

from bench.versus.cluster import BenchCluster
from bench.versus.measure import Run, arrival, backlog
from bench.versus.report import markdown, save
from bench.versus.schedulers import SCHEDULERS
from bench.versus.workload import Workload, load_workloads

_RESULTS = Path("bench/results")


def main() -> int:
    options = _options()
    workloads = load_workloads(options.workload)
    if options.list:
        for workload in workloads:
            print(f"{workload.name:<26}{workload.about}")
        return 0
    with ControlPlane(ControlPlaneOptions(users={"bench": ("system:masters",)})) as plane:
        runs, raw = asyncio.run(_measure(plane, workloads, options))
    about = (
        f"{options.nodes} nodes, {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"{options.rounds} rounds, alternating; client QPS 10,000 on both sides; medians. "
        f"Measured {time.strftime('%Y-%m-%d')}."
    )
    save(options.results, runs, workloads, raw, about)
    print(markdown(runs, workloads, raw, about))
    return 0


async def _measure(
    plane: ControlPlane, workloads: list[Workload], options: argparse.Namespace
) -> tuple[list[Run], float]:
    cluster = BenchCluster(Path(plane.kubeconfig))
    names = [name for name in SCHEDULERS if options.only in ("", name)]
    runs: list[Run] = []
    node = None
    try:
        raw = 0.0
        for workload in workloads:
            if workload.node != node:
                _say(f"creating {options.nodes} nodes")
                await cluster.create(workload.nodes(options.nodes))
                node = workload.node
            if not raw:
                raw = await cluster.raw_binding_rate(min(2000, workload.count), options.nodes, workload.measured[0])
                _say(f"raw binding rate {raw:.0f}/s")
            for round_number in range(options.rounds):
                for name in names if round_number % 2 == 0 else reversed(names):
                    _say(f"{workload.name}, round {round_number + 1} of {options.rounds}: {name}")
                    runs.append(await backlog(plane, cluster, workload, name, options.nodes))
                    _say(f"    {runs[-1].bound} bound, {runs[-1].pods_per_second:.0f} pods/s")
            if options.arrival:
                for name in names:
                    _say(f"{workload.name}, arriving at {options.arrival:g}/s: {name}")
                    runs.append(await arrival(plane, cluster, workload, name, options.nodes, options.arrival))
                    _say(f"    p99 {runs[-1].p99_ms:.0f} ms")
    finally:
        await cluster.close()
    return runs, raw


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--workload", nargs="*", default=[], help="names (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--arrival", type=float, default=0.0, help="also measure pods arriving at this rate")
    parser.add_argument("--only", default="", choices=["", *SCHEDULERS], help="one scheduler only")
    parser.add_argument("--results", type=Path, default=_RESULTS)
    parser.add_argument("--list", action="store_true", help="list the workloads")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
