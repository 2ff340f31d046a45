"""SIGUSR2: the cache is compared with the reflectors, and written to the log with the queue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.loop.kit import Loop, node, pod, running

from bayplan.app.cache_debugger import CacheDebugger, differences


def found(loop: Loop) -> list[str]:
    return [difference for difference in differences(loop.live) if difference is not None]


async def look(loop: Loop) -> list[Any]:
    debugger = CacheDebugger(lambda: loop.live, loop.clock)
    with capture_logs() as lines:
        debugger.start()
        await loop.settle()
    await debugger.close()
    return lines


@pytest.fixture
def loop() -> Loop:
    return Loop([node("n1", cpu=2), node("n2", cpu=2), pod("a", node="n1", cpu="1")])


async def test_a_true_cache_is_said_to_agree(loop: Loop) -> None:
    lines = await look(loop)

    assert lines[0]["event"] == "the cache agrees with the API server"
    assert (lines[0]["nodes"], lines[0]["pods"]) == (2, 1)


async def test_an_assumed_pod_is_no_difference(loop: Loop) -> None:
    async with running(loop):
        loop.put(pod("b", cpu="1"))
        await loop.settle()

        assert loop.live.cache.assumed_count == 1
        assert found(loop) == []


async def test_what_the_cache_missed_and_what_it_kept_is_told(loop: Loop) -> None:
    cache = loop.live.cache
    (known,) = cache.pods()
    cache.remove_pod(known.uid)
    cache.remove_node("n2")
    cache.add_node(node("ghost"))
    cache.add_pod(pod("gone", node="n1"))

    assert found(loop) == [
        "node ghost is gone, and the cache still has it",
        "node n2 is there, and the cache does not know it",
        "pod default/a runs on node n1, and the cache does not know it",
        "pod default/gone is gone, and the cache still has it",
    ]


async def test_a_number_that_went_wrong_is_told(loop: Loop) -> None:
    info = loop.live.cache.cluster.nodes.info("n1")
    assert info is not None
    info.requested[0] += 7

    (difference,) = found(loop)
    assert difference.startswith("requested of node n1 is")


async def test_differences_are_an_error_with_a_next_step(loop: Loop) -> None:
    loop.live.cache.remove_node("n2")
    lines = await look(loop)

    assert lines[0]["log_level"] == "error"
    assert lines[0]["count"] == 1
    assert "restart" in lines[0]["hint"]


async def test_nodes_and_waiting_pods_are_written_down(loop: Loop) -> None:
    async with running(loop):
        loop.put(pod("huge", cpu="64"))
        await loop.settle()
        lines = await look(loop)

    nodes = {line["node"]: line for line in lines if line["event"] == "cached node"}
    assert nodes["n1"]["pods"] == ["default/a"]
    assert nodes["n1"]["used"]["cpu"] == "1000 of 2000"
    (queued,) = [line for line in lines if line["event"] == "queued pod"]
    assert (queued["queue"], queued["pod"], queued["rejected_by"]) == (
        "unschedulable",
        "default/huge",
        ["NodeResourcesFit"],
    )


async def test_a_second_signal_does_not_start_a_second_look(loop: Loop) -> None:
    debugger = CacheDebugger(lambda: loop.live, loop.clock)
    with capture_logs() as lines:
        debugger.start()
        debugger.start()
        await asyncio.sleep(0)
    await debugger.close()

    assert lines[0]["event"] == "the cache is being looked into already"


async def test_before_the_scheduler_is_there_nothing_is_looked_into() -> None:
    debugger = CacheDebugger(lambda: None, Loop().clock)
    with capture_logs() as lines:
        debugger.start()
    await debugger.close()

    assert lines[0]["event"] == "there is no cache to look into yet"
