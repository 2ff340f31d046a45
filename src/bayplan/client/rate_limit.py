"""Client-side rate limits (`clientConnection.qps`, `burst`): a token bucket in front of a transport.

Callers are served in order of arrival. A negative rate means no limit, as in kube-scheduler, and then costs nothing.
Streams are not limited: there are few, they last for minutes, and a reflector backs off by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from bayplan.client.transport import JSON, ByteStream, Response, Transport, always
from bayplan.observe.clock import Clock

DEFAULT_QPS = 50.0
DEFAULT_BURST = 100


class TokenBucket:
    """`burst` tokens at first, `qps` more every second, never more than `burst` at once."""

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        if burst < 0:
            raise ValueError(f"burst must not be negative: {burst}")
        # Zero means that the setting is absent; kube-scheduler's clients use their default then.
        self._qps = qps or DEFAULT_QPS
        self._burst = float(max(1, burst or DEFAULT_BURST))
        self._clock = clock
        self._tokens = self._burst
        self._refilled_at = clock.monotonic()

    @property
    def is_unlimited(self) -> bool:
        return self._qps < 0

    def reserve(self) -> float:
        """Take a token and return how many seconds to wait until it is valid. The balance may be negative."""
        if self._qps < 0:
            return 0.0
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._refilled_at) * self._qps)
        self._refilled_at = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._qps)

    async def wait(self, delay: float) -> None:
        """Wait until a reserved token is valid; a cancelled wait returns the token."""
        try:
            await self._clock.sleep(delay)
        except asyncio.CancelledError:
            self._tokens += 1.0
            raise


class RateLimitedTransport:
    """A `Transport` whose requests wait for a token first. `on_wait` gets the method and the seconds waited."""

    def __init__(
        self,
        transport: Transport,
        bucket: TokenBucket,
        *,
        on_wait: Callable[[str, float], None] = lambda method, seconds: None,
    ) -> None:
        self._transport = transport
        self._bucket = bucket
        self._on_wait = on_wait

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        may_send: Callable[[], bool] = always,
    ) -> Coroutine[Any, Any, Response]:
        if not self._bucket.is_unlimited:
            delay = self._bucket.reserve()
            if delay > 0.0:
                send = partial(self._transport.request, method, path, query=query, body=body)
                rest = partial(send, content_type=content_type, headers=headers, timeout=timeout, may_send=may_send)
                return self._delayed(delay, method, rest)
            self._on_wait(method, 0.0)
        return self._transport.request(
            method,
            path,
            query=query,
            body=body,
            content_type=content_type,
            headers=headers,
            timeout=timeout,
            may_send=may_send,
        )

    async def _delayed(self, delay: float, method: str, send: Callable[[], Awaitable[Response]]) -> Response:
        await self._bucket.wait(delay)
        self._on_wait(method, delay)
        return await send()

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        return self._transport.stream(path, query=query)

    async def close(self) -> None:
        await self._transport.close()
