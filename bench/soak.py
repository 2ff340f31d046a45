"""A scheduler under steady churn on a real control plane: do memory, descriptors and tasks stay flat?

    python -m bench.soak --minutes 10 [--rate 100] [--alive 1000] [--nodes 100] [--json FILE]

Pods are created at a steady rate and deleted once enough newer ones are there. Every second pod has a shape of its own
(labels that never come again), because whatever is remembered by shape must be forgotten too, and so many of them fill
what is bounded by their number during warm-up. A process of its own does what `bayplan run` does, with its lease,
endpoints, metrics and decision records, and says every few seconds what it holds, after a full garbage collection; how
much that finds is reported too, so that nobody need wonder what memory would be without it.

What is asserted: the first third, and no less than 15,000 pods, is warm-up (connections, the last 256 shapes, 8,192
shapes seen once, 10,000 decisions, arenas of the allocator). A straight line is fitted through the rest, over the
number of pods bound.
Whatever the scheduler keeps of a pod that is gone costs at least a name or a uid: one allocation and some 90 bytes,
mostly more. So a leak is a line that rises by more than 64 bytes of resident memory, half an allocated block, or a
twentieth of an object that the collector follows, per pod. Descriptors (besides connections to the API server, whose
number follows the load and is bounded), tasks and waiting events must not rise by more than a few in all, however many
pods there were. A run in which too few pods were bound after warm-up cannot tell and does not pass.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
from tests.controlplane import ControlPlane

from bayplan.app.client_metrics import MeasuredTransport, RequestMetrics
from bayplan.app.connections import Connections
from bayplan.app.live import LiveScheduler
from bayplan.app.run import RunOptions, SchedulerProcess
from bayplan.app.settings import load_settings
from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.client.pool import PoolSettings
from bayplan.explain.wiring import Explaining
from bayplan.loop.observer import Observer
from bayplan.observe.clock import SystemClock
from bayplan.observe.logs import LogSettings, configure_logging
from bayplan.observe.metrics import MetricsRegistry
from bayplan.server.options import ServerOptions

SAMPLE_SECONDS = 3.0
_PODS = "/api/v1/namespaces/default/pods"
_MIB = 1 << 20
_SHORT_LIVED = PoolSettings(max_age_seconds=15.0)
"""Connections are retired twenty times as often as they would be: what a connection leaves behind must be seen too, in
minutes and not in hours."""
_WARM_UP_PODS = 15_000
_FEWEST_PODS = 20_000
"""After warm-up. An arena more or less, which is noise, is a mebibyte: 52 bytes for each of these."""
_MOST_PER_POD = {"rss_bytes": 64.0, "blocks": 0.5, "objects": 0.05}
_MOST_IN_ALL = {"descriptors": 4.0, "tasks": 20.0, "events_waiting": 1000.0}


@dataclass(frozen=True)
class Sample:
    seconds: float
    rss_bytes: int
    blocks: int
    """Small pieces of memory that Python has handed out."""
    objects: int
    """What the garbage collector follows."""
    garbage: int
    """What the garbage collector found since the last sample."""
    connections: int
    """Open to the API server for requests: as many as the load asks for, and no more than the pools allow."""
    descriptors: int
    """All others."""
    tasks: int
    events_waiting: int
    events_dropped: int
    cached_pods: int
    shapes: int
    bound: int
    cpu_seconds: float


# The scheduler's side


class _Counter(Observer):
    bound_count = 0

    def bound(self, queued: object, node_name: str, seconds: float) -> None:
        self.bound_count += 1


async def schedule(kubeconfig: Path) -> None:
    """Do what `bayplan run` does, with a sample as a line of JSON every few seconds."""
    clock, registry, counter = SystemClock(), MetricsRegistry(), _Counter()
    options = RunOptions(
        kubeconfig=kubeconfig,
        election={"leader_elect": True},
        server=ServerOptions(port=0),
        observers=[counter],
        extras=lambda clock, settings: Explaining(clock, settings=settings),
        verbosity=0,
    )
    log = configure_logging(LogSettings(format=options.logging_format, verbosity=options.verbosity))
    requests, opened = RequestMetrics(registry), [_connect(kubeconfig), _connect(kubeconfig)]
    work, lease = (MeasuredTransport(each, requests, host="soak", clock=clock) for each in opened)
    connections = Connections(work=work, lease=lease, token_reviews=work, access_reviews=work)
    process = SchedulerProcess(connections, load_settings(None, []), options, clock, log=log, registry=registry)
    task, began = asyncio.create_task(process.run()), time.monotonic()
    while not task.done():
        if process.live is not None:
            connections = sum(transport.open_connections for transport in opened)
            sample = _sample(process.live, counter.bound_count, connections, time.monotonic() - began)
            print(json.dumps(asdict(sample)), flush=True)
        await asyncio.wait([task], timeout=SAMPLE_SECONDS)
    for transport in opened:
        await transport.close()
    task.result()


def _sample(live: LiveScheduler, bound: int, connections: int, seconds: float) -> Sample:
    garbage = gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Sample(
        seconds=round(seconds, 1),
        rss_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        blocks=sys.getallocatedblocks(),
        objects=len(gc.get_objects()),
        garbage=garbage,
        connections=connections,
        descriptors=len(os.listdir("/proc/self/fd")) - connections,
        tasks=len(asyncio.all_tasks()),
        events_waiting=live.events.waiting,
        events_dropped=live.events.stats.dropped,
        cached_pods=len(live.cache),
        shapes=len(live.cache.cluster.shapes),
        bound=bound,
        cpu_seconds=round(time.process_time(), 2),
    )


# The cluster's side


def _connect(kubeconfig: Path) -> HttpTransport:
    access = find_access(clock=SystemClock(), environment={}, kubeconfig=kubeconfig)
    return HttpTransport(access, draw=random.Random(0).random, pool=_SHORT_LIVED)


class Churn:
    """Creates and deletes pods at a steady rate; a request that fails is counted, not repeated.

    Where the machine cannot keep the rate, the pods it cannot make in time are left out rather than made later in a
    burst: the report says what rate there was.
    """

    def __init__(self, transport: HttpTransport, *, rate: float, alive: int) -> None:
        self._transport = transport
        self._rate = rate
        self._alive = alive
        self._names: deque[str] = deque()
        self._places = asyncio.Semaphore(64)
        self.created = 0
        self.failed = 0

    async def run(self, seconds: float) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            number, due = 0, 0.0
            while (elapsed := time.monotonic() - began) < seconds:
                due = max(due, (elapsed - 1.0) * self._rate)
                while due < elapsed * self._rate and not self._places.locked():
                    group.create_task(self._turn_over(number))
                    number, due = number + 1, due + 1.0
                    await asyncio.sleep(0)
                await asyncio.sleep(0.02)

    async def _turn_over(self, number: int) -> None:
        name = f"pod-{number}"
        async with self._places:
            is_created = await self._send("POST", _PODS, _pod(name, number)) == 201
            self.created += is_created
            self._names.append(name)
            if len(self._names) > self._alive:
                options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
                await self._send("DELETE", f"{_PODS}/{self._names.popleft()}", options)

    async def _send(self, method: str, path: str, body: object) -> int:
        try:
            answer = await self._transport.request(method, path, body=msgspec.json.encode(body))
        except Exception:
            self.failed += 1
            return 0
        self.failed += answer.status >= 300
        return answer.status


def _pod(name: str, number: int) -> dict[str, object]:
    labels = {"app": f"app-{number % 20}"}
    if number % 2 == 0:
        labels["run"] = name
    requests = {"cpu": f"{10 + number % 7}m", "memory": "16Mi"}
    spread = {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": labels["app"]}},
    }
    container = {"name": "main", "image": "example.test/app:1", "resources": {"requests": requests}}
    spec: dict[str, object] = {"containers": [container], "automountServiceAccountToken": False}
    if number % 3 == 0:
        spec["topologySpreadConstraints"] = [spread]
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _node(number: int) -> dict[str, object]:
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"node-{number}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return {"metadata": {"name": f"node-{number}", "labels": labels}, "status": {"allocatable": room, "capacity": room}}


async def soak(cluster: ControlPlane, options: argparse.Namespace) -> tuple[list[Sample], Churn]:
    transport = _connect(cluster.kubeconfig)
    for number in range(options.nodes):
        await transport.request("POST", "/api/v1/nodes", body=msgspec.json.encode(_node(number)))
    command = [sys.executable, "-m", "bench.soak", "--schedule", str(cluster.kubeconfig)]
    scheduler = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    samples: list[Sample] = []
    reading = asyncio.create_task(_read(scheduler, samples))
    churn = Churn(transport, rate=options.rate, alive=options.alive)
    churning = asyncio.create_task(_churn(churn, options.minutes * 60))
    try:
        await asyncio.wait([churning, reading], return_when=asyncio.FIRST_COMPLETED)
        if churning.done():
            churning.result()
        else:
            print("the scheduler ended before its time; its log says why", file=sys.stderr)
    finally:
        churning.cancel()
        await asyncio.gather(churning, return_exceptions=True)
        if scheduler.returncode is None:
            scheduler.terminate()
        await scheduler.wait()
        await reading
        await transport.close()
    return samples, churn


async def _churn(churn: Churn, seconds: float) -> None:
    await churn.run(seconds)
    await asyncio.sleep(2 * SAMPLE_SECONDS)


async def _read(scheduler: asyncio.subprocess.Process, samples: list[Sample]) -> None:
    assert scheduler.stdout is not None
    async for line in scheduler.stdout:
        if not line.startswith(b"{"):
            continue
        samples.append(Sample(**json.loads(line)))
        if len(samples) % 20 == 1:
            print(_line(samples[-1]), file=sys.stderr)


def _line(sample: Sample) -> str:
    return (
        f"{sample.seconds:7.0f} s {sample.bound:8} bound {sample.rss_bytes / _MIB:7.1f} MiB {sample.blocks:8} blocks"
        f" {sample.connections:4} connections {sample.descriptors:4} other descriptors {sample.tasks:4} tasks"
        f" {sample.events_waiting:6} events waiting"
    )


# The verdict


@dataclass(frozen=True)
class Trend:
    """How a field moved after warm-up, by a straight line over the pods bound."""

    field: str
    mean: float
    per_pod: float
    in_all: float
    most: float
    """What is allowed, per pod or in all."""

    @property
    def is_flat(self) -> bool:
        return (self.per_pod if self.field in _MOST_PER_POD else self.in_all) <= self.most


def after_warm_up(samples: Sequence[Sample]) -> Sequence[Sample]:
    return [sample for sample in samples[len(samples) // 3 :] if sample.bound >= _WARM_UP_PODS]


def trend(samples: Sequence[Sample], field: str) -> Trend:
    late = after_warm_up(samples)
    bound, values = [float(s.bound) for s in late], [float(getattr(s, field)) for s in late]
    slope = statistics.linear_regression(bound, values).slope
    most = _MOST_PER_POD.get(field, _MOST_IN_ALL.get(field, 0.0))
    return Trend(field, statistics.fmean(values), slope, slope * (bound[-1] - bound[0]), most)


def verdict(samples: Sequence[Sample], created: int) -> list[str]:
    """What is wrong; nothing when all is flat."""
    late = after_warm_up(samples)
    seen = late[-1].bound - late[0].bound if late else 0
    if seen < _FEWEST_PODS:
        return [f"{seen} pods after warm-up are too few to tell, {_FEWEST_PODS} are needed: let it run for longer"]
    trends = [trend(samples, field) for field in (*_MOST_PER_POD, *_MOST_IN_ALL)]
    wrong = [f"{t.field} rises" for t in trends if not t.is_flat]
    if samples[-1].bound < created * 0.99:
        wrong.append(f"{created - samples[-1].bound} pods were not bound")
    return wrong


def report(samples: Sequence[Sample], churn: Churn, options: argparse.Namespace) -> bool:
    seconds, last = options.minutes * 60, samples[-1]
    print(f"{churn.created} pods created ({churn.created / seconds:.0f}/s), {churn.failed} requests failed")
    print(f"{last.bound} bound, {last.cached_pods} in the cache, {last.shapes} shapes, {last.cpu_seconds:.0f} s of CPU")
    garbage = statistics.fmean(sample.garbage for sample in samples)
    print(f"{last.events_dropped} events dropped, {garbage:.0f} objects of garbage between two samples")
    for sample in samples[::20]:
        print(_line(sample))
    late = after_warm_up(samples)
    if late and late[-1].bound > late[0].bound:
        _print_trends(samples)
    wrong = verdict(samples, churn.created)
    print("; ".join(wrong) or "all flat")
    return not wrong


def _print_trends(samples: Sequence[Sample]) -> None:
    print(f"{'':14} {'mean':>12} {'rise':>12} {'per pod':>10} {'allowed':>10}")
    for field in (*_MOST_PER_POD, *_MOST_IN_ALL):
        found = trend(samples, field)
        unit = "per pod" if field in _MOST_PER_POD else "in all"
        figures = f"{found.mean:12.0f} {found.in_all:12.1f} {found.per_pod:10.3f} {found.most:10.2f}"
        print(f"{field:14} {figures} {unit:8} {'flat' if found.is_flat else 'RISING'}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.soak", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=100.0, help="pods created, and deleted, a second")
    parser.add_argument("--alive", type=int, default=1000, help="pods there are at a time")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--json", type=Path, help="where to keep the samples")
    parser.add_argument("--schedule", type=Path, metavar="KUBECONFIG", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.schedule is not None:
        import uvloop

        uvloop.run(schedule(options.schedule))
        return 0
    with ControlPlane() as cluster:
        samples, churn = asyncio.run(soak(cluster, options))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(sample) for sample in samples], indent=1))
    return 0 if report(samples, churn, options) else 1


if __name__ == "__main__":
    sys.exit(main())
