"""The scheduler without its edges: cache, nominations, plugins, queue, intake, loop, built in one visible order.

What it reads and writes comes in as `Edges`, so the same core runs on an API server (`bayplan.app.live`) and without
one, on a virtual clock (`bayplan.sim`). Plugins come before the queue because its policy is made of what they declare.
What they may do to the queue (`activate`), and the latest version of a pod for `nominations`, are looked up when they
are called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from bayplan.api.pod import Pod
from bayplan.app.extenders import candidate_review, make_extenders
from bayplan.app.failure_log import FailureLog
from bayplan.app.frameworks import Ports, build_frameworks
from bayplan.cache import Cache
from bayplan.client.errors import NoAnswer, NotSent, ServerError
from bayplan.client.extender import ExtenderHttp
from bayplan.cluster.pod_info import PodInfo
from bayplan.config.model import SchedulerConfig
from bayplan.config.profiles import ResolvedProfile
from bayplan.framework.handle import ApiPort, Recorder
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.queued import QueuedPod
from bayplan.framework.registry import Registry
from bayplan.framework.resources import ObjectLister
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.status import Status
from bayplan.framework.times import Sampling
from bayplan.loop.attempt import failure_at
from bayplan.loop.decide import Decider, NodeSearch
from bayplan.loop.decide_with_extenders import Extenders
from bayplan.loop.intake import Intake
from bayplan.loop.observer import Observer
from bayplan.loop.permit import HeldPods
from bayplan.loop.profile import Profile, Shared, StatusPort
from bayplan.loop.scheduler import Scheduler
from bayplan.loop.select import seeded_tie_break
from bayplan.loop.tasks import BriefWork, Tasks
from bayplan.observe.clock import Clock, SystemClock
from bayplan.queue import BackoffTimes, Doorbell, Nominations, QueuePolicy, QueueShell, SchedulingQueue
from bayplan.queue.places import MoveListener
from bayplan.queue.requeue import HintObserver

__all__ = ["CoreOptions", "Edges", "SchedulerCore"]

_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class CoreOptions:
    """What is not part of the configuration file."""

    seed: int = 0
    pod_max_in_unschedulable_seconds: float = 300.0
    clock: Clock = field(default_factory=SystemClock)
    hint_observer: HintObserver | None = None
    """Called after every queueing hint."""
    on_move: MoveListener | None = None
    """Called for every move of a pod in the queue."""
    is_leader: Callable[[], bool] = lambda: True
    """Checked before every write."""


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Where the core reads and writes."""

    api: ApiPort
    recorder: Callable[[str], Recorder]
    """Profile name to the recorder that signs with it."""
    status: StatusPort
    get_pod: Callable[[str, str], Pod | None]
    """(namespace, name) -> the pod as the API server last sent it."""
    observer: Observer
    extender_http: ExtenderHttp
    sampling: Sampling | None = None
    """The cycles in which every plugin is timed; None for no cycle."""
    start_task: Callable[[str, Awaitable[None]], None] | None = None
    """Runs work beside the main path; None for a task of the event loop."""
    start_brief: Callable[[BriefWork], None] | None = None
    """The same for work that may share a task."""
    call_later: Callable[[float, Callable[[], None]], None] | None = None
    """Calls back after some seconds; None for a timer of the event loop."""


