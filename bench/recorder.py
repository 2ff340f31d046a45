"""What the decision record costs: decisions a second with it and without, and the memory of ten thousand records.

    python -m bench.recorder [--nodes 5000] [--workload template]

Blocks of decisions with the record and without take turns in one stream of pods, so that both see the same cluster, the
same caches and the same noise of the machine.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc

import numpy as np

from bayplan.app.offline import OfflineScheduler
from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import decide
from bayplan.loop.decision import DecisionRecorder
from bayplan.observe.clock import SystemClock
from bench.clusters import running_cluster
from bench.measuring import offline_scheduler
from bench.workloads import Workload, find_workloads

_SCHEDULER = "default-scheduler"
_ROUNDS = 5
_PODS = 6_000
_BLOCK = 100


def main() -> None:
    options = _options()
    workload = find_workloads([options.workload])[0]
    scheduler = offline_scheduler(running_cluster(options.nodes))
    gc.collect()
    gc.freeze()
    with_record, without, share = _compare(scheduler, workload, options.nodes)
    print(f"without: {1 / without:.0f} decisions/s, with: {1 / with_record:.0f} ({with_record / without - 1:+.1%} CPU)")
    print(f"complete under this load: {share:.1%} of the records")
    print(f"memory of 10,000 complete records: {_memory(scheduler, workload, options.nodes) / 2**20:.1f} MiB")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--workload", default="template")
    return parser.parse_args()


def _compare(scheduler: OfflineScheduler, workload: Workload, nodes: int) -> tuple[float, float, float]:
    """CPU seconds a decision with the record and without (medians over blocks), and the share of complete records."""
    recorder = DecisionRecorder(SystemClock())
    costs: dict[bool, list[float]] = {True: [], False: []}
    kept = []  # pods end at some time with the record and without; here, not while the clock runs
    for number in range(_ROUNDS):
        pods = [scheduler.info(pod) for pod in workload.pods(f"round-{number}", _PODS, nodes)]
        queue = [QueuedPod(pod, 0.0) for pod in pods]
        kept.append(queue)
        for start in range(0, len(queue), _BLOCK):
            is_recorded = bool(start // _BLOCK % 2)
            block = queue[start : start + _BLOCK]
            costs[is_recorded].append(_place(scheduler, block, recorder if is_recorded else None) / len(block))
        for pod in pods:
            scheduler.cache.forget(pod.uid)
    share = sum(record.is_complete for record in recorder) / len(recorder)
    return float(np.median(costs[True])), float(np.median(costs[False])), share


def _place(scheduler: OfflineScheduler, queue: list[QueuedPod], recorder: DecisionRecorder | None) -> float:
    decider, cache, now = scheduler.deciders[_SCHEDULER], scheduler.cache, time.process_time
    began = now()
    for queued in queue:
        decision = decide(decider, queued.info)
        if recorder is not None:
            recorder.decided(queued, decision, 0.00005)
        cache.assume(queued.info, decision.node_name)
        if recorder is not None:
            recorder.bound(queued, decision.node_name, 0.001)
    return now() - began


def _memory(scheduler: OfflineScheduler, workload: Workload, nodes: int) -> float:
    """All of them complete, which is the most they can take."""
    recorder = DecisionRecorder(SystemClock(), share_of_time=1e9)
    pods = [scheduler.info(pod) for pod in workload.pods("memory", 1_000, nodes)]
    queue = [QueuedPod(pod, 0.0) for pod in pods]
    for queued in queue:
        queued.story = [(float(place), f"place-{place}", "NodeAdd") for place in range(6)]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(10):
        _place(scheduler, queue, recorder)
        for pod in pods:
            scheduler.cache.forget(pod.uid)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken


if __name__ == "__main__":
    main()
