from __future__ import annotations

import asyncio

import pytest

from bayplan.client.backoff import BackoffSettings
from bayplan.client.errors import (
    Conflict,
    ConnectionFailed,
    CredentialError,
    KubeconfigError,
    NoAnswer,
    NotFound,
    NotSent,
    RequestTimeout,
    ServerError,
)
from bayplan.client.retry import RetryingSender, RetryPolicy, SendOutcome, WriteRequest
from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock

from .support import ScriptedTransport, answer, in_turn, no_draw, refusal

POST = WriteRequest(method="POST", path="/x", body=b"{}")
EVERY_SECOND = BackoffSettings(initial_seconds=1.0, factor=1.0, jitter=0.0)
TWICE_IS_FINE = RetryPolicy(attempts=4, backoff=EVERY_SECOND)
ONLY_ONCE = RetryPolicy(attempts=4, backoff=EVERY_SECOND, is_repeatable=False)
OK = answer(201, {})
RESET = ConnectionFailed("reset", may_have_been_processed=True)
REFUSED = ConnectionFailed("refused", may_have_been_processed=False)
LATE = RequestTimeout("late", may_have_been_processed=True)
HALF_RENEWED = KubeconfigError("the certificate and its key cannot be used", hint="wait")
NO_TOKEN = CredentialError("the plugin failed", hint="wait")


async def _sent(
    clock: VirtualClock, policy: RetryPolicy, *answers: Response | Exception, seconds: float = 100.0
) -> tuple[SendOutcome, int]:
    transport = ScriptedTransport(in_turn(*answers))
    task = asyncio.create_task(RetryingSender(transport, clock=clock, draw=no_draw).send(POST, policy))
    await clock.run_for(seconds)
    return await task, len(transport.calls)


@pytest.mark.parametrize("policy", [TWICE_IS_FINE, ONLY_ONCE])
@pytest.mark.parametrize("first", [refusal(429, "TooManyRequests"), REFUSED, HALF_RENEWED, NO_TOKEN])
async def test_what_was_not_processed_is_always_sent_again(
    clock: VirtualClock, policy: RetryPolicy, first: Response | Exception
) -> None:
    outcome, attempts = await _sent(clock, policy, first, OK)

    assert (attempts, outcome.error, outcome.is_retry_of_unknown) == (2, None, False)


@pytest.mark.parametrize("first", [refusal(500), refusal(503), refusal(504), RESET, LATE])
async def test_what_may_have_been_processed_is_sent_again_only_if_that_is_harmless(
    clock: VirtualClock, first: Response | Exception
) -> None:
    outcome, attempts = await _sent(clock, TWICE_IS_FINE, first, OK)
    assert (attempts, outcome.error, outcome.is_retry_of_unknown) == (2, None, True)

    outcome, attempts = await _sent(clock, ONLY_ONCE, first, OK)
    assert attempts == 1
    assert isinstance(outcome.error, (ServerError, ConnectionFailed, RequestTimeout))


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 409, 410, 422])
async def test_an_answer_is_an_answer(clock: VirtualClock, code: int) -> None:
    outcome, attempts = await _sent(clock, TWICE_IS_FINE, refusal(code), OK)

    assert attempts == 1
    assert outcome.response is None
    assert outcome.error is not None


async def test_a_conflict_is_repeated_where_that_was_asked_for(clock: VirtualClock) -> None:
    policy = RetryPolicy(attempts=3, backoff=EVERY_SECOND, repeats_conflicts=True)

    outcome, attempts = await _sent(clock, policy, refusal(409, "Conflict"), OK)
    assert (attempts, outcome.error) == (2, None)
    outcome, attempts = await _sent(clock, policy, refusal(409, "Conflict"))
    assert attempts == 3
    assert isinstance(outcome.error, Conflict)


async def test_an_answer_to_a_second_attempt_is_marked_as_perhaps_our_own_doing(clock: VirtualClock) -> None:
    outcome, _ = await _sent(clock, TWICE_IS_FINE, RESET, refusal(404, "NotFound"))

    assert isinstance(outcome.error, NotFound)
    assert outcome.is_retry_of_unknown


async def test_the_last_failure_does_not_count_as_its_own_predecessor(clock: VirtualClock) -> None:
    outcome, attempts = await _sent(clock, RetryPolicy(attempts=1), RESET)

    assert attempts == 1
    assert not outcome.is_retry_of_unknown


async def test_the_attempts_are_bounded(clock: VirtualClock) -> None:
    outcome, attempts = await _sent(clock, TWICE_IS_FINE, refusal(500))

    assert attempts == 4
    assert isinstance(outcome.error, ServerError)
    with pytest.raises(ValueError, match="at least one attempt"):
        await _sent(clock, RetryPolicy(attempts=0), OK)


async def test_retry_after_is_obeyed_within_reason(clock: VirtualClock) -> None:
    for asked, waited in (("7", 7.0), ("100000", 30.0)):
        transport = ScriptedTransport(in_turn(refusal(429, headers={"retry-after": asked}), OK))
        task = asyncio.create_task(RetryingSender(transport, clock=clock, draw=no_draw).send(POST, TWICE_IS_FINE))
        await clock.run_for(waited - 0.5)
        assert len(transport.calls) == 1
        await clock.run_for(1.0)
        assert len(transport.calls) == 2
        await task


async def test_every_attempt_of_a_write_is_held_back_once_this_replica_may_not_write(clock: VirtualClock) -> None:
    may_write = [True, True, False]
    transport = ScriptedTransport(in_turn(refusal(500), refusal(500), OK))
    sender = RetryingSender(transport, clock=clock, draw=no_draw, may_write=lambda: may_write.pop(0))
    task = asyncio.create_task(sender.send(POST, TWICE_IS_FINE))
    await clock.run_for(10)

    with pytest.raises(NotSent):
        await task
    assert len(transport.calls) == 2


async def test_reading_is_always_allowed(clock: VirtualClock) -> None:
    sender = RetryingSender(ScriptedTransport(in_turn(OK)), clock=clock, draw=no_draw, may_write=lambda: False)

    assert (await sender.send(WriteRequest(method="GET", path="/x"), TWICE_IS_FINE)).error is None


@pytest.mark.parametrize("body", [b"", b"<html>a proxy's page</html>", b"\xff"])
async def test_a_success_that_no_api_server_sends_counts_as_no_answer(clock: VirtualClock, body: bytes) -> None:
    outcome, attempts = await _sent(clock, TWICE_IS_FINE, Response(200, {}, body), OK)
    assert (attempts, outcome.error, outcome.is_retry_of_unknown) == (2, None, True)

    outcome, attempts = await _sent(clock, ONLY_ONCE, Response(200, {}, body), OK)
    assert attempts == 1
    assert isinstance(outcome.error, NoAnswer) and outcome.error.may_have_been_processed
