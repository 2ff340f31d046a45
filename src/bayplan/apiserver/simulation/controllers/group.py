"""All simulated controllers, started together; each can be stopped on its own, to show what depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from bayplan.apiserver.server.api import Api
from bayplan.apiserver.simulation.controllers.base import Controller, ControllerClient, ControllerLoop
from bayplan.apiserver.simulation.controllers.cronjobs import CronJobs
from bayplan.apiserver.simulation.controllers.daemonsets import DaemonSets
from bayplan.apiserver.simulation.controllers.deployments import Deployments
from bayplan.apiserver.simulation.controllers.disruption import DisruptionBudgets
from bayplan.apiserver.simulation.controllers.endpoints import ServiceEndpoints
from bayplan.apiserver.simulation.controllers.event_expiry import EventExpiry
from bayplan.apiserver.simulation.controllers.garbage import GarbageCollector
from bayplan.apiserver.simulation.controllers.jobs import Jobs
from bayplan.apiserver.simulation.controllers.namespaces import Definitions, Namespaces
from bayplan.apiserver.simulation.controllers.nodes import NodeLifecycle
from bayplan.apiserver.simulation.controllers.owners import OwnerIndex
from bayplan.apiserver.simulation.controllers.pod_tally import PodTally
from bayplan.apiserver.simulation.controllers.quotas import ResourceQuotas
from bayplan.apiserver.simulation.controllers.replicas import ReplicaSets, ReplicationControllers
from bayplan.apiserver.simulation.controllers.resource_claims import ClaimRelease, TemplateClaims
from bayplan.apiserver.simulation.controllers.statefulsets import StatefulSets
from bayplan.apiserver.simulation.controllers.volumes import ClaimBinder
from bayplan.apiserver.simulation.devices import DeviceConditions, DeviceDriver, DeviceModel

ALL: tuple[type[Controller], ...] = (
    Namespaces,
    Definitions,
    ReplicationControllers,
    ReplicaSets,
    Deployments,
    StatefulSets,
    DaemonSets,
    Jobs,
    CronJobs,
    ResourceQuotas,
    DisruptionBudgets,
    ServiceEndpoints,
    ClaimBinder,
    TemplateClaims,
    ClaimRelease,
    NodeLifecycle,
    EventExpiry,
)


class _GarbageLoop:
    """Runs the garbage collector, with the interface of a `ControllerLoop`."""

    def __init__(self, make: Callable[[Callable[[], None]], GarbageCollector]) -> None:
        self._wake = asyncio.Event()
        self._collector = make(self._wake.set)
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None

    def start(self) -> None:
        if self._task is None:
            self._collector.start()
            self._task = asyncio.get_running_loop().create_task(self._run(), name="controller garbage-collector")

    async def stop(self) -> None:
        task, self._task = self._task, None
        self._collector.stop()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._collector.collect()
            await asyncio.sleep(0)


class Controllers:
    """The controllers of a cluster, by name."""

    def __init__(self, api: Api, devices: Sequence[DeviceModel] = ()) -> None:
        owners, pods = OwnerIndex(api.store), PodTally(api.store)
        loops: dict[str, ControllerLoop | _GarbageLoop] = {
            one.name: ControllerLoop(one(ControllerClient(api, owners, pods, one.name, one.component))) for one in ALL
        }
        for driver in (DeviceDriver, DeviceConditions) if devices else ():
            client = ControllerClient(api, owners, pods, driver.name)
            loops[driver.name] = ControllerLoop(driver(client, devices))
        name = GarbageCollector.name
        loops[name] = _GarbageLoop(lambda wake: GarbageCollector(ControllerClient(api, owners, pods, name), wake))
        self._loops = loops

    @property
    def running(self) -> dict[str, bool]:
        """Each controller and whether it runs."""
        return {name: loop.is_running for name, loop in self._loops.items()}

    def start(self, name: str = "") -> None:
        """Start one controller, or all."""
        for loop in self._chosen(name):
            loop.start()

    async def stop(self, name: str = "") -> None:
        """Stop one controller, or all."""
        for loop in self._chosen(name):
            await loop.stop()

    def _chosen(self, name: str) -> list[ControllerLoop | _GarbageLoop]:
        if not name:
            return list(self._loops.values())
        if name not in self._loops:
            raise KeyError(f"no controller is called {name!r}; there are {', '.join(sorted(self._loops))}")
        return [self._loops[name]]
