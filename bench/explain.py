"""How long an explanation takes: pods that fit, pods that do not, and pods that would preempt.

    python -m bench.explain [--nodes 5000]

Each is asked five times of a cluster that has not seen the pod's shape before, and the slowest counts: people ask about
one pod, not about a thousand of the same.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

import msgspec

from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.config.loading import default_config
from bayplan.config.profiles import resolve_profiles
from bayplan.explain.builders import decide_on, now_of
from bayplan.explain.offline.case import decide_in_full
from bayplan.explain.suggestions.search import find_changes
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects, objects_of_snapshot
from bayplan.observe.time_slices import at_once
from bayplan.plugins.intree import default_registry
from bayplan.testing import apart, pod, spread
from bench.clusters import full_cluster, running_cluster
from bench.measuring import offline_scheduler

_ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    nodes = parser.parse_args().nodes
    scheduler = offline_scheduler(running_cluster(nodes))
    _freeze()
    _measure(scheduler, "fits", lambda n: pod(f"a{n}", cpu="100m", labels={"n": str(n)}))
    zone = "topology.kubernetes.io/zone"
    _measure(
        scheduler,
        "fits, spread and anti-affinity",
        lambda n: pod(
            f"b{n}",
            cpu="100m",
            labels={"app": f"b{n}"},
            affinity=apart("kubernetes.io/hostname", {"app": f"b{n}"}),
            spread=[spread(zone, {"app": f"b{n}"})],
        ),
    )
    _measure(scheduler, "fits nowhere", lambda n: pod(f"c{n}", cpu="5000", labels={"n": str(n)}))
    full = offline_scheduler(full_cluster(nodes))
    _freeze()
    # A pod that would preempt has been tried before anybody asks about it, and that made the columns of running pods.
    full.decide(full.info(pod("tried", cpu="1", priority=1000)))
    _measure(full, "would preempt", lambda n: pod(f"d{n}", cpu="1", priority=1000, labels={"n": str(n)}))
    _measure_changes(scheduler, pod("c", cpu="5000"))


def _freeze() -> None:
    """As the scheduler does once it has synced."""
    gc.collect()
    gc.freeze()


def _measure(scheduler: OfflineScheduler, title: str, make: Callable[[int], Pod]) -> None:
    small, full = [], []
    for number in range(_ROUNDS):
        for times, in_full in ((small, False), (full, True)):
            info = scheduler.info(make(2 * number + in_full))
            began = time.perf_counter()
            decision = decide_in_full(scheduler, info.pod)[0] if in_full else decide_on(scheduler, info)
            msgspec.json.encode(now_of(scheduler.framework(info.scheduler_name), decision))
            times.append((time.perf_counter() - began) * 1000)
    print(
        f"{title:<34}{sorted(small)[_ROUNDS // 2]:8.1f} ms{max(small):8.1f} ms at most; every node: {max(full):8.1f} ms"
    )


def _measure_changes(scheduler: OfflineScheduler, waiting: Pod) -> None:
    registry = default_registry()
    profiles = resolve_profiles(default_config(), registry)
    began = time.perf_counter()
    objects: ClusterObjects = objects_of_snapshot(scheduler.cache, [waiting], {})
    taken = time.perf_counter()
    copy = at_once(ClusterCopy.build(objects, profiles, registry))
    built = time.perf_counter()
    changes = at_once(find_changes(copy, waiting))
    done = time.perf_counter()
    took, built_in = (taken - began) * 1e3, (built - taken) * 1e3
    print(f"copy with {len(objects.placed)} pods: taken in {took:.1f} ms, built in {built_in:.0f} ms (in turns)")
    print(f"changes: {len(changes.suggestions)} suggestions in {(done - built) * 1e3:.0f} ms (in turns)")


if __name__ == "__main__":
    main()
