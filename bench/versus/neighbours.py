"""Noisy neighbours on a real API server: what the same hostile objects cost kube-scheduler and Bayplan.

    python -m bench.neighbours --versus [--kinds gates] [--nodes 300] [--pods 300] [--rounds 3]

For each kind of `bench.hostile` that an API server accepts and kube-scheduler knows, and for both schedulers in turn,
each started anew: CPU of the scheduler's process per plain pod, and its resident memory, in a quiet cluster, with the
objects there, and after they are gone, each once it no longer falls. Fails when Bayplan shows more than `MOST` times of
its quiet figures and more than kube-scheduler shows of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Mapping
from itertools import count, islice

from tests.controlplane import ControlPlane, ControlPlaneOptions

from bench import hostile
from bench.bytecode import compile_sources
from bench.versus.cluster import BenchCluster, Json, collection_of, side_by_side
from bench.versus.schedulers import ADMIN, SCHEDULER, SCHEDULERS, Running, started
from bench.versus.usage import cpu_seconds, resident_mib
from bench.versus.watching import PodWatch

MOST = 1.5
OF_PLUGINS = ("PodGroups", "ElasticQuotas", "NodeResourceTopologies")
"""Custom resources: kube-scheduler does not read them."""
_MOST_OBJECTS = 2_000
_GIVE_UP_SECONDS = 120.0
_SETTLE_SECONDS = 1.0
_STILL_SECONDS, _MOST_FALLING_SECONDS = 4, 20
Figures = dict[str, float]


class Side:
    """One scheduler at work, in a cluster with nodes."""

    def __init__(self, cluster: BenchCluster, running: Running, serial: count[int]) -> None:
        self._cluster = cluster
        self._running = running
        self._serial = serial

    async def cost_of_plain_pods(self, pods: int, rounds: int) -> float:
        """CPU seconds of the scheduler for one: the median of rounds; the pods are gone afterwards."""
        costs = []
        for _ in range(rounds):
            prefix = f"plain-{next(self._serial)}-"
            async with PodWatch(self._cluster, pods, prefix=prefix) as watch:
                before = cpu_seconds(self._running.pid)
                await self._cluster.create(_plain(f"{prefix}{number}") for number in range(pods))
                if not await watch.wait(_GIVE_UP_SECONDS, goes_on=self._running.is_alive):
                    log = self._running.log.read_text(errors="replace")[-2000:]
                    raise SystemExit(f"{len(watch.bound)} of {pods} plain pods were bound; the scheduler said:\n{log}")
                costs.append((cpu_seconds(self._running.pid) - before) / pods)
            await self._cluster.delete_all("/api/v1/namespaces/plain/pods")
            await self.settle()
        return statistics.median(costs)

    async def settle(self) -> None:
        """Until the scheduler is done with what changed, or goes on forever."""
        for _ in range(20):
            before = cpu_seconds(self._running.pid)
            await asyncio.sleep(_SETTLE_SECONDS / 4)
            if cpu_seconds(self._running.pid) - before < 0.02:
                return

    async def measure(self, kind: str, pods: int, rounds: int) -> Figures:
        await self.cost_of_plain_pods(pods, 1)
        quiet_cpu, quiet_mib = await self.cost_of_plain_pods(pods, rounds), await self._resident()
        objects = _objects(kind)
        await self._cluster.create(objects)
        await self.settle()
        hostile_cpu, hostile_mib = await self.cost_of_plain_pods(pods, rounds), await self._resident()
        await self._remove(objects)
        await self.settle()
        after_cpu, after_mib = await self.cost_of_plain_pods(pods, 1), await self._resident()
        return {
            "quiet_us": quiet_cpu * 1e6,
            "cpu": hostile_cpu / quiet_cpu,
            "cpu_after": after_cpu / quiet_cpu,
            "quiet_mib": quiet_mib,
            "memory": hostile_mib / quiet_mib,
            "left": after_mib / quiet_mib,
        }

    async def _resident(self) -> float:
        """Once it has stopped falling: both schedulers give memory back while they are idle, and not at once."""
        least, still = resident_mib(self._running.pid), 0
        for _ in range(_MOST_FALLING_SECONDS):
            await asyncio.sleep(_SETTLE_SECONDS)
            now = resident_mib(self._running.pid)
            still = 0 if now < least - 0.5 else still + 1
            least = min(least, now)
            if still >= _STILL_SECONDS:
                break
        return least

    async def _remove(self, objects: list[Json]) -> None:
        await self._cluster.delete(objects)
        spaces = [item for item in objects if item["kind"] == "Namespace"]
        await side_by_side(spaces, self._cluster.finish_namespace)


def _plain(name: str) -> Json:
    return hostile.pod(name, namespace="plain", metadata={"labels": {"app": "plain"}})


def _objects(kind: str) -> list[Json]:
    """Each once, as it is at last, and no more than an API server on two cores takes within seconds."""
    named = {(collection_of(item), item["metadata"]["name"]): item for _, item in hostile.KINDS[kind]()}
    return list(islice(named.values(), _MOST_OBJECTS))


def worse(bayplan: Mapping[str, float], kube_scheduler: Mapping[str, float]) -> list[str]:
    """What of Bayplan's figures is beyond the rule."""
    limits = {name: max(MOST, kube_scheduler[name]) for name in ("cpu", "cpu_after", "memory", "left")}
    return [f"{name} {bayplan[name]:.2f} > {most:.2f}" for name, most in limits.items() if bayplan[name] > most]


def main(options: argparse.Namespace) -> int:
    compile_sources()
    kinds = [kind for kind in options.kinds if kind not in OF_PLUGINS]
    with ControlPlane(ControlPlaneOptions(users={ADMIN[0]: ADMIN[1], SCHEDULER: ()})) as plane:
        wrong = asyncio.run(_all(plane, kinds, options))
    print(*wrong, sep="\n")
    return 1 if wrong else 0


async def _all(plane: ControlPlane, kinds: list[str], options: argparse.Namespace) -> list[str]:
    cluster = BenchCluster(plane.token_kubeconfig(plane.token_for(*ADMIN)))
    serial: count[int] = count()
    wrong: list[str] = []
    try:
        await cluster.create({"kind": "Namespace", "metadata": {"name": name}} for name in ("plain", "hostile"))
        await cluster.create(hostile.node(f"node-{number:04}") for number in range(options.nodes))
        print(f"{'':34}{'':16} quiet µs   cpu  after |  quiet MiB  memory  after")
        for kind in kinds:
            found = {}
            for name in SCHEDULERS:
                async with started(plane, name, {}) as running:
                    found[name] = await Side(cluster, running, serial).measure(kind, options.pods, options.rounds)
                _show(kind, name, found[name])
            wrong += [f"{kind}: {problem}" for problem in worse(found["bayplan"], found["kube-scheduler"])]
    finally:
        await cluster.close()
    return wrong


def _show(kind: str, name: str, found: Figures) -> None:
    cpu = f"{found['quiet_us']:8.0f} {found['cpu']:5.2f} {found['cpu_after']:6.2f}"
    memory = f"{found['quiet_mib']:10.0f} {found['memory']:7.2f} {found['left']:6.2f}"
    print(f"{kind:34}{name:16} {cpu} | {memory}", flush=True)
