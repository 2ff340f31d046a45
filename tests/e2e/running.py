"""A scheduler inside the test's own event loop, and the checks that hold after every run, whatever happened in it."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.app.watching import served_kinds
from bayplan.cache.check import check_cache
from bayplan.client.transport import Transport
from bayplan.config.loading import default_config, load_config
from bayplan.config.profiles import resolve_profiles
from bayplan.framework.plugin import Plugin
from bayplan.plugins.intree import default_registry
from tests.e2e.api_session import ApiSession, transport_to
from tests.e2e.ledger import Ledger, overcommitted
from tests.e2e.objects import JsonObject
from tests.waiting import until

_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What differs from a scheduler with the default profile."""

    config: str = ""
    """A KubeSchedulerConfiguration as YAML."""
    plugins: Sequence[type[Plugin]] = ()
    options: LiveOptions | None = None
    wrap: Callable[[Transport], Transport] = lambda transport: transport


async def build(transport: Transport, settings: RunSettings) -> LiveScheduler:
    registry = default_registry()
    for plugin in settings.plugins:
        registry.add(plugin)
    config = load_config(settings.config) if settings.config else default_config()
    profiles = resolve_profiles(config, registry)
    return LiveScheduler(transport, config, profiles, registry, await served_kinds(transport), settings.options)


@contextlib.asynccontextmanager
async def scheduling(kubeconfig: Path, settings: RunSettings | None = None) -> AsyncIterator[LiveScheduler]:
    """Run a scheduler while the block lasts. It must not have ended before, and must leave no task behind."""
    settings = settings or RunSettings()
    transport = transport_to(kubeconfig)
    live = await build(settings.wrap(transport), settings)
    with followed_tasks() as (tasks, context):
        running = asyncio.create_task(live.run(), name="scheduler under test", context=context)
        ready = asyncio.ensure_future(live.is_ready.wait())
        try:
            await asyncio.wait({running, ready}, timeout=90, return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            if running.done():
                running.result()
            assert live.is_ready.is_set(), f"not synced: {live.watching.unsynced()}"
            yield live
            assert not running.done(), "the scheduler ended by itself"
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await transport.close()
        await until(lambda: all(task.done() for task in tasks), what="all tasks ended", instead=lambda: list(tasks))
    assert len(live.tasks) == 0
    assert len(live.held_pods) == 0


_IS_FOLLOWED: ContextVar[bool] = ContextVar("is_followed", default=False)


@contextlib.contextmanager
def followed_tasks() -> Iterator[tuple[weakref.WeakSet[asyncio.Task[Any]], Context]]:
    """Every task that is started, directly or not, from a task with the given context."""
    loop = asyncio.get_running_loop()
    tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    def make(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
        if _IS_FOLLOWED.get():
            tasks.add(task)
        return task

    context = copy_context()
    context.run(_IS_FOLLOWED.set, True)
    before = loop.get_task_factory()
    loop.set_task_factory(make)
    try:
        yield tasks, context
    finally:
        loop.set_task_factory(before)


async def all_bound(live: LiveScheduler, ledger: Ledger, count: int, *, seconds: float = 90.0) -> None:
    """Wait until that many pods have a node; say what the scheduler holds when they have not."""

    def instead() -> str:
        waiting = [q.info.pod for pods in live.queue.pending_pods().values() for q in pods]
        reasons = {c.message for p in waiting[:50] for c in p.status.conditions or () if c.type == "PodScheduled"}
        return f"{ledger.bound} bound, {live.queue.sizes}, {len(live.tasks)} tasks, {sorted(map(str, reasons))[:10]}"

    await until(lambda: ledger.bound >= count, what=f"{count} pods bound", seconds=seconds, instead=instead)


async def settled(live: LiveScheduler, api: ApiSession, *, seconds: float = 90.0) -> None:
    """Wait until the scheduler's caches say what the API says; fail with the differences."""
    differences: list[str] = ["nothing was compared"]
    deadline = asyncio.get_running_loop().time() + seconds
    while differences and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.1)
        nodes, pods = await api.items("/api/v1/nodes"), await api.pods()
        differences = list(cache_differences(live, nodes, pods))
    assert not differences, "\n".join(differences[:20])
    problems = check_cache(live.cache)
    assert not problems, "\n".join(problems[:20])


def cache_differences(live: LiveScheduler, nodes: list[JsonObject], pods: list[JsonObject]) -> list[str]:
    """Where the cache and the queue differ from a list of the API."""
    pods = [pod for pod in pods if pod["status"].get("phase") not in _FINISHED]
    placed = {p["metadata"]["uid"]: p["spec"]["nodeName"] for p in pods if p["spec"].get("nodeName")}
    known = {info.uid: info.node_name for info in live.cache.pods()}
    rows = {info.name: info.node.metadata.resource_version for info in live.cache.cluster.nodes.infos if info}
    ours = {p["metadata"]["uid"] for p in pods if p["metadata"]["uid"] not in placed and _is_ours(live, p)}
    queued = {q.uid for waiting in live.queue.pending_pods().values() for q in waiting}
    sizes = live.queue.sizes
    checks = {
        "nodes": (rows, {n["metadata"]["name"]: n["metadata"]["resourceVersion"] for n in nodes}),
        "assigned pods": (known, placed),
        "assumed pods": (live.cache.assumed(), frozenset()),
        "queued pods": (queued, ours),
        "pods in flight": (sizes.in_flight, 0),
    }
    return [f"{what}: {_difference(mine, theirs)}" for what, (mine, theirs) in checks.items() if mine != theirs]


def _is_ours(live: LiveScheduler, pod: JsonObject) -> bool:
    return pod["spec"]["schedulerName"] in live.profiles


def _difference(mine: object, theirs: object) -> str:
    if isinstance(mine, dict) and isinstance(theirs, dict):
        mine, theirs = set(mine.items()), set(theirs.items())
    if isinstance(mine, set | frozenset) and isinstance(theirs, set | frozenset):
        return f"only here {list(mine - theirs)[:5]}, only in the API {list(theirs - mine)[:5]}"
    return f"{mine} here, {theirs} in the API"


async def account_for(live: LiveScheduler, api: ApiSession) -> list[JsonObject]:
    """The end of every run: caches equal to the API, nothing over-committed. Returns the pods."""
    await settled(live, api)
    nodes, pods = await api.items("/api/v1/nodes"), await api.pods()
    problems = overcommitted(nodes, pods)
    assert not problems, "\n".join(problems)
    return pods
