from __future__ import annotations

import asyncio

import pytest

from bayplan.client.rate_limit import RateLimitedTransport, TokenBucket
from bayplan.client.transport import Transport
from bayplan.observe.clock import VirtualClock

from .support import ScriptedTransport, answer, in_turn


def test_a_burst_passes_at_once_and_then_the_rate_holds(clock: VirtualClock) -> None:
    bucket = TokenBucket(qps=10, burst=3, clock=clock)

    assert [round(bucket.reserve(), 3) for _ in range(5)] == [0, 0, 0, 0.1, 0.2]
    clock.advance(10)
    assert [round(bucket.reserve(), 3) for _ in range(4)] == [0, 0, 0, 0.1]


def test_a_negative_rate_means_no_limit(clock: VirtualClock) -> None:
    bucket = TokenBucket(qps=-1, burst=1, clock=clock)

    assert bucket.is_unlimited
    assert sum(bucket.reserve() for _ in range(1000)) == 0


def test_a_zero_stands_for_the_default(clock: VirtualClock) -> None:
    bucket = TokenBucket(qps=0, burst=0, clock=clock)

    assert sum(bucket.reserve() for _ in range(100)) == 0
    assert bucket.reserve() == pytest.approx(1 / 50)


def test_a_negative_burst_is_refused(clock: VirtualClock) -> None:
    with pytest.raises(ValueError, match="burst must not be negative"):
        TokenBucket(qps=1, burst=-1, clock=clock)


async def test_who_gives_up_waiting_gives_the_token_back(clock: VirtualClock) -> None:
    bucket = TokenBucket(qps=1, burst=1, clock=clock)
    bucket.reserve()
    waiter = asyncio.create_task(bucket.wait(bucket.reserve()))
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.wait([waiter])

    assert bucket.reserve() == pytest.approx(1.0)


async def test_requests_wait_and_streams_do_not(clock: VirtualClock) -> None:
    inner = ScriptedTransport(in_turn(answer(200, {})))
    transport = RateLimitedTransport(inner, TokenBucket(qps=1, burst=1, clock=clock))
    assert isinstance(transport, Transport)

    tasks = [asyncio.create_task(transport.request("GET", f"/{number}")) for number in range(3)]
    await clock.run_for(0.5)
    assert len(inner.calls) == 1
    await clock.run_for(1.0)
    assert len(inner.calls) == 2
    await clock.run_for(1.0)

    assert [call.path for call in inner.calls] == ["/0", "/1", "/2"]
    await asyncio.gather(*tasks)
    transport.stream("/x")
    await transport.close()


async def test_every_wait_is_told_the_short_ones_too(clock: VirtualClock) -> None:
    waits: list[tuple[str, float]] = []
    transport = RateLimitedTransport(
        ScriptedTransport(in_turn(*[answer(200, {})] * 3)),
        TokenBucket(qps=10, burst=2, clock=clock),
        on_wait=lambda method, seconds: waits.append((method, round(seconds, 3))),
    )
    asking = asyncio.create_task(_ask(transport, "GET", "POST", "PATCH"))
    await clock.run_for(1)
    await asking

    assert waits == [("GET", 0.0), ("POST", 0.0), ("PATCH", 0.1)]


async def _ask(transport: Transport, *methods: str) -> None:
    for method in methods:
        await transport.request(method, "/api")
