"""Fragmentation of GPUs: how much of what is idle on a node the next pod can be expected not to be able to use.

After Weng et al., "Beware of Fragmentation" (USENIX ATC'23). The typical pods of a workload are its most frequent
requests; a node's fragmentation is the idle thousandths that each of them could not use there, weighted by how frequent
it is. All sums are of whole numbers, so they are exact in every order and on every machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from bayplan.framework import NodeColumns
from bayplan.framework.columns import Int64N, NodeTable, Rows
from bayplan.plugins.community.gpu_share.devices import WHOLE, Devices, GpuRequest

__all__ = ["Fragmentation", "KeptTallies", "NodeTally", "TypicalPod", "Use", "typical_pods"]

_COVERED = 0.95
"""The share of all pods that the typical ones stand for."""
_MOST_KNOWN = 64
"""Sizes of shares."""
Floats = npt.NDArray[np.float64]


class TypicalPod(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True, frozen=True):
    """A request that many pods of a workload have."""

    cpu_milli: int = 0
    gpu_milli: int = 0
    """Of each device."""
    gpu_count: int = 0
    gpu_models: tuple[str, ...] = ()
    """The models that will do; none stands for any."""
    pods: int = 1
    """How many pods have this request."""


def typical_pods(requests: Iterable[tuple[int, int, int, tuple[str, ...]]]) -> list[TypicalPod]:
    """The most frequent of (milli-cpu, thousandths a device, devices, models) that together cover 95 % of all."""
    counts = Counter(requests)
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], *(-number for number in entry[0][:3]), entry[0][3]))
    wanted, covered, chosen = _COVERED * counts.total(), 0, []
    for (cpu, milli, devices, models), pods in ordered:
        if covered >= wanted:
            break
        covered += pods
        chosen.append(TypicalPod(cpu_milli=cpu, gpu_milli=milli, gpu_count=devices, gpu_models=models, pods=pods))
    return chosen


class Use(NamedTuple):
    """What becomes of the idle thousandths of some nodes, by what typical pods find there."""

    satisfied: float
    """Usable by pods that need GPUs, and fit."""
    unsatisfied: dict[str, float]
    """The rest by cause: `lack_gpu`, `lack_cpu`, `lack_both`, `wrong_model`, `no_gpu_wanted`, `small_rest`."""

    @property
    def fragmented(self) -> float:
        return sum(self.unsatisfied.values())


class NodeTally(NamedTuple):
    """What fragmentation is summed up from, one entry a node."""

    enough: npt.NDArray[np.int16]
    """[node, class] how many devices are enough."""
    rest: npt.NDArray[np.int16]
    """[node, class] what is idle on the others."""
    idle: Int64N
    sums: Floats
    """Fragmentation in thousandths, times `Fragmentation.total`."""
    allowed: npt.NDArray[np.bool_] | None
    """[node, class] whether the model will do; None where no class names models."""

    def put(self, rows: Rows, other: NodeTally) -> None:
        """Replace the entries of some nodes."""
        self.enough[rows], self.rest[rows], self.idle[rows], self.sums[rows] = other[:4]
        if self.allowed is not None:
            self.allowed[rows] = other.allowed

    def take(self, rows: Rows) -> NodeTally:
        """Of some nodes."""
        allowed = None if self.allowed is None else self.allowed.take(rows, axis=0)
        enough, rest = self.enough.take(rows, axis=0), self.rest.take(rows, axis=0)
        return NodeTally(enough, rest, self.idle.take(rows), self.sums.take(rows), allowed)


class Fragmentation:
    """Fragmentation for one list of typical pods."""

    def __init__(self, pods: Sequence[TypicalPod]) -> None:
        wanting = [pod for pod in pods if pod.gpu_count]
        self.total = sum(pod.pods for pod in pods)
        self._idle_weight = float(sum(pod.pods for pod in pods if not pod.gpu_count))
        self._weight: Floats = np.array([pod.pods for pod in wanting], dtype=np.float64)
        self._cpu: Int64N = np.array([pod.cpu_milli for pod in wanting], dtype=np.int64)
        self._count: Int64N = np.array([pod.gpu_count for pod in wanting], dtype=np.int64)
        self._models = [frozenset(pod.gpu_models) for pod in wanting]
        self.names_models = any(self._models)
        rooms, milli = np.arange(WHOLE + 1), np.array([pod.gpu_milli for pod in wanting], dtype=np.int64)
        fits = rooms[:, None] >= milli[None, :]
        self._fits = fits.astype(np.int8)
        """[room, class] whether a device with so much room is enough."""
        self._rest = np.where(fits, 0, rooms[:, None]).astype(np.int16)
        """[room, class] what is idle on a device that is not enough."""
        self._known_changes: dict[int, tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]] = {}
        self._steps: Floats = np.array(
            [WHOLE * max(self.total, 1) * math.log(score / (100 - score)) for score in range(1, 100)]
        )

    def tallies(self, free: Devices) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
        """[node, class]: how many devices are enough, and what is idle on the others."""
        count = self._fits[free[0]].astype(np.int16)
        rest = self._rest[free[0]].copy()
        for device in free[1:]:
            count += self._fits[device]
            rest += self._rest[device]
        return count, rest

    def sums(
        self,
        cpu: Int64N,
        idle: Int64N,
        count: npt.NDArray[np.int16],
        rest: npt.NDArray[np.int16],
        allowed: npt.NDArray[np.bool_] | None = None,
    ) -> Floats:
        """The fragmentation of nodes in thousandths, times `total`, from their free cpu, idle thousandths and tallies.

        Leading axes may be anything; the last one of the tallies is that of the classes."""
        fits = (count >= self._count) & (cpu[..., None] >= self._cpu)
        if allowed is not None:
            fits &= allowed
        lost = np.where(fits, rest, idle[..., None]).astype(np.float64)
        sums: Floats = lost @ self._weight + self._idle_weight * idle
        return sums

    def allowed(self, models: Sequence[str]) -> npt.NDArray[np.bool_] | None:
        """[node, class]: whether the model of a node will do; None where no class names models."""
        if not self.names_models:
            return None
        known = {model: [not wanted or model in wanted for wanted in self._models] for model in set(models)}
        return np.array([known[model] for model in models], dtype=np.bool_).reshape(len(models), len(self._models))

    def of_nodes(self, cpu: Int64N, free: Devices, models: Sequence[str]) -> Floats:
        """The fragmentation of each node in thousandths."""
        if not self.total:
            return np.zeros(len(cpu), dtype=np.float64)
        count, rest = self.tallies(free)
        return self.sums(cpu, free.sum(axis=0), count, rest, self.allowed(models)) / self.total

    def tally(self, cpu: Int64N, free: Devices, models: Sequence[str]) -> NodeTally:
        """What scores of nodes begin with; the pod that is scored is no part of it."""
        count, rest = self.tallies(free)
        idle, allowed = free.sum(axis=0), self.allowed(models)
        return NodeTally(count, rest, idle, self.sums(cpu, idle, count, rest, allowed), allowed)

    def scores(
        self, tally: NodeTally, cpu: Int64N, free: Devices, cpu_wanted: int, request: GpuRequest
    ) -> tuple[Int64N, Int64N]:
        """For each node the score of a pod, 0 to 99 and 50 where nothing changes, and the best device for a share.

        The score is 100 times the logistic function of the thousandths saved, in thousands, rounded down."""
        no_device: Int64N = np.zeros(len(cpu), dtype=np.int64)
        if not self.total:
            return no_device + 50, no_device
        if request.is_share:
            return self._share_scores(tally, cpu - cpu_wanted, free, request.milli)
        count, rest = self._without(tally.enough, tally.rest, request)
        after = self.sums(cpu - cpu_wanted, tally.idle - request.total, count, rest, tally.allowed)
        return self._graded(tally.sums - after), no_device

    def _share_scores(self, tally: NodeTally, left: Int64N, free: Devices, milli: int) -> tuple[Int64N, Int64N]:
        """By pairs of a device and a node that have room. Of neighbours with equal room, the first stands for both."""
        is_tried = free >= milli
        is_tried[1:] &= free[1:] != free[:-1]
        devices, nodes = is_tried.nonzero()
        room = free[devices, nodes]
        more, less = self._changes(milli)
        after = self.sums(
            left.take(nodes),
            tally.idle.take(nodes) - milli,
            tally.enough.take(nodes, axis=0) + more.take(room, axis=0),
            tally.rest.take(nodes, axis=0) + less.take(room, axis=0),
            None if tally.allowed is None else tally.allowed.take(nodes, axis=0),
        )
        # A device without room comes behind one with the lowest score.
        by_device: Int64N = np.full(free.shape, -1, dtype=np.int64)
        by_device[devices, nodes] = self._graded(tally.sums.take(nodes) - after)
        device = by_device.argmax(axis=0)
        return np.maximum(by_device[device, np.arange(len(left))], 0), device

    def _changes(self, milli: int) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
        """[room, class]: what becomes of the tallies when a share is taken from a device with so much room."""
        found = self._known_changes.get(milli)
        if found is None:
            if len(self._known_changes) >= _MOST_KNOWN:
                self._known_changes.clear()
            then = np.maximum(np.arange(WHOLE + 1) - milli, 0)
            more = self._fits[then].astype(np.int16) - self._fits
            found = self._known_changes[milli] = (more, self._rest[then] - self._rest)
        return found

    def _without(
        self, count: npt.NDArray[np.int16], rest: npt.NDArray[np.int16], request: GpuRequest
    ) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
        """The tallies once as many wholly free devices are taken."""
        if not request.devices:
            return count, rest
        # A device that is taken was enough for every class and left nothing over; now it is enough for none.
        taken = np.int16(request.devices)
        return count - taken * self._fits[WHOLE], rest + taken * (self._rest[0] - self._rest[WHOLE])

    def _graded(self, saved: Floats) -> Int64N:
        return np.searchsorted(self._steps, saved, side="right").astype(np.int64)

    def use(self, cpu: Int64N, free: Devices, models: Sequence[str]) -> Use:
        """What becomes of the idle thousandths of these nodes together, in expectation."""
        causes = dict.fromkeys(("lack_gpu", "lack_cpu", "lack_both", "wrong_model", "no_gpu_wanted", "small_rest"), 0.0)
        if not self.total:
            return Use(0.0, causes)
        count, rest = self.tallies(free)
        idle = free.sum(axis=0).astype(np.float64)
        has_gpu, has_cpu = count >= self._count, cpu[:, None] >= self._cpu
        right = np.ones_like(has_gpu) if (allowed := self.allowed(models)) is None else allowed
        weights = idle[:, None] * self._weight / self.total
        fits = right & has_gpu & has_cpu
        causes["wrong_model"] = float(weights[~right].sum())
        causes["lack_both"] = float(weights[right & ~has_gpu & ~has_cpu].sum())
        causes["lack_gpu"] = float(weights[right & ~has_gpu & has_cpu].sum())
        causes["lack_cpu"] = float(weights[right & has_gpu & ~has_cpu].sum())
        causes["small_rest"] = float((rest * self._weight / self.total)[fits].sum())
        causes["no_gpu_wanted"] = float(idle.sum() * self._idle_weight / self.total)
        satisfied = float(((idle[:, None] - rest) * self._weight / self.total)[fits].sum())
        return Use(satisfied, causes)


class KeptTallies:
    """The tallies of all nodes of a table, computed again for rows that changed."""

    def __init__(self, table: NodeTable, tally: Callable[[NodeColumns], NodeTally]) -> None:
        self._table = table
        self._tally = tally
        self._layout = self._position = -1
        self._kept: NodeTally | None = None

    def of(self, nodes: NodeColumns) -> NodeTally:
        """Of some nodes of the table."""
        kept = self._refreshed()
        return kept if nodes.is_all else kept.take(nodes.rows)

    def _refreshed(self) -> NodeTally:
        table, log, kept = self._table, self._table.use_changes, self._kept
        changed = log.since(self._position) if kept is not None and self._layout == table.layout else None
        if kept is None or changed is None or len(kept.idle) != table.size or len(changed) > table.size:
            kept = self._kept = self._tally(NodeColumns(table))
        elif len(changed):
            rows = np.unique(changed)
            kept.put(rows, self._tally(NodeColumns(table, rows)))
        self._layout, self._position = table.layout, log.position
        return kept
