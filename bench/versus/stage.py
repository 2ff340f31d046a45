"""What stands in the cluster between runs: nodes, objects and initial pods of the workload that is measured.

Making them takes longer than most runs, so they are made once per workload and size and only what a run changed is
taken away. Nodes stay from workload to workload as long as they are the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from bench.versus.cluster import STANDING_KINDS, BenchCluster
from bench.versus.controllers import churning, provisioning
from bench.versus.workload import PART, Workload


@dataclass
class Stage:
    cluster: BenchCluster
    say: Callable[[str], None] = lambda text: None
    _nodes: Any = None
    _scene: tuple[Workload, int] | None = None

    async def set(self, workload: Workload, nodes: int, measured: int) -> None:
        """Bring the cluster to where runs of this workload begin."""
        if self._scene is not None and self._scene[0].name == workload.name and self._scene[1] == nodes:
            return
        await self.clear()
        if self._nodes != (workload.node, nodes):
            self.say(f"creating {nodes:,} nodes")
            self._nodes = None
            await self.cluster.delete_all("Node")
            await self.cluster.create(workload.nodes(nodes))
            self._nodes = (workload.node, nodes)
        self._scene = (workload, nodes)
        await self.cluster.create(workload.objects)
        made = await self.cluster.create(workload.initial_pods(nodes, measured, renewed=False))
        if made:
            self.say(f"created {made:,} pods that stay")

    async def clear(self) -> None:
        """Take away all but the nodes."""
        if self._scene is None:
            return
        workload, _ = self._scene
        await self.cluster.delete_pods(namespaces_of(workload))
        await self.cluster.delete(item for item in workload.objects if item["kind"] not in STANDING_KINDS)
        await self._delete_volumes(workload)
        self._scene = None

    async def reset(self) -> None:
        """After an error nobody knows what stands: begin from nothing, nodes included."""
        self._nodes = None
        await self.clear()

    @contextlib.asynccontextmanager
    async def run(self, workload: Workload, nodes: int, count: int, *, with_pods: bool) -> AsyncIterator[asyncio.Event]:
        """The objects of one run; `with_pods` for a backlog, whose pods are there before the scheduler.

        Churn begins with the event that this gives, at the first binding: a scheduler that is slower to start does
        not find more of it.
        """
        begin = asyncio.Event()
        await self.set(workload, nodes, count)
        await self.cluster.create(workload.initial_pods(nodes, count, renewed=True))
        await self.cluster.create(workload.companion_objects(nodes, count))
        if with_pods:
            await self.cluster.create(workload.pods(nodes, count))
        async with contextlib.AsyncExitStack() as stack:
            if workload.provisions:
                await stack.enter_async_context(provisioning(self.cluster))
            if workload.churn is not None:
                place = workload.place(nodes)
                await stack.enter_async_context(churning(self.cluster, workload.churn, place, begin))
            yield begin
        await self.cluster.delete_pods(namespaces_of(workload), part=f"{PART}!=kept")
        await self._delete_volumes(workload)

    async def _delete_volumes(self, workload: Workload) -> None:
        if workload.companions:
            await self.cluster.delete_all("PersistentVolumeClaim")
            await self.cluster.delete_all("PersistentVolume")


def namespaces_of(workload: Workload) -> list[str]:
    return ["default", *(item["metadata"]["name"] for item in workload.objects if item["kind"] == "Namespace")]
