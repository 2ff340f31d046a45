"""Every question that people ask a running scheduler, answered from its state and its records.

Terminal and browser come in through `bayplan.explain.http.endpoints`; this is the part without HTTP. All of it runs in
the scheduler's thread between two decisions, reads, and changes nothing. What takes long works on a copy of the
cluster, in slices between the scheduling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from bayplan.api.pod import Pod
from bayplan.app.live import LiveScheduler
from bayplan.app.offline import OfflineScheduler
from bayplan.app.settings import Settings
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.builders import chosen_of, decide_on, gone_of, held_back_claim, later_refusal_of, now_claim, now_of
from bayplan.explain.claims.phrases import BEING_DELETED
from bayplan.explain.claims.pods import (
    THEN,
    AwaitsVictims,
    Chosen,
    FitsNowhere,
    GoesTo,
    HeldAtPermit,
    NoScheduler,
    NothingHelps,
    Preempted,
    RefusedLater,
)
from bayplan.explain.claims.wording import sentence
from bayplan.explain.device_report import devices_of_pod
from bayplan.explain.last_attempts import LastRefusal, last_refusals
from bayplan.explain.model import (
    Changes,
    NodeExplanation,
    PendingBoard,
    PodExplanation,
    QueueState,
    Suggestion,
    Waiting,
    WhatIf,
    decided_of,
)
from bayplan.explain.offline.case import decide_in_full
from bayplan.explain.pages.configuration import ConfigPage, config_page
from bayplan.explain.pages.nodes import explained_node
from bayplan.explain.pages.overview import Overview, overview_of
from bayplan.explain.pages.plugins import CodeReader, PluginState, plugins_of
from bayplan.explain.pages.timeline import Timeline
from bayplan.explain.pending import BINDING, PERMIT, Stuck, find_best_change, group_pending
from bayplan.explain.suggestions.relocation import find_moves
from bayplan.explain.suggestions.search import find_changes
from bayplan.explain.views import LiveView
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.explain.whatif.placing import created, held_back_by
from bayplan.explain.whatif.scenario import Scenario, play
from bayplan.explain.whatif.shared_copy import SharedCopy, objects_of_live
from bayplan.loop.decide import Decision
from bayplan.loop.decide_with_extenders import decide_with_extenders
from bayplan.loop.record import UNDER_WAY
from bayplan.loop.recorder import DecisionRecorder
from bayplan.loop.select import nodes_to_find
from bayplan.observe.time_slices import Turns, Work, at_once, in_slices
from bayplan.queue.places import Place

__all__ = ["ExplainService", "NotReady", "Sources", "UnknownObject"]

T = TypeVar("T")
_ATTEMPTS = 20
_AFTER_THE_COPY = ("PreBindPreFlight", "PreBind", "Bind")
"""Extension points that need an API server and are left out when something is tried on a copy."""


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
        self.timeline = Timeline()
        self._copy = SharedCopy()
        self._code = CodeReader()
        self.reloads: list[tuple[float, str, list[str]]] = []
        """(time, what happened, problems), oldest first."""
        self._views_made = 0

    def note_reload(self, time: float, what: str, problems: list[str]) -> None:
        """A reload was tried, in words; no problems means that the new version is at work."""
        self.reloads.append((time, what, problems))
        del self.reloads[:-50]

    @property
    def live(self) -> LiveScheduler:
        """The scheduler at work. Raises `NotReady`."""
        live = self._sources.live()
        if live is None or not live.is_ready.is_set():
            raise NotReady("the scheduler has not seen the cluster yet; try again in a moment")
        return live

    @property
    def settings(self) -> Settings:
        """The configuration at work."""
        return self._sources.settings()

    @property
    def turns(self) -> Turns:
        """Raises `NotReady`."""
        return self.live.turns

    def view(self) -> LiveView:
        live = self.live
        if self._view is None or self._view.cache is not live.cache or not self._view.is_current:
            self._view = LiveView(live)
            self._views_made += 1
            self._copy.forget()
        return self._view

    # Pods

    async def ask_extenders(self, key: str) -> Decision | None:
        """The decision with the answers of the extenders, requested as in an attempt; None where there are none."""
        live, view = self.live, self.view()
        namespace, _, name = key.rpartition("/")
        pod = live.watching.pod(namespace, name)
        profile = live.profiles.get(pod.spec.scheduler_name) if pod is not None else None
        if pod is None or profile is None or profile.extenders is None:
            return None
        info = (live.cache.pod(pod.uid) or view.info(pod)).placed("")
        decider = replace(view.deciders[info.scheduler_name], explains=True, always_score=True)
        return await decide_with_extenders(profile.extenders, decider, info)

    def explain_pod(self, key: str, *, in_full: bool = False, decision: Decision | None = None) -> PodExplanation:
        """Raises `UnknownObject`. `decision` is what `ask_extenders` answered just now."""
        live, view = self.live, self.view()
        namespace, _, name = key.rpartition("/")
        pod = live.watching.pod(namespace, name)
        if pod is None:
            return self._gone(key)
        info = live.cache.pod(pod.uid) or view.info(pod)
        records = self.recorder.of_pod(key, uid=info.uid, most=_ATTEMPTS)
        explanation = PodExplanation(pod=info.key, uid=info.uid, profile=info.scheduler_name, state="", verdict="")
        explanation.attempts, explanation.queue = records, self._queue_state(info)
        if info.scheduler_name in view.deciders and (info.node_name or not info.is_terminating):
            self._explain_now(explanation, info, decision, in_full=in_full)
        if info.node_name:
            self._explain_placed(explanation, info)
        else:
            self._explain_waiting(explanation, info)
        if explanation.claim is not None:
            explanation.verdict = sentence(explanation.claim)
        self._note_preemption(explanation, is_ending=pod.is_terminating)
        return explanation

    def _gone(self, key: str) -> PodExplanation:
        """The last pod of that name, which ended or was deleted: who preempted it, if anybody did, and what was decided
        about it."""
        records, preempted = self.recorder.of_pod(key, most=_ATTEMPTS), self._preempted(key)
        newest = records[0] if records else None
        if newest is None and preempted is None:
            raise UnknownObject(f"no pod `{key}` that waits or runs, and no record of one")
        uid = newest.uid if newest is not None else ""
        claim: THEN = gone_of(key, newest)
        if preempted is not None and (newest is None or newest.uid == preempted[0] or newest.time < preempted[1].time):
            uid, claim = preempted
        records = [record for record in records if record.uid == uid]
        explanation = PodExplanation(pod=key, uid=uid, state="gone", verdict=sentence(claim), claim=claim)
        explanation.attempts, explanation.decision = records, decided_of(records[0]) if records else None
        self._note_preemption(explanation)
        return explanation

    def _preempted(self, key: str) -> tuple[str, Preempted] | None:
        """The uid of the last pod of that name which had to leave for another, and what is said about it."""
        taken_by = self.recorder.preempted_for(key)
        if taken_by is None or taken_by.preemption is None:
            return None
        uid = next(victim.uid for victim in taken_by.victims if victim.pod == key)
        return uid, Preempted(pod=key, by=taken_by.pod, node=taken_by.preemption.node, time=taken_by.preemption.time)

    def _note_preemption(self, explanation: PodExplanation, *, is_ending: bool = False) -> None:
        """That the pod had to leave, while it ends; or that another pod of its name had."""
        preempted = self._preempted(explanation.pod)
        if preempted is None or (preempted[0] == explanation.uid and not is_ending):
            return
        whose = "" if preempted[0] == explanation.uid else "Another pod of this name: "
        explanation.note = f"{explanation.note} {whose}{sentence(preempted[1])}".strip()

    def _explain_now(
        self, explanation: PodExplanation, info: PodInfo, decision: Decision | None, *, in_full: bool
    ) -> None:
        """What would be decided on the cluster as it is. A placed pod does not compete with itself."""
        view, free = self.view(), info.placed("") if info.node_name else info
        if in_full:
            # Shaped for offline schedulers; a view has all that it asks of one.
            explanation.result = decide_in_full(cast(OfflineScheduler, view), free.pod)[1]
        decision = decision or decide_on(view, free)
        framework = view.framework(info.scheduler_name)
        explanation.now = now_of(framework, decision)
        explanation.now.time = self.live.options.clock.now()
        if not info.node_name:
            place = explanation.queue.place if explanation.queue is not None else ""
            sample = self._sample(info.scheduler_name)
            explanation.claim = now_claim(framework, info, decision, explanation.now, place=place, sample=sample)

    def _sample(self, scheduler_name: str) -> int:
        """How many nodes the profile scores at a time; 0 where it scores all."""
        profile = self.live.profiles.get(scheduler_name)
        nodes = len(self.live.cache.cluster.nodes)
        enough = nodes_to_find(nodes, profile.decider.percentage_of_nodes_to_score) if profile is not None else nodes
        return enough if enough < nodes else 0

    def _explain_placed(self, explanation: PodExplanation, info: PodInfo) -> None:
        """From the record of the attempt that placed it; without one, nothing is said about why."""
        record = next((r for r in explanation.attempts if r.node == info.node_name), None)
        explanation.node = info.node_name
        explanation.devices = devices_of_pod(self.live.cache.cluster, info)
        held = self.live.held_pods.get(info.uid)
        is_bound = not self.live.cache.is_assumed(info.uid) or (record is not None and record.outcome == "bound")
        explanation.state = "held" if held is not None else "placed" if is_bound else "binding"
        if record is not None:
            explanation.decision = decided_of(record)
            explanation.claim = chosen_of(record, is_bound=is_bound)
        else:
            explanation.claim = Chosen(pod=info.key, node=info.node_name, by="", nodes=0, feasible=0, is_bound=is_bound)
            by = "before this process or by others" + (", or long ago" if self.recorder.dropped else "")
            explanation.note = f"There is no record of the decision: it was made {by}."
        if self.live.cache.cluster.node(info.node_name) is None:
            explanation.note = f"{explanation.note} There is no node {info.node_name} any more.".lstrip()
        refusal = None if is_bound else self._last_refusal(info.key, info.uid)
        if refusal is not None:
            explanation.note = f"At its last attempt, {sentence(refusal)}"
        if held is not None:
            left = max(held.deadline - self.live.options.clock.monotonic(), 0.0)
            plugins = tuple(held.pending_plugins())
            explanation.claim = HeldAtPermit(
                pod=info.key, node=held.node_name, plugins=plugins, seconds_left=left, reason=held.waits_for()
            )

    def _explain_waiting(self, explanation: PodExplanation, info: PodInfo) -> None:
        view = self.view()
        explanation.state = "pending"
        if explanation.attempts:
            explanation.decision = decided_of(explanation.attempts[0])
        if info.is_terminating:
            reason = f"it is {BEING_DELETED}"
            explanation.claim = FitsNowhere(pod=info.key, nodes=len(self.live.cache.cluster.nodes), reason=reason)
            return
        if info.scheduler_name not in view.deciders:
            explanation.claim = NoScheduler(
                pod=info.key, scheduler=info.scheduler_name, known=tuple(sorted(view.deciders))
            )
            return
        awaited = self._awaited(info)
        if awaited is not None and not isinstance(explanation.claim, GoesTo):
            explanation.claim = awaited
            return
        gate = held_back_by(view.framework(info.scheduler_name), info)
        if explanation.queue is not None and explanation.queue.place == Place.GATED.value and gate is not None:
            explanation.state, explanation.claim = "gated", held_back_claim(info, gate)
            return
        refusal = self._last_refusal(info.key, info.uid)
        if refusal is not None and isinstance(explanation.claim, GoesTo):
            explanation.claim = refusal

    def _awaited(self, info: PodInfo) -> AwaitsVictims | None:
        """The victims that have not left the node that the pod is nominated to."""
        node = self.live.queue.nominations.node_of(info.uid)
        found = self.recorder.preemption_by(info.uid) if node else None
        there = [self.live.cache.pod(victim.uid) for victim in found.victims] if found is not None else []
        victims = tuple(pod.key for pod in there if pod is not None and pod.node_name == node)
        return AwaitsVictims(pod=info.key, node=node, victims=victims) if victims else None

    def _last_refusal(self, key: str, uid: str) -> RefusedLater | None:
        """What the pod's latest attempt that has ended was refused by after the choice, if it was."""
        ended = (each for each in self.recorder.of_pod(key, uid=uid, most=2) if each.outcome != UNDER_WAY)
        last = next(ended, None)
        return later_refusal_of(last) if last is not None else None

    def _queue_state(self, info: PodInfo) -> QueueState:
        queue = self.live.queue
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
            history=list(queued.history),
        )

    async def changes(self, key: str) -> Changes:
        """What would let a pending pod run, or move a placed one. Raises `UnknownObject`."""
        namespace, _, name = key.rpartition("/")
        if (settled := self._settled(self.live.watching.pod(namespace, name))) is not None:
            return settled
        found = await self._on_copy(lambda copy: _changes_of(copy, key, self.live.watching.pod(namespace, name)))
        found.note = " ".join(filter(None, (found.note, self._left_out())))
        pod = self.live.watching.pod(namespace, name)
        refusal = self._last_refusal(key, pod.uid) if pod is not None else None
        if found.schedulable and refusal is not None and refusal.point in _AFTER_THE_COPY:
            # Nothing is bound on a copy: whether it would be refused there again is not known.
            told = _nothing(key, f"at its last attempt {sentence(refusal)}")
            found.schedulable, found.suggestions = False, told.suggestions
        return found

    def _settled(self, pod: Pod | None) -> Changes | None:
        """Where no change is of any use: of a pod that is being deleted, or on its way to a node."""
        if pod is None:
            return None
        if pod.is_terminating and pod.spec.node_name:
            return Changes(pod=pod.key, is_placed=True, note="It is being deleted.")
        if pod.is_terminating:
            return _nothing(pod.key, f"it is {BEING_DELETED}")
        assumed = None if pod.spec.node_name else self.live.cache.pod(pod.uid)
        if assumed is None:
            return None
        refusal, held = self._last_refusal(pod.key, pod.uid), self.live.held_pods.get(pod.uid)
        if held is not None:
            return _nothing(pod.key, f"it has {assumed.node_name}, and is held at Permit")
        before = f"; at its attempt before, {sentence(refusal)}" if refusal is not None else ""
        return _nothing(pod.key, f"it has {assumed.node_name}, and is being bound{before}")

    def _left_out(self) -> str:
        """Said with answers about a cluster that is not there: extenders can only be asked about the one that is, and
        which nodes would be in a sample is not known."""
        named = {e.name for p in self.live.profiles.values() if p.extenders is not None for e in p.extenders.all}
        said = [f"Without the word of {', '.join(sorted(named))}."] if named else []
        if any(self._sample(name) for name in self.live.profiles):
            said.append("All nodes were scored; the scheduler scores some at a time and may take another that fits.")
        return " ".join(said)

    # Nodes, pending pods, everything

    def explain_node(self, name: str) -> NodeExplanation:
        """At once. Raises `UnknownObject`."""
        return at_once(self.explaining_node(name))

    def explaining_node(self, name: str) -> Work[NodeExplanation]:
        """Raises `UnknownObject`."""
        live = self.live
        node = live.cache.cluster.node(name)
        if node is None:
            raise UnknownObject(f"no node `{name}`")
        waiting = [info for info, _, gate in self._pending_pods() if not gate and not info.is_terminating]
        explanation = yield from explained_node(self.view(), node, waiting)
        explanation.attempts = self.recorder.of_node(name, most=_ATTEMPTS)
        return explanation

    async def pending(self, *, with_change: bool = False, namespace: str = "") -> PendingBoard:
        """Of one namespace, or of all."""
        await self.turns.take()
        stuck: Stuck = {}
        last = await in_slices(last_refusals(self.recorder), self.turns)
        pods = [*self._pending_pods(), *self._held_pods(), *self._bound_again(last), *self._pods_of_others()]
        pods = [entry for entry in pods if not namespace or entry[0].namespace == namespace]
        work = group_pending(self.view(), pods, stuck, last, lambda info: self._awaited(info) is not None)
        board = await in_slices(work, self.turns)
        if with_change and stuck:
            board.change, board.frees = await self._on_copy(
                lambda copy: find_best_change(copy, stuck, total=board.total)
            )
        return board

    def _bound_again(self, last_refusal: LastRefusal) -> list[tuple[PodInfo, Waiting, str]]:
        """Pods on the way to a node again after they were refused on that way."""
        cache, held = self.live.cache, self.live.held_pods
        assumed = [info for uid in cache.assumed() if held.get(uid) is None and (info := cache.pod(uid)) is not None]
        refusals = [(info, last_refusal(info.uid)) for info in assumed]
        return [
            (info, Waiting(pod=info.key, place=BINDING, attempts=late.attempt), "")
            for info, late in refusals
            if late is not None
        ]

    def _held_pods(self) -> list[tuple[PodInfo, Waiting, str]]:
        return [
            (held.info, Waiting(pod=held.info.key, place=PERMIT), " and ".join(held.pending_plugins()))
            for held in self.live.held_pods
        ]

    def _pods_of_others(self) -> list[tuple[PodInfo, Waiting, str]]:
        """Pods that wait for a scheduler that is not one of ours and may not be running."""
        view = self.view()
        return [
            (view.info(pod), Waiting(pod=pod.key, place="elsewhere", since=created(pod)), "")
            for pod in self.live.watching.pods()
            if not pod.spec.node_name and pod.spec.scheduler_name not in view.deciders
        ]

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
            for place, pods in self.live.queue.pending_pods().items()
            for queued in pods
        ]

    def overview(self) -> Overview:
        live = self.live
        self.view()
        now = live.options.clock.now()
        return overview_of(live, self.recorder, self.timeline, now=now, reloads=self._views_made - 1)

    def sample(self) -> None:
        """Add a point to the figures over time; nothing before the scheduler has seen the cluster."""
        live = self._sources.live()
        if live is not None and live.is_ready.is_set():
            self.timeline.sample(live, self.recorder, live.options.clock.now())

    async def listed(self, question: Callable[[LiveScheduler], Work[T]]) -> T:
        """Ask about the scheduler at work, in turns with its work."""
        live = self.live
        return await in_slices(question(live), self.turns)

    async def plugins(self) -> list[PluginState]:
        live = self.live
        probe = next(iter(live.cache.pods()), None) or next((info for info, _, _ in self._pending_pods()), None)
        registry = self._sources.settings().registry
        work = plugins_of(self.view(), self.recorder, registry, probe, live.options.clock.monotonic, self._code)
        return await in_slices(work, self.turns)

    def config(self) -> ConfigPage:
        return config_page(self._sources.settings())

    async def whatif(self, scenario: Scenario) -> WhatIf:
        """Raises `ScenarioError`."""
        settings = self._sources.settings()
        await self.turns.take()
        others = [info.pod for info, _, _ in self._pods_of_others() if not info.is_terminating]
        work = play(objects_of_live(self.live, others), settings.profiles, settings.registry, scenario)
        answer = await in_slices(work, self.turns)
        answer.note = " ".join(filter(None, (answer.note, self._left_out())))
        return answer

    async def _on_copy(self, question: Callable[[ClusterCopy], Work[T]]) -> T:
        self.view()
        return await self._copy.ask(self.live, self._sources.settings(), question)


def _nothing(key: str, reason: str) -> Changes:
    claim = NothingHelps(pod=key, reason=reason)
    return Changes(pod=key, suggestions=[Suggestion(sentence=sentence(claim), claim=claim)])


def _changes_of(copy: ClusterCopy, key: str, known: Pod | None) -> Work[Changes]:
    if key not in copy.waiting and known is not None and not known.spec.node_name:
        copy.add_waiting(known)  # it was being tried when the copy was taken
    pod = copy.waiting.get(key)
    if pod is not None:
        return (yield from find_changes(copy, pod))
    placed = next((info for info in copy.cache.pods() if info.key == key), None)
    if placed is None:
        raise UnknownObject(f"no pod `{key}` that this scheduler looks after")
    if placed.scheduler_name not in copy.deciders:
        return Changes(pod=key, is_placed=True)  # where it would go is for its own scheduler to say
    return (yield from find_moves(copy, placed))
