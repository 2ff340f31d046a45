"""The raw binding rate: what a bare client gets out of the API server where a scheduler is measured.

The pods of the workload, the schedulers' user and the watcher of a run, and nobody who reads the cluster or decides:
48 requests in flight, pod after pod to the next node. What a run gets is compared with this, so whatever else costs the
API server time must be the same in both.
"""

from __future__ import annotations

import random

from tests.controlplane import ControlPlane

from bayplan.client.writer import Writer
from bench.versus.cluster import SIDE_BY_SIDE, BenchCluster, Json, side_by_side
from bench.versus.measure import no_pauses, rate_of
from bench.versus.schedulers import scheduler_kubeconfig
from bench.versus.stage import Stage
from bench.versus.watching import PodWatch
from bench.versus.workload import Workload

_PATIENCE_SECONDS = 60.0


async def raw_binding_rate(plane: ControlPlane, stage: Stage, workload: Workload, nodes: int, count: int) -> float:
    """Bindings a second, from the first to the last as a watcher sees them."""
    client, place = BenchCluster(scheduler_kubeconfig(plane)), workload.place(nodes)
    writer = Writer(client.transport, clock=client.clock, draw=random.Random(2).random, max_in_flight=SIDE_BY_SIDE)
    pods = [pod["metadata"] for pod in workload.pods(nodes, count)]

    async def bind(numbered: tuple[int, Json]) -> None:
        i, pod = numbered
        await writer.bind(pod["namespace"], pod["name"], uid="", node=place.node(i))

    try:
        async with stage.run(workload, nodes, count, with_pods=True) as begin:
            with no_pauses():
                async with PodWatch(stage.cluster, count, on_first=begin.set) as watch:
                    await side_by_side(enumerate(pods), bind)
                    await watch.wait(_PATIENCE_SECONDS)
    finally:
        await client.close()
    return rate_of(sorted(watch.bound.values()))
