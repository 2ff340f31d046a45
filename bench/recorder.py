"""What the decision record costs, and the memory of fifty thousand records.

    python -m bench.recorder [--nodes 5000] [--workload template]

Twice: beside bare decisions, and in a whole scheduler that takes pods in as JSON, queues, decides, binds and hears of
the bindings, with an API server that answers at once. Blocks of pods with the record and without take turns in one
stream, so that both see the same cluster, the same caches and the same noise of the machine. CPU time: the median over
pairs of neighbouring blocks, and the mean of the quicker half of each kind, which a busy machine disturbs least.

Ends with 1 if a record takes more than 8 µs in the whole scheduler by both measures, if fifty thousand records take
more than the default memory, or if one lacks the reasons of its decision.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
import tracemalloc
from dataclasses import dataclass, field, replace

import numpy as np

from bayplan.app.metrics import SchedulerMetrics
from bayplan.app.offline import OfflineScheduler
from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import decide
from bayplan.loop.observer import Observer, Observers
from bayplan.loop.recorder import DEFAULT_MEMORY_BYTES, DecisionRecorder
from bayplan.observe.clock import SystemClock
from bayplan.observe.metrics import MetricsRegistry
from bench.clusters import running_cluster
from bench.measuring import offline_scheduler
from bench.whole_loop import measure_whole_loop
from bench.workloads import Workload, find_workloads

_SCHEDULER = "default-scheduler"
_ROUNDS = 5
_PODS = 6_000
_BLOCK = 25
_KEPT = 50_000
_PLACES = ("active", "in-flight", "active")
_MOST_MICROSECONDS = 8.0


def main() -> int:
    options = _options()
    workload = find_workloads([options.workload])[0]
    scheduler = offline_scheduler(running_cluster(options.nodes))
    gc.collect()
    gc.freeze()
    recorder = DecisionRecorder(SystemClock())
    recorder.cluster = scheduler.cache.cluster
    _compare(scheduler, workload, options.nodes, recorder).tell("bare decisions")
    complete = [_tell_complete(recorder)]
    taken, counted = _memory(scheduler, workload, options.nodes)
    print(f"memory of {_KEPT:,} records: {taken / 2**20:.1f} MiB, counted as {counted / 2**20:.1f} MiB")
    whole = Costs()
    recorder = asyncio.run(measure_whole_loop(workload, options.nodes, whole.add))
    cost = whole.tell("whole scheduler")
    complete.append(_tell_complete(recorder))
    broken = [
        what
        for what, is_broken in (
            (f"a record takes more than {_MOST_MICROSECONDS:g} µs", cost > _MOST_MICROSECONDS),
            (f"{_KEPT:,} records do not fit into the default memory", max(taken, counted) > DEFAULT_MEMORY_BYTES),
            ("records lack the reasons of their decisions", min(complete) < 1),
        )
        if is_broken
    ]
    print(f"limits: {'; '.join(broken) or 'held'}")
    return 1 if broken else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--workload", default="template")
    return parser.parse_args()


@dataclass
class Costs:
    """CPU seconds a pod, by block, with the record and without."""

    blocks: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})

    def add(self, is_recorded: bool, seconds: float) -> None:
        self.blocks[is_recorded].append(seconds)

    def tell(self, title: str) -> float:
        """Print both measures; the lower one, in microseconds a pod."""
        ours, bare = (np.array(self.blocks[is_recorded]) for is_recorded in (True, False))
        pairs = min(len(ours), len(bare))
        by_pairs = np.median(ours[:pairs] / bare[:pairs]) - 1
        quick_ours, quick_bare = (np.sort(each)[: len(each) // 2].mean() for each in (ours, bare))
        by_neighbours, by_half = np.median(ours[:pairs] - bare[:pairs]) * 1e6, (quick_ours - quick_bare) * 1e6
        print(
            f"{title}: {np.median(bare) * 1e6:.1f} µs a pod without, {np.median(ours) * 1e6:.1f} with; "
            f"{by_neighbours:+.1f} µs by neighbours, {by_half:+.1f} by the quicker half; "
            f"{by_pairs:+.1%} CPU by neighbours, {quick_ours / quick_bare - 1:+.1%} by the quicker half",
            flush=True,
        )
        return float(min(by_neighbours, by_half))


def _tell_complete(recorder: DecisionRecorder) -> float:
    share = _complete_share(recorder)
    print(f"  with points or the reason for none: {share:.1%} of the records")
    return share


def _complete_share(recorder: DecisionRecorder) -> float:
    complete = sum(bool(record.points or record.chosen_by not in ("", "points")) for record in recorder)
    return complete / max(len(recorder), 1)


def _compare(scheduler: OfflineScheduler, workload: Workload, nodes: int, recorder: DecisionRecorder) -> Costs:
    clock = SystemClock()
    # As in a running scheduler: phases are timed and metrics are kept, with the record and without.
    decider = replace(scheduler.deciders[_SCHEDULER], monotonic=clock.monotonic)
    scheduler.deciders = {**scheduler.deciders, _SCHEDULER: decider}
    metrics = SchedulerMetrics(MetricsRegistry(), clock)
    observers = {True: Observers([metrics, recorder]), False: Observers([metrics])}
    costs = Costs()
    kept = []  # pods end at some time with the record and without; here, not while the clock runs
    for number in range(_ROUNDS):
        pods = [scheduler.info(pod) for pod in workload.pods(f"round-{number}", _PODS, nodes)]
        queue = [QueuedPod(pod, 0.0) for pod in pods]
        kept.append(queue)
        for start in range(0, len(queue), _BLOCK):
            is_recorded = bool(start // _BLOCK % 2)
            block = queue[start : start + _BLOCK]
            costs.add(is_recorded, _place(scheduler, block, observers[is_recorded]) / len(block))
        for pod in pods:
            scheduler.cache.forget(pod.uid)
    return costs


def _place(scheduler: OfflineScheduler, queue: list[QueuedPod], observer: Observer) -> float:
    decider, cache, now = scheduler.deciders[_SCHEDULER], scheduler.cache, time.process_time
    began = now()
    for queued in queue:
        decision = decide(decider, queued.info)
        observer.decided(queued, decision, 0.00005)
        cache.assume(queued.info, decision.node_name)
        observer.bound(queued, decision.node_name, 0.001)
    return now() - began


def _memory(scheduler: OfflineScheduler, workload: Workload, nodes: int) -> tuple[float, int]:
    """Bytes that records take, and what the recorder takes them for."""
    recorder = DecisionRecorder(SystemClock(), memory_bytes=2**40)
    recorder.cluster = scheduler.cache.cluster
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(_KEPT // 1_000):
        # Pods come and go; what a record keeps of them is its own after that.
        pods = [scheduler.info(pod) for pod in workload.pods(f"memory-{number}", 1_000, nodes)]
        queue = [QueuedPod(pod, 0.0) for pod in pods]
        for queued in queue:
            queued.history = [(number + place * 0.1, name, "NodeAdd") for place, name in enumerate(_PLACES)]
        _place(scheduler, queue, recorder)
        for pod in pods:
            scheduler.cache.forget(pod.uid)
    del pods, queue, queued, pod
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken, recorder.bytes_kept


if __name__ == "__main__":
    sys.exit(main())
