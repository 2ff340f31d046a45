"""What a simulation is judged by: every decision in order, the story of each pod, and samples of the cluster over time.

Samples are taken at whole multiples of an interval that doubles whenever there are too many, so a minute and a month
give curves of the same length. The numbers follow from the simulation alone: no clock, no hash order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from hashlib import sha256
from math import fsum

import msgspec
import numpy as np

from bayplan.api.pod import Pod
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer
from bayplan.observe.failures import described
from bayplan.sim.engine.world import WorldListener

__all__ = ["PRICE", "ClusterSample", "DecisionLine", "Ledger", "PodStory", "digest", "price_of"]

PRICE = "bayplan.dev/price-per-hour"
"""The label or annotation of a node with its price."""
_HIGHEST_PRICE = 1e9
_MOST_SAMPLES = 400
_TYPICAL = 32
"""So many of the most frequent requests stand for all, where the question is what still fits."""


class DecisionLine(msgspec.Struct, frozen=True, array_like=True):
    """One attempt: a node, or why there is none."""

    time: float
    pod: str
    node: str
    message: str = ""
    nominated: str = ""
    victims: tuple[str, ...] = ()


class PodStory(msgspec.Struct):
    """The life of a pod in seconds since the start; None for what did not happen."""

    pod: str
    arrived: float
    bound: float | None = None
    node: str = ""
    gone: float | None = None
    end: str = ""
    """`Finished`, `Deleted`, `Withdrawn`; empty while it is there."""
    attempts: int = 0
    message: str = ""
    """Why the last attempt failed."""
    refused_by: str = ""
    """The plugins that refused it then."""
    refused_since: float = 0.0
    """When they were the first time, one attempt after the other."""


class ClusterSample(msgspec.Struct, frozen=True):
    """The cluster at one time. Shares are of what all nodes offer, 0 to 1."""

    time: float
    arrived: int
    pending: int
    running: int
    nodes: int
    empty_nodes: int
    allocated: dict[str, float]
    stranded: dict[str, float]
    """Free, but on nodes that typical pods that ask for it do not fit on."""
    imbalance: float
    """Standard deviation of the cpu share in use over the nodes."""
    node_use: tuple[float, ...] = ()
    """The cpu share in use, sorted and cut to a few values, for a heat map."""
    gauges: dict[str, float] = {}
    """Numbers of plugins, by name."""
    price: float = 0.0
    """Of all nodes for an hour, by their annotation."""
    pending_by: dict[str, int] = {}
    """Pods that wait, by the plugins that refused them last."""
    demand: dict[str, float] = {}
    """What all pods so far asked for, as a share of what all nodes offer."""


class Ledger(Observer, WorldListener):
    def __init__(self) -> None:
        self.decisions: list[DecisionLine] = []
        self.pods: dict[str, PodStory] = {}
        """By uid, in order of arrival."""
        self.samples: list[ClusterSample] = []
        self.preemptions = self.evictions = self.refusals = 0
        self.failures: Counter[str] = Counter()
        """Exceptions of plugins, by plugin and extension point."""
        self._cluster: ClusterState | None = None
        self._gauges: Callable[[], dict[str, float]] = dict
        self.refused_seconds: dict[str, float] = defaultdict(float)
        """How long all pods together waited, by the plugins that refused them; complete after `finish`."""
        self._refused: Counter[str] = Counter()
        self._demand: Counter[str] = Counter()
        self._now = 0.0
        self._interval = 1.0
        self._next_sample = 0.0
        self._requests: Counter[tuple[tuple[str, int], ...]] = Counter()
        self._running = self._waiting = 0
        self._priced_at, self._priced = -1, 0.0

    def watch(self, cluster: ClusterState, gauges: Callable[[], dict[str, float]] = dict) -> None:
        """The cluster to take samples of, and numbers of plugins that belong to them."""
        self._cluster, self._gauges = cluster, gauges

    # The scheduler's part

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        nomination = decision.nomination
        line = DecisionLine(
            time=self._now,
            pod=queued.key,
            node=decision.node_name,
            message=decision.message,
            nominated=(nomination.nominated_node_name or "") if nomination is not None else "",
            victims=tuple(victim.key for victim in nomination.victims) if nomination is not None else (),
        )
        self.decisions.append(line)
        story = self.pods.get(queued.uid)
        if story is not None:
            story.attempts += 1
            story.message = line.message
            if not line.node and story.bound is None:
                blamed = decision.diagnosis.unschedulable_plugins if decision.diagnosis is not None else ()
                self._blame(story, ", ".join(sorted(blamed)) or "an error")

    def preempted(self, victims: int) -> None:
        self.preemptions += 1
        self.evictions += victims

    def refused_after_choice(self, info: PodInfo, node_name: str, point: str, status: Status) -> None:
        self.refusals += 1
        story = self.pods.get(info.uid)
        if story is not None:
            story.message = status.message
            self._blame(story, status.plugin or "an error")

    def _blame(self, story: PodStory, plugins: str) -> None:
        """Count the pod under what refuses it now; under nothing once it has a node or is gone."""
        if plugins != story.refused_by:
            self._count_refused_seconds(story)
            self._refused[story.refused_by] -= 1
            self._refused[plugins] += 1
            story.refused_by, story.refused_since = plugins, self._now

    def _count_refused_seconds(self, story: PodStory) -> None:
        if story.refused_by:
            self.refused_seconds[story.refused_by] += self._now - story.refused_since

    def plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        self.failures[f"{plugin} at {point}: {described(exception)}"] += 1

    # The cluster's part

    def time_passes(self, now: float, then: float) -> None:
        while self._next_sample < then:
            self._take_sample(self._next_sample)
        self._now = then

    def pod_arrived(self, pod: Pod) -> None:
        self.pods[pod.uid] = PodStory(pod=pod.key, arrived=self._now)
        self._waiting += 1

    def pod_bound(self, pod: Pod) -> None:
        story = self.pods.get(pod.uid)
        if story is None or self._cluster is None:
            return
        story.bound, story.node, story.message = self._now, pod.spec.node_name, ""
        self._blame(story, "")
        self._waiting -= 1
        self._running += 1

    def pod_gone(self, pod: Pod, reason: str) -> None:
        story = self.pods.get(pod.uid)
        if story is None:
            return
        story.gone, story.end = self._now, reason
        self._blame(story, "")
        if story.bound is None:
            self._waiting -= 1
        else:
            self._running -= 1

    def note_request(self, amounts: tuple[tuple[str, int], ...]) -> None:
        """What a pod that arrived asks for, in the order of names."""
        self._requests[amounts] += 1
        for name, amount in amounts:
            self._demand[name] += amount

    def finish(self, now: float) -> None:
        """Take the last sample, and count pods that still wait up to now."""
        self._now = now
        for story in self.pods.values():
            self._count_refused_seconds(story)
        self._take_sample(now)

    def _take_sample(self, time: float) -> None:
        if self._cluster is None:
            return
        if len(self.samples) >= _MOST_SAMPLES:
            self._interval *= 2.0
            self.samples = [sample for sample in self.samples if sample.time % self._interval == 0.0]
            if time % self._interval:
                self._next_sample = (time // self._interval + 1.0) * self._interval
                return
        self._next_sample = time + self._interval
        self.samples.append(self._sample(self._cluster, time))

    def _sample(self, cluster: ClusterState, time: float) -> ClusterSample:
        table, columns = cluster.nodes, cluster.columns()
        rows = np.flatnonzero(table.valid[: table.size])
        names = list(table.resources.names)
        offered, used = columns.all_allocatable[:, rows], columns.all_requested[:, rows]
        totals = offered.sum(axis=1)
        present = [place for place, total in enumerate(totals.tolist()) if total]
        free = np.maximum(offered - used, 0)
        cpu = names.index("cpu")
        use = np.sort(used[cpu] / np.maximum(offered[cpu], 1))
        return ClusterSample(
            time=time,
            arrived=len(self.pods),
            pending=self._waiting,
            running=self._running,
            nodes=len(rows),
            empty_nodes=int((table.pod_count[rows] == 0).sum()),
            allocated={names[place]: _share(int(used[place].sum()), int(totals[place])) for place in present},
            stranded=self._stranded(names, free, present, totals.tolist()),
            imbalance=round(float(np.std(use)), 6) if len(use) else 0.0,
            node_use=tuple(round(float(value), 3) for value in _cut(use)),
            price=self._price(cluster),
            gauges=self._gauges(),
            pending_by={name: count for name, count in sorted(self._refused.items()) if name and count},
            demand={names[place]: _share(self._demand[names[place]], int(totals[place])) for place in present},
        )

    def _price(self, cluster: ClusterState) -> float:
        position = cluster.nodes.node_changes.position
        if position != self._priced_at:
            self._priced_at = position
            self._priced = fsum(price_of(info) for info in cluster.columns())
        return self._priced

    def _stranded(
        self,
        names: Sequence[str],
        free: np.ndarray[tuple[int, int], np.dtype[np.int64]],
        present: list[int],
        totals: list[int],
    ) -> dict[str, float]:
        places = {name: place for place, name in enumerate(names)}
        lost, weights = dict.fromkeys(present, 0), dict.fromkeys(present, 0)
        for request, count in sorted(self._requests.most_common(_TYPICAL)):
            wanted = [(places[name], amount) for name, amount in request if name in places and amount]
            fits = np.ones(free.shape[1], dtype=np.bool_)
            for place, amount in wanted:
                fits &= free[place] >= amount
            for place, _ in wanted:
                if place in lost:
                    lost[place] += count * int(free[place][~fits].sum())
                    weights[place] += count
        return {
            names[place]: _share(lost[place], weights[place] * totals[place]) for place in present if weights[place]
        }


def price_of(node: NodeInfo) -> float:
    """Of an hour; 0 for a text that is no price."""
    text = node.labels.get(PRICE) or node.annotations.get(PRICE) or "0"
    try:
        price = float(text)
    except ValueError:
        return 0.0
    return price if 0.0 <= price < _HIGHEST_PRICE else 0.0


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _cut(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    """At most 24 values, evenly chosen."""
    if len(values) <= 24:
        return [float(value) for value in values]
    return [float(values[round(place * (len(values) - 1) / 23)]) for place in range(24)]


def digest(decisions: Sequence[DecisionLine]) -> str:
    """A number that is the same for the same decisions."""
    return sha256(msgspec.json.encode(decisions)).hexdigest()
