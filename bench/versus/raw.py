"""The raw binding rate: what a bare client gets out of the API server where a scheduler is measured.

The pods of the workload, the schedulers' user and the watcher of a run, and nobody who reads the cluster or decides:
48 pods in flight, pod after pod to the next node. What a run gets is compared with this, so whatever else costs the API
server time must be the same in both: a pod that must evict others has its victims marked and deleted and its node
nominated, and the claim of a pod that waits for its volume gets its node, its volume and its binding, before the pod.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace

from tests.controlplane import ControlPlane

from bayplan.client.writer import Writer
from bench.busy import busy_loops
from bench.versus.cluster import SIDE_BY_SIDE, BenchCluster, Json, side_by_side
from bench.versus.controllers import bind_volume, choose_node
from bench.versus.measure import no_pauses, rate_of
from bench.versus.schedulers import scheduler_kubeconfig
from bench.versus.stage import Stage
from bench.versus.watching import PodWatch
from bench.versus.workload import Workload

_PATIENCE_SECONDS = 120.0
_MARKED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}


@dataclass(frozen=True)
class _BareClient:
    writer: Writer
    cluster: BenchCluster
    workload: Workload
    nodes: int

    async def bind(self, numbered: tuple[int, Json]) -> None:
        i, pod = numbered
        node, namespace = self.workload.place(self.nodes).node(i), pod["metadata"]["namespace"]
        for number in range(self.workload.evicts):
            victim = f"init-0-{i % self.nodes + number * self.nodes:06}"
            await self.writer.patch_pod_status(namespace, victim, _MARKED)
            await self.writer.delete_pod(namespace, victim)
        if self.workload.evicts:
            await self.writer.patch_pod_status(namespace, pod["metadata"]["name"], {"nominatedNodeName": node})
        if self.workload.provisions:
            for volume in pod["spec"]["volumes"]:
                claim = volume["persistentVolumeClaim"]["claimName"]
                await choose_node(self.cluster, claim, node)
                await bind_volume(self.cluster, claim)
        await self.writer.bind(namespace, pod["metadata"]["name"], uid="", node=node)


async def raw_binding_rate(
    plane: ControlPlane, stage: Stage, workload: Workload, nodes: int, count: int, *, busy: int = 0
) -> float:
    """Bindings a second, counted as those of a run are."""
    client = BenchCluster(scheduler_kubeconfig(plane))
    writer = Writer(client.transport, clock=client.clock, draw=random.Random(2).random, max_in_flight=SIDE_BY_SIDE)
    bare = _BareClient(writer, stage.cluster, workload, nodes)
    pods = list(workload.pods(nodes, count))
    # It makes the volumes itself.
    staged = replace(workload, provisions=False)
    try:
        async with stage.run(staged, nodes, count, with_pods=True) as begin:
            with no_pauses(), busy_loops(busy):
                async with PodWatch(stage.cluster, count, on_first=begin.set) as watch:
                    began = time.perf_counter()
                    await side_by_side(enumerate(pods), bare.bind)
                    await watch.wait(_PATIENCE_SECONDS)
    finally:
        await client.close()
    return rate_of(sorted(watch.bound.values()), since=began if workload.counts_whole else None)
