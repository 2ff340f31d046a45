"""How long people wait for answers about a large cluster: the JSON of the browser, and commands from start to end.

    python -m bench.answers [--nodes 5000] [--pods 50000] [--waiting 20000]

Runs the embedded cluster and the scheduler in this process; commands are processes of their own. Everything is asked
with a few pods pending, and what is about pending pods again with many. Before each question a pod is created; a copy
of the cluster that is a few seconds old may be used again, as when people ask one question after the other. Fails when
the median of an answer takes a second or longer, or when a command is silent for longer than that: what it prints first
counts, be it progress.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.browser.conftest import Stage, pod, staged
from tests.browser.scene import name_of, near_the_cache, node, running, waiting

from bench.bytecode import compile_sources

ROUNDS = 3
MOST_SECONDS = 1.0
PREFIX = "/bayplan/v1"
PENDING = "/explain/pod/default/train-0"
PLACED = "/explain/pod/default/web-0"
PAGES = (
    "/overview",
    "/pods",
    "/pods?state=unschedulable",
    "/pods?sort=age",
    "/search?q=load-4711",
    "/log",
    "/preemptions",
    "/nodes",
    "/timeline",
    "/plugins",
    "/config",
    f"/explain/node/{name_of(13)}",
    PLACED,
    f"{PLACED}?full=true",
    f"{PLACED}/changes",
    PENDING,
    f"{PENDING}/changes",
    "/pending",
    "/pending?change=true",
)
ABOUT_PENDING = ("/overview", "/pods", "/pods?sort=waiting", PENDING, f"{PENDING}/changes", "/pending")
SCENARIOS: dict[str, dict[str, Any]] = {
    "whatif: a node is drained": {"drain": [name_of(13)]},
    "whatif: 100 pods more": {"addPods": [{"pod": pod("more", cpu="1"), "count": 100}]},
    "whatif: 10 nodes more": {"addNodes": [{"like": name_of(13), "count": 10}]},
}
COMMANDS = (
    ("pending",),
    ("pending", "--brief"),
    ("explain", "pod", "web-0"),
    ("explain", "pod", "train-0"),
    ("explain", "node", name_of(13)),
    ("whatif", "--drain", name_of(13)),
)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Medians, in seconds."""

    what: str
    first: float
    """To the first letter of an answer, or of progress."""
    whole: float

    @property
    def is_good(self) -> bool:
        return self.first < MOST_SECONDS

    def line(self) -> str:
        mark = "" if self.is_good else "  too long"
        return f"{self.what:44}{self.first * 1000:8.0f} ms{self.whole * 1000:8.0f} ms{mark}"


class Asking:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._changes = 0

    async def answer(self, what: str, path: str, body: bytes | None = None) -> Figure:
        times = []
        for _ in range(ROUNDS):
            await self._change()
            began = time.perf_counter()
            await asyncio.to_thread(_fetch, f"{self._stage.url}{PREFIX}{path}", body)
            times.append(time.perf_counter() - began)
        return _shown(Figure(what=what, first=statistics.median(times), whole=statistics.median(times)))

    async def command(self, words: Sequence[str]) -> Figure:
        firsts, wholes = [], []
        for _ in range(ROUNDS):
            await self._change()
            first, whole = await _run(words, self._stage.url)
            firsts.append(first)
            wholes.append(whole)
        name = f"bayplan {' '.join(words)}"
        return _shown(Figure(what=name, first=statistics.median(firsts), whole=statistics.median(wholes)))

    async def _change(self) -> None:
        """A pod more on a node: what was counted before is not the truth any more."""
        self._changes += 1
        bound = self._stage.recorder.bound_count
        await self._stage.create(pod(f"change-{self._changes}"))
        await self._stage.until(lambda: self._stage.recorder.bound_count > bound)


def _fetch(url: str, body: bytes | None) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=120) as response:
        response.read()


async def _run(words: Sequence[str], server: str) -> tuple[float, float]:
    """Seconds to the first output, and to the end."""
    environment = {**os.environ, "BAYPLAN_SERVER": server, "KUBECONFIG": os.devnull}
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bayplan.cli", *words),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    await process.stdout.read(1)
    first = time.perf_counter() - began
    rest = await process.stdout.read()
    if await process.wait():
        raise RuntimeError(f"bayplan {' '.join(words)}: {rest.decode()}")
    return first, time.perf_counter() - began


def _shown(figure: Figure) -> Figure:
    print(figure.line(), flush=True)
    return figure


def stuck(count: int) -> list[dict[str, Any]]:
    """Of two hundred templates, each too large for any node in its own way."""
    return [
        pod(f"stuck{k % 200}-{k // 200}", cpu=str(40 + k % 200), labels={"app": f"stuck{k % 200}"})
        for k in range(count)
    ]


async def measure(options: argparse.Namespace) -> list[Figure]:
    print(f"starting {options.nodes:,} nodes and {options.pods:,} pods", flush=True)
    figures: list[Figure] = []
    objects = running(options.nodes, options.pods)
    async with staged([node(n) for n in range(options.nodes)], objects=objects) as stage:
        asking = Asking(stage)
        await stage.create(near_the_cache("web-0"), *waiting(), *(pod(f"job-{i}") for i in range(300)))
        await stage.until(lambda: stage.recorder.bound_count >= 301, 120)
        gc.collect()
        gc.freeze()
        print(f"{'with 19 pods pending':44}{'first':>11}{'whole':>11}", flush=True)
        figures += [await asking.answer(path, path) for path in PAGES]
        for what, scenario in SCENARIOS.items():
            figures.append(await asking.answer(what, "/whatif", json.dumps(scenario).encode()))
        figures += [await asking.command(words) for words in COMMANDS]
        if options.waiting:
            failed = stage.recorder.failed_count
            await stage.create(*stuck(options.waiting))
            await stage.until(lambda: stage.recorder.failed_count >= failed + options.waiting, 300)
            print(f"{f'with {options.waiting:,} pods pending':44}{'first':>11}{'whole':>11}", flush=True)
            figures += [await asking.answer(path, path) for path in ABOUT_PENDING]
            figures += [await asking.command(words) for words in COMMANDS[:2]]
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--waiting", type=int, default=20_000)
    options = parser.parse_args()
    compile_sources()
    figures = asyncio.run(measure(options))
    return 0 if all(figure.is_good for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
