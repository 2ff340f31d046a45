from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from bayplan.app.client_metrics import MeasuredTransport, RequestMetrics
from bayplan.client.errors import ConnectionFailed
from bayplan.client.transport import Transport
from bayplan.observe.clock import VirtualClock
from bayplan.observe.exposition import render
from bayplan.observe.metrics import MetricsRegistry

from .answering import Answering, answer


def measured(transport: Transport, registry: MetricsRegistry) -> MeasuredTransport:
    return MeasuredTransport(transport, RequestMetrics(registry), host="10.0.0.1:6443", clock=VirtualClock())


async def test_requests_are_counted_by_status_and_method() -> None:
    registry = MetricsRegistry()
    transport = measured(Answering(answer(200, {}), answer(200, {}), answer(409, {})), registry)
    for method in ("GET", "GET", "POST"):
        await transport.request(method, "/api")
    text = render(registry)[0].decode()

    assert 'rest_client_requests_total{code="200",method="GET",host="10.0.0.1:6443"} 2' in text
    assert 'rest_client_requests_total{code="409",method="POST",host="10.0.0.1:6443"} 1' in text
    assert 'rest_client_request_duration_seconds_count{verb="GET",host="10.0.0.1:6443"} 2' in text


async def test_no_answer_is_counted_and_passed_on() -> None:
    registry = MetricsRegistry()
    failure = ConnectionFailed("refused", may_have_been_processed=False)
    transport = measured(Answering(failure), registry)
    with pytest.raises(ConnectionFailed):
        await transport.request("GET", "/api")

    assert b'rest_client_requests_total{code="<error>",method="GET",host="10.0.0.1:6443"} 1' in render(registry)[0]


async def test_a_watch_is_counted_when_it_is_asked_for() -> None:
    registry = MetricsRegistry()
    transport = measured(Answering(), registry)
    async with transport.stream("/api/v1/pods") as pieces:
        assert [piece async for piece in pieces] == []

    assert b'rest_client_requests_total{code="200",method="GET",host="10.0.0.1:6443"} 1' in render(registry)[0]


def test_it_is_a_transport() -> None:
    assert isinstance(measured(Answering(), MetricsRegistry()), Transport)


def test_waits_for_the_own_limit_are_measured_and_long_ones_said() -> None:
    registry = MetricsRegistry()
    requests = RequestMetrics(registry)
    with capture_logs() as lines:
        requests.waited("10.0.0.1:6443", "POST", 0.0)
        requests.waited("10.0.0.1:6443", "POST", 2.5)

    sums = b'rest_client_rate_limiter_duration_seconds_sum{verb="POST",host="10.0.0.1:6443"} 2.5'
    assert sums in render(registry)[0]
    (line,) = lines
    assert "clientConnection.qps" in line["hint"]
