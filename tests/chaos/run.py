"""One run: clients at work, faults in random order, then calm, then the questions."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from bayplan.client.errors import ClientError
from bayplan.deploy.crds import crd_documents
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import PodGroup
from tests.chaos.clients import Clients, fixtures
from tests.chaos.faults import FAULTS, Fault, Scene
from tests.chaos.invariants import always, at_the_end, expected_bound
from tests.chaos.replicas import Replica, Replicas
from tests.controlplane.process import Guard
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.claim_controller import CLAIMS
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import Ledger, keeping_ledger
from tests.e2e.objects import JsonObject
from tests.e2e.volume_controller import binding_volumes
from tests.waiting import answer, until

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CALM_SECONDS = 120.0
_BAD_LINES = ("task failed", "plugin failed", "the scheduler failed", "the cache differs", "does not turn")


@dataclass
class Report:
    seed: int
    story: list[str] = field(default_factory=list)
    """Which fault began when."""
    faults: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    pods: int = 0
    restarts: int = 0
    load: float = 0.0
    """The highest of the machine, over a minute each."""
    began: float = field(default_factory=time.monotonic)

    def text(self) -> str:
        head = f"seed {self.seed}: {self.pods} pods, {self.faults.total()} faults, {self.restarts} restarts"
        head += f", {(time.monotonic() - self.began) / 60:.1f} minutes, load up to {self.load:.1f}"
        lines = [f"  {count:3} {name.replace('_', ' ')}" for name, count in sorted(self.faults.items())]
        return "\n".join([head, *lines, *self.problems, "passed" if not self.problems else "FAILED"])


async def run(
    cluster: Cluster,
    *,
    seed: int,
    minutes: float,
    folder: Path,
    say: Callable[[str], None],
    other_sources: Path | None = None,
) -> Report:
    report, dice = Report(seed), random.Random(seed)
    guard = Guard()
    try:
        async with contextlib.AsyncExitStack() as opened:
            api = await opened.enter_async_context(api_session(cluster.kubeconfig))
            await _install(api)
            ledger = await opened.enter_async_context(keeping_ledger(cluster.kubeconfig))
            await opened.enter_async_context(binding_volumes(cluster.kubeconfig))
            replicas = await opened.enter_async_context(
                Replicas(cluster, api, folder, guard, other_sources=other_sources)
            )
            clients = Clients(api, random.Random(seed + 1))
            await opened.enter_async_context(_beside(replicas.keep_running(), clients.run_claim_controller()))
            await clients.prepare()
            working = asyncio.create_task(clients.run())
            async with _beside(_watch_over(api, report)):
                await _break_things(Scene(cluster, api, replicas, dice), report, minutes, say)
            clients.stop()
            await working
            await clients.finish()
            say("calm")
            await _settle(api, clients, replicas, ledger, report)
            report.pods, report.restarts = len(clients.asked.pods), replicas.restarts
            report.problems += [line for each in replicas.all for line in _bad_lines(each)]
    finally:
        guard.close()
    return report


async def _install(api: ApiSession) -> None:
    for document in crd_documents([PodGroup, ElasticQuota]):
        await api.call("POST", _CRDS, document, allow=[409])
    for plural in ("podgroups", "elasticquotas"):
        path = f"/apis/scheduling.x-k8s.io/v1alpha1/{plural}"

        async def is_served(path: str = path) -> bool:
            return (await api.transport.request("GET", path)).status == 200

        await answer(is_served, what=f"{path} served")
    await api.create(*fixtures())


@contextlib.asynccontextmanager
async def _beside(*work: object) -> AsyncIterator[None]:
    """Run coroutines while the block lasts; what fails in them fails the run."""
    tasks = [asyncio.ensure_future(each) for each in work]  # type: ignore[call-overload]  # coroutines
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _break_things(scene: Scene, report: Report, minutes: float, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    left: list[Fault] = []
    while time.monotonic() < began + minutes * 60:
        if not left:
            left = scene.dice.sample(FAULTS, len(FAULTS))
        fault = left.pop()
        name = fault.__name__
        report.faults[name] += 1
        report.story.append(f"{time.monotonic() - began:6.1f} s {name}")
        say(report.story[-1])
        await fault(scene)
        await scene.wait(0, 3)


async def _watch_over(api: ApiSession, report: Report) -> None:
    """What must hold at every moment is looked at every two seconds."""
    while True:
        await asyncio.sleep(2)
        report.load = max(report.load, os.getloadavg()[0])
        with contextlib.suppress(ClientError, AssertionError):
            claims = await api.items(CLAIMS)
            found = always(await api.items("/api/v1/nodes"), await api.pods(), claims)
            report.problems += [problem for problem in found if problem not in report.problems]


async def _settle(api: ApiSession, clients: Clients, replicas: Replicas, ledger: Ledger, report: Report) -> None:
    if not await _become_bound(api, clients):
        report.problems.append(f"pods without a node, and none was bound within {_CALM_SECONDS:g} s of calm")
        report.story += [_waits(pod) for pod in await api.pods() if not pod["spec"].get("nodeName")]
    problems: list[str] = []

    async def holds() -> bool:
        problems[:] = at_the_end(
            pods=await api.pods(),
            nodes=await api.items("/api/v1/nodes"),
            claims=await api.items(CLAIMS),
            volumes=await api.items("/api/v1/persistentvolumes"),
            volume_claims=await api.items("/api/v1/namespaces/default/persistentvolumeclaims"),
            events=await api.events(),
            asked=clients.asked,
            ledger=ledger,
        )
        return not problems

    with contextlib.suppress(AssertionError):
        # The last evictions and conditions may still be on their way.
        await answer(holds, what="everything holds", seconds=60)
    report.problems += problems
    if problems:
        report.story += [_told(event) for event in await api.events(reason="Preempted")]
    await _compare_caches(replicas, report)


async def _become_bound(api: ApiSession, clients: Clients) -> bool:
    """Wait as long as pods are being bound: on a busy machine, replicas may lose the lease again and again."""
    fewest, changed_at = sys.maxsize, time.monotonic()
    while time.monotonic() < changed_at + _CALM_SECONDS:
        with contextlib.suppress(ClientError, AssertionError):
            left = len(expected_bound(await api.pods(), clients.asked))
            if not left:
                return True
            if left < fewest:
                fewest, changed_at = left, time.monotonic()
        await asyncio.sleep(0.5)
    return False


def _waits(pod: JsonObject) -> str:
    conditions = {c["type"]: c.get("message", "") for c in pod["status"].get("conditions") or ()}
    nominated = pod["status"].get("nominatedNodeName", "")
    return f"{pod['metadata']['name']} waits, nominated to `{nominated}`: {conditions.get('PodScheduled')}"


def _told(event: JsonObject) -> str:
    return f"{event['eventTime']} {event['regarding']['name']}: {event['note']} ({event['reportingInstance']})"


async def _compare_caches(replicas: Replicas, report: Report) -> None:
    """Have a leader do it that stays for long enough."""

    async def has_compared() -> bool:
        with contextlib.suppress(ClientError, AssertionError):
            leader = await replicas.leader()
            if leader is None or not leader.process.is_running:
                return False
            before = _comparisons(leader)
            leader.process.send(signal.SIGUSR2)
            await until(lambda: _comparisons(leader) > before, what="the cache compared", seconds=15)
            return True
        return False

    try:
        await answer(has_compared, what="a leader that compares its cache")
    except AssertionError:
        report.problems.append("nobody leads after the calm for long enough to compare its cache")


def _comparisons(leader: Replica) -> int:
    return leader.log.count("the cache agrees") + leader.log.count("the cache differs")


def _bad_lines(replica: Replica) -> list[str]:
    lines = replica.log.splitlines()
    return [f"{replica.name}: {line}" for line in lines if any(text in line for text in _BAD_LINES[:4])][:5]
