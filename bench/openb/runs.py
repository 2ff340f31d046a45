"""Runs of the openb trace, and the published curves to hold them against."""

from __future__ import annotations

import csv
import gzip
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

from bayplan.api.meta import Metadata
from bayplan.api.node import Node
from bayplan.sim.engine.simulation import SimulationOptions
from bayplan.sim.experiment import Experiment, RunOutcome
from bayplan.sim.workloads.openb import OpenbPod, OpenbWorkload, milli_of, read_nodes, read_pods, scaled
from bench.openb.policies import policy_settings

__all__ = ["DATA", "DEMANDS", "TIE_RULES", "Curve", "Job", "Result", "mean_curve", "published", "run_all", "run_job"]

DATA = Path(__file__).parent / "data"
DEMANDS = range(10, 131, 10)
_FULL_PERCENT = 130.0

TIE_RULES = {"ShuffledNumber": "NodeNumber", "NodeNumber": "NodeNumber", "BestFit": "BestFit", "Random": "None"}
"""What decides between nodes of one score, to the second key of the plugin. The published simulator takes the smallest
name, after it has put a number of a random order in front of each (ShuffledNumber)."""

Curve = dict[int, float]
"""Demand in percent to the percentage of GPUs that are allocated."""


class Job(NamedTuple):
    policy: str
    seed: int
    trace: str = "default"
    tie_rule: str = "ShuffledNumber"


class Result(NamedTuple):
    job: Job
    curve: Curve
    digest: str
    cpu_seconds: float
    failed_pods: int


def run_job(job: Job) -> Result:
    """Schedule the whole trace once."""
    nodes, pods = read_nodes(DATA / "nodes.csv.gz"), read_pods(DATA / f"pods_{job.trace}.csv.gz")
    if job.tie_rule == "ShuffledNumber":
        nodes = _numbered_anew(nodes, job.seed)
    settings = policy_settings(job.policy, pods, second_key=TIE_RULES[job.tie_rule])
    options = SimulationOptions(seed=job.seed, retries=False)
    began = time.process_time()
    outcome = Experiment(nodes, OpenbWorkload(pods, demand_percent=_FULL_PERCENT), options).run(settings)
    seconds = time.process_time() - began
    capacity = sum(map(milli_of, nodes))
    arrived = scaled(pods, gpu_milli=round(capacity * _FULL_PERCENT / 100.0), seed=job.seed)
    failed = int(outcome.measures["pods.withdrawn"])
    return Result(job, _curve(outcome, arrived, capacity), outcome.digest, seconds, failed)


def _numbered_anew(nodes: Sequence[Node], seed: int) -> list[Node]:
    """The same nodes under names whose numbers are a random order."""
    numbers = list(range(len(nodes)))
    Random(f"{seed}/nodes").shuffle(numbers)
    found = []
    for node, number in zip(nodes, numbers, strict=True):
        name = f"node-{number:04}"
        labels = {**node.labels, "kubernetes.io/hostname": name}
        found.append(Node(metadata=Metadata(name=name, uid=name, labels=labels), status=node.status))
    return found


def _curve(outcome: RunOutcome, arrived: Sequence[OpenbPod], capacity: int) -> Curve:
    """As published, the mean while the demand is closest to a whole percentage. Pods are decided in the order of their
    arrival, each once."""
    found: dict[int, list[float]] = {percent: [] for percent in DEMANDS}
    demand = allocated = 0
    for line, pod in zip(outcome.decisions, arrived, strict=True):
        demand += pod.total_milli
        allocated += pod.total_milli if line.node else 0
        percent = round(100 * demand / capacity)
        if percent in found:
            found[percent].append(100.0 * allocated / capacity)
    return {percent: sum(values) / len(values) for percent, values in found.items()}


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
