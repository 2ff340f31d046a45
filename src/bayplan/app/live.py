"""A connected scheduler: the core (`bayplan.app.core`) between the reflectors of an API server and a writer to it."""

from __future__ import annotations

import asyncio
import math
import random
import socket
import threading
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import structlog

from bayplan.api.devices import DeviceClass, ResourceClaim
from bayplan.api.kinds import ObjectKind
from bayplan.api.pod import Pod
from bayplan.app.core import CoreOptions, Edges, SchedulerCore
from bayplan.app.custom_resources import CustomResourceReflectors
from bayplan.app.frameworks import watched_resources
from bayplan.app.garbage_collection import GarbageCollection
from bayplan.app.live_api import LiveApi, ProfileRecorder
from bayplan.app.settings import Settings
from bayplan.app.status_writer import StatusWriter
from bayplan.app.watching import BindingsShown, Watching
from bayplan.client.events import EventRecorder, reporting_instance
from bayplan.client.extender import ExtenderHttp
from bayplan.client.retry import RetryingSender
from bayplan.client.transport import Transport
from bayplan.client.writer import Writer
from bayplan.config.model import SchedulerConfig
from bayplan.config.profiles import ResolvedProfile
from bayplan.framework.registry import Registry
from bayplan.framework.times import SAMPLED_SHARE, Sampling
from bayplan.loop.observer import Observer, Observers
from bayplan.observe.time_slices import Turns

__all__ = ["ChangeRecorder", "LiveOptions", "LiveScheduler"]

_log = structlog.get_logger()
_MANY_PODS = 32
_MOST_TIMED_PER_SECOND = 20
"""A tenth of the cycles up to 200 pods a second, and fewer beyond."""


Handler = Callable[[Any, Any], None]


class ChangeRecorder(Observer):
    """Writes down what a scheduler works on and decides, so that it can be replayed (`bayplan.sim.recording`)."""

    @abstractmethod
    def begin(self, settings: Settings, kinds: Iterable[str], *, seed: int = 0) -> None:
        """A scheduler with these settings starts."""

    @abstractmethod
    def around(self, handle: Handler) -> Handler:
        """The handler of changes, with each written down before it is handled."""

    @abstractmethod
    def cluster_read(self) -> None:
        """All objects that were there at the start have been handled."""

    @abstractmethod
    def reloaded(self, settings: Settings) -> None:
        """Another configuration is in force."""


