"""A scheduler under steady churn on a real control plane: do memory, descriptors and tasks stay flat?

    python -m bench.soak --minutes 10 [--rate 100] [--alive 1000] [--nodes 100] [--json FILE]

Pods are created at a steady rate and deleted once enough newer ones are there. Every fifth pod is of a shape of its own
(labels that never come again), because whatever is remembered by shape must be forgotten too. The scheduler runs in a
process of its own, which says every few seconds what it holds. Flat means: a straight line through the samples after
the first third rises by less than a twentieth of their mean, or by less than a few units where the mean is small.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import signal
import statistics
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
from tests.controlplane import ControlPlane

from bayplan.app.live import LiveScheduler
from bayplan.app.watching import served_kinds
from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.config.loading import default_config
from bayplan.config.profiles import resolve_profiles
from bayplan.loop.observer import Observer
from bayplan.observe.clock import SystemClock
from bayplan.plugins.intree import default_registry

SAMPLE_SECONDS = 3.0
_PODS = "/api/v1/namespaces/default/pods"
_ALLOWANCE = {"rss_mib": 6.0, "descriptors": 4.0, "tasks": 20.0, "objects": 2000.0}
_SHARE = 0.05


@dataclass(frozen=True)
class Sample:
    seconds: float
    rss_mib: float
    descriptors: int
    tasks: int
    objects: int
    """What the garbage collector follows."""
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
    """Schedule until told to stop, with a sample as a line of JSON every few seconds."""
    from bayplan.app.live import LiveOptions

    transport = _connect(kubeconfig)
    registry, config, counter = default_registry(), default_config(), _Counter()
    profiles, kinds = resolve_profiles(config, registry), await served_kinds(transport)
    live = LiveScheduler(transport, config, profiles, registry, kinds, LiveOptions(observers=[counter]))
    task = asyncio.create_task(live.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    began = time.monotonic()
    while not task.done():
        print(json.dumps(asdict(_sample(live, counter.bound_count, time.monotonic() - began))), flush=True)
        await asyncio.wait([task], timeout=SAMPLE_SECONDS)
    await transport.close()


def _sample(live: LiveScheduler, bound: int, seconds: float) -> Sample:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Sample(
        seconds=round(seconds, 1),
        rss_mib=round(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), 2),
        descriptors=len(os.listdir("/proc/self/fd")),
        tasks=len(asyncio.all_tasks()),
        objects=len(gc.get_objects()),
        cached_pods=len(live.cache),
        shapes=len(live.cache.snapshot.shapes),
        bound=bound,
        cpu_seconds=round(time.process_time(), 2),
    )


# The cluster's side


def _connect(kubeconfig: Path) -> HttpTransport:
    return HttpTransport(
        find_access(clock=SystemClock(), environment={}, kubeconfig=kubeconfig), draw=random.Random(0).random
    )


class Churn:
    """Creates and deletes pods at a steady rate; a request that fails is counted, not repeated."""

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
            number = 0
            while (elapsed := time.monotonic() - began) < seconds:
                while number < elapsed * self._rate:
                    group.create_task(self._turn_over(number))
                    number += 1
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
    if number % 5 == 0:
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
    try:
        await churn.run(options.minutes * 60)
        await asyncio.sleep(2 * SAMPLE_SECONDS)
    finally:
        scheduler.terminate()
        await scheduler.wait()
        await reading
        await transport.close()
    return samples, churn


async def _read(scheduler: asyncio.subprocess.Process, samples: list[Sample]) -> None:
    assert scheduler.stdout is not None
    async for line in scheduler.stdout:
        if not line.startswith(b"{"):
            continue
        samples.append(Sample(**json.loads(line)))
        if len(samples) % 10 == 0:
            last = samples[-1]
            print(f"  {last.seconds:6.0f} s  {last.bound:7} bound  {last.rss_mib:7.1f} MiB", file=sys.stderr)


# The verdict


def rise(samples: Sequence[Sample], field: str) -> tuple[float, float]:
    """(mean, rise of the fitted line) of a field over the samples after the first third."""
    late = samples[len(samples) // 3 :]
    times, values = [s.seconds for s in late], [float(getattr(s, field)) for s in late]
    slope = statistics.linear_regression(times, values).slope
    return statistics.fmean(values), slope * (times[-1] - times[0])


def is_flat(samples: Sequence[Sample], field: str) -> bool:
    mean, risen = rise(samples, field)
    return risen <= max(mean * _SHARE, _ALLOWANCE[field])


def report(samples: Sequence[Sample], churn: Churn, options: argparse.Namespace) -> bool:
    seconds = options.minutes * 60
    print(f"{churn.created} pods created ({churn.created / seconds:.0f}/s), {churn.failed} requests failed")
    last = samples[-1]
    print(f"{last.bound} bound, {last.cached_pods} in the cache, {last.shapes} shapes, {last.cpu_seconds:.0f} s of CPU")
    print(f"{'':12} {'first':>10} {'last':>10} {'mean':>10} {'rise':>10}")
    all_flat = True
    for field in _ALLOWANCE:
        mean, risen = rise(samples, field)
        flat = is_flat(samples, field)
        all_flat &= flat
        first, end = getattr(samples[0], field), getattr(last, field)
        print(f"{field:12} {first:10} {end:10} {mean:10.1f} {risen:10.1f}  {'flat' if flat else 'RISING'}")
    return all_flat and last.bound >= churn.created * 0.99


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
