"""A connected scheduler, built in one visible order: cache, nominations, plugins, queue, intake, reflectors, loop.

Plugins come before the queue because its policy is made of what they declare. What they may do to the queue
(`activate`), and the latest version of a pod for `nominations`, are looked up when they are called.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from bayplan.api.kinds import ObjectKind
from bayplan.api.pod import Pod
from bayplan.app.custom_resources import CustomResourceReflectors
from bayplan.app.extenders import candidate_review, make_extenders
from bayplan.app.frameworks import Ports, build_framework, queue_policy, watched_resources
from bayplan.app.garbage_collection import GarbageCollection
from bayplan.app.live_api import LiveApi, ProfileRecorder
from bayplan.app.status_writer import StatusWriter
from bayplan.app.watching import BindingsShown, Watching
from bayplan.cache import Cache
from bayplan.client.events import EventRecorder, reporting_instance
from bayplan.client.extender import ExtenderHttp
from bayplan.client.retry import RetryingSender
from bayplan.client.transport import Transport
from bayplan.client.writer import Writer
from bayplan.config.model import SchedulerConfig
from bayplan.config.profiles import ResolvedProfile
from bayplan.framework.registry import Registry
from bayplan.framework.resources import ObjectLister
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.times import SAMPLED_SHARE, Sampling
from bayplan.loop.decide import Decider, NodeSearch
from bayplan.loop.decide_with_extenders import Extenders
from bayplan.loop.intake import Intake
from bayplan.loop.observer import Observer, Observers
from bayplan.loop.permit import HeldPods
from bayplan.loop.profile import Profile, Shared
from bayplan.loop.scheduler import Scheduler
from bayplan.loop.select import seeded_tie_break
from bayplan.loop.tasks import Tasks
from bayplan.observe.clock import Clock, SystemClock
from bayplan.queue import BackoffTimes, Doorbell, Nominations, QueueShell, SchedulingQueue
from bayplan.queue.requeue import HintObserver

__all__ = ["LiveOptions", "LiveScheduler"]

_log = structlog.get_logger()
_MANY_PODS = 32
_MOST_TIMED_PER_SECOND = 20
"""A tenth of the cycles up to 200 pods a second, and fewer beyond."""


@dataclass(frozen=True, kw_only=True)
class LiveOptions:
    """What is not part of the configuration file."""

    seed: int = 0
    pod_max_in_unschedulable_seconds: float = 300.0
    drain_seconds: float = 10.0
    observers: Sequence[Observer] = ()
    clock: Clock = field(default_factory=SystemClock)
    timed_share: float = SAMPLED_SHARE
    """Of the cycles in which every plugin is timed."""
    hint_observer: HintObserver | None = None
    """Called after every queueing hint."""
    is_leader: Callable[[], bool] = lambda: True
    """Checked before every write."""
    wait_to_lead: Callable[[], Awaitable[None]] | None = None
    """Awaited after the caches are synced and before the first pod is scheduled."""


class LiveScheduler:
    """Build it, `run` it in a task; cancel the task to stop. One event loop, one thread."""

    def __init__(
        self,
        transport: Transport,
        config: SchedulerConfig,
        profiles: Sequence[ResolvedProfile],
        registry: Registry,
        kinds: Iterable[ObjectKind],
        options: LiveOptions | None = None,
    ) -> None:
        self.options = options or LiveOptions()
        clock, dice = self.options.clock, random.Random(self.options.seed)
        self.observer = Observers([*self.options.observers, BindingsShown(lambda: self.watching.expect_pods())])
        self.cache = Cache()
        self.held_pods = HeldPods(clock)
        self.nominations = Nominations(lambda namespace, name: self.watching.pod(namespace, name))
        self.tasks = Tasks(self._task_failed, idle=lambda: len(self.held_pods))
        self.writer = Writer(transport, clock=clock, draw=dice.random)
        self.status = StatusWriter(self.writer, clock)
        self.events = EventRecorder(
            RetryingSender(transport, clock=clock, draw=dice.random),
            clock=clock,
            instance=reporting_instance(profiles[0].scheduler_name, socket.gethostname()),
            is_busy=self._is_under_load,
        )
        bell = Doorbell()
        self._search = NodeSearch()
        draw = random.Random(self.options.seed).random
        self._sampling = Sampling(
            draw=draw,
            monotonic=clock.monotonic,
            share=self.options.timed_share,
            most_per_second=_MOST_TIMED_PER_SECOND,
        )
        self._ports = self._make_ports(LiveApi(self.writer, may_write=self.options.is_leader))
        self._extender_http = ExtenderHttp()
        extenders, frameworks = self._make_frameworks(config, profiles, registry)
        self.queue = SchedulingQueue(
            clock,
            queue_policy(frameworks, has_extenders=extenders is not None),
            nominations=self.nominations,
            times=self._backoff_times(config),
            on_ready=bell.ring,
            hint_observer=self.options.hint_observer,
        )
        self.profiles = self._make_profiles(profiles, frameworks, extenders)
        self.intake = Intake(
            self.cache,
            self.queue,
            held_pods=self.held_pods,
            is_ours=self.profiles.__contains__,
            clock=clock,
            observer=self.observer,
        )
        self.watching = Watching(transport, kinds, self.intake.handler, clock=clock, draw=dice.random)
        self.custom_resources = CustomResourceReflectors(
            transport, self.intake.object_handler, clock=clock, draw=dice.random
        )
        self.custom_resources.follow(watched_resources(frameworks.values()))
        shared = Shared(
            cache=self.cache,
            queue=self.queue,
            profiles=self.profiles,
            held_pods=self.held_pods,
            api=self._ports.api,
            status=self.status,
            clock=clock,
            observer=self.observer,
            get_pod=self.watching.pod,
            start_task=self.tasks.start,
            start_brief=self.tasks.start_brief,
            may_write=self.options.is_leader,
        )
        self.is_ready = asyncio.Event()
        """Set once the caches hold the whole cluster."""
        self._shell = QueueShell(self.queue, bell, clock)
        self.scheduler = Scheduler(shared, self._shell, self.tasks)
        self.garbage_collection = GarbageCollection(clock, is_idle=self._is_idle)

    def _backoff_times(self, config: SchedulerConfig) -> BackoffTimes:
        return BackoffTimes(
            initial_seconds=float(config.pod_initial_backoff_seconds),
            max_seconds=float(config.pod_max_backoff_seconds),
            max_in_unschedulable_seconds=self.options.pod_max_in_unschedulable_seconds,
        )

    def _is_idle(self) -> bool:
        return not len(self.tasks) and not self.queue.sizes.active

    def _is_under_load(self) -> bool:
        """Whether many pods wait for a decision or for their binding: events are then written later."""
        return self.writer.is_busy or self.queue.sizes.active > _MANY_PODS

    def _make_frameworks(
        self, config: SchedulerConfig, profiles: Sequence[ResolvedProfile], registry: Registry
    ) -> tuple[Extenders | None, dict[str, Framework]]:
        extenders = make_extenders(config, self._extender_http, self.cache.cluster)
        review = candidate_review(extenders)
        return extenders, {p.scheduler_name: build_framework(p, registry, self._ports, review) for p in profiles}

    def _make_profiles(
        self,
        profiles: Sequence[ResolvedProfile],
        frameworks: Mapping[str, Framework],
        extenders: Extenders | None,
    ) -> dict[str, Profile]:
        made = {}
        for profile in profiles:
            name, framework = profile.scheduler_name, frameworks[profile.scheduler_name]
            decider = Decider(
                framework=framework,
                nominator=self.queue.nominations,
                tie_break=seeded_tie_break(self.options.seed),
                search=self._search,
                percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
                monotonic=self.options.clock.monotonic,
                sampling=self._sampling,
            )
            recorder = self._ports.recorder(name)
            made[name] = Profile(name=name, decider=decider, recorder=recorder, extenders=extenders)
        return made

    def reload(self, config: SchedulerConfig, profiles: Sequence[ResolvedProfile], registry: Registry) -> None:
        """Go on with another configuration, between two decisions and all at once.

        Everything that can fail happens before anything is replaced. Bindings under way finish with the old plugins.
        """
        extenders, frameworks = self._make_frameworks(config, profiles, registry)
        policy = queue_policy(frameworks, has_extenders=extenders is not None)
        made = self._make_profiles(profiles, frameworks, extenders)
        unclaimed = made.keys() - self.profiles.keys()
        replaced = [profile.framework for profile in self.profiles.values()]
        self.profiles.clear()
        self.profiles.update(made)
        self.cache.fill_groups(list(self.watching.reflectors[Pod].objects.values()))
        self.queue.adopt(policy)
        self.custom_resources.follow(watched_resources(frameworks.values()))
        if unclaimed:
            self._claim_pods(unclaimed)
        for framework in replaced:
            framework.teardown()

    def _claim_pods(self, names: Set[str]) -> None:
        """Queue the pods of profiles that did not exist so far."""
        for pod in list(self.watching.reflectors[Pod].objects.values()):
            if not pod.spec.node_name and pod.spec.scheduler_name in names:
                self.queue.add(self.cache.info(pod))

    def _make_ports(self, api: LiveApi) -> Ports:
        return Ports(
            cluster=self.cache.cluster,
            clock=self.options.clock,
            nominator=self.nominations,
            waiting_pods=self.held_pods,
            recorder=lambda name: ProfileRecorder(self.events, name),
            api=api,
            activate=lambda pods: self.queue.activate(pods),
            start_task=self.tasks.start,
            resources=partial(ObjectLister, self.cache.cluster.objects),
            complain=self._plugin_failed,
            call_later=partial(self.tasks.call_later, clock=self.options.clock),
        )

    def _plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        _log.error("plugin failed", plugin=plugin, point=point, error=str(exception), exc_info=exception)
        self.observer.plugin_failed(plugin, point, exception)

    def _task_failed(self, name: str, exception: BaseException) -> None:
        _log.error("task failed", task=name, error=str(exception), exc_info=exception)

    async def run(self) -> None:
        """Reflect, sync, schedule. On cancellation bindings under way are finished first."""
        self.garbage_collection.start()
        background = [
            asyncio.create_task(self.watching.run(), name="reflectors"),
            asyncio.create_task(self.custom_resources.run(), name="custom resources"),
            asyncio.create_task(self.events.run(), name="events"),
            asyncio.create_task(self.status.run(), name="pod status"),
            asyncio.create_task(self._shell.run_timers(), name="queue timers"),
            asyncio.create_task(self.garbage_collection.run(), name="garbage collection"),
        ]
        try:
            await self._first_of(self._sync(), background)
            await self._first_of(self.custom_resources.wait_until_settled(), background)
            self.garbage_collection.settle()
            self.is_ready.set()
            _log.info("the cluster is read", nodes=len(self.cache.cluster.nodes), pods=len(self.cache))
            if self.options.wait_to_lead is not None:
                await self._first_of(self.options.wait_to_lead(), background)
            _log.info("scheduling begins", **self.queue.sizes._asdict())
            await self._first_of(self.scheduler.run(), background)
        finally:
            await self._stop(background)
            self.garbage_collection.stop()

    async def _sync(self) -> None:
        left_out = await self.watching.wait_until_synced()
        if left_out:
            _log.info("explanations go without objects that this user may not read; decisions need none", of=left_out)

    async def _first_of(self, work: Any, background: list[asyncio.Task[None]]) -> None:
        """Do the work; if a background task ends meanwhile, its failure ends this too."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task, *background}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        for ended in done:
            if ended is not task:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            ended.result()

    async def _stop(self, background: list[asyncio.Task[None]]) -> None:
        self.scheduler.close()
        self.held_pods.reject_all("the scheduler stops")
        # A replica that lost its lease must not bind or nominate any more, not even what it began.
        may_write = self.options.is_leader()
        patience = self.options.drain_seconds if may_write else 0.0
        if len(self.tasks):
            _log.info("bindings under way are given time to finish", count=len(self.tasks), seconds=patience)
        await self.tasks.finish(timeout=patience)
        await self.status.drain(timeout=2.0 if may_write else 0.0)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await self.events.drain(timeout=2.0)
        for profile in self.profiles.values():
            profile.framework.teardown()
        await self._extender_http.close()
