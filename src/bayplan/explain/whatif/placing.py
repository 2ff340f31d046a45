"""Pods placed one after the other on a copy of the cluster: the engine behind what-ifs, suggestions and counts.

Each pod goes through what an attempt goes through: PreEnqueue, `decide`, preemption if nothing fits, Reserve, Permit.
A pod that preempts is nominated, and its victims stay until every pod of the line had its turn, as pods do that are
given time to end. Then they leave and use up their disruption budgets; the pods that preempted, and those that found no
node, come again, and after them the victims that a controller would make again. Pods that found no node also come again
when others have been placed, if a plugin that rejected them registered for that. Pods that a plugin holds at Permit
keep their place until the plugin lets them go; the siblings that it requires are next in line. PreBind and Bind, which
need an API server, are left out. `undo` takes everything back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from bayplan.api.pod import Pod
from bayplan.api.workload import PodDisruptionBudget
from bayplan.app.frameworks import registrations_of
from bayplan.cluster.pod_info import PodInfo, parse_time
from bayplan.explain.claims.phrases import stopped
from bayplan.explain.device_report import device_report, lacking_cause
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.explain.whatif.remaking import made_again
from bayplan.framework.cycle import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, Resource
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.call import call_plugin, sort_key_call
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.status import Status, reason_of
from bayplan.loop.decide import Decider, Decision, decide
from bayplan.loop.recorder import preemption_of
from bayplan.preemption.budgets import Budgets
from bayplan.queue.heap import in_order

__all__ = ["Evicted", "Placed", "Placing", "created", "held_back_by", "queue_order"]

_MOST_REMADE = 10_000
_MOST_REPORTED = 20
_MOST_ROUNDS = 20
_POD_PLACED = ClusterEvent(Resource.ASSIGNED_POD, ActionType.ADD)


@dataclass(frozen=True, kw_only=True)
class Placed:
    """What became of one pod. Without a node it stays pending."""

    pod: str
    origin: str
    """pending, added, evicted, deleted, or the node that the pod was drained from"""
    node: str = ""
    total: int = 0
    feasible: int = 0
    message: str = ""
    plugin: str = ""
    """Who held it back, at PreEnqueue, Reserve or Permit."""


@dataclass(frozen=True, kw_only=True)
class Evicted:
    pod: str
    node: str
    by: str
    """The pod that takes its place."""
    ties: int = 1
    """On how many nodes pods could have left at the same cost."""


@dataclass(frozen=True)
class _Held:
    """A pod that plugins hold at Permit. Fulfils `framework.handle.WaitingPod`."""

    info: PodInfo
    node_name: str
    plugins: set[str]
    decision: Decision
    origin: str
    refusals: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_rejected(self) -> bool:
        return bool(self.refusals)

    def pending_plugins(self) -> list[str]:
        return sorted(self.plugins)

    def allow(self, plugin: str) -> None:
        self.plugins.discard(plugin)

    def reject(self, plugin: str, message: str) -> bool:
        self.refusals.append((plugin, message))
        return len(self.refusals) == 1

    def preempt(self, plugin: str, message: str) -> bool:
        return self.reject(plugin, message)


class Placing:
    """Runs until `line` is empty; see the module."""

    def __init__(
        self,
        copy: ClusterCopy,
        waiting: Sequence[tuple[Pod, str]],
        *,
        preempts: bool = True,
        deciders: Mapping[str, Decider] | None = None,
    ) -> None:
        """`waiting` are (pod, origin). Without `preempts`, a pod that fits nowhere stays pending."""
        self._copy = copy
        self._deciders = deciders if deciders is not None else copy.deciders if preempts else copy.trial_deciders
        self.line = deque(waiting)
        self._queued = {pod.key for pod, _ in waiting}
        self._again: list[tuple[Pod, str]] = []
        """Those that preempted or found no node, to be tried once victims have left."""
        self._helped_by_pods: dict[str, frozenset[str]] = {}
        """By scheduler name, the plugins whose answers may change when other pods are placed."""
        self._placed_when_failed: dict[str, int] = {}
        """By the key of one that found no node, how many had been placed then."""
        self._leaving: dict[str, PodInfo] = {}
        """Victims that are still there, by uid."""
        self._ending: list[PodInfo] = []
        self.placed: list[Placed] = []
        self.pending: list[Placed] = []
        self.evicted: list[Evicted] = []
        self.decisions: dict[str, Decision] = {}
        """The last decision about each pod."""
        self._undo: list[Callable[[], object]] = []

    def run(self) -> Iterator[None]:
        """Pause after each pod."""
        rounds = 0
        while self.line:
            while self.line:
                self.next()
                yield
            self._let_victims_go()
            if not self.line and rounds < _MOST_ROUNDS:
                rounds += 1
                self._call_back()
        self._let_go_of_held()

    def _call_back(self) -> None:
        """Pods that found no node come again where that others have been placed since may help them, as the events of
        these bring them back into the queue."""
        back = [entry for entry in self._again if self._may_be_helped(entry[0])]
        keys = {pod.key for pod, _ in back}
        self.pending = [each for each in self.pending if each.pod not in keys]
        self._again = [entry for entry in self._again if entry[0].key not in keys]
        self.line.extend(back)

    def _may_be_helped(self, pod: Pod) -> bool:
        diagnosis = self.decisions[pod.key].diagnosis
        if diagnosis is None or len(self.placed) == self._placed_when_failed.get(pod.key, len(self.placed)):
            return False
        scheduler = pod.spec.scheduler_name
        if scheduler not in self._helped_by_pods:
            registered = registrations_of(self._deciders[scheduler].framework)
            names = (name for name, hint in registered if hint.event.matches(_POD_PLACED))
            self._helped_by_pods[scheduler] = frozenset(names)
        return not self._helped_by_pods[scheduler].isdisjoint(diagnosis.unschedulable_plugins)

    def let_go(self, ending: Iterable[PodInfo]) -> None:
        """Pods that were deleted before and still end: they leave when victims do."""
        self._ending = list(ending)

    def undo(self) -> None:
        for step in reversed(self._undo):
            step()
        self._undo.clear()

    def outcome(self, key: str) -> Placed | None:
        return next((each for each in (*self.placed, *self.pending) if each.pod == key), None)

    def next(self) -> None:
        pod, origin = self.line.popleft()
        info = self._copy.info(pod)
        info.nominated_node_name = self._copy.nominator.node_of(info.uid)
        decider = self._deciders.get(info.scheduler_name)
        if self._copy.cache.pod(info.uid) is not None:
            self._stays(info, origin, "it is on a node already")
            return
        if decider is None:
            self._stays(info, origin, f"it is for the scheduler `{info.scheduler_name}`, which is none of ours")
            return
        gate = held_back_by(decider.framework, info)
        if gate is not None:
            self._stays(info, origin, gate.message, plugin=gate.plugin)
            return
        decision = self.decisions[info.key] = decide(decider, info)
        if decision.is_scheduled:
            self._take_place(decider.framework, info, origin, decision)
            return
        self._again.append((pod, origin))
        if preemption_of(decision.nomination) is not None:
            self._preempt(info, decision)
            return
        self._nominate(info, "")
        self._placed_when_failed[info.key] = len(self.placed)
        self._stays(info, origin, self._in_words(decider.framework, decision))
        self._settle_held()

    def _in_words(self, framework: Framework, decision: Decision) -> str:
        """The message, and which devices are missing where that is the reason; for the first pods only."""
        if len(self.pending) >= _MOST_REPORTED:
            return decision.message
        report = device_report(framework, decision)
        return decision.message if report is None else f"{decision.message} Devices: {lacking_cause(report)}."

    def _stays(self, info: PodInfo, origin: str, message: str, *, plugin: str = "") -> None:
        self.pending.append(Placed(pod=info.key, origin=origin, message=message, plugin=plugin))

    def _preempt(self, info: PodInfo, decision: Decision) -> None:
        """Nominate the pod; its victims leave later. Less important pods lose their nominations to the node."""
        nomination, nominator = decision.nomination, self._copy.nominator
        assert nomination is not None and nomination.nominated_node_name  # the caller checked
        node = nomination.nominated_node_name
        found = preemption_of(nomination)
        ties = found.ties if found is not None else 1
        for other in nominator.nominated_pods(node):
            if other.priority < info.priority:
                self._nominate(other, "")
        self._nominate(info, node)
        for victim in nomination.victims:
            if victim.uid not in self._leaving:
                self._leaving[victim.uid] = victim
                self.evicted.append(Evicted(pod=victim.key, node=victim.node_name or node, by=info.key, ties=ties))

    def _nominate(self, info: PodInfo, node: str) -> None:
        """To a node, or to none any more."""
        nominator = self._copy.nominator
        before = nominator.get(info.uid)
        if node:
            info.nominated_node_name = node
            nominator.put(info)
        else:
            nominator.drop(info.uid)
        self._undo.append(partial(nominator.drop, info.uid) if before is None else partial(nominator.put, before))

    def _let_victims_go(self) -> None:
        """Those that preempted and those that found no node come again, and the victims' successors after them."""
        if not self._leaving and not self._ending:
            return
        for ended in self._ending:
            self._remove(ended)
        ending = {ended.uid for ended in self._ending}
        victims = [victim for victim in self._leaving.values() if victim.uid not in ending]
        self._leaving, self._ending = {}, []
        again, self._again = self._again, []
        keys = {pod.key for pod, _ in again}
        self.pending = [each for each in self.pending if each.pod not in keys]
        self.line.extend(again)
        self._use_up_budgets(victims)
        for victim in victims:
            self._remove(victim)
            # Those of DaemonSets and of kubelets come back to their node, or to none.
            is_remade = victim.controller is not None and not victim.pod.ends_with_its_node
            if is_remade and len(self.evicted) <= _MOST_REMADE:
                successor = made_again(victim.pod, victim.node_name)
                self.line.append((successor, "evicted"))
                self._copy.cache.note_pod(None, successor)
        self._settle_held()

    def _remove(self, victim: PodInfo) -> None:
        cache, held = self._copy.cache, self._copy.held.pods.get(victim.uid)
        known = cache.pod(victim.uid)
        if held is not None:
            held.preempt("", "preempted")
        elif known is not None:
            cache.remove_pod(victim.uid)
            self._undo.append(lambda: cache.assume(known, known.node_name))
            self._undo.append(self._copy.release_claims(known.pod))

    def _use_up_budgets(self, victims: Sequence[PodInfo]) -> None:
        """A budget allows one disruption less for each victim that it covers."""
        objects, cache = self._copy.cache.cluster.objects, self._copy.cache
        for budget in list(objects.list(PodDisruptionBudget)):
            covering = Budgets([budget])
            used = sum(1 for victim in victims if covering.covering(victim))
            if used:
                left = max(budget.status.disruptions_allowed - used, 0)
                status = msgspec.structs.replace(budget.status, disruptions_allowed=left)
                cache.put_object(msgspec.structs.replace(budget, status=status))
                self._undo.append(partial(cache.put_object, budget))

    def _take_place(self, framework: Framework, info: PodInfo, origin: str, decision: Decision) -> None:
        """Assume, Reserve, Permit."""
        state, node = decision.state, decision.node_name
        assumed = self._copy.cache.assume(info, node)
        self._nominate(info, "")
        self._undo.append(lambda: self._give_back(framework, state, assumed, node))
        for plugin in framework.at(ExtensionPoint.RESERVE):
            if callable(getattr(plugin, "reserve", None)):
                status = call_plugin(plugin, "reserve", framework.complain, state, assumed, node)
                if isinstance(status, Status) and not status.is_success:
                    self._refuse(framework, state, assumed, node, origin, "Reserve", status)
                    return
        holding: set[str] = set()
        for plugin in framework.at(ExtensionPoint.PERMIT):
            status = call_plugin(plugin, "permit", framework.complain, state, assumed, node)
            if isinstance(status, Status) and status.is_wait:
                holding.add(plugin.name)
            elif isinstance(status, Status) and not status.is_success:
                self._refuse(framework, state, assumed, node, origin, "Permit", status)
                return
        if holding:
            self._copy.held.pods[info.uid] = _Held(assumed, node, holding, decision, origin)
            self._call_forward(state)
        else:
            self._settled(assumed, origin, decision)
        self._settle_held()

    def _call_forward(self, state: CycleState) -> None:
        """Move the siblings that a plugin activates to the front, waiting ones that are not part of the question
        included."""
        wanted = [pod for key, pod in state.pods_to_activate.items() if key in self._copy.waiting]
        state.pods_to_activate.clear()
        keys = {pod.key for pod in wanted}
        ahead = [entry for entry in self.line if entry[0].key in keys]
        later = [entry for entry in self.line if entry[0].key not in keys]
        ahead += [(self._copy.waiting[pod.key], "pending") for pod in wanted if pod.key not in self._queued]
        self._queued |= keys
        self.line = deque((*ahead, *later))

    def _refuse(
        self, framework: Framework, state: CycleState, info: PodInfo, node: str, origin: str, point: str, status: Status
    ) -> None:
        self._give_back(framework, state, info, node)
        said = f"{stopped(point, status.plugin, has_failed=not status.is_rejected)}: {reason_of(status)}"
        self._stays(info, origin, said, plugin=status.plugin)
        self._settle_held()

    def _give_back(self, framework: Framework, state: CycleState, info: PodInfo, node: str) -> None:
        if self._copy.cache.pod(info.uid) is None:
            return
        self._copy.held.pods.pop(info.uid, None)
        for plugin in reversed(framework.at(ExtensionPoint.RESERVE)):
            if callable(getattr(plugin, "unreserve", None)):
                call_plugin(plugin, "unreserve", framework.complain, state, info, node)
        self._copy.cache.forget(info.uid)

    def _settle_held(self) -> None:
        """Pods that no plugin holds any more have their node; those that one rejected give their place back."""
        held_pods = self._copy.held.pods
        for uid, held in list(held_pods.items()):
            if held.is_rejected:
                plugin, message = held.refusals[0]
                framework = self._deciders[held.info.scheduler_name].framework
                self._give_back(framework, held.decision.state, held.info, held.node_name)
                self._stays(held.info, held.origin, f"refused at Permit by {plugin}: {message}", plugin=plugin)
            elif not held.plugins and uid in held_pods:
                del held_pods[uid]
                self._settled(held.info, held.origin, held.decision)

    def _settled(self, info: PodInfo, origin: str, decision: Decision) -> None:
        self.placed.append(
            Placed(
                pod=info.key,
                origin=origin,
                node=decision.node_name,
                total=decision.total,
                feasible=decision.feasible_nodes,
            )
        )

    def _let_go_of_held(self) -> None:
        """No pod is left to place: the plugins that still hold a pod would hold it until its time is up."""
        for held in list(self._copy.held.pods.values()):
            who = ", ".join(sorted(held.plugins))
            message = f"would be held on {held.node_name} at Permit by {who} until its time is up"
            framework = self._deciders[held.info.scheduler_name].framework
            self._give_back(framework, held.decision.state, held.info, held.node_name)
            self._stays(held.info, held.origin, message, plugin=who)


def held_back_by(framework: Framework, info: PodInfo) -> Status | None:
    """What a PreEnqueue plugin says to a pod that it does not let into the queue."""
    for plugin in framework.at(ExtensionPoint.PRE_ENQUEUE):
        answer = call_plugin(plugin, "pre_enqueue", framework.complain, info)
        if isinstance(answer, Status) and not answer.is_success:
            return answer
    return None


def queue_order(framework: Framework, queued: Sequence[QueuedPod]) -> list[int]:
    """Positions in the order in which the scheduler would take the pods, were they all waiting now."""
    (sorter,) = framework.at(ExtensionPoint.QUEUE_SORT)
    return in_order(queued, sort_key_call(sorter, framework.complain))


def created(pod: Pod) -> float:
    """Pods without a time of creation came together, before all others."""
    text = pod.metadata.creation_timestamp
    return parse_time(text) if text else 0.0
