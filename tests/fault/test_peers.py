"""Five hundred pods in flight while what stands between the scheduler and the API server falls silent, lies or moves.

At the end every pod is bound once, nothing is promised twice, the caches are equal to the API, and no pod has a
condition or an event that is false.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from bayplan.app.live import LiveScheduler
from tests.e2e.api_session import ApiSession
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import Ledger
from tests.fault.faulty_proxy import BROKEN_ANSWERS, FaultyProxy, broken_answers, failing_writes, no_fault
from tests.fault.test_faults import PODS, survive
from tests.waiting import until

pytestmark = pytest.mark.slow
Trouble = Callable[[FaultyProxy, LiveScheduler, Ledger], Awaitable[None]]


async def survive_behind_proxy(cluster: Cluster, folder: Path, trouble: Trouble) -> FaultyProxy:
    async with FaultyProxy(cluster) as proxy:

        async def disturb(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            assert ledger.bound < PODS
            await trouble(proxy, live, ledger)

        await survive(cluster, disturb, kubeconfig=proxy.kubeconfig(folder))
    return proxy


async def test_watches_fall_silent_and_everything_else_works(cluster: Cluster, tmp_path: Path) -> None:
    async def freeze(proxy: FaultyProxy, live: LiveScheduler, ledger: Ledger) -> None:
        lists = _lists(live)
        with proxy.frozen_watches():
            await until(lambda: _lists(live) > lists, what="the pods listed again")

    await survive_behind_proxy(cluster, tmp_path, freeze)


def _lists(live: LiveScheduler) -> int:
    return sum(reflector.stats.lists for reflector in live.watching.reflectors.values())


async def test_watches_say_that_history_is_gone(cluster: Cluster, tmp_path: Path) -> None:
    expired: list[int] = []

    async def expire(proxy: FaultyProxy, live: LiveScheduler, ledger: Ledger) -> None:
        for share in (0.25, 0.5, 0.75):
            await until(partial(_has_bound, ledger, share * PODS), what="more bindings")
            expired.append(proxy.expire_watches())

    await survive_behind_proxy(cluster, tmp_path, expire)

    assert all(expired)


def _has_bound(ledger: Ledger, count: float) -> bool:
    return ledger.bound >= count


async def test_three_in_ten_writes_get_garbage_half_an_answer_or_two(cluster: Cluster, tmp_path: Path) -> None:
    async def lie(proxy: FaultyProxy, live: LiveScheduler, ledger: Ledger) -> None:
        proxy.plan = failing_writes(0.3, random.Random(11), BROKEN_ANSWERS)
        await until(lambda: ledger.bound == PODS, what="all bound", instead=lambda: ledger.bound)

    proxy = await survive_behind_proxy(cluster, tmp_path, lie)

    assert proxy.faults.keys() == set(BROKEN_ANSWERS)


async def test_lists_and_watches_get_garbage_half_an_answer_or_two(cluster: Cluster, tmp_path: Path) -> None:
    async def lie(proxy: FaultyProxy, live: LiveScheduler, ledger: Ledger) -> None:
        proxy.plan = broken_answers(0.3, random.Random(12))
        for _ in range(3):
            proxy.cut_watches()
            await asyncio.sleep(1)
        proxy.plan = no_fault

    proxy = await survive_behind_proxy(cluster, tmp_path, lie)

    assert proxy.faults.keys() == set(BROKEN_ANSWERS)


async def test_the_api_server_is_nowhere_for_some_seconds(cluster: Cluster, tmp_path: Path) -> None:
    async def go_away(proxy: FaultyProxy, live: LiveScheduler, ledger: Ledger) -> None:
        await proxy.move(lambda: asyncio.sleep(4))

    await survive_behind_proxy(cluster, tmp_path, go_away)
