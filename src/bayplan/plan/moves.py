"""Moves of running pods on a copy of a cluster: each is an eviction whose replacement the scheduler has placed there.

The replacement goes through what an attempt goes through (`bayplan.explain.whatif.placing`), on the state that the
moves before it left, without preemption. A disruption budget allows as many evictions as its status says; more wait
until the replacements of those before are ready. Everything can be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from bayplan.api.decode import InputError
from bayplan.api.evictions import EvictionBudget
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.tolerations import with_cordon
from bayplan.api.workload import PodDisruptionBudget
from bayplan.app.settings import Settings
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.explain.whatif.placing import Placed, Placing
from bayplan.loop.decide import decide
from bayplan.observe.time_slices import at_once

__all__ = ["BudgetWait", "MovableCluster", "Move", "MoveAttempt", "Stuck"]

_replace = msgspec.structs.replace
_KEEP = "cluster-autoscaler.kubernetes.io/safe-to-evict"


class BudgetWait(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A disruption budget that has to be whole again before a move."""

    budget: str
    """namespace/name"""
    allowed: int


class Move(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An eviction, and where the scheduler puts the replacement."""

    pod: str
    """namespace/name"""
    source: str
    target: str
    feasible_nodes: int
    """On how many nodes the replacement fits."""
    after: list[BudgetWait] = []
    with_those: list[str] = []
    """Pods that have to be evicted right after it, because its replacement has no place while they are there."""


class Stuck(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that cannot be moved, and why."""

    pod: str
    node: str
    reason: str


class _Budget(EvictionBudget):
    def __init__(self, budget: PodDisruptionBudget) -> None:
        super().__init__(budget)
        self.used = 0
        """Evictions whose replacements are not ready yet."""


_WITHOUT_OTHERS = frozenset(
    ("NodeAffinity", "NodeName", "NodePorts", "NodeResourcesFit", "NodeUnschedulable", "TaintToleration")
)
"""Plugins that refuse a node in spite of pods that come to it."""


@dataclass(kw_only=True)
class MoveAttempt:
    """What came of evictions that were tried."""

    moves: list[Move] = field(default_factory=list)
    """None unless every replacement has a place."""
    placed: dict[str, Placed] = field(default_factory=dict)
    reason: str = ""
    """Why the first replacement has no place."""
    is_hopeless: bool = False
    """Whether that stays so whatever else is moved."""


class MovableCluster:
    def __init__(self, objects: Iterable[KubeObject], settings: Settings) -> None:
        given = [_with_uid(item) if isinstance(item, Pod) else item for item in objects]
        nodes = [item for item in given if isinstance(item, Node)]
        names = {node.name for node in nodes}
        pods = [item for item in given if isinstance(item, Pod) and not item.is_finished]
        _check_identities(pods)
        copied = ClusterObjects(
            nodes=nodes,
            placed=[(pod, pod.spec.node_name) for pod in pods if pod.spec.node_name in names],
            others=[item for item in given if not isinstance(item, Node | Pod)],
            waiting=[pod for pod in pods if not pod.spec.node_name],
        )
        self.copy = at_once(ClusterCopy.build(copied, settings.profiles, settings.registry))
        self._budgets = [_Budget(item) for item in given if isinstance(item, PodDisruptionBudget)]
        self._undo: list[Callable[[], object]] = []

    def place_waiting(self) -> list[str]:
        """Place the pods that wait for a node, as the scheduler will; the keys of those that fit nowhere."""
        placing = Placing(self.copy, [(pod, "pending") for pod in self.copy.waiting.values()], preempts=False)
        list(placing.run())
        return [each.pod for each in placing.pending]

    # Nodes

    def nodes(self) -> list[NodeInfo]:
        return [info for info in self.copy.cache.cluster.nodes.infos if info is not None]

    def node(self, name: str) -> NodeInfo:
        """Raises InputError for a node that is not there."""
        info = self.copy.cache.cluster.node(name)
        if info is None:
            raise InputError(f"no node `{name}` in the cluster")
        return info

    def set_unschedulable(self, name: str, value: bool) -> None:
        before = self.node(name).node
        self.copy.cache.add_node(with_cordon(before, value))
        self._undo.append(lambda: self.copy.cache.add_node(before))

    # Pods

    def pods_to_move(self, name: str) -> list[PodInfo]:
        """The pods of a node that have to go elsewhere: the most important first, of equal ones the largest."""
        info = self.node(name)
        found = [pod for pod in info.pods.values() if not pod.pod.ends_with_its_node]
        return sorted(found, key=lambda pod: (-pod.pod.priority, -_largest_share(pod, info), pod.key))

    def objection(self, pod: PodInfo, *, force: bool = False) -> str:
        """Why a pod may not be evicted; empty if that is allowed."""
        if pod.controller is None and not force:
            return "nothing makes it again: it has no controller (--force moves it all the same)"
        if pod.pod.annotations.get(_KEEP) == "false" and not force:
            return f"its annotation {_KEEP} is `false` (--force moves it all the same)"
        covering = [budget for budget in self._budgets if budget.covers(pod.pod)]
        if len(covering) > 1:
            return f"the eviction API refuses pods with two budgets: {', '.join(budget.key for budget in covering)}"
        if covering and covering[0].counts(pod.pod) and not covering[0].allowed:
            return f"PodDisruptionBudget {covering[0].key} allows no disruption"
        return ""

    def evict(self, pods: Sequence[PodInfo]) -> MoveAttempt:
        """Evict pods one right after the other, and have their replacements placed; all of them, or nothing is done."""
        mark, attempt = self.mark(), MoveAttempt()
        after = self._use_budgets([pod.pod for pod in pods])
        if after is None:
            self.undo_to(mark)
            return attempt
        for pod in pods:
            self._take_away(pod)
        placing = Placing(self.copy, [(_unplaced(pod.pod), pod.node_name) for pod in pods], preempts=False)
        list(placing.run())
        self._undo.append(placing.undo)
        keys = [pod.key for pod in pods]
        attempt.placed = {each.pod: each for each in placing.placed if each.pod in keys}
        if len(attempt.placed) == len(pods):
            attempt.moves = [
                Move(
                    pod=pod.key,
                    source=pod.node_name,
                    target=attempt.placed[pod.key].node,
                    feasible_nodes=attempt.placed[pod.key].feasible,
                    after=[] if place else after,
                    with_those=keys[place + 1 :],
                )
                for place, pod in enumerate(pods)
            ]
            return attempt
        refused = placing.outcome(keys[0])
        attempt.reason = refused.message if refused is not None else "no attempt was made"
        decision = placing.decisions.get(keys[0])
        if decision is not None and decision.diagnosis is not None:
            attempt.is_hopeless = set() < set(decision.diagnosis.unschedulable_plugins) <= _WITHOUT_OTHERS
        self.undo_to(mark)
        return attempt

    def _take_away(self, pod: PodInfo) -> None:
        cache, source = self.copy.cache, pod.node_name
        cache.remove_pod(pod.uid)
        restore_claims = self.copy.release_claims(pod.pod)
        cache.note_pod(None, _unplaced(pod.pod))

        def bring_back() -> None:
            restore_claims()
            cache.assume(pod, source)

        self._undo.append(bring_back)

    def refusing_rows(self, pod: PodInfo, plugins: frozenset[str]) -> set[int]:
        """Rows of the nodes that one of these plugins refuses to such a pod."""
        decider = self.copy.trial_deciders.get(pod.scheduler_name)
        if decider is None:
            return set()
        decision = decide(decider, self.copy.info(_unplaced(pod.pod)))
        groups = [rows.tolist() for status, rows in decision.rejected_groups() if status.plugin in plugins]
        return {row for rows in groups for row in rows}

    def _use_budgets(self, pods: Sequence[Pod]) -> list[BudgetWait] | None:
        """Count disruptions without a replacement between them; the budgets that have to be whole again first.

        None if one does not allow so many.
        """
        waits = []
        for budget in self._budgets:
            count = sum(budget.counts(pod) for pod in pods)
            if not count:
                continue
            if count > budget.allowed:
                return None
            self._undo.append(partial(setattr, budget, "used", budget.used))
            if budget.used + count > budget.allowed:
                waits.append(BudgetWait(budget=budget.key, allowed=budget.allowed))
                budget.used = 0
            budget.used += count
        return waits

    # Taking back

    def mark(self) -> int:
        """A point to go back to."""
        return len(self._undo)

    def undo_to(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()


def _largest_share(pod: PodInfo, node: NodeInfo) -> float:
    shares = [amount / offered for name, amount in pod.shape.amounts.items() if (offered := node.allocatable_of(name))]
    return max(shares, default=0.0)


def _unplaced(pod: Pod) -> Pod:
    return _replace(pod, spec=_replace(pod.spec, node_name=""))


def _with_uid(pod: Pod) -> Pod:
    return pod if pod.uid else _replace(pod, metadata=_replace(pod.metadata, uid=pod.key))


def _check_identities(pods: Sequence[Pod]) -> None:
    seen: set[str] = set()
    for pod in pods:
        if pod.uid in seen:
            raise InputError(f"pod `{pod.key}` is in the cluster twice")
        seen.add(pod.uid)
