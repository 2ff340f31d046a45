"""Replays a recording: the scheduler's core works on the recorded changes, in their order, and decides again.

A recording of a scheduler names every attempt. The core tries the same pods at the same points, with the same changes
seen and the same bindings under way, so that equal code and policy give equal decisions; the replay ends at the first
one that differs. Only the order of the queue is taken from the recording. A binding runs to its end where the recording
has that end: no write leaves the process, and its effects come with the recorded changes.

A recording of a follower names no attempt. `bayplan.sim.recording.bindings` judges those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from bayplan.api.devices import ResourceClaim
from bayplan.api.meta import KubeObject
from bayplan.api.patches import merge_patch
from bayplan.api.pod import Pod
from bayplan.api.quantity import QuantityError
from bayplan.app.core import Edges
from bayplan.app.frameworks import watched_resources
from bayplan.app.settings import Settings
from bayplan.client.errors import ClientError, NotFound
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer
from bayplan.loop.profile import StatusPort
from bayplan.loop.tasks import BriefWork
from bayplan.sim.compare import Choice, Divergence, choice_of
from bayplan.sim.engine.api import SimulatedApi
from bayplan.sim.engine.simulation import Simulation, SimulationOptions
from bayplan.sim.ledger import DecisionLine
from bayplan.sim.recording.entries import (
    AttemptEnded,
    ClusterRead,
    Entry,
    NewConfiguration,
    ObjectChanged,
    ObjectGone,
    ObjectTypes,
    PodDecided,
    RecordingHeader,
)
from bayplan.sim.recording.file import RecordingError
from bayplan.sim.recording.sessions import RecordedSession, recorded_settings, sessions
from bayplan.sim.recording.writing import plugin_digests

__all__ = ["Replay", "ReplayOutcome", "replay_recording"]

_BINDING = "bind "


@dataclass(kw_only=True)
class ReplayOutcome:
    """What came of a replay."""

    decisions: int = 0
    """That were made again."""
    nodes: int = 0
    bound: int = 0
    """Of the decisions, those with a node."""
    lines: list[DecisionLine] = field(default_factory=list)
    difference: Divergence | None = None
    notes: list[str] = field(default_factory=list)
    """What limits the comparison."""


def replay_recording(
    path: Path, *, settings: Settings | None = None, progress: Callable[[float], None] | None = None
) -> ReplayOutcome:
    """Replay every session with the policy of then, or with `settings`, up to the first decision that differs.

    Raises RecordingError and SettingsError.
    """
    outcome = ReplayOutcome()
    for session in sessions(path, note=outcome.notes.append):
        if session.header.by != "scheduler":
            raise RecordingError("was written by a follower, which saw no decisions", source=str(path))
        policy = settings or recorded_settings(session.header, source=str(path))
        if settings is None:
            outcome.notes += _changed_plugins(session.header, policy)
        Replay(session, policy, outcome).run(progress=progress)
        if outcome.difference is not None:
            break
    return outcome


def _changed_plugins(header: RecordingHeader, settings: Settings) -> list[str]:
    now = plugin_digests(settings)
    return [
        f"plugin `{place}` has changed since the recording"
        for place, digest in now.items()
        if header.plugin_digests.get(place, digest) != digest
    ]


class Replay(Simulation):
    """One session. `run` goes through it; `prepare` may add observers before."""

    def __init__(
        self,
        session: RecordedSession,
        settings: Settings,
        outcome: ReplayOutcome,
        *,
        observers: Iterable[Observer] = (),
    ) -> None:
        self._session = session
        self._outcome = outcome
        self._bindings: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
        """By pod, those that are under way."""
        self._unstarted: list[Coroutine[Any, Any, None]] = []
        self._comparison = _Comparison(self)
        header = session.header
        super().__init__(
            settings, SimulationOptions(seed=header.seed, start=header.time), [self._comparison, *observers]
        )
        # The recording has the status of budgets as it was.
        self.listeners.remove(self.budgets)
        self._types = ObjectTypes(watched_resources(self.core.frameworks))
        self._unknown: set[str] = set()
        self.core.cache.cluster.devices.is_served = ResourceClaim.__name__ in header.kinds

    def _edges(self, observers: list[Observer]) -> Edges:
        return replace(super()._edges(observers), api=_RecordedApi(self), status=_SilentStatus())

    # Bindings wait for their recorded end

    def _start_task(self, name: str, work: Awaitable[None]) -> None:
        if name.startswith(_BINDING) and asyncio.iscoroutine(work):
            self._unstarted.append(work)
            self._bindings[name.removeprefix(_BINDING)] = lambda: self._started(work)
        else:
            super()._start_task(name, work)

    def _started(self, work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
        self._unstarted.remove(work)
        return work

    def _start_brief(self, work: BriefWork) -> None:
        self._bindings[work.name.removeprefix(_BINDING)] = work.run

    # What was recorded

    async def _run(self, progress: Callable[[float], None] | None) -> None:
        for count, (where, entry) in enumerate(self._session.entries):
            if isinstance(entry, RecordingHeader):  # `sessions` ends before the next one
                break
            self._reach(entry.time)
            try:
                self._apply(entry)
            except (msgspec.MsgspecError, UnicodeDecodeError, QuantityError) as error:
                what = f"cannot be replayed: {error}"
                raise RecordingError(what, source=self._session.source, where=where) from error
            await self._finish_attempt()
            if self._running:
                await self._until_idle()
            if self._is_stopped:
                break
            if progress is not None and count % 256 == 0:
                progress(self.now)
        self._outcome.nodes = len(self.core.cache.cluster.nodes)
        await self._stop()
        for work in self._unstarted:
            work.close()

    def _reach(self, time: float) -> None:
        """Clocks of machines are set back now and then; ours only goes on. Waits end where the recording says so."""
        self.clock.move_to(max(self.now, time - self.options.start))
        self.timeline.run_due(self.now)

    def _apply(self, entry: Entry) -> None:
        if isinstance(entry, ObjectChanged):
            item = self._decoded(entry)
            if item is not None:
                self.take_in(item)
        elif isinstance(entry, ObjectGone):
            self._remove(entry)
        elif isinstance(entry, PodDecided):
            self._decide(entry)
        elif isinstance(entry, AttemptEnded):
            self._end_attempt(entry)
        elif isinstance(entry, NewConfiguration):
            self._reload(entry)
        elif isinstance(entry, ClusterRead):
            self.core.cache.fill_groups(self.world.pods.values())

    def take_in(self, item: KubeObject) -> None:
        try:
            self.world.put(item)
        except Exception as error:  # as a scheduler goes on after an object that it cannot take in
            self._outcome.notes.append(f"{type(item).__name__} `{item.key}` could not be taken in: {error}")

    def _decoded(self, entry: ObjectChanged) -> KubeObject | None:
        kind = self._types.get(entry.kind)
        if kind is not None:
            return msgspec.json.decode(entry.object, type=kind)
        if entry.kind not in self._unknown:
            self._unknown.add(entry.kind)
            self._outcome.notes.append(f"objects of {entry.kind} are left out: no plugin that is loaded reads them")
        return None

    def _remove(self, entry: ObjectGone) -> None:
        kind = self._types.get(entry.kind)
        namespace, _, name = entry.key.rpartition("/")
        item = None if kind is None else self.world.find(kind, name, namespace)
        if item is not None:
            self.world.remove(item)

    def _reload(self, entry: NewConfiguration) -> None:
        settings = recorded_settings(entry, source=self._session.source)
        self.core.reload(settings.config, settings.profiles, settings.registry, pods=self.world.pods.values)
        self._types = ObjectTypes(watched_resources(self.core.frameworks))

    # Attempts

    def _decide(self, entry: PodDecided) -> None:
        queue = self.core.queue
        queued = queue.take(entry.pod)
        if queued is None:
            pod = self._waiting_pod(entry)
            queued = None if pod is None else self._queue_anew(pod)
        self._comparison.expect(entry)
        if queued is not None:
            queued.attempts = entry.attempt
            self.core.scheduler.schedule(queued)
        if self._comparison.is_open:
            self._comparison.report_missing()

    def _waiting_pod(self, entry: PodDecided) -> Pod | None:
        namespace, _, name = entry.pod.rpartition("/")
        pod = self.world.pod(namespace, name)
        return pod if pod is not None and pod.uid == entry.uid else None

    def _queue_anew(self, pod: Pod) -> QueuedPod | None:
        """A pod whose attempt the scheduler ended without a trace, as when the process was about to stop."""
        self.core.queue.done(pod.uid)
        self.core.queue.add(self.core.cache.info(pod))
        return self.core.queue.take(pod.key)

    def _end_attempt(self, entry: AttemptEnded) -> None:
        start = self._bindings.pop(entry.pod, None)
        held = self.core.held_pods.get(entry.uid)
        if held is not None:
            if entry.error:
                held.reject("", entry.error)
            for plugin in held.pending_plugins():
                held.allow(plugin)
        if start is not None:
            api = self.core.scheduler.shared.api
            assert isinstance(api, _RecordedApi)
            api.bind_error = entry.error
            self._create_task(f"{_BINDING}{entry.pod}", start())

    def compared(self, line: DecisionLine, difference: Divergence | None) -> None:
        self._outcome.decisions += 1
        self._outcome.bound += bool(line.node)
        self._outcome.lines.append(line)
        if difference is not None:
            self._outcome.difference = difference
            self.stop()

    @property
    def equal_so_far(self) -> int:
        return self._outcome.decisions


class _Comparison(Observer):
    """Holds each decision against the recorded one."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._expected: PodDecided | None = None

    @property
    def is_open(self) -> bool:
        return self._expected is not None

    def expect(self, entry: PodDecided) -> None:
        self._expected = entry

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        expected, self._expected = self._expected, None
        if expected is None:
            return
        nomination = decision.nomination
        now = DecisionLine(
            time=expected.time,
            pod=queued.key,
            node=decision.node_name,
            message=decision.message,
            nominated=(nomination.nominated_node_name or "") if nomination is not None else "",
            victims=tuple(victim.key for victim in nomination.victims) if nomination is not None else (),
        )
        then = _line(expected)
        difference = None
        if now != then:
            choice = choice_of(self._replay, "now", queued, decision, also=expected.node)
            difference = self._difference(expected, msgspec.structs.replace(choice, line=now))
        self._replay.compared(now, difference)

    def report_missing(self) -> None:
        """The pod was not tried at all."""
        expected, self._expected = self._expected, None
        if expected is not None:
            now = DecisionLine(time=expected.time, pod=expected.pod, node="", message="not tried: it does not wait")
            self._replay.compared(now, self._difference(expected, Choice("now", now, 0, 0, [])))

    def _difference(self, expected: PodDecided, now: Choice) -> Divergence:
        nodes = list(expected.best)
        if expected.node and not nodes:
            nodes.append((expected.node, expected.total, {}))
        then = Choice("then", _line(expected), expected.feasible, expected.ties, nodes)
        return Divergence(self._replay.equal_so_far, (then, now))


