"""/debug/pprof: what it says, whom it says it to, and what it keeps to itself."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.waiting import until

from bayplan.server import ServerOptions, ServerParts, profiling
from bayplan.server.profiling import PROFILING_PATHS

from .support import Reviewer, serving

PLAIN = ServerOptions(port=0, is_plain_http=True)
ON = ServerParts(is_profiling=lambda: True)


def spend(seconds: float) -> None:
    """Busy in this thread."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    while loop.time() < ends:
        sum(range(100))


async def keep_spending() -> None:
    while True:
        spend(0.03)  # longer than a thread waits for its turn
        await asyncio.sleep(0)


async def test_a_profile_is_folded_stacks_with_what_was_busy() -> None:
    busy = asyncio.create_task(keep_spending())
    async with serving(PLAIN, ON) as client:
        got = await client.get("/debug/pprof/profile?seconds=0.2")
    busy.cancel()

    lines = got.text.splitlines()
    assert got.status == 200
    assert all(line.rpartition(" ")[2].isdecimal() for line in lines)
    assert any("keep_spending" in line and line.rpartition(" ")[0].count(" ") == 0 for line in lines)


@pytest.mark.parametrize("seconds", ["0", "61", "-1", "nan", "x", "1e1", "", "0.0"])
async def test_a_profile_is_bounded(seconds: str) -> None:
    async with serving(PLAIN, ON) as client:
        got = await client.get(f"/debug/pprof/profile?seconds={seconds}")

    assert got.status == 400
    assert "up to 60" in got.text


async def test_there_is_one_profile_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = threading.Event(), threading.Event()

    def sample(seconds: float, stop: threading.Event) -> Counter[profiling.Stack]:
        begun.set()
        release.wait()
        return Counter()

    monkeypatch.setattr(profiling, "_sample", sample)
    async with serving(PLAIN, ON) as client:
        first = asyncio.create_task(client.get("/debug/pprof/profile?seconds=0.2"))
        await until(begun.is_set)
        second = await client.get("/debug/pprof/profile?seconds=0.1")
        release.set()
        assert (await first).status == 200
        third = await client.get("/debug/pprof/profile?seconds=0.05")

    assert second.status == 429
    assert third.status == 200


async def test_a_profile_ends_with_the_client_that_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def sample(seconds: float, stop: threading.Event) -> Counter[profiling.Stack]:
        begun.set()
        stop.wait()
        ended.set()
        return Counter()

    monkeypatch.setattr(profiling, "_sample", sample)
    async with serving(PLAIN, ON) as client:
        first = asyncio.create_task(client.get("/debug/pprof/profile?seconds=60"))
        await until(begun.is_set)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await until(ended.is_set)
        monkeypatch.undo()

        assert (await client.get("/debug/pprof/profile?seconds=0.05")).status == 200


async def test_there_is_one_heap_at_a_time_and_it_ends_with_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_HEAP_PAUSE_SECONDS", 0.0)
    begun, ended = threading.Event(), threading.Event()

    def by_type(stop: threading.Event) -> list[str]:
        begun.set()
        stop.wait()
        ended.set()
        return []

    monkeypatch.setattr(profiling, "_by_type", by_type)
    async with serving(PLAIN, ON) as client:
        first = asyncio.create_task(client.get("/debug/pprof/heap"))
        await until(begun.is_set)
        assert (await client.get("/debug/pprof/heap")).status == 429
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await until(ended.is_set)
        monkeypatch.undo()

        assert (await client.get("/debug/pprof/heap")).status == 200


async def test_threads_and_tasks_say_where_they_are_and_alike_ones_are_counted() -> None:
    waiting = [asyncio.create_task(asyncio.Event().wait(), name=f"bind ns/pod-{i}") for i in range(3)]
    await asyncio.sleep(0)
    async with serving(PLAIN, ON) as client:
        got = await client.get("/debug/pprof/goroutine")
    for task in waiting:
        task.cancel()

    assert "3 tasks `bind`" in got.text
    assert "thread MainThread" in got.text
    assert "Event.wait" in got.text


async def test_a_heap_is_counted_once_in_ten_seconds() -> None:
    async with serving(PLAIN, ON) as client:
        assert (await client.get("/debug/pprof/heap")).status == 200
        again = await client.get("/debug/pprof/heap")

    assert again.status == 429
    assert again.headers["retry-after"] == "10"
    assert "once in 10 seconds" in again.text


async def test_the_heap_is_told_by_type() -> None:
    async with serving(PLAIN, ON) as client:
        got = await client.get("/debug/pprof/heap")

    assert "builtins.dict" in got.text
    assert "blocks in use" in got.text


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
async def test_the_heap_is_told_by_line_where_lines_are_traced() -> None:
    async with serving(PLAIN, ON) as client:
        got = await client.get("/debug/pprof/heap")

    assert "bytes, by the line of source" in got.text


async def test_the_index_names_the_pages_with_and_without_a_slash() -> None:
    async with serving(PLAIN, ON) as client:
        with_slash, without = await client.get("/debug/pprof/"), await client.get("/debug/pprof")
        status = await client.get("/statusz")

    assert with_slash.text == without.text
    assert "/debug/pprof/profile" in with_slash.text
    assert "/debug/pprof/" in status.text


@pytest.mark.parametrize("path", PROFILING_PATHS)
async def test_nothing_of_it_is_there_while_profiling_is_off(path: str) -> None:
    async with serving(PLAIN, ServerParts()) as client:
        got = await client.get(path)

    assert got.status == 404
    assert "enableProfiling" in got.text


@pytest.mark.parametrize("path", PROFILING_PATHS)
async def test_it_is_behind_the_same_door_as_metrics(path: str) -> None:
    reviewer = Reviewer()
    parts = ServerParts(is_profiling=lambda: True, review=reviewer)
    async with serving(ServerOptions(port=0), parts) as client:
        nobody = await client.get(path)
        stranger = await client.get(path, token="token-of-stranger")

    assert (nobody.status, stranger.status) == (401, 403)
