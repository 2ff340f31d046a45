"""Two replicas of `bayplan run`: one leads, one stands by; killed, stopped, robbed of its lease, reloaded."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from starlette.routing import BaseRoute

from bayplan.app.live import LiveScheduler
from bayplan.app.run import run_scheduler
from bayplan.app.run_options import RunOptions
from bayplan.loop.observer import Observer
from bayplan.observe.metrics import MetricsRegistry
from bayplan.server.options import ServerOptions
from tests.controlplane.process import Guard
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import Ledger, keeping_ledger, overcommitted
from tests.e2e.objects import JsonObject, node, pod
from tests.e2e.running import account_for
from tests.e2e.scheduler_process import SHORT_LEASE, SchedulerProcess, said, write_config
from tests.fault.test_faults import PODS, batch, tight_nodes
from tests.waiting import until

pytestmark = pytest.mark.slow
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


@pytest.fixture
def guard() -> Iterator[Guard]:
    made = Guard()
    yield made
    made.close()


class Window:
    """Carried by a replica to look at the scheduler inside."""

    def __init__(self) -> None:
        self.observers: list[Observer] = []
        self.live: LiveScheduler | None = None

    def register(self, registry: MetricsRegistry) -> None:
        """Nothing to count."""

    def attach(self, live: LiveScheduler) -> None:
        self.live = live

    def routes(self) -> list[BaseRoute]:
        return []

    def note_reload(self, what: str, problems: Sequence[str]) -> None:
        """Nothing to show."""

    async def run(self) -> None:
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def standby(kubeconfig: Path, config: Path) -> AsyncIterator[LiveScheduler]:
    """A replica in this process, synced and waiting to lead, so that its caches can be looked into."""
    window = Window()
    options = RunOptions(
        config_path=config,
        kubeconfig=kubeconfig,
        server=ServerOptions(is_enabled=False),
        extras=lambda clock, settings: window,
    )
    task = asyncio.create_task(run_scheduler(options))
    try:
        await until(lambda: window.live is not None and window.live.is_ready.is_set(), what="the standby synced")
        assert window.live is not None
        yield window.live
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(number)


async def in_thread(process: SchedulerProcess, text: str) -> None:
    await asyncio.to_thread(process.wait_for_log, text)


async def test_the_leader_is_killed_and_the_standby_goes_on(cluster: Cluster, tmp_path: Path, guard: Guard) -> None:
    kubeconfig = cluster.kubeconfig
    config = write_config(tmp_path, leaderElection=SHORT_LEASE)
    async with api_session(kubeconfig) as api, keeping_ledger(kubeconfig) as ledger:
        await api.create(*tight_nodes())
        first = SchedulerProcess(tmp_path, guard, f"--config={config}", f"--kubeconfig={kubeconfig}")
        await in_thread(first, "successfully acquired lease")
        async with standby(kubeconfig, config) as second:
            pods = batch("pod", PODS)
            await api.create(*pods[: PODS // 2])
            first.kill()
            bound_by_first = ledger.bound
            await api.create(*pods[PODS // 2 :])
            await until(second.options.is_leader, what="the standby leads")
            await until(lambda: ledger.bound == PODS, what="all bound", instead=lambda: ledger.bound)
            await account_for(second, api)

    assert bound_by_first < PODS
    assert ledger.moved() == {}


async def test_a_leader_that_is_told_to_stop_hands_over_at_once(cluster: Cluster, tmp_path: Path, guard: Guard) -> None:
    kubeconfig = cluster.kubeconfig
    config = write_config(tmp_path, leaderElection={**SHORT_LEASE, "leaseDuration": "30s", "renewDeadline": "20s"})
    async with api_session(kubeconfig) as api, keeping_ledger(kubeconfig) as ledger:
        await api.create(*tight_nodes())
        first = SchedulerProcess(tmp_path, guard, f"--config={config}", f"--kubeconfig={kubeconfig}")
        await in_thread(first, "successfully acquired lease")
        async with standby(kubeconfig, config) as second:
            await api.create(*batch("pod", PODS))
            status = await asyncio.to_thread(first.stop)
            # The lease would last for another half minute.
            await until(second.options.is_leader, what="the standby leads", seconds=25)
            await until(lambda: ledger.bound == PODS, what="all bound", instead=lambda: ledger.bound)
            await account_for(second, api)

    assert status == 0
    assert ledger.moved() == {}


async def test_a_leader_that_was_stopped_and_goes_on_contradicts_nobody(
    cluster: Cluster, tmp_path: Path, guard: Guard
) -> None:
    """The first replica stands still in the middle of the burst, and goes on after the second has bound all pods."""
    kubeconfig = cluster.kubeconfig
    config = write_config(tmp_path, leaderElection=SHORT_LEASE)
    async with api_session(kubeconfig) as api, keeping_ledger(kubeconfig) as ledger:
        await api.create(*tight_nodes())
        first = SchedulerProcess(tmp_path, guard, f"--config={config}", f"--kubeconfig={kubeconfig}")
        await in_thread(first, "successfully acquired lease")
        async with standby(kubeconfig, config) as second:
            creating = asyncio.create_task(api.create(*batch("pod", PODS)))
            await until(lambda: ledger.bound >= 20, what="the first bindings")
            first.send(signal.SIGSTOP)
            await creating
            bound_by_first = ledger.bound
            await until(second.options.is_leader, what="the second leads")
            await until(lambda: ledger.bound == PODS, what="all bound", instead=lambda: ledger.bound)
            first.send(signal.SIGCONT)
            status = await asyncio.to_thread(first.wait_for_end)
            pods = await account_for(second, api)
            failed = await api.events(reason="FailedScheduling")

    assert bound_by_first < PODS
    assert status == 1
    assert ledger.moved() == {}
    assert failed == []
    assert {_scheduled(each) for each in pods} == {"True"}


def _scheduled(pod: JsonObject) -> str:
    return next((c["status"] for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"), "")


async def test_a_leader_that_is_robbed_of_its_lease_ends_and_binds_nothing_more(
    cluster: Cluster, tmp_path: Path, guard: Guard
) -> None:
    kubeconfig = cluster.kubeconfig
    config = write_config(tmp_path, leaderElection=SHORT_LEASE)
    async with api_session(kubeconfig) as api, keeping_ledger(kubeconfig) as ledger:
        await api.create(node("node"))
        leader = SchedulerProcess(tmp_path, guard, f"--config={config}", f"--kubeconfig={kubeconfig}")
        await in_thread(leader, "successfully acquired lease")
        await api.create(pod("before"))
        await until(lambda: ledger.bound == 1, what="the first pod bound")
        await _rob(api)
        status = await asyncio.to_thread(leader.wait_for_end)
        await api.create(pod("after"))
        await until(lambda: len(ledger.names) == 2, what="the second pod seen")

    assert status == 1
    assert said(leader.log, "leader election lost", "another replica may be leading")
    assert ledger.bound == 1


async def _rob(api: ApiSession) -> None:
    for _ in range(20):
        lease = await api.call("GET", LEASE)
        lease["spec"] |= {"holderIdentity": "somebody-else", "leaseDurationSeconds": 60}
        written = await api.call("PUT", LEASE, lease, allow=[409])
        if written["kind"] == "Lease":
            return
    raise AssertionError("the lease was renewed in between every time")


async def test_a_reload_brings_new_profiles_and_a_bad_one_changes_nothing(
    cluster: Cluster, tmp_path: Path, guard: Guard
) -> None:
    kubeconfig = cluster.kubeconfig
    config = write_config(tmp_path)
    async with api_session(kubeconfig) as api, keeping_ledger(kubeconfig) as ledger:
        await api.create(node("node"))
        process = SchedulerProcess(tmp_path, guard, f"--config={config}", f"--kubeconfig={kubeconfig}")
        await api.create(pod("first"), pod("later", schedulerName="second"))
        await _bound(ledger, "first")
        config.write_text(config.read_text() + "profiles:\n- schedulerName: default-scheduler\n  plugin: {}\n")
        process.send(signal.SIGHUP)
        await in_thread(process, "the new configuration is bad; the old one stays in force")
        await api.create(pod("second"))
        await _bound(ledger, "second")
        write_config(tmp_path, profiles=[{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}])
        process.send(signal.SIGHUP)
        await _bound(ledger, "later")
        status = await asyncio.to_thread(process.stop)
        problems = overcommitted(await api.items("/api/v1/nodes"), await api.pods())

    assert status == 0
    assert problems == []
    assert said(process.log, "profiles[0]", "plugin")


async def _bound(ledger: Ledger, name: str) -> None:
    await until(
        lambda: any(ledger.names[uid] == name and nodes for uid, nodes in ledger.nodes_of.items()), what=f"{name} bound"
    )
