"""Watches that say nothing: dead ones, and those of kinds that nobody changes."""

from __future__ import annotations

import pytest

from bayplan.client.reflector import ReflectorSettings
from bayplan.observe.clock import VirtualClock

from .support import ScriptedTransport, in_turn, page, refusal, thing
from .test_reflector import SLOW, Watched, stream_of, streams_in_turn

QUICK_TO_DOUBT = ReflectorSettings(stall_seconds=60.0, backoff=SLOW)


async def test_a_watch_that_was_silent_while_objects_changed_is_dead(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    lists = in_turn(page([thing("a", 1), thing("b", 2)], 5), page([thing("a", 7)], 9), page([thing("a", 7)], 9))
    transport = ScriptedTransport(lists, streams_in_turn(stream_of()))
    watched = Watched(clock, transport, QUICK_TO_DOUBT)

    async with watched.running(59.0):
        assert len(transport.watches) == 1
        assert not watched.reflector.stats.is_silent
        await clock.run_for(2.0)
        assert len(transport.watches) == 2
        assert len(transport.calls) == 2
        assert watched.reflector.stats.is_silent
        await clock.run_for(60.0)
        assert not watched.reflector.stats.is_silent  # a list showed that nothing has changed since the last one
    assert caplog.text.count("was silent and had not shown 2 changes") == 1


async def test_a_watch_that_was_silent_while_nothing_changed_is_no_trouble(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """kube-apiserver sends no bookmarks of a kind that has not changed since it started."""
    transport = ScriptedTransport(in_turn(page([thing("a", 1)], 5)), streams_in_turn(stream_of()))
    watched = Watched(clock, transport, QUICK_TO_DOUBT)

    async with watched.running(200.0):
        assert len(transport.calls) == len(transport.watches) == 4
        assert not watched.reflector.stats.is_silent
    assert not caplog.text


async def test_a_silent_watch_stays_in_doubt_until_a_list_comes(clock: VirtualClock) -> None:
    lists = in_turn(page([thing("a", 1)], 5), refusal(503, "ServiceUnavailable"), page([thing("a", 1)], 5))
    transport = ScriptedTransport(lists, streams_in_turn(stream_of()))
    watched = Watched(clock, transport, QUICK_TO_DOUBT)

    async with watched.running(60.1):
        assert watched.reflector.stats.is_silent
        await clock.run_for(30.0)
        assert not watched.reflector.stats.is_silent


async def test_a_watch_that_does_not_show_a_write_is_taken_for_dead_soon(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    transport = ScriptedTransport(in_turn(page([], 5)), streams_in_turn(stream_of()))
    watched = Watched(clock, transport)

    async with watched.running(30.0):
        watched.reflector.expect_event()
        await clock.run_for(9.0)
        assert len(transport.watches) == 1
        watched.reflector.expect_event()
        await clock.run_for(3.0)
        assert len(transport.watches) == 2
        assert len(transport.calls) == 2
    assert "did not show a write within 10 s" in caplog.text
