"""Small plugins for tests of the kit: some keep the contract, some break one promise each."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.framework import (
    CycleState,
    Depends,
    NodeColumns,
    NodeInfo,
    Plugin,
    PluginArgs,
    PodInfo,
    PreFilterResult,
    QueuedPod,
    Status,
    Unschedulable,
    Verdicts,
    Wait,
    normalize_highest,
)

NO_LICENCE = Unschedulable("node(s) had no licence")


class ScoreByLabel(Plugin):
    """Prefers nodes whose label holds a higher number."""

    depends = Depends.NODE

    class Args(PluginArgs):
        label_key: str = "speed"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        text = node.labels.get(self.args.label_key, "0")
        return int(text) if text.isdigit() else 0

    normalize = normalize_highest


class Licences(Plugin):
    """One pod a node, counted by the plugin itself; both forms."""

    reasons = (NO_LICENCE.message,)

    def setup(self) -> None:
        self.taken: set[str] = set()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return NO_LICENCE if node.name in self.taken else None

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        taken = [row in self._rows() for row in nodes.rows.tolist()]
        return Verdicts.reject(np.array(taken, dtype=np.bool_), NO_LICENCE)

    def _rows(self) -> set[int]:
        rows = self.handle.cluster.nodes.row_of
        return {rows[name] for name in self.taken if name in rows}

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.taken.add(node_name)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.taken.discard(node_name)


class HoldsAtPermit(Plugin):
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return Wait(30) if pod.labels.get("gang") else None


class RefusesAtPermit(Plugin):
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return Unschedulable("not today")


class ScoresTooHigh(Plugin):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 101


class ChangesItsMind(Plugin):
    def setup(self) -> None:
        self.asked = 0

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.asked += 1
        return NO_LICENCE if self.asked % 2 else None


class MovesPods(Plugin):
    """Changes the node it is asked about."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        node.requested[0] += 1
        return None


class KeepsReservations(Licences):
    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Forgets to."""


class StumblesOverOddPods(Plugin):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None if pod.labels["app"] else NO_LICENCE


class LooksAtNames(Plugin):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return NO_LICENCE if pod.name.endswith("twin") else None


class FormsDisagree(Plugin):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        return Verdicts.reject(np.ones(len(nodes), dtype=np.bool_), NO_LICENCE)


class DependsOnMoreThanItSays(Plugin):
    """Says that the node alone matters, and counts pods."""

    depends = Depends.NODE

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return max(0, 50 - 10 * len(node.pods))


class GoesBeforeItself(Plugin):
    """Orders the queue by what is no order: equals go before each other."""

    def less(self, first: QueuedPod, second: QueuedPod) -> bool:
        return first.priority >= second.priority


class ComparesApplesAndPears(Plugin):
    """Keys of different types cannot be compared."""

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        return (queued.key,) if queued.timestamp else (1,)


class SortsByName(Plugin):
    """An honest order."""

    def sort_key(self, queued: QueuedPod) -> tuple[str]:
        return (queued.key,)


class PromisesBounds(Plugin):
    """Scores by the length of names, a hundredfold, and promises not to."""

    is_within_bounds = True

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 * len(node.name)

    normalize = normalize_highest


class PromisesRoom(Plugin):
    """Says that every node passes, and rejects."""

    depends = Depends.NODE

    def accepts_all(self, pod: PodInfo, nodes: NodeColumns) -> bool:
        return True

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Unschedulable("no")


class PromisesKinds(Plugin):
    """Says that it looks at kinds, and looks at labels."""

    depends = Depends.NODE
    settles_by_kind = True
    signs_by_kind = True

    def is_relevant(self, pod: PodInfo) -> bool:
        return "kind" in pod.labels

    def sign(self, pod: PodInfo) -> str:
        return pod.namespace

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> None:
        return None


class PromisesPins(Plugin):
    """Says that it names the node that a pod is pinned to, and names another."""

    names_pin = True

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> PreFilterResult:
        return PreFilterResult(frozenset(("elsewhere",)))


class PromisesSilence(Plugin):
    """Says that it is idle, and rejects."""

    def is_idle(self, pod: PodInfo) -> bool:
        return True

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Unschedulable("no")
