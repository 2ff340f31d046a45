"""The process around a scheduler: how it starts, when it leads, and what signals do to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.unit.app.answering import Answering, answer

from bayplan.api.kinds import ObjectKind
from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.app.connections import Connections
from bayplan.app.run import SchedulerProcess
from bayplan.app.run_options import RunOptions
from bayplan.app.settings import Settings, load_settings
from bayplan.client.errors import ConnectionFailed, CredentialError, Forbidden
from bayplan.client.transport import ByteStream, Response, Transport
from bayplan.observe.clock import VirtualClock
from bayplan.observe.logs import LogSettings, configure_logging
from bayplan.observe.metrics import MetricsRegistry
from bayplan.server.options import ServerOptions

AWAY = ConnectionFailed("connection refused", may_have_been_processed=False)
SERVED = answer(200, {"resources": []})


def over(transport: Transport) -> Connections:
    """Everything through one transport."""
    return Connections(work=transport, lease=transport, token_reviews=transport, access_reviews=transport)


def process(clock: VirtualClock, *answers: Response | Exception) -> SchedulerProcess:
    transport = Answering(*answers)
    log = configure_logging(LogSettings(verbosity=0))
    return SchedulerProcess(
        over(transport), load_settings(None, ()), RunOptions(), clock, log=log, registry=MetricsRegistry()
    )


async def discover(clock: VirtualClock, *answers: Response | Exception) -> list[ObjectKind]:
    task = asyncio.create_task(process(clock, *answers)._discover())
    await clock.run_for(120)
    return await task


@pytest.mark.parametrize("trouble", [AWAY, answer(503, {}), answer(403, {}), answer(429, {})])
async def test_an_api_server_that_is_not_ready_is_waited_for(trouble: Response | Exception) -> None:
    served = answer(200, {"resources": [{"name": "nodes"}, {"name": "pods"}]})
    kinds = await discover(VirtualClock(), trouble, trouble, served, *[SERVED] * 30)

    assert {kind.plural for kind in kinds} == {"nodes", "pods"}


async def test_one_that_never_answers_is_given_up_with_its_own_words() -> None:
    with pytest.raises(ConnectionFailed, match="connection refused"):
        await discover(VirtualClock(), *[AWAY] * 100)
    with pytest.raises(Forbidden):
        await discover(VirtualClock(), *[answer(403, {})] * 100)


async def test_an_unknown_user_is_told_what_to_renew_at_once() -> None:
    with pytest.raises(CredentialError, match="hint: renew the token or certificate"):
        await discover(VirtualClock(), answer(401, {}))


class Refusing:
    """A cluster's transport that refuses some paths, and remembers what was asked."""

    def __init__(self, transport: Transport, *refused: str) -> None:
        self._transport = transport
        self.refused = set(refused)
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **options: Any) -> Response:
        self.asked.append(f"{method} {path}")
        if path in self.refused:
            return answer(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "you may not"})
        return await self._transport.request(method, path, **options)

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        return self._transport.stream(path, query=query)

    async def close(self) -> None:
        await self._transport.close()


BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@contextlib.asynccontextmanager
async def replica(
    clock: VirtualClock, *refused: str, settings: Settings | None = None
) -> AsyncIterator[tuple[SchedulerProcess, Refusing]]:
    """`bayplan run` on an embedded cluster, without its endpoints."""
    cluster = EmbeddedCluster(nodes=1, listen=False, simulate=False)
    await cluster.start()
    transport = Refusing(cluster.in_process_transport(), *refused)
    log = configure_logging(LogSettings(verbosity=0))
    used, options = settings or load_settings(None, ()), RunOptions(server=ServerOptions(is_enabled=False))
    made = SchedulerProcess(over(transport), used, options, clock, log=log, registry=MetricsRegistry())
    task = asyncio.create_task(made.run())
    try:
        await clock.run_for(5)
        yield made, transport
    finally:
        made.stop()
        await clock.run_for(20)
        await task
        await cluster.stop()


def has_led(process: SchedulerProcess) -> bool:
    return process.elector is not None and process.elector.is_leader


async def test_a_replica_that_cannot_read_the_cluster_leaves_the_lease_to_others() -> None:
    clock = VirtualClock()
    async with replica(clock, BUDGETS) as (process, transport):
        await clock.run_for(60)
        assert not any(LEASES in asked for asked in transport.asked if not asked.startswith("GET "))
        assert process.live is not None
        assert process.live.watching.unsynced()[0].startswith(BUDGETS)
        transport.refused.clear()
        await clock.run_for(60)

        assert has_led(process)


async def test_a_replica_that_reads_late_asks_for_the_lease_first() -> None:
    clock = VirtualClock()
    settings = load_settings(None, ())
    late = replace(settings, config=msgspec.structs.replace(settings.config, delay_cache_until_active=True))
    async with replica(clock, LEASES, settings=late) as (process, transport):
        assert any(LEASES in asked for asked in transport.asked)
        assert "GET /api/v1/pods" not in transport.asked
        transport.refused.clear()
        await clock.run_for(30)

        assert has_led(process)
        assert "GET /api/v1/pods" in transport.asked


def test_a_metric_to_leave_out_that_does_not_exist_is_named() -> None:
    names = ["scheduler_pending_pods", "scheduler_pendin_pods"]
    options, registry = RunOptions(disabled_metrics=names), MetricsRegistry(disabled=names)
    settings, log = load_settings(None, ()), configure_logging(LogSettings(verbosity=0))
    with capture_logs() as lines:
        SchedulerProcess(over(Answering()), settings, options, VirtualClock(), log=log, registry=registry)

    assert lines[0]["of"] == ["scheduler_pendin_pods"]


async def test_a_signal_before_the_api_server_answers_ends_the_start_at_once() -> None:
    clock = VirtualClock()
    starting = process(clock, *[AWAY] * 100)
    running = asyncio.create_task(starting.run())
    await clock.run_for(1)
    os.kill(os.getpid(), signal.SIGHUP)  # would end a process that does not listen yet
    os.kill(os.getpid(), signal.SIGUSR2)
    await clock.run_for(1)
    assert not running.done()
    os.kill(os.getpid(), signal.SIGTERM)

    assert await asyncio.wait_for(running, 60) == 0


async def test_a_replica_that_stands_by_says_who_leads() -> None:
    clock = VirtualClock()
    holder = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    lease = {"metadata": {"name": "kube-scheduler", "resourceVersion": "1"}, "spec": holder}
    standing_by = process(clock, *[answer(200, lease)] * 50)
    assert standing_by.elector is not None
    electing = asyncio.create_task(standing_by.elector.run())
    with capture_logs() as lines:
        await clock.run_for(5)
    electing.cancel()
    await asyncio.gather(electing, return_exceptions=True)

    stands_by = [(line["leader"], line["lease"]) for line in lines if "stands by" in line["event"]]
    assert stands_by == [("other", "kube-system/kube-scheduler")]
