"""Every question that people ask a running scheduler, answered from its state and its records.

Terminal and browser come in through `bayplan.explain.endpoints`; this is the part without HTTP. All of it runs in the
scheduler's thread between two decisions, reads, and changes nothing. What takes long works on a copy of the cluster,
in turns with the scheduling; the copy is kept for a few seconds, because questions come in groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from bayplan.api.pod import Pod
from bayplan.app.frameworks import watched_resources
from bayplan.app.live import LiveScheduler
from bayplan.app.settings import Settings
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.changes import Changes, find_changes
from bayplan.explain.cluster_copy import ClusterCopy, ClusterObjects, objects_of_snapshot
from bayplan.explain.config_page import ConfigPage, config_page
from bayplan.explain.explaining import explained, explained_from_record
from bayplan.explain.explaining_nodes import explained_node
from bayplan.explain.explanation import Explanation, NodeExplanation, QueueState
from bayplan.explain.moves import Moves, find_moves
from bayplan.explain.overview import Heat, Overview, Rates, heat_of, overview_of
from bayplan.explain.pending import PendingBoard, Waiting, find_best_change, group_pending
from bayplan.explain.plugin_page import PluginState, plugins_of
from bayplan.explain.sentences import verdict_of
from bayplan.explain.turns import Work, in_turns
from bayplan.explain.views import LiveView
from bayplan.explain.whatif import Scenario, WhatIf, play
from bayplan.loop.decide import Decision
from bayplan.loop.decide_with_extenders import decide_with_extenders
from bayplan.loop.record import DecisionRecord
from bayplan.loop.recorder import DecisionRecorder
from bayplan.queue.places import Place

__all__ = ["ExplainService", "NotReady", "Sources", "UnknownObject"]

T = TypeVar("T")
_KEEP_COPY_SECONDS = 5.0
_ATTEMPTS = 20


class UnknownObject(LookupError):
    """There is no such pod or node."""


class NotReady(RuntimeError):
    """The scheduler has not seen the cluster yet."""


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where the answers come from."""

    live: Callable[[], LiveScheduler | None]
    """The scheduler at work, if any."""
    settings: Callable[[], Settings]
    """The configuration at work."""
    recorder: DecisionRecorder