@dataclass(frozen=True, kw_only=True)
class LiveOptions(CoreOptions):
    """What is not part of the configuration file."""

    drain_seconds: float = 10.0
    observers: Sequence[Observer] = ()
    timed_share: float = SAMPLED_SHARE
    """Of the cycles in which every plugin is timed."""
    wait_to_lead: Callable[[], Awaitable[None]] | None = None
    """Awaited after the caches are synced and before the first pod is scheduled."""
    others_led_until: Callable[[], float] = lambda: -math.inf
    """Asked then: until when another replica may have led, by the monotonic clock."""
    recorder: ChangeRecorder | None = None


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
        self._recorder = self.options.recorder
        recorders = [self._recorder] if self._recorder is not None else []
        shown = BindingsShown(lambda: self.watching)
        self.observer = Observers([*recorders, *self.options.observers, shown])
        may_write = self.options.is_leader
        self.writer = Writer(transport, clock=clock, draw=dice.random, may_write=may_write)
        self.status = StatusWriter(self.writer, clock, lambda namespace, name: self.watching.pod(namespace, name))
        self.events = EventRecorder(
            RetryingSender(transport, clock=clock, draw=dice.random, may_write=may_write),
            clock=clock,
            instance=reporting_instance(profiles[0].scheduler_name, socket.gethostname()),
            is_busy=self._is_under_load,
        )
        self._extender_http = ExtenderHttp()
        self.sampling = Sampling(
            draw=random.Random(self.options.seed).random,
            monotonic=clock.monotonic,
            share=self.options.timed_share,
            most_per_second=_MOST_TIMED_PER_SECOND,
        )
        self._core = SchedulerCore(config, profiles, registry, options=self.options, edges=self._make_edges())
        self.cache, self.queue, self.intake = self._core.cache, self._core.queue, self._core.intake
        self.profiles, self.held_pods, self.tasks = self._core.profiles, self._core.held_pods, self._core.tasks
        self.scheduler, self._shell = self._core.scheduler, self._core.shell
        kinds = list(kinds)
        self.cache.cluster.devices.is_served = any(kind.type is ResourceClaim for kind in kinds)
        self._loading: threading.Thread | None = None
        self.cache.cluster.objects.on_change(DeviceClass, self._load_expressions)
        if self._recorder is not None:
            settings = Settings(config=config, profiles=tuple(profiles), registry=registry)
            self._recorder.begin(settings, [kind.name for kind in kinds], seed=self.options.seed)
        self.watching = Watching(transport, kinds, self._handler, clock=clock, draw=dice.random)
        self.custom_resources = CustomResourceReflectors(
            transport, lambda name: self._recorded(self.intake.object_handler(name)), clock=clock, draw=dice.random
        )
        self.custom_resources.follow(watched_resources(self._core.frameworks))
        self.is_ready = asyncio.Event()
        """Set once the caches hold the whole cluster."""
        self.turns = Turns(self._is_deciding_or_binding, is_idle=self._is_idle)
        """For what is done in this thread beside scheduling."""
        self.garbage_collection = GarbageCollection(
            clock, is_idle=self._is_idle, pods_taken=lambda: self.queue.scheduling_cycle
        )

    def _load_expressions(self, _old: DeviceClass | None, _new: DeviceClass | None) -> None:
        """Load the language that selects devices once there are any, in a thread: the first pod with a claim would
        hold the event loop for as long as that takes."""
        if self._loading is None:
            self._loading = threading.Thread(target=import_module, args=("bayplan.cel.devices",), daemon=True)
            self._loading.start()

    def _make_edges(self) -> Edges:
        return Edges(
            api=LiveApi(self.writer),
            recorder=lambda name: ProfileRecorder(self.events, name),
            status=self.status,
            get_pod=lambda namespace, name: self.watching.pod(namespace, name),
            observer=self.observer,
            extender_http=self._extender_http,
            sampling=self.sampling,
        )

    def _handler(self, kind: type) -> Handler:
        handle = self._recorded(self.intake.handler(kind))
        return handle if kind is not Pod else partial(self._pod_changed, handle)

    def _pod_changed(self, handle: Handler, old: Pod | None, new: Pod | None) -> None:
        handle(old, new)
        if new is None and old is not None:
            self.events.forget(old.uid)

    def _recorded(self, handle: Handler) -> Handler:
        return handle if self._recorder is None else self._recorder.around(handle)

    def _is_deciding_or_binding(self) -> bool:
        return bool(self.queue.sizes.active or self.writer.bindings_under_way)

    def _is_idle(self) -> bool:
        return not len(self.tasks) and not self.queue.sizes.active

    def _is_under_load(self) -> bool:
        """Whether many pods wait for a decision or for their binding: events are then written later."""
        return self.writer.is_busy or self.queue.sizes.active > _MANY_PODS

    def keep_scores(self, is_wanted: bool) -> None:
        """Whether decisions from now on have the scores of every feasible node by plugin, which takes longer."""
        self._core.keep_scores(is_wanted)

    def reload(self, config: SchedulerConfig, profiles: Sequence[ResolvedProfile], registry: Registry) -> None:
        """Go on with another configuration, between two decisions and all at once; nothing changes if it cannot. The
        next decision waits until the custom resources of the new plugins are read."""
        self._core.reload(config, profiles, registry, pods=lambda: self.watching.reflectors[Pod].objects.values())
        self.custom_resources.follow(watched_resources(self._core.frameworks))
        if self._recorder is not None:
            self._recorder.reloaded(Settings(config=config, profiles=tuple(profiles), registry=registry))
        self.scheduler.wait_for(self.custom_resources.wait_until_settled)

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
            if self._recorder is not None:
                self._recorder.cluster_read()
            _log.info("the cluster is read", nodes=len(self.cache.cluster.nodes), pods=len(self.cache))
            if self.options.wait_to_lead is not None:
                await self._first_of(self.options.wait_to_lead(), background)
                await self._first_of(self.watching.catch_up(self.options.others_led_until()), background)
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
