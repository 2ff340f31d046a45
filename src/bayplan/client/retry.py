"""Repeats a write until there is an answer, as far as that is safe.

What may be sent again depends on what the first attempt may have done:

    429                                 not processed: send again after Retry-After
    connection refused, none was free,  not processed: send again
    no credential that can be used
    5xx, reset, timeout                 unknown: send again only what does the same thing twice, and remember that the
                                        next answer may be about our own first attempt (`Outcome.is_retry_of_unknown`)
    success, and no JSON object         as with no answer
    anything else                       an answer: hand it back

The caller states what its request allows; this module implements only the table above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from bayplan.client.backoff import Backoff, BackoffSettings, Draw
from bayplan.client.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    CredentialError,
    Forbidden,
    KubeconfigError,
    NoAnswer,
    ServerError,
    TooManyRequests,
    Unauthorized,
    api_error,
)
from bayplan.client.transport import JSON, Response, Transport, always
from bayplan.observe.clock import Clock

WRITE_BACKOFF = BackoffSettings(initial_seconds=0.05, factor=2.0, ceiling_seconds=5.0, jitter=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how fast.

    `is_repeatable`: doing it twice is the same as doing it once. `repeats_conflicts`: repeat after a 409, which for a
    patch without a resourceVersion only means a concurrent write. `repeats_refusals`: repeat after a 401 or 403, which
    a server that has just started answers until it has loaded its RBAC rules.
    """

    attempts: int = 5
    backoff: BackoffSettings = WRITE_BACKOFF
    is_repeatable: bool = True
    repeats_conflicts: bool = False
    repeats_refusals: bool = False


class WriteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request, to be sent once or more."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON
    timeout: float | None = None


class SendOutcome(msgspec.Struct, frozen=True):
    """An answer with a status below 300, or the error that ended the attempts."""

    response: Response | None
    error: ApiError | NoAnswer | None
    is_retry_of_unknown: bool
    """An earlier attempt may have been processed, so this answer may describe the effect of that attempt."""


class RetryingSender:
    """Applies a policy to requests on one transport.

    `may_write` is checked right before every attempt of a write leaves; `NotSent` is raised when it is False.
    """

    def __init__(
        self, transport: Transport, *, clock: Clock, draw: Draw, may_write: Callable[[], bool] = always
    ) -> None:
        self._transport = transport
        self._may_write = may_write
        self._clock = clock
        self._draw = draw
        self.retries = 0

    async def send(self, request: WriteRequest, policy: RetryPolicy) -> SendOutcome:
        backoff: Backoff | None = None
        is_unknown = False
        error: ApiError | NoAnswer
        may_send = always if request.method == "GET" else self._may_write
        for attempts_left in range(policy.attempts - 1, -1, -1):
            try:
                response = await self._transport.request(
                    request.method,
                    request.path,
                    body=request.body,
                    content_type=request.content_type,
                    timeout=request.timeout,
                    may_send=may_send,
                )
                if response.status < 300 and response.body.startswith(b"{"):
                    return SendOutcome(response, None, is_unknown)
                error = _failure(request, response)
            except NoAnswer as no_answer:
                error = no_answer
            except (KubeconfigError, CredentialError) as unusable:
                # While files or tokens are renewed, those that are there may not fit together.
                error = ConnectionFailed(unusable.message, may_have_been_processed=False)
            was_unknown, is_unknown = is_unknown, is_unknown or _may_have_been_processed(error)
            if attempts_left == 0 or not _is_worth_repeating(error, policy):
                return SendOutcome(None, error, was_unknown)
            backoff = backoff or Backoff(policy.backoff, draw=self._draw)
            self.retries += 1
            await self._clock.sleep(max(backoff.next_delay(), _asked_delay(error)))
        raise ValueError(f"a policy needs at least one attempt: {policy.attempts}")


def _failure(request: WriteRequest, response: Response) -> ApiError | NoAnswer:
    """A success without an object is none: something between here and the server made it up."""
    if response.status < 300:
        what = f"the answer to {request.method} {request.path} is not one of an API server: {response.body[:60]!r}"
        return NoAnswer(what, may_have_been_processed=True)
    return api_error(response.status, response.body, headers=response.headers)


def _may_have_been_processed(error: ApiError | NoAnswer) -> bool:
    return isinstance(error, ServerError) or (isinstance(error, NoAnswer) and error.may_have_been_processed)


def _is_worth_repeating(error: ApiError | NoAnswer, policy: RetryPolicy) -> bool:
    if isinstance(error, TooManyRequests) or (policy.repeats_conflicts and isinstance(error, Conflict)):
        return True
    if policy.repeats_refusals and isinstance(error, (Unauthorized, Forbidden)):
        return True
    if isinstance(error, NoAnswer) and not error.may_have_been_processed:
        return True
    return policy.is_repeatable and isinstance(error, (ServerError, NoAnswer))


def _asked_delay(error: ApiError | NoAnswer) -> float:
    return (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
