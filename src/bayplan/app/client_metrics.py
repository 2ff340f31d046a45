"""Numbers about talking to the API server: every request by status and duration, and what reflectors and writers did.

`MeasuredTransport` stands in front of another transport and adds two increments a request. It changes nothing else:
errors, timeouts and streams pass through as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from bayplan.app.live import LiveScheduler
from bayplan.app.metrics import Current
from bayplan.client.reflector import ReflectorStats
from bayplan.client.transport import JSON, ByteStream, Response, Transport, always
from bayplan.observe import component_metrics as component
from bayplan.observe.clock import Clock
from bayplan.observe.metrics import Counter, Family, Histogram, MetricsRegistry, Values

__all__ = ["MeasuredTransport", "RequestMetrics", "register_client"]

_NO_ANSWER: Final = "<error>"
_STREAM: Final = "200"
_LONG_WAIT_SECONDS: Final = 1.0
_log = structlog.get_logger()


class RequestMetrics:
    """The numbers; one for all transports of a process."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._requests = registry.counter(component.REST_REQUESTS)
        self._seconds = registry.histogram(component.REST_DURATION)
        self._waits = registry.histogram(component.REST_RATE_LIMITER)
        self._children: dict[tuple[str, int, str], tuple[Counter, Histogram]] = {}
        self._waited: dict[tuple[str, str], Histogram] = {}

    def answered(self, method: str, status: int, host: str, seconds: float) -> None:
        """Status 0 stands for no answer."""
        key = (method, status, host)
        found = self._children.get(key)
        if found is None:
            code = str(status) if status else _NO_ANSWER
            found = (self._requests.labels(code, method, host), self._seconds.labels(method, host))
            self._children[key] = found
        found[0].value += 1
        found[1].observe(seconds)

    def waited(self, host: str, method: str, seconds: float) -> None:
        """For the client's own limit, before the request was sent."""
        found = self._waited.get((method, host))
        if found is None:
            found = self._waited[method, host] = self._waits.labels(method, host)
        found.observe(seconds)
        if seconds >= _LONG_WAIT_SECONDS:
            _log.warning(
                "requests wait for the limit that this client keeps by itself",
                seconds=round(seconds, 1),
                hint="raise `clientConnection.qps` and `burst`, or --kube-api-qps (negative: no limit)",
            )

    def streamed(self, host: str) -> None:
        self._requests.labels(_STREAM, "GET", host).value += 1


class MeasuredTransport:
    """A transport that counts. `host` is the label; the address, not a credential."""

    def __init__(self, transport: Transport, metrics: RequestMetrics, *, host: str, clock: Clock) -> None:
        self._transport = transport
        self._metrics = metrics
        self._host = host
        self._monotonic = clock.monotonic

    async def request(
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
    ) -> Response:
        began = self._monotonic()
        status = 0
        try:
            response = await self._transport.request(
                method,
                path,
                query=query,
                body=body,
                content_type=content_type,
                headers=headers,
                timeout=timeout,
                may_send=may_send,
            )
            status = response.status
        finally:
            self._metrics.answered(method, status, self._host, self._monotonic() - began)
        return response

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        self._metrics.streamed(self._host)
        return self._transport.stream(path, query=query)

    async def close(self) -> None:
        await self._transport.close()


def register_client(registry: MetricsRegistry, current: Current) -> None:
    """What the scheduler's own reflectors, writer and event recorder count."""

    def when_live(family: Family, read: Callable[[LiveScheduler], Values]) -> None:
        registry.read(family, lambda: {} if (live := current()) is None else read(live))

    when_live(component.WRITE_RETRIES, lambda live: {(): live.writer.retries})
    when_live(component.BINDINGS_UNDER_WAY, lambda live: {(): live.writer.bindings_under_way})
    when_live(component.EVENTS_WRITTEN, _events)
    when_live(component.REFLECTOR_LISTS, lambda live: _by_resource(live, lambda stats: stats.lists))
    when_live(component.REFLECTOR_WATCHES, lambda live: _by_resource(live, lambda stats: stats.watches))
    when_live(component.REFLECTOR_EVENTS, lambda live: _by_resource(live, lambda stats: stats.events))
    when_live(component.REFLECTOR_CONNECTED, lambda live: _by_resource(live, lambda stats: stats.is_connected))


def _events(live: LiveScheduler) -> Values:
    stats = live.events.stats
    return {
        ("recorded",): stats.recorded,
        ("sent",): stats.sent,
        ("dropped",): stats.dropped,
        ("failed",): stats.failed,
    }


def _by_resource(live: LiveScheduler, number: Callable[[ReflectorStats], float]) -> Values:
    reflectors = live.watching.reflectors.values()
    return {(reflector.path.rsplit("/", 1)[-1],): float(number(reflector.stats)) for reflector in reflectors}
