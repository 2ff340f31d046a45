"""`bayplan run` as somebody on call meets it: its endpoints, its metrics, its profiles, and what SIGUSR2 says."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.controlplane.ports import free_loopback_port
from tests.controlplane.process import Guard
from tests.e2e.api_session import api_session
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import Ledger, keeping_ledger
from tests.e2e.objects import node, pod
from tests.e2e.scheduler_process import SchedulerProcess, said, write_config
from tests.waiting import until

SCHEDULER = "system:kube-scheduler"


@pytest.fixture
def guard() -> Iterator[Guard]:
    made = Guard()
    yield made
    made.close()


class Served:
    """A scheduler with its endpoints, and an administrator who looks at them with a client certificate."""

    def __init__(self, process: SchedulerProcess, port: int, cluster: Cluster, ledger: Ledger) -> None:
        self.process = process
        self.ledger = ledger
        self._url = f"https://127.0.0.1:{port}"
        # The serving certificate is self-signed and made anew at every start; whom we ask is not in question here.
        self._tls = ssl._create_unverified_context()
        self._tls.load_cert_chain(cluster.client_cert, cluster.client_key)

    async def get(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(self._url + path, ssl=self._tls) as answer:
            return answer.status, await answer.text()


@contextlib.asynccontextmanager
async def served(cluster: Cluster, folder: Path, guard: Guard, *flags: str) -> AsyncIterator[Served]:
    """Thirty pods bound by the user that kube-scheduler has, so with its rights and no others."""
    port = free_loopback_port()
    arguments = (f"--config={write_config(folder)}", f"--kubeconfig={cluster.kubeconfig_for(SCHEDULER)}")
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(*(node(f"node-{i}") for i in range(3)))
        process = SchedulerProcess(folder, guard, *arguments, *flags, secure_port=port)
        try:
            await api.create(*(pod(f"pod-{i}") for i in range(30)), pod("huge", cpu="64"))
            await until(lambda: ledger.bound == 30, what="all bound", instead=lambda: process.log)
            yield Served(process, port, cluster, ledger)
        finally:
            await asyncio.to_thread(process.stop)


async def test_what_kube_schedulers_user_may_do_is_enough_for_every_endpoint(
    cluster: Cluster, tmp_path: Path, guard: Guard
) -> None:
    """The administrator's certificate is trusted because the cluster says who signs its clients' certificates."""
    async with served(cluster, tmp_path, guard) as scheduler:
        metrics = (await scheduler.get("/metrics"))[1]
        ready, flags = await scheduler.get("/readyz"), await scheduler.get("/flagz")
        index, tasks = await scheduler.get("/debug/pprof/"), await scheduler.get("/debug/pprof/goroutine")
        profile = await scheduler.get("/debug/pprof/profile?seconds=0.3")

    assert 'rest_client_requests_total{code="201",method="POST"' in metrics
    assert "scheduler_plugin_execution_duration_seconds_bucket" in metrics
    assert ready == (200, "ok")
    assert "kubeconfig=" in flags[1]
    assert (index[0], tasks[0], profile[0]) == (200, 200, 200)
    assert "task `reflector`" in tasks[1] or "tasks `reflector`" in tasks[1]


async def test_flags_close_what_they_say(cluster: Cluster, tmp_path: Path, guard: Guard) -> None:
    flags = ("--profiling=false", "--disabled-metrics=scheduler_pending_pods,scheduler_cache_size")
    async with served(cluster, tmp_path, guard, *flags) as scheduler:
        metrics = (await scheduler.get("/metrics"))[1]

        assert (await scheduler.get("/debug/pprof/profile?seconds=0.1"))[0] == 404

    assert "scheduler_pending_pods" not in metrics
    assert "scheduler_cache_size" not in metrics
    assert "scheduler_schedule_attempts_total" in metrics


async def test_a_signal_compares_the_cache_with_the_cluster_and_dumps_it(
    cluster: Cluster, tmp_path: Path, guard: Guard
) -> None:
    async with served(cluster, tmp_path, guard) as scheduler:
        scheduler.process.send(signal.SIGUSR2)
        await asyncio.to_thread(scheduler.process.wait_for_log, "queued pod")
        log = scheduler.process.log

    assert said(log, "the cache agrees with the API server", "nodes=3")
    assert said(log, "cached node", 'node="node-0"')
    assert said(log, "queued pod", 'pod="default/huge"', "NodeResourcesFit")
