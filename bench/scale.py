"""What clusters of up to 100,000 nodes cost one process: memory, the time to read them, and decisions a second.

    python -m bench.scale [--size 5000:50000 15000:450000 50000:500000 100000:300000] [--json FILE]

Each size (nodes:pods) runs in a process of its own, without an API server. Nodes and running pods are decoded one by
one from the JSON that a watch delivers, with everything a Deployment's pod carries on the wire, and put into the cache.
The making of that JSON is not counted. Decisions are those of `bench.decide`, all nodes scored. The command fails when
reading an object, or a decision for each node, costs more than 1.5 times as much at a larger size as at the smallest:
nothing may grow faster than linearly.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bench.clusters import make_node
from bench.measuring import Bench, offline_scheduler
from bench.memory import resident_mib, wire_pods
from bench.workloads import find_workloads

SIZES = ("5000:50000", "15000:450000", "50000:500000", "100000:300000")
WORKLOADS = ("template", "different", "spread-required")
_ALLOWED = 1.5
_BATCH = 2_000
"""So many pods are made as JSON before their reading is timed."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    nodes: int
    pods: int
    mib: float
    """Resident memory of the whole process."""
    read_seconds: float
    """CPU time to decode all objects and to build the columns."""
    rates: dict[str, float]
    """Decisions a second by CPU time, by workload."""

    @property
    def read_us(self) -> float:
        return 1e6 * self.read_seconds / (self.nodes + self.pods)


def main() -> int:
    options = _options()
    if options.one:
        print(json.dumps(asdict(_measured(*_numbers(options.one)))))
        return 0
    print(f"{'nodes':>8}{'pods':>9}{'MiB':>8}{'read s':>8}{'µs each':>9}{''.join(f'{name:>17}' for name in WORKLOADS)}")
    found = []
    for size in options.size:
        command = [sys.executable, "-m", "bench.scale", "--one", size]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found.append(Scale(**json.loads(answer)))
        print(_line(found[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(scale) for scale in found], indent=2) + "\n")
    steep = _steep(found)
    print("\n".join(steep) or "nothing grows faster than linearly")
    return 1 if steep else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", default=SIZES, metavar="NODES:PODS")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def _numbers(size: str) -> tuple[int, int]:
    nodes, _, pods = size.partition(":")
    return int(nodes), int(pods)


def _measured(nodes: int, pods: int) -> Scale:
    seconds = 0.0
    bodies = [msgspec.json.encode(make_node(number)) for number in range(nodes)]
    decoder = msgspec.json.Decoder(Node)
    began = time.process_time()
    scheduler = offline_scheduler(decoder.decode(body) for body in bodies)
    seconds += time.process_time() - began
    del bodies
    pod_decoder, stream = msgspec.json.Decoder(Pod), wire_pods(pods, nodes)
    while batch := [body for _, body in zip(range(_BATCH), stream, strict=False)]:
        began = time.process_time()
        for body in batch:
            scheduler.cache.add_pod(pod_decoder.decode(body))
        seconds += time.process_time() - began
    gc.collect()
    gc.freeze()
    bench = Bench(nodes, rounds=3, share=0.25, tell=lambda text: None)
    bench.use(scheduler)
    rates = {workload.name: bench.measure(workload).per_second for workload in find_workloads(list(WORKLOADS))}
    return Scale(nodes=nodes, pods=pods, mib=resident_mib(), read_seconds=seconds, rates=rates)


def _line(scale: Scale) -> str:
    rates = "".join(f"{scale.rates[name]:>15,.0f}/s" for name in WORKLOADS)
    each = f"{scale.read_us:>9.1f}"
    return f"{scale.nodes:>8,}{scale.pods:>9,}{scale.mib:>8,.0f}{scale.read_seconds:>8.1f}{each}{rates}"


def _steep(found: list[Scale]) -> list[str]:
    """What costs more for each object or node of a larger cluster than of the first."""
    first, *larger = found
    lines = []
    for scale in larger:
        if scale.read_us > _ALLOWED * first.read_us:
            lines.append(
                f"{scale.nodes:,} nodes: reading an object takes {scale.read_us / first.read_us:.1f} times as long"
            )
        for name, rate in scale.rates.items():
            growth = first.rates[name] * first.nodes / (rate * scale.nodes)
            if growth > _ALLOWED:
                lines.append(f"{scale.nodes:,} nodes: {name} takes {growth:.1f} times as long for each node")
    return lines


if __name__ == "__main__":
    sys.exit(main())
