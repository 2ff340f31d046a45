"""Runs of the openb trace, and the published curves to hold them against."""

from __future__ import annotations

import csv
import gzip
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bayplan.sim.engine.simulation import SimulationOptions
from bayplan.sim.experiment import Experiment, RunOutcome
from bayplan.sim.workloads.openb import OpenbPod, OpenbWorkload, milli_of, read_nodes, read_pods, scaled
from bench.openb.policies import policy_settings

__all__ = ["DATA", "DEMANDS", "Curve", "Job", "Result", "mean_curve", "published", "run_all", "run_job"]

DATA = Path(__file__).parent / "data"
DEMANDS = range(10, 131, 10)
_FULL_PERCENT = 130.0

Curve = dict[int, float]
"""Demand in percent to the percentage of GPUs that are allocated."""


class Job(NamedTuple):
    policy: str
    seed: int
    trace: str = "default"
    second_key: str = "NodeNumber"


class Result(NamedTuple):
    job: Job
    curve: Curve
    digest: str
    cpu_seconds: float
    failed_pods: int


def run_job(job: Job) -> Result:
    """Schedule the whole trace once."""
    nodes, pods = read_nodes(DATA / "nodes.csv.gz"), read_pods(DATA / f"pods_{job.trace}.csv.gz")
    settings = policy_settings(job.policy, pods, second_key=job.second_key)
    options = SimulationOptions(seed=job.seed, retries=False)
    began = time.process_time()
    outcome = Experiment(nodes, OpenbWorkload(pods, demand_percent=_FULL_PERCENT), options).run(settings)
    seconds = time.process_time() - began
    capacity = sum(map(milli_of, nodes))
    arrived = scaled(pods, gpu_milli=round(capacity * _FULL_PERCENT / 100.0), seed=job.seed)
    failed = int(outcome.measures["pods.withdrawn"])
    return Result(job, _curve(outcome, arrived, capacity), outcome.digest, seconds, failed)


def _curve(outcome: RunOutcome, arrived: Sequence[OpenbPod], capacity: int) -> Curve:
    """Pods are decided in the order of their arrival, each once."""
    found: Curve = {}
    demand = allocated = 0
    percents = iter(DEMANDS)
    percent = next(percents)
    for line, pod in zip(outcome.decisions, arrived, strict=True):
        demand += pod.total_milli
        allocated += pod.total_milli if line.node else 0
        if 100 * demand >= percent * capacity:
            found[percent] = 100.0 * allocated / capacity
            percent = next(percents, 10**9)
    return found


def run_all(jobs: Sequence[Job], *, processes: int) -> Iterator[Result]:
    """Each result as soon as it is there, in the order of the jobs."""
    if processes == 1:
        yield from map(run_job, jobs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(run_job, jobs)


def mean_curve(curves: Iterable[Curve]) -> Curve:
    found = list(curves)
    return {percent: sum(curve[percent] for curve in found) / len(found) for percent in DEMANDS}


def published(trace: str) -> dict[str, Curve]:
    """The published means of ten seeds, by policy."""
    found: dict[str, Curve] = {}
    with gzip.open(DATA / "published_allocation.csv.gz", "rt") as lines:
        for row in csv.DictReader(lines):
            if row["trace"] == f"openb_pod_list_{trace}":
                found.setdefault(row["policy"], {})[int(row["demand_percent"])] = float(row["mean"])
    return found
