"""Five hundred pods in flight, and something breaks. At the end every pod is bound once and nothing is promised twice.

The nodes have room for these pods and little more, so that a binding that is forgotten or counted twice shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bayplan.app.live import LiveScheduler
from bayplan.client.http_transport import HttpTransport
from bayplan.client.transport import Transport
from tests.controlplane import ControlPlane
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import Ledger, keeping_ledger
from tests.e2e.objects import node, pod
from tests.e2e.running import RunSettings, account_for, all_bound, scheduling
from tests.fault.faulty_proxy import FaultyProxy, cutting_watches, failing_writes
from tests.waiting import answer, until

PODS = 500
NODES = 20
_IMPATIENT_SECONDS = 2.0


def tight_nodes(count: int = NODES) -> list[dict[str, object]]:
    """Room for 26 pods each by number and by cpu: 520 places for 500 pods."""
    return [node(f"node-{i:02}", cpu="2600m", pods=26, memory="64Gi") for i in range(count)]


def batch(prefix: str, count: int, **spec: Any) -> list[dict[str, object]]:
    return [pod(f"{prefix}-{i}", cpu="100m", labels={"app": prefix}, **spec) for i in range(count)]


def impatient(transport: Transport, *, seconds: float = _IMPATIENT_SECONDS) -> Transport:
    """The same transport, but a request without an answer is given up soon: tests do not wait half a minute."""
    assert isinstance(transport, HttpTransport)
    transport._default_timeout = seconds
    return transport


Disturb = Callable[[LiveScheduler, ApiSession, Ledger], Awaitable[None]]


async def survive(
    cluster: Cluster, disturb: Disturb, *, kubeconfig: Path | None = None, patience: float = _IMPATIENT_SECONDS
) -> Ledger:
    """Create the pods, let the scheduler start on them, disturb it, and account for everything at the end."""
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(*tight_nodes())
        await api.create(*batch("pod", PODS))
        settings = RunSettings(wrap=partial(impatient, seconds=patience))
        async with scheduling(kubeconfig or cluster.kubeconfig, settings) as live:
            await until(lambda: ledger.bound >= 20, what="the first bindings")
            await disturb(live, api, ledger)
            await all_bound(live, ledger, PODS)
            pods = await account_for(live, api)
        assert await untruths(api) == []
    assert ledger.moved() == {}
    assert len([p for p in pods if p["spec"].get("nodeName")]) == len(pods)
    return ledger


async def untruths(api: ApiSession) -> list[str]:
    """Conditions and events that are false where every pod has a node, and had a place at any time."""
    conditions = [
        f"{pod['metadata']['name']} says PodScheduled={condition['status']}"
        for pod in await api.pods()
        for condition in pod["status"].get("conditions", [])
        if condition["type"] == "PodScheduled" and condition["status"] != "True"
    ]
    failed = await api.events(reason="FailedScheduling")
    return conditions + [event["note"] for event in failed if "nodes are available" in event["note"]]


@pytest.mark.slow
async def test_the_api_server_is_killed_and_comes_back(cluster: Cluster) -> None:

    async def kill(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
        assert ledger.bound < PODS
        await asyncio.to_thread(cluster.kill_apiserver)
        await asyncio.sleep(3)
        await asyncio.to_thread(cluster.start_apiserver)

    await survive(cluster, kill)


async def test_etcd_is_killed_and_comes_back(empty_control_plane: ControlPlane) -> None:
    """On the real control plane only: the embedded server keeps its objects itself and dies with them."""
    cluster = empty_control_plane

    async def kill(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
        assert ledger.bound < PODS
        await asyncio.to_thread(cluster.kill_etcd)
        await asyncio.sleep(3)
        await asyncio.to_thread(cluster.start_etcd)

    await survive(cluster, kill)


@pytest.mark.slow
async def test_watches_break_every_two_seconds(cluster: Cluster, tmp_path: Path) -> None:
    """Pods keep coming and going while the scheduler hears of them in pieces."""
    async with FaultyProxy(cluster) as proxy, cutting_watches(proxy, every=2.0) as cuts:

        async def churn(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            for i in range(6):
                await all_bound(live, ledger, PODS + i * 20)
                await api.delete_pods(*(f"pod-{n}" for n in range(i * 20, i * 20 + 20)))
                await api.create(*batch(f"late-{i}", 20))
                await asyncio.sleep(2)
            await all_bound(live, ledger, PODS + 120)

        await survive(cluster, churn, kubeconfig=proxy.kubeconfig(tmp_path))

    assert len(cuts) >= 5
    assert sum(cuts) > 50


@pytest.mark.slow
async def test_three_in_ten_writes_fail(cluster: Cluster, tmp_path: Path) -> None:
    async with FaultyProxy(cluster, failing_writes(0.3, random.Random(7))) as proxy:

        async def nothing_more(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            await all_bound(live, ledger, PODS)

        await survive(cluster, nothing_more, kubeconfig=proxy.kubeconfig(tmp_path))

    assert proxy.faults.total() > 150
    assert len(proxy.faults) == 7


async def test_a_node_goes_away_while_pods_are_being_bound_to_it(cluster: Cluster) -> None:
    """Pods that were bound to it stay so, as only a controller may delete them; all others find another node."""
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(*tight_nodes(NODES + 4))
        await api.create(*batch("pod", PODS))
        async with scheduling(cluster.kubeconfig) as live:
            await until(lambda: ledger.bound >= 20, what="the first bindings")
            assert ledger.bound < PODS
            gone = [f"node-{i:02}" for i in range(4)]
            await asyncio.gather(*(api.call("DELETE", f"/api/v1/nodes/{name}") for name in gone))
            await all_bound(live, ledger, PODS)
            await account_for(live, api)
            await api.create(*tight_nodes(2))
            await account_for(live, api)

    assert ledger.moved() == {}


async def test_pods_are_deleted_while_they_are_scheduled(cluster: Cluster) -> None:
    """The nodes cannot hold all: the room of deleted pods must come back."""
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(*tight_nodes(10))
        await api.create(*batch("pod", PODS))
        async with scheduling(cluster.kubeconfig) as live:
            await until(lambda: ledger.bound >= 5, what="the first bindings")
            await api.delete_pods(*(f"pod-{i}" for i in range(0, PODS, 2)))
            left = {f"pod-{i}" for i in range(1, PODS, 2)}

            def bound_of_left() -> int:
                return sum(ledger.names[uid] in left for uid, nodes in ledger.nodes_of.items() if nodes)

            await until(lambda: bound_of_left() == 250, what="the others bound", instead=lambda: live.queue.sizes)
            pods = await account_for(live, api)

    assert {p["metadata"]["name"] for p in pods} == left
    assert ledger.moved() == {}


@contextlib.asynccontextmanager
async def competing_kube_scheduler(cluster: Cluster, folder: Path) -> AsyncIterator[None]:
    path = folder / "other.yaml"
    path.write_text("profiles:\n- schedulerName: other\n")
    scheduler = await asyncio.to_thread(cluster.start_kube_scheduler, path)
    try:
        yield
    finally:
        await asyncio.to_thread(scheduler.stop)


@pytest.mark.usefixtures("programs")
async def test_another_scheduler_binds_to_the_same_nodes(cluster: Cluster, tmp_path: Path) -> None:
    """Two schedulers cannot see each other's decisions before they are written, so a node may be promised twice in that
    moment; each pod is bound once, by its own scheduler, and the cache counts both kinds."""
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(*(node(f"node-{i:02}", cpu="16", pods=110, memory="64Gi") for i in range(NODES)))
        async with competing_kube_scheduler(cluster, tmp_path), scheduling(cluster.kubeconfig) as live:
            await asyncio.gather(
                api.create(*batch("mine", 250)), api.create(*batch("theirs", 250, schedulerName="other"))
            )
            await all_bound(live, ledger, PODS)
            await account_for(live, api)

            async def all_events() -> list[Any] | None:
                found = await api.events(reason="Scheduled")
                return found if len(found) >= PODS else None

            scheduled = await answer(all_events, what="an event for each binding") or []

    signed = {(e["reportingController"], e["regarding"]["name"].split("-")[0]) for e in scheduled}
    assert signed == {("default-scheduler", "mine"), ("other", "theirs")}
    assert ledger.moved() == {}
