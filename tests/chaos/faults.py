"""The kinds of faults, each as one function that breaks something and mends it again."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bayplan.client.errors import ClientError
from tests.chaos.replicas import LEASE, Replica, Replicas
from tests.controlplane import ControlPlane
from tests.e2e.api_session import ApiSession
from tests.e2e.clusters import Cluster
from tests.e2e.objects import node
from tests.fault.faulty_proxy import broken_answers, failing_writes, no_fault

BURN = "while True: pass"


@dataclass(frozen=True)
class Scene:
    cluster: Cluster
    api: ApiSession
    replicas: Replicas
    dice: random.Random

    async def leader(self) -> Replica:
        """The leader, or any replica while there is none."""
        with contextlib.suppress(ClientError, AssertionError):
            found = await self.replicas.leader()
            if found is not None:
                return found
        return self.dice.choice(self.replicas.all)

    def any_replica(self) -> Replica:
        return self.dice.choice(self.replicas.all)

    async def wait(self, least: float, most: float) -> None:
        await asyncio.sleep(self.dice.uniform(least, most))


Fault = Callable[[Scene], Awaitable[None]]


async def leader_is_killed(scene: Scene) -> None:
    replica = await scene.leader()
    if replica.process.is_running:
        replica.process.kill()
    await scene.wait(1, 4)


async def any_replica_is_killed(scene: Scene) -> None:
    replica = scene.any_replica()
    if replica.process.is_running:
        replica.process.kill()


async def leader_is_stopped_and_goes_on(scene: Scene) -> None:
    replica = await scene.leader()
    replica.pause()
    await scene.wait(1, 14)
    replica.go_on()


async def leader_is_asked_to_end(scene: Scene) -> None:
    replica = await scene.leader()
    if replica.process.is_running:
        await asyncio.to_thread(replica.process.stop)


async def configuration_is_read_again(scene: Scene) -> None:
    for replica in scene.replicas.all:
        if replica.process.is_running and replica.identity:
            replica.process.send(signal.SIGHUP)


async def lease_is_taken_by_somebody(scene: Scene) -> None:
    with contextlib.suppress(ClientError, AssertionError):
        lease = await scene.api.call("GET", LEASE)
        # For as long as a lease of theirs: whoever led may go on until its deadline, which is shorter.
        lease["spec"] |= {"holderIdentity": "somebody", "leaseDurationSeconds": 6}
        await scene.api.call("PUT", LEASE, lease, allow=[409])


async def writes_fail(scene: Scene) -> None:
    for replica in scene.replicas.all:
        replica.proxy.plan = failing_writes(0.3, scene.dice)
    await scene.wait(2, 8)
    _mend(scene)


async def answers_are_broken(scene: Scene) -> None:
    for replica in scene.replicas.all:
        replica.proxy.plan = broken_answers(0.2, scene.dice)
    await scene.wait(2, 8)
    _mend(scene)


def _mend(scene: Scene) -> None:
    for replica in scene.replicas.all:
        replica.proxy.plan = no_fault


async def watches_are_cut(scene: Scene) -> None:
    for _ in range(scene.dice.randint(1, 5)):
        for replica in scene.replicas.all:
            replica.proxy.cut_watches()
        await scene.wait(0.1, 1)


async def watches_fall_silent(scene: Scene) -> None:
    with contextlib.ExitStack() as frozen:
        for replica in scene.replicas.all:
            frozen.enter_context(replica.proxy.frozen_watches())
        await scene.wait(2, 15)


async def watches_expire(scene: Scene) -> None:
    for replica in scene.replicas.all:
        replica.proxy.expire_watches()
    await scene.wait(0.5, 2)


async def api_server_cannot_be_reached(scene: Scene) -> None:
    replica = scene.any_replica()
    await replica.proxy.move(lambda: scene.wait(1, 12))


async def api_server_is_killed(scene: Scene) -> None:
    await asyncio.to_thread(scene.cluster.kill_apiserver)
    await scene.wait(0.1, 3)
    await asyncio.to_thread(scene.cluster.start_apiserver)


async def etcd_is_killed(scene: Scene) -> None:
    if isinstance(scene.cluster, ControlPlane):
        await asyncio.to_thread(scene.cluster.kill_etcd)
        await scene.wait(0.1, 3)
        await asyncio.to_thread(scene.cluster.start_etcd)


async def clock_jumps(scene: Scene) -> None:
    """By an hour, ahead or back, and later to the right time again."""
    replica = scene.any_replica()
    replica.set_clock(scene.dice.choice(["+3600", "-3600"]))
    await scene.wait(1, 10)
    replica.set_clock("+0")


async def both_cores_are_busy(scene: Scene) -> None:
    burning = [await asyncio.create_subprocess_exec(sys.executable, "-c", BURN) for _ in range(2)]
    await scene.wait(2, 8)
    for process in burning:
        process.kill()
        await process.wait()


async def nodes_come_and_go(scene: Scene) -> None:
    """An idle node that nobody's pods select, and one of the busy ones closed for a while."""
    name = f"plain-{scene.dice.randrange(12):02}"
    with contextlib.suppress(ClientError, AssertionError):
        await scene.api.create(node("spare"))
    await _set_closed(scene, name, True)
    await scene.wait(1, 5)
    await _set_closed(scene, name, False)
    with contextlib.suppress(ClientError, AssertionError):
        await scene.api.call("DELETE", "/api/v1/nodes/spare", allow=[404])


async def _set_closed(scene: Scene, name: str, is_closed: bool) -> None:
    while True:
        with contextlib.suppress(ClientError, AssertionError):
            await scene.api.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": is_closed}})
            return
        await asyncio.sleep(0.3)


FAULTS: tuple[Fault, ...] = (
    leader_is_killed,
    any_replica_is_killed,
    leader_is_stopped_and_goes_on,
    leader_is_asked_to_end,
    configuration_is_read_again,
    lease_is_taken_by_somebody,
    writes_fail,
    answers_are_broken,
    watches_are_cut,
    watches_fall_silent,
    watches_expire,
    api_server_cannot_be_reached,
    api_server_is_killed,
    etcd_is_killed,
    clock_jumps,
    both_cores_are_busy,
    nodes_come_and_go,
)
