"""How a decision's cost grows with the cluster, in this process and without an API server.

Nodes: the same pods on 500, 5,000 and 15,000 nodes with ten pods each. Bound pods: 5,000 nodes that are empty, and with
150,000 pods. Figures are CPU time at the reference speed, so that a busy minute does not pass for growth.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator

import msgspec

from bayplan.api.pod import Pod
from bench.clusters import make_node
from bench.measuring import Bench, offline_scheduler
from bench.memory import wire_pods
from bench.versus.records import Growth
from bench.workloads import find_workloads

_WORKLOADS = ["template", "templates", "different", "spread-required", "affinity-required", "anti-affinity"]
_BOUND_ON_NODES = 5_000
_TURNS = 9


def growth(session: str, say: Callable[[str], None], *, sizes: list[int], bound_pods: int) -> Iterator[Growth]:
    for nodes in sizes:
        bench = Bench(nodes, rounds=3, share=0.5, tell=lambda text: None)
        for workload in find_workloads(_WORKLOADS):
            cost = 1e6 / bench.measure(workload).reference_per_second
            say(f"{workload.title}, {nodes:,} nodes: {cost:.1f} µs a decision")
            yield Growth(session=session, workload=workload.name, nodes=nodes, bound_pods=10 * nodes, decision_us=cost)
        gc.unfreeze()
    yield from _with_bound_pods(session, say, bound_pods)


def _with_bound_pods(session: str, say: Callable[[str], None], most: int) -> Iterator[Growth]:
    """Both clusters are there at the same time and take turns, because one minute of a machine is not like another."""
    (workload,) = find_workloads(["template"])
    benches = {count: _bench_with(count) for count in (0, most)}
    gc.collect()
    gc.freeze()
    costs: dict[int, list[float]] = {count: [] for count in benches}
    for count, bench in _TURNS * list(benches.items()):
        costs[count].append(1e6 / bench.measure(workload).reference_per_second)
    gc.unfreeze()
    name = f"{workload.name}, bound pods"
    for count, found in costs.items():
        cost = statistics.median(found)
        say(f"{workload.title}, {count:,} bound pods: {cost:.1f} µs a decision")
        yield Growth(session=session, workload=name, nodes=_BOUND_ON_NODES, bound_pods=count, decision_us=cost)


def _bench_with(bound_pods: int) -> Bench:
    scheduler = offline_scheduler(make_node(number) for number in range(_BOUND_ON_NODES))
    decoder = msgspec.json.Decoder(Pod)
    for body in wire_pods(bound_pods, _BOUND_ON_NODES):
        scheduler.cache.add_pod(decoder.decode(body))
    bench = Bench(_BOUND_ON_NODES, rounds=1, share=0.5, tell=lambda text: None)
    bench.use(scheduler)
    return bench