class ExplainService:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.recorder = sources.recorder
        self._view: LiveView | None = None
        self._rates: Rates | None = None
        self._copy: tuple[float, ClusterCopy] | None = None
        self._copying = asyncio.Lock()
        self.reloads: list[tuple[float, str, list[str]]] = []
        """(time, what happened, problems), oldest first."""
        self._views_made = 0

    def note_reload(self, what: str, problems: list[str]) -> None:
        """A reload was tried, in words; no problems means that the new version is at work."""
        self.reloads.append((self._live.options.clock.now(), what, problems))
        del self.reloads[:-50]

    @property
    def _live(self) -> LiveScheduler:
        live = self._sources.live()
        if live is None or not live.is_ready.is_set():
            raise NotReady("the scheduler has not seen the cluster yet; try again in a moment")
        return live

    def view(self) -> LiveView:
        live = self._live
        if self._view is None or self._view.cache is not live.cache or not self._view.is_current:
            self._view = LiveView(live)
            self._views_made += 1
            self._copy = None
        return self._view

    # Pods

    async def ask_extenders(self, key: str) -> Decision | None:
        """The decision with the word of the extenders, which are asked as in an attempt; None where there are none."""
        live, view = self._live, self.view()
        namespace, _, name = key.rpartition("/")
        pod = live.watching.pod(namespace, name)
        profile = live.profiles.get(pod.spec.scheduler_name) if pod is not None else None
        if pod is None or profile is None or profile.extenders is None:
            return None
        info = (live.cache.pod(pod.uid) or view.info(pod)).placed("")
        decider = replace(view.deciders[info.scheduler_name], explains=True, always_score=True)
        return await decide_with_extenders(profile.extenders, decider, info)

    def explain_pod(self, key: str, *, in_full: bool = False, decision: Decision | None = None) -> Explanation:
        """Raises `UnknownObject`. `decision` is what `ask_extenders` answered just now."""
        live, view = self._live, self.view()
        namespace, _, name = key.rpartition("/")
        pod = live.watching.pod(namespace, name)
        records = self.recorder.of_pod(key, most=_ATTEMPTS)
        if pod is None:
            taken_by = self.recorder.preempted_for(key)
            if not records and taken_by is None:
                raise UnknownObject(f"no pod `{key}`, and no record of one")
            return self._gone(key, records, taken_by)
        info = live.cache.pod(pod.uid) or view.info(pod)
        explanation = (
            self._placed(info, records, in_full, decision) if info.node_name else self._waiting(info, in_full, decision)
        )
        explanation.queue = self._queue_state(info)
        if explanation.state == "pending" and explanation.queue.place == Place.GATED.value:
            explanation.state = "gated"
        explanation.verdict = verdict_of(explanation)
        explanation.attempts = records
        if not explanation.from_record:
            explanation.as_of = live.options.clock.now()
        return explanation

    def _gone(self, key: str, records: list[DecisionRecord], taken_by: DecisionRecord | None) -> Explanation:
        explanation = explained_from_record(records[0]) if records else Explanation(pod=key, state="gone", verdict="")
        explanation.state, explanation.evicted = "gone", taken_by
        explanation.verdict = verdict_of(explanation)
        explanation.attempts = records
        return explanation

    def _placed(
        self, info: PodInfo, records: list[DecisionRecord], in_full: bool, decision: Decision | None
    ) -> Explanation:
        """From the record of the attempt that placed it; without one, as the pod would fare now."""
        record = next((r for r in records if r.node == info.node_name and r.uid == info.uid), None)
        if record is not None:
            explanation = explained_from_record(record)
            if in_full and info.scheduler_name in self.view().deciders:
                explanation.result = explained(self.view(), info.placed(""), in_full=True).result
        elif info.scheduler_name in self.view().deciders:
            explanation = self._now_elsewhere(info, in_full, decision)
        else:
            explanation = Explanation(pod=info.key, uid=info.uid, profile=info.scheduler_name, state="", verdict="")
        is_told = record is not None and record.outcome == "bound"
        explanation.state = "binding" if self._live.cache.is_assumed(info.uid) and not is_told else "placed"
        explanation.node = info.node_name
        return explanation

    def _now_elsewhere(self, info: PodInfo, in_full: bool, decision: Decision | None) -> Explanation:
        free = info.placed("")
        explanation = explained(self.view(), free, in_full=False, decision=decision)
        if in_full:
            explanation.result = explained(self.view(), free, in_full=True).result
        explanation.fits = False
        return explanation

    def _waiting(self, info: PodInfo, in_full: bool, decision: Decision | None) -> Explanation:
        if info.scheduler_name not in self.view().deciders:
            message = f"no profile here is named `{info.scheduler_name}`; another scheduler may take it"
            return Explanation(pod=info.key, uid=info.uid, state="pending", verdict="", message=message)
        return explained(self.view(), info, in_full=in_full, decision=decision)

    def _queue_state(self, info: PodInfo) -> QueueState:
        queue = self._live.queue
        queued, place = queue.get(info.key), queue.place_of(info.key)
        if queued is None or place is None:
            return QueueState(place=Place.IN_FLIGHT.value if queue.is_in_flight(info.uid) else "")
        return QueueState(
            place=place.value,
            since=queued.timestamp,
            attempts=queued.attempts,
            rejected_by=sorted(queued.rejectors),
            gated_by=queued.gating_plugin,
            backoff_until=queued.backoff_expiration,
            story=list(queued.story),
        )

    async def changes(self, key: str) -> Changes | Moves:
        """What would let a pending pod run, or move a placed one. Raises `UnknownObject`."""
        namespace, _, name = key.rpartition("/")
        found = await self._on_copy(lambda copy: _changes_of(copy, key, self._live.watching.pod(namespace, name)))
        found.note = self._left_out()
        return found

    def _left_out(self) -> str:
        """Said with answers about a cluster that is not there: extenders can only be asked about the one that is."""
        named = {e.name for p in self._live.profiles.values() if p.extenders is not None for e in p.extenders.all}
        return f"Without the word of {', '.join(sorted(named))}." if named else ""

    # Nodes, pending pods, everything

    def explain_node(self, name: str) -> NodeExplanation:
        live = self._live
        node = live.cache.cluster.node(name)
        if node is None:
            raise UnknownObject(f"no node `{name}`")
        explanation = explained_node(self.view(), node, [info for info, _, gate in self._pending_pods() if not gate])
        explanation.attempts = self.recorder.of_node(name, most=_ATTEMPTS)
        return explanation

    async def pending(self, *, with_change: bool = False) -> PendingBoard:
        clock = self._live.options.clock
        board = await in_turns(group_pending(self.view(), self._pending_pods()), clock)
        if with_change and board.total:
            board.change, board.frees = await self._on_copy(lambda copy: find_best_change(copy, board.causes))
        return board

    def _pending_pods(self) -> list[tuple[PodInfo, Waiting, str]]:
        return [
            (
                queued.info,
                Waiting(
                    pod=queued.key,
                    place=place.value,
                    since=queued.timestamp,
                    attempts=queued.attempts,
                    rejected_by=sorted(queued.rejectors),
                ),
                queued.gating_plugin if place is Place.GATED else "",
            )
            for place, pods in self._live.queue.pending_pods().items()
            for queued in pods
        ]

    def overview(self) -> Overview:
        live = self._live
        self.view()
        clock = live.options.clock
        if self._rates is None:
            self._rates = Rates(clock)
        return overview_of(live, self.recorder, self._rates, now=clock.now(), reloads=self._views_made - 1)

    def heat(self) -> Heat:
        return heat_of(self._live)

    def plugins(self) -> list[PluginState]:
        live = self._live
        probe = next(iter(live.cache.pods()), None) or next((info for info, _, _ in self._pending_pods()), None)
        registry = self._sources.settings().registry
        return plugins_of(self.view(), self.recorder, registry, probe, live.options.clock.monotonic)

    def config(self) -> ConfigPage:
        return config_page(self._sources.settings())

    async def whatif(self, scenario: Scenario) -> WhatIf:
        """Raises `ScenarioError`."""
        settings = self._sources.settings()
        work = play(self._objects(), settings.profiles, settings.registry, scenario)
        answer = await in_turns(work, self._live.options.clock)
        answer.note = self._left_out()
        return answer

    # The copy

    def _objects(self) -> ClusterObjects:
        live = self._live
        waiting: list[Pod] = [info.pod for info, _, _ in self._pending_pods()]
        nominations = {
            pod.key: node
            for node in live.queue.nominations.nominated_nodes()
            for pod in live.queue.nominations.nominated_pods(node)
        }
        frameworks = [profile.framework for profile in live.profiles.values()]
        return objects_of_snapshot(live.cache, waiting, nominations, more_kinds=watched_resources(frameworks))

    async def _on_copy(self, question: Callable[[ClusterCopy], Work[T]]) -> T:
        """Ask a copy of the cluster as it is, or as it was a few seconds ago; one question at a time changes it."""
        self.view()
        clock = self._live.options.clock
        async with self._copying:
            if self._copy is None or not self._is_fresh(self._copy, clock.monotonic()):
                settings = self._sources.settings()
                build = ClusterCopy.build(self._objects(), settings.profiles, settings.registry)
                self._copy = (clock.monotonic(), await in_turns(build, clock))
            return await in_turns(question(self._copy[1]), clock)

    def _is_fresh(self, kept: tuple[float, ClusterCopy], now: float) -> bool:
        made_at, copy = kept
        unchanged = copy.generation == self._live.cache.cluster.generation
        same_pods = copy.waiting.keys() == {info.key for info, _, _ in self._pending_pods()}
        return same_pods and (unchanged or now - made_at < _KEEP_COPY_SECONDS)


def _changes_of(copy: ClusterCopy, key: str, known: Pod | None) -> Work[Changes | Moves]:
    if key not in copy.waiting and known is not None and not known.spec.node_name:
        copy.add_waiting(known)  # it was being tried when the copy was taken
    pod = copy.waiting.get(key)
    if pod is not None and pod.spec.scheduler_name in copy.deciders:
        return (yield from find_changes(copy, pod))
    placed = next((info for info in copy.cache.pods() if info.key == key), None)
    if placed is None or placed.scheduler_name not in copy.deciders:
        raise UnknownObject(f"no pod `{key}` that this scheduler looks after")
    return (yield from find_moves(copy, placed))
