"""The simulation: the scheduler's core, a cluster of objects and a timeline, all on one virtual clock.

Time stands still while pods are tried, save for the fixed time that an attempt is counted with, and otherwise jumps
from one event to the next. Work that plugins start beside a decision runs after it and before time moves on. Nothing
here reads the machine's clock, and every order is that of the input or of a seed: equal inputs give equal decisions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, Protocol

import structlog

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.core import CoreOptions, Edges, SchedulerCore
from bayplan.app.settings import Settings
from bayplan.client.extender import ExtenderHttp
from bayplan.framework.offline import SilentRecorder
from bayplan.loop.observer import Observer, Observers
from bayplan.loop.tasks import BriefWork
from bayplan.observe.clock import VirtualClock
from bayplan.queue import Place
from bayplan.queue.shell import UNSCHEDULABLE_FLUSH_SECONDS
from bayplan.sim.engine.api import SimulatedApi, SimulatedStatus
from bayplan.sim.engine.budgets import SimulatedBudgets
from bayplan.sim.engine.idle import CountingLoop, IdleSelector, made_on_this_loop
from bayplan.sim.engine.timeline import EventTimeline
from bayplan.sim.engine.world import World, WorldListener
from bayplan.sim.processes import raising_interrupts

__all__ = ["Owner", "Simulation", "SimulationError", "SimulationOptions"]

_log = structlog.get_logger()
_START = 1_767_225_600.0
"""2026-01-01T00:00:00Z, a whole second: back-off counts in seconds of the wall clock."""
_LINGER_SECONDS = 3600.0
"""How long pods in back-off are tried again, and wait at Permit, once nothing else happens."""


class SimulationError(ValueError):
    """Why a simulation cannot be run, in one line."""


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    seed: int = 0
    until_seconds: float | None = None
    """None: until nothing happens any more."""
    start: float = _START
    attempt_seconds: float = 0.001
    """What an attempt to schedule a pod is counted with."""
    shutdown_seconds: float = 1.0
    """How long a deleted pod stays on its node."""
    retries: bool = True
    """Without, a pod that fits nowhere is withdrawn after its first attempt."""


class Owner(Protocol):
    """What made a pod, and is notified of its end."""

    def pod_bound(self, pod: Pod) -> None: ...

    def pod_gone(self, pod: Pod, reason: str) -> None: ...


class Simulation(WorldListener):
    """Fill `world` and `timeline`, then `run`."""

    def __init__(
        self, settings: Settings, options: SimulationOptions | None = None, observers: Iterable[Observer] = ()
    ) -> None:
        if settings.config.extenders:
            raise SimulationError(
                "the configuration has HTTP extenders, and a simulation cannot wait for their answers"
            )
        self.options = options or SimulationOptions()
        self.clock = VirtualClock(self.options.start)
        self.timeline = EventTimeline()
        self.world = World(self.clock.now, self)
        self.budgets = SimulatedBudgets(self.world)
        self.listeners: list[WorldListener] = [self.budgets]
        self._clocked: list[Callable[[float, float], None]] = []
        """The listeners that override `time_passes`."""
        self._durations: dict[str, float] = {}
        self._owners: dict[str, Owner] = {}
        self._after_attempt: deque[Callable[[], None]] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._selector = IdleSelector()
        self._tasks_made = 1
        """With the one that runs everything; plugins may make others."""
        self._next_flush = self._quiet_since = 0.0
        self._is_stopped = False
        self.core = SchedulerCore(
            settings.config,
            settings.profiles,
            settings.registry,
            options=CoreOptions(seed=self.options.seed, clock=self.clock),
            edges=self._edges([*observers, *([] if self.options.retries else [_Withdrawal(self)])]),
        )
        self.world.connect(self.core.intake)

    def _edges(self, observers: list[Observer]) -> Edges:
        return Edges(
            api=SimulatedApi(self.world),
            recorder=lambda _: SilentRecorder(),
            status=SimulatedStatus(self.world, self._after_attempt.append),
            get_pod=self.world.pod,
            observer=Observers(observers),
            extender_http=ExtenderHttp(),
            start_task=self._start_task,
            start_brief=self._start_brief,
            call_later=lambda seconds, action: self.timeline.at(self.now + seconds, action),
        )

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.clock.monotonic()

    def load(self, objects: Iterable[KubeObject]) -> None:
        """Take over a cluster as it is at the start: nodes before pods. Pods without a node arrive now."""
        found = list(objects)
        for item in found:
            if not isinstance(item, Pod):
                self.world.put(item)
        pods = [item for item in found if isinstance(item, Pod) and not item.is_finished]
        for pod in pods:
            is_leaving = pod.metadata.deletion_timestamp is not None
            if pod.spec.node_name:
                self.world.put(pod)
                if is_leaving:
                    self._let_go(pod)
            elif not is_leaving:
                self.submit(pod)
        self.core.cache.fill_groups(pods)
        self.budgets.recount()

    def submit(self, pod: Pod, *, duration_seconds: float | None = None, owner: Owner | None = None) -> None:
        """Create a pod now; it ends so long after it was bound, or never. One that names its node is bound to it."""
        if duration_seconds is not None:
            self._durations[pod.uid] = duration_seconds
        if owner is not None:
            self._owners[pod.uid] = owner
        for listener in self.listeners:
            listener.pod_arrived(pod)
        self.world.put(pod)
        if pod.spec.node_name:
            self.pod_bound(pod)

    def adopt(self, pod: Pod, owner: Owner) -> None:
        """Report what happens to a pod that is there already."""
        self._owners[pod.uid] = owner

    def delete(self, pod: Pod, reason: str) -> None:
        """Delete a pod now: at once if it has no node, else after its time to shut down."""
        current = self.world.pod(pod.namespace, pod.name)
        if current is None or current.uid != pod.uid:
            return
        if current.spec.node_name:
            self.world.delete_pod(current)
        else:
            self.world.remove_pod(current, reason)

    # What happens to pods

    def pod_bound(self, pod: Pod) -> None:
        self._quiet_since = self.now
        duration = self._durations.get(pod.uid)
        if duration is not None:
            self.timeline.at(self.now + duration, lambda: self.world.remove_pod(pod, "Finished"))
        for listener in self.listeners:
            listener.pod_bound(pod)
        owner = self._owners.get(pod.uid)
        if owner is not None:
            owner.pod_bound(pod)

    def pod_deleted(self, pod: Pod) -> None:
        self._let_go(pod)
        for listener in self.listeners:
            listener.pod_deleted(pod)

    def _let_go(self, pod: Pod) -> None:
        """Pods that run have time to shut down; the others are gone as soon as they are deleted."""
        seconds = self.options.shutdown_seconds if pod.spec.node_name else 0.0
        self.timeline.at(self.now + seconds, lambda: self.world.remove_pod(pod, "Deleted"))

    def pod_gone(self, pod: Pod, reason: str) -> None:
        self._quiet_since = self.now
        self._durations.pop(pod.uid, None)
        for listener in self.listeners:
            listener.pod_gone(pod, reason)
        owner = self._owners.pop(pod.uid, None)
        if owner is not None:
            owner.pod_gone(pod, reason)

    def object_changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        for listener in self.listeners:
            listener.object_changed(old, new)

    # Work beside the main path

    def _start_task(self, name: str, work: Awaitable[None]) -> None:
        self._after_attempt.append(lambda: self._create_task(name, work))

    def _create_task(self, name: str, work: Awaitable[None]) -> None:
        self._tasks_made += 1
        self._running.add(asyncio.create_task(self._tracked(work), name=name))

    async def _tracked(self, work: Awaitable[None]) -> None:
        task = asyncio.current_task()
        assert task is not None  # `_create_task` made one
        try:
            await work
        except Exception as error:
            _log.error("task failed", task=task.get_name(), error=str(error), exc_info=error)
        finally:
            self._running.discard(task)

    def _start_brief(self, work: BriefWork) -> None:
        self._after_attempt.append(lambda: self._run_brief(work))

    def _run_brief(self, work: BriefWork) -> None:
        """Run a binding to its end; a task is made of what is left of one that waits for something after all."""
        coroutine = work.run()
        try:
            first = coroutine.send(None)
        except StopIteration:
            return
        self._create_task(work.name, _finish(_Rest(coroutine, first)))

    # Time

    def run(self, *, progress: Callable[[float], None] | None = None) -> None:
        """Run to the end; `progress` is called with the seconds simulated so far, now and then and at the end."""
        heard = WorldListener.time_passes
        self._clocked = [each.time_passes for each in self.listeners if type(each).time_passes is not heard]
        with raising_interrupts(), asyncio.Runner(loop_factory=lambda: CountingLoop(self._selector)) as runner:
            runner.run(self._run(progress))
        for framework in self.core.frameworks:
            framework.teardown()

    def stop(self) -> None:
        """End the run after the current attempt."""
        self._is_stopped = True

    async def _run(self, progress: Callable[[float], None] | None) -> None:
        turns = 0
        while not self._is_stopped:
            if self.timeline.run_due(self.now) and (self._running or made_on_this_loop() != self._tasks_made):
                # Tasks that an event woke, such as the binding of a pod that a plugin allowed, run at its time.
                await self._until_idle()
            if self.core.scheduler.step():
                await self._finish_attempt()
                self._advance_to(self.now + self.options.attempt_seconds)
            elif self._after_attempt:
                await self._finish_attempt()
            elif not self._move_on():
                break
            if self._running:
                await self._until_idle()
            turns += 1
            if progress is not None and turns % 256 == 0:
                progress(self.now)
        if progress is not None:
            progress(self.now)
        await self._stop()

    async def _finish_attempt(self) -> None:
        """Run what the attempt started; that may start more."""
        while self._after_attempt:
            self._after_attempt.popleft()()
            if self._running and not self._after_attempt:
                await self._until_idle()

    async def _until_idle(self) -> None:
        """Let tasks run until each waits for something. Most have nothing to wait for, and end in one turn."""
        await asyncio.sleep(0)
        if self._running or made_on_this_loop() != self._tasks_made:
            await self._selector.idle()

    def _advance_to(self, then: float) -> None:
        for time_passes in self._clocked:
            time_passes(self.now, then)
        self.clock.advance_to(then)

    def _move_on(self) -> bool:
        """Jump to the next time at which something happens; False at the end."""
        event, deadline = self.timeline.next_time(), self.clock.next_deadline()
        if event is not None:
            self._quiet_since = self.now
        elif self.now > self._quiet_since + _LINGER_SECONDS:
            deadline = None
        planned = [time for time in (event, deadline) if time is not None]
        timer = self._next_timer(is_last=not planned)
        times = planned if timer is None else [*planned, timer]
        until = self.options.until_seconds
        if not times or (until is not None and min(times) > until):
            if until is not None:
                self._advance_to(max(self.now, until))
            return False
        self._advance_to(max(self.now, min(times)))
        if timer is not None and timer <= self.now:
            self._flush()
        return True

    def _next_timer(self, *, is_last: bool) -> float | None:
        """When a timer of the queue has something to do. Pods that only a change can help are not waited for at the
        end."""
        sizes = self.core.queue.sizes
        if sizes.backoff and not (is_last and self.now > self._quiet_since + _LINGER_SECONDS):
            return floor(self.now) + 1.0
        if is_last or not sizes.unschedulable:
            return None
        if self._next_flush <= self.now:
            self._next_flush = self._flush_due()
        return self._next_flush

    def _flush_due(self) -> float:
        """The tick of the timer after which the pod that has waited longest is overdue."""
        waiting = self.core.queue.pending_pods()[Place.UNSCHEDULABLE]
        oldest = min(max(queued.timestamp, queued.flushed_at or 0.0) for queued in waiting) - self.options.start
        due = oldest + CoreOptions.pod_max_in_unschedulable_seconds
        return max(ceil(due / UNSCHEDULABLE_FLUSH_SECONDS), floor(self.now / UNSCHEDULABLE_FLUSH_SECONDS) + 1) * (
            UNSCHEDULABLE_FLUSH_SECONDS
        )

    def _flush(self) -> None:
        queue = self.core.queue
        queue.flush_backoff()
        if self._next_flush <= self.now and queue.sizes.unschedulable:
            queue.flush_unschedulable()

    async def _stop(self) -> None:
        self.core.held_pods.reject_all("the simulation ends")
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


class _Withdrawal(Observer):
    """Withdraws each pod whose attempt failed."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def attempt_failed(self, queued: Any, status: Any, seconds: float) -> None:
        pod, simulation = queued.info.pod, self._simulation
        simulation._after_attempt.append(lambda: simulation.delete(pod, "Withdrawn"))


class _Rest:
    """What is left of a coroutine that has begun and waits for `first`."""

    def __init__(self, coroutine: Any, first: Any) -> None:
        self._coroutine = coroutine
        self._first = first

    def __await__(self) -> Any:
        waited_for = self._first
        while True:
            try:
                value = yield waited_for
            except BaseException as error:
                proceed, argument = self._coroutine.throw, error
            else:
                proceed, argument = self._coroutine.send, value
            try:
                waited_for = proceed(argument)
            except StopIteration:
                return


async def _finish(rest: _Rest) -> None:
    await rest
