"""Five hundred pods in flight while the machine misbehaves: clocks, names, credential plugins, busy cores."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.app.live import LiveScheduler
from tests.chaos.faults import BURN
from tests.chaos.replicas import Replica, Replicas
from tests.controlplane import ControlPlane
from tests.controlplane.process import Guard
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import Ledger, keeping_ledger, overcommitted
from tests.fault.faulty_proxy import FaultyProxy
from tests.fault.test_faults import PODS, batch, survive, tight_nodes, untruths
from tests.waiting import answer, until

pytestmark = pytest.mark.slow


@asynccontextmanager
async def two_replicas(cluster: Cluster, folder: Path) -> AsyncIterator[tuple[ApiSession, Ledger, Replicas]]:
    """Processes, one of which leads, and room for five hundred pods; all of them are bound at the end."""
    guard = Guard()
    try:
        async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
            await api.create(*tight_nodes())
            async with Replicas(cluster, api, folder, guard) as replicas:
                await answer(replicas.leader, what="a leader")
                yield api, ledger, replicas
                await until(lambda: ledger.bound == PODS, what="all bound", instead=lambda: ledger.bound)
                leader = await leader_of(replicas)
                leader.process.send(signal.SIGUSR2)
                await until(lambda: "the cache agrees with the API server" in leader.log, what="the cache compared")
            assert ledger.moved() == {}
            assert overcommitted(await api.items("/api/v1/nodes"), await api.pods()) == []
            assert await untruths(api) == []
    finally:
        guard.close()


async def leader_of(replicas: Replicas) -> Replica:
    found = await replicas.leader()
    assert found is not None
    return found


@pytest.mark.parametrize("jump", ["+3600", "-3600"], ids=["ahead", "back"])
async def test_a_clock_that_jumps_by_an_hour_costs_nobody_the_lease(
    cluster: Cluster, tmp_path: Path, jump: str
) -> None:
    async with two_replicas(cluster, tmp_path) as (api, ledger, replicas):
        leader = await leader_of(replicas)
        assert leader.has_clock, "hint: install libfaketime (Debian: faketime)"
        creating = asyncio.create_task(api.create(*batch("pod", PODS)))
        await until(lambda: ledger.bound >= 20, what="the first bindings")
        for replica in replicas.all:
            replica.set_clock(jump)
        await creating
        await until(lambda: ledger.bound >= PODS // 2, what="half of the bindings")
        for replica in replicas.all:
            replica.set_clock("+0")
        await until(lambda: ledger.bound == PODS, what="all bound", instead=lambda: ledger.bound)
        assert await leader_of(replicas) is leader
        assert await api.events(reason="FailedScheduling") == []


@asynccontextmanager
async def busy_cores() -> AsyncIterator[None]:
    burning = [await asyncio.create_subprocess_exec(sys.executable, "-c", BURN) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            await process.wait()


async def test_all_cores_are_busy_for_a_minute_and_the_leader_keeps_its_lease(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """A lease of six seconds, to be renewed within five."""
    async with two_replicas(empty_control_plane, tmp_path) as (api, _, replicas):
        leader = await leader_of(replicas)
        pods = batch("pod", PODS)
        async with busy_cores():
            for start in range(0, PODS, PODS // 10):
                await api.create(*pods[start : start + PODS // 10])
                await asyncio.sleep(6)
        assert await leader_of(replicas) is leader
        assert "stopped leading" not in leader.log
        assert await api.events(reason="FailedScheduling") == []


async def test_names_cannot_be_looked_up_for_some_seconds(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FaultyProxy(cluster) as proxy:
        kubeconfig = proxy.kubeconfig(tmp_path)
        kubeconfig.write_text(kubeconfig.read_text().replace("127.0.0.1", "localhost"))
        failures = 0

        async def fail(*_: object, **__: object) -> Any:
            nonlocal failures
            failures += 1
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

        async def forget(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            with monkeypatch.context() as patched:
                patched.setattr(asyncio.get_running_loop(), "getaddrinfo", fail)
                await proxy.move(lambda: asyncio.sleep(3))
                await until(lambda: failures > 3, what="lookups that fail")

        await survive(cluster, forget, kubeconfig=kubeconfig)


_CREDENTIALS = """
import datetime, json, pathlib, sys, time
while pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.1)
soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=7)
status = {"token": "of-a-plugin", "expirationTimestamp": soon.strftime("%Y-%m-%dT%H:%M:%SZ")}
print(json.dumps({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}))
"""


async def test_a_credential_plugin_hangs_when_the_token_expires(cluster: Cluster, tmp_path: Path) -> None:
    """Its tokens last two seconds; then nothing can be sent until it answers again."""
    script, hangs = tmp_path / "plugin.py", tmp_path / "hangs"
    script.write_text(_CREDENTIALS)
    async with FaultyProxy(cluster) as proxy:
        kubeconfig = proxy.kubeconfig(tmp_path)
        document = yaml.safe_load(kubeconfig.read_text())
        plugin = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script), str(hangs)],
            "interactiveMode": "Never",
        }
        document["users"][0]["user"] = {"exec": plugin}
        kubeconfig.write_text(json.dumps(document))

        async def hang(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            hangs.touch()
            await asyncio.sleep(6)
            hangs.unlink()

        await survive(cluster, hang, kubeconfig=kubeconfig)
