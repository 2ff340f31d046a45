"""What a measurement begins with: nodes, objects and pods of a workload on a new control plane, and who works there.

Nothing is taken away afterwards: the next measurement has a control plane of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from tests.e2e.api_session import ApiSession
from tests.e2e.claim_controller import make_claims

from bench.versus.cluster import BenchCluster
from bench.versus.controllers import churning, provisioning
from bench.versus.workload import Workload


@dataclass
class Stage:
    cluster: BenchCluster
    say: Callable[[str], None] = lambda text: None

    @contextlib.asynccontextmanager
    async def run(self, workload: Workload, nodes: int, count: int, *, with_pods: bool) -> AsyncIterator[asyncio.Event]:
        """`with_pods` for a backlog, whose pods are there before the scheduler.

        Churn begins with the event that this gives, at the first binding: a scheduler that is slower to start does
        not find more of it.
        """
        begin = asyncio.Event()
        await self._set(workload, nodes, count)
        if with_pods:
            await self.cluster.create(workload.pods(nodes, count))
        if with_pods and workload.makes_claims:
            await make_claims(ApiSession(self.cluster.transport))
        async with contextlib.AsyncExitStack() as stack:
            if workload.provisions:
                await stack.enter_async_context(provisioning(self.cluster))
            if workload.churn is not None:
                place = workload.place(nodes)
                await stack.enter_async_context(churning(self.cluster, workload.churn, place, begin))
            yield begin

    async def _set(self, workload: Workload, nodes: int, count: int) -> None:
        self.say(f"creating {nodes:,} nodes")
        await self.cluster.create(workload.nodes(nodes))
        await self.cluster.create(workload.objects)
        await self.cluster.create(workload.objects_of_nodes(nodes))
        made = await self.cluster.create(workload.initial_pods(nodes, count))
        if made:
            self.say(f"created {made:,} pods that are there before")
        await self.cluster.create(workload.companion_objects(nodes, count))
