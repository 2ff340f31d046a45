"""How a decision's cost grows with the cluster, in this process and without an API server.

Nodes: the same pods on 500, 5,000 and 15,000 nodes with ten pods each. Bound pods: 5,000 nodes that are empty, and with
150,000 pods. Figures are CPU time at the reference speed, so that a busy minute does not pass for growth.
"""

from __future__ import annotations

import gc
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
    nodes = _BOUND_ON_NODES
    scheduler = offline_scheduler(make_node(number) for number in range(nodes))
    bench = Bench(nodes, rounds=5, share=0.5, tell=lambda text: None)
    bench.use(scheduler)
    workload = find_workloads(["template"])[0]
    decoder = msgspec.json.Decoder(Pod)
    for count in (0, most):
        for body in wire_pods(count, nodes):
            scheduler.cache.add_pod(decoder.decode(body))
        gc.collect()
        cost = 1e6 / bench.measure(workload).reference_per_second
        say(f"{workload.title}, {count:,} bound pods: {cost:.1f} µs a decision")
        name = f"{workload.name}, bound pods"
        yield Growth(session=session, workload=name, nodes=nodes, bound_pods=count, decision_us=cost)
