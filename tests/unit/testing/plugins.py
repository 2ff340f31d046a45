"""Small plugins for tests of the kit: some keep the contract, some break one promise each."""

from __future__ import annotations

import asyncio
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
from bayplan.framework.columns import NameLog
from bayplan.framework.objects import Namespace

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


class ReadsLabelsOfPods(Plugin):
    """Promises to read counts, and reads labels."""

    depends = Depends.ROW
    filter_reads_counts_only = True

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        has_labels = [any(other.labels for other in info.pods.values()) for info in nodes]
        refused = np.zeros(len(nodes), dtype=np.bool_)
        refused[np.flatnonzero(nodes.valid)] = has_labels
        return Verdicts.reject(refused, NO_LICENCE)


class BindsTwice(Plugin):
    """Promises one request, and makes two."""

    binds_at_once = True

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        await self.handle.api.patch_pod(pod, {})
        await self.handle.api.bind(pod, node_name)
        return None


class BindsLater(Plugin):
    """Promises one request, and waits for something else."""

    binds_at_once = True

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        await asyncio.sleep(1)
        return None


class ForgetsToRelease(Plugin):
    """Holds pods back until their namespace exists, and names none when it does."""

    def setup(self) -> None:
        self.log_of_releases = NameLog()

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return None if self.handle.cluster.objects.get(Namespace, "open") else NO_LICENCE

    def releases(self) -> NameLog:
        return self.log_of_releases


class AddsUpWrongly(Plugin):
    """Combines the score of a default plugin with its own, and is off by one."""

    depends = Depends.ROW
    is_within_bounds = True

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return min(100, len(node.pods))

    def combine_scores(self, scores: Any) -> Any:
        weight = scores["AddsUpWrongly"][1]

        class Sum:
            members = ("AddsUpWrongly",)

            def sign(self, pod: PodInfo) -> int:
                return 0

            def totals(self, pod: PodInfo, nodes: NodeColumns, out: Any, first: Any) -> bool:
                first[:] = np.minimum(100, nodes.pod_count)
                out[:] = first.astype(np.int64) * weight + 1
                return True

            def total(self, pod: PodInfo, node: NodeInfo) -> None:
                return None

        return Sum()


class FollowsOtherLabels(Plugin):
    """Says that what pods use matters, and reads their labels, in a way that the reading does not understand."""

    depends = Depends.USE

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return sum(labels_of(other) for other in node.pods.values())


def labels_of(pod: Any) -> int:
    return 7 if getattr(pod, "labels", {}).get("app") == "changed" else 0
