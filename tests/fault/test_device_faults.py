"""Ninety-six pods with claims in flight, a device for each and not one more, and something breaks.

At the end every pod is bound once, with a device that nobody else has, on the node that it is bound to. A device that
is forgotten, or held for an attempt that failed, leaves a pod without one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from bayplan.app.live import LiveScheduler
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.claim_controller import give_back, make_claims
from tests.e2e.clusters import Cluster
from tests.e2e.device_objects import device_class, given, given_twice, published, template, templated
from tests.e2e.ledger import Ledger, keeping_ledger
from tests.e2e.objects import node
from tests.e2e.running import RunSettings, account_for, all_bound, scheduling
from tests.fault.faulty_proxy import FaultyProxy, failing_writes
from tests.fault.test_faults import Disturb, impatient
from tests.waiting import answer, until

NODES, DEVICES = 12, 8
PODS = NODES * DEVICES


async def survive_with_claims(
    cluster: Cluster,
    disturb: Disturb,
    *,
    kubeconfig: Path | None = None,
    beside: Callable[[Ledger], Awaitable[None]] | None = None,
) -> None:
    """`disturb` follows the first bindings and the last claim; `beside` runs from the start on."""
    names = [f"n{number:02}" for number in range(NODES)]
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(device_class(), template(1), *map(node, names), *(published(n, DEVICES) for n in names))
        await api.create(*(templated(f"pod-{number}") for number in range(PODS)))
        async with scheduling(kubeconfig or cluster.kubeconfig, RunSettings(wrap=impatient)) as live:
            making = asyncio.create_task(make_claims(api))
            other = None if beside is None else asyncio.ensure_future(beside(ledger))
            await until(lambda: ledger.bound >= 5, what="the first bindings")
            await making
            await disturb(live, api, ledger)
            await all_bound(live, ledger, PODS)
            if other is not None:
                await other
            pods = await account_for(live, api)
        devices = await given(api)

    assert ledger.moved() == {}
    places = {each["metadata"]["uid"]: each["spec"]["nodeName"] for each in pods}
    assert {uid: [pool for pool, _ in held] for uid, held in devices.items()} == {u: [n] for u, n in places.items()}
    assert given_twice(devices) == []


async def _nothing_more(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
    """The proxy does it."""


@pytest.mark.slow
async def test_two_in_ten_writes_fail_with_claims_in_flight(cluster: Cluster, tmp_path: Path) -> None:
    async with FaultyProxy(cluster, failing_writes(0.2, random.Random(11))) as proxy:
        await survive_with_claims(cluster, _nothing_more, kubeconfig=proxy.kubeconfig(tmp_path))

    assert proxy.faults.total() > 30


@pytest.mark.slow
async def test_watches_break_with_claims_in_flight(cluster: Cluster, tmp_path: Path) -> None:
    cuts: list[int] = []
    async with FaultyProxy(cluster) as proxy:

        async def cut(ledger: Ledger) -> None:
            for tenth in range(1, 10):
                await until(partial(_has_bound, ledger, tenth * PODS // 10), what="more bindings")
                cuts.append(proxy.cut_watches())

        await survive_with_claims(cluster, _nothing_more, kubeconfig=proxy.kubeconfig(tmp_path), beside=cut)

    assert sum(cuts) > 5


def _has_bound(ledger: Ledger, count: int) -> bool:
    return ledger.bound >= count


@pytest.mark.slow
async def test_the_api_server_is_killed_with_claims_in_flight(cluster: Cluster) -> None:

    async def kill(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
        await asyncio.to_thread(cluster.kill_apiserver)
        await asyncio.sleep(2)
        await asyncio.to_thread(cluster.start_apiserver)

    await survive_with_claims(cluster, kill)


async def test_pods_that_are_deleted_in_flight_leave_their_devices_to_others(cluster: Cluster) -> None:
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(device_class(), template(1), node("a"), node("b"), published("a", 8), published("b", 8))
        await api.create(*(templated(f"pod-{number}") for number in range(32)))
        async with scheduling(cluster.kubeconfig) as live:
            making = asyncio.create_task(make_claims(api))
            await until(lambda: ledger.bound >= 2, what="the first bindings")
            await making
            await api.delete_pods(*(f"pod-{number}" for number in range(0, 32, 2)))
            left = {f"pod-{number}" for number in range(1, 32, 2)}

            async def are_bound() -> bool:
                # Again and again, as a controller does: an allocation may be under way for a pod that is gone.
                await give_back(api)
                return sum(ledger.names[uid] in left for uid, nodes in ledger.nodes_of.items() if nodes) == 16

            await answer(are_bound, what="the others bound")
            await account_for(live, api)
            await give_back(api)
        devices = await given(api)

    assert len(devices) == 16
    assert given_twice(devices) == []