class SchedulerCore:
    """Complete after construction. The owner feeds `intake`, and runs `scheduler`, `shell` and `tasks`."""

    def __init__(
        self,
        config: SchedulerConfig,
        profiles: Sequence[ResolvedProfile],
        registry: Registry,
        *,
        options: CoreOptions,
        edges: Edges,
    ) -> None:
        self._options = options
        self._failures = FailureLog()
        self._edges = edges
        clock = options.clock
        self.cache = Cache()
        self.held_pods = HeldPods(clock)
        self.nominations = Nominations(edges.get_pod)
        self.tasks = Tasks(_task_failed, idle=lambda: len(self.held_pods))
        self._search = NodeSearch()
        self._keeps_scores = False
        self._ports = self._make_ports()
        extenders, frameworks, policy = self._make_frameworks(config, profiles, registry)
        bell = Doorbell()
        self.queue = SchedulingQueue(
            clock,
            policy,
            nominations=self.nominations,
            times=_backoff_times(config, options),
            on_ready=bell.ring,
            hint_observer=options.hint_observer,
            on_move=options.on_move,
            on_gate_failure=self._gate_failed,
        )
        self.profiles = self._make_profiles(profiles, frameworks, extenders)
        self.intake = Intake(
            self.cache,
            self.queue,
            held_pods=self.held_pods,
            is_ours=self.profiles.__contains__,
            on_pod_gone=self._pod_gone,
            clock=clock,
            observer=edges.observer,
        )
        shared = Shared(
            cache=self.cache,
            queue=self.queue,
            profiles=self.profiles,
            held_pods=self.held_pods,
            api=edges.api,
            status=edges.status,
            clock=clock,
            observer=edges.observer,
            get_pod=edges.get_pod,
            start_task=edges.start_task or self.tasks.start,
            start_brief=edges.start_brief or self.tasks.start_brief,
            may_write=options.is_leader,
        )
        self.shell = QueueShell(self.queue, bell, clock)
        self.scheduler = Scheduler(shared, self.shell, self.tasks)

    @property
    def frameworks(self) -> list[Framework]:
        return [profile.framework for profile in self.profiles.values()]

    def _make_ports(self) -> Ports:
        edges, clock = self._edges, self._options.clock
        return Ports(
            cluster=self.cache.cluster,
            clock=clock,
            nominator=self.nominations,
            waiting_pods=self.held_pods,
            recorder=edges.recorder,
            api=edges.api,
            activate=lambda pods: self.queue.activate(pods),
            start_task=edges.start_task or self.tasks.start,
            resources=partial(ObjectLister, self.cache.cluster.objects),
            complain=self._plugin_failed,
            call_later=edges.call_later or partial(self.tasks.call_later, clock=clock),
        )

    def _make_frameworks(
        self, config: SchedulerConfig, profiles: Sequence[ResolvedProfile], registry: Registry
    ) -> tuple[Extenders | None, dict[str, Framework], QueuePolicy]:
        extenders = make_extenders(config, self._edges.extender_http, self.cache.cluster)
        review = candidate_review(extenders)
        built = build_frameworks(profiles, registry, self._ports, review, has_extenders=extenders is not None)
        return extenders, *built

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
                tie_break=seeded_tie_break(self._options.seed),
                search=self._search,
                percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
                monotonic=self._options.clock.monotonic,
                sampling=self._edges.sampling,
                explains=self._keeps_scores,
            )
            recorder = self._ports.recorder(name)
            made[name] = Profile(name=name, decider=decider, recorder=recorder, extenders=extenders)
        return made

    def keep_scores(self, is_wanted: bool) -> None:
        """Whether decisions from now on have the scores of every feasible node by plugin."""
        if is_wanted != self._keeps_scores:
            self._keeps_scores = is_wanted
            for name, profile in self.profiles.items():
                self.profiles[name] = replace(profile, decider=replace(profile.decider, explains=is_wanted))

    def reload(
        self,
        config: SchedulerConfig,
        profiles: Sequence[ResolvedProfile],
        registry: Registry,
        *,
        pods: Callable[[], Iterable[Pod]],
    ) -> None:
        """Go on with another configuration, between two decisions and all at once; `pods` are all pods there are.

        Everything that can fail happens before anything is replaced. Bindings under way finish with the old plugins.
        """
        extenders, frameworks, policy = self._make_frameworks(config, profiles, registry)
        made = self._make_profiles(profiles, frameworks, extenders)
        unclaimed = made.keys() - self.profiles.keys()
        replaced = self.frameworks
        self._failures.forget()
        self.profiles.clear()
        self.profiles.update(made)
        self.cache.fill_groups(list(pods()))
        self.queue.adopt(policy)
        if unclaimed:
            self._claim_pods(list(pods()), unclaimed)
        for framework in replaced:
            framework.teardown()

    def _claim_pods(self, pods: Iterable[Pod], names: Set[str]) -> None:
        """Queue the pods of profiles that did not exist so far."""
        for pod in pods:
            if not pod.spec.node_name and pod.spec.scheduler_name in names:
                self.queue.add(self.cache.info(pod))

    def _gate_failed(self, queued: QueuedPod, status: Status) -> bool:
        """Write event and condition of a pod for which a PreEnqueue plugin failed; whether this replica may."""
        info, edges = queued.info, self._edges
        if not self._options.is_leader():
            return False
        note = failure_at(ExtensionPoint.PRE_ENQUEUE.label, status).message
        recorder = self._ports.recorder(info.scheduler_name)
        recorder.event(info, kind="Warning", reason="FailedScheduling", action="Scheduling", note=note)
        current = edges.get_pod(info.namespace, info.name)
        if current is not None:
            edges.status.report(current, reason="SchedulerError", message=note, nominated_node_name=None)
        return True

    def _pod_gone(self, pod: PodInfo) -> None:
        for profile in self.profiles.values():
            profile.framework.pod_gone(pod)

    def _plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        self._failures.write(plugin, point, exception)
        self._edges.observer.plugin_failed(plugin, point, exception)


def _task_failed(name: str, exception: BaseException) -> None:
    if isinstance(exception, NotSent):
        _log.info("left to the next leader", task=name)
        return
    if isinstance(exception, (NoAnswer, ServerError)):
        # No defect of a plugin or of the scheduler: what was asked for is decided again.
        _log.warning("the API server did not carry out a task", task=name, error=str(exception))
        return
    _log.error("task failed", task=name, error=str(exception), exc_info=exception)


def _backoff_times(config: SchedulerConfig, options: CoreOptions) -> BackoffTimes:
    return BackoffTimes(
        initial_seconds=float(config.pod_initial_backoff_seconds),
        max_seconds=float(config.pod_max_backoff_seconds),
        max_in_unschedulable_seconds=options.pod_max_in_unschedulable_seconds,
    )