def _line(entry: PodDecided) -> DecisionLine:
    return DecisionLine(entry.time, entry.pod, entry.node, entry.message, entry.nominated, entry.victims)


class _RecordedApi(SimulatedApi):
    """Answers what was answered then, and writes nothing: what writes came to is in the recording."""

    def __init__(self, replay: Replay) -> None:
        super().__init__(replay.world)
        self.bind_error = ""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        if self.bind_error:
            raise ClientError(self.bind_error)

    async def delete_pod(self, pod: PodInfo) -> None:
        """The recording has the pod's end."""

    async def patch_pod_status(self, pod: PodInfo, **_: Any) -> None:
        """The recording has the pod's next version."""

    async def patch_pod(self, pod: PodInfo, patch: dict[str, Any], *, subresource: str = "") -> None:
        """The same."""

    async def patch(self, item: KubeObject, patch: dict[str, Any], *, subresource: str = "") -> None:
        """The same of any object."""

    async def delete(self, item: KubeObject) -> None:
        """The same."""

    async def create(self, kind: type[Any], body: dict[str, Any]) -> Any:
        return msgspec.convert(body, kind)

    async def update(self, item: Any, change: dict[str, Any], *, subresource: str = "") -> Any:
        current = self._world.find(type(item), item.name, item.namespace)
        if current is None:
            raise NotFound(f"{type(item).__name__} `{item.key}` is not there", code=404)
        return msgspec.convert(merge_patch(msgspec.to_builtins(current), change), type(item))


class _SilentStatus(StatusPort):
    def report(self, pod: Pod, *, reason: str, message: str, nominated_node_name: str | None) -> None:
        """The recording has the pod's next version."""
