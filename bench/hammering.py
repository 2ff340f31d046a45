"""How long pods wait for their binding while twenty clients ask everything that can be asked, as fast as they can.

    python -m bench.hammering [--nodes 1000] [--rate 50] [--seconds 20] [--clients 20]

One process is a whole scheduler with all of its endpoints, on a server that answers bindings after 20 ms, as a busy API
server does; another is the clients, each of which goes through all questions again and again, large what-ifs among
them. Pods arrive at a fixed rate; the latency of one is from its watch event to the answer to its binding. Fails when
the 99th percentile beside the clients is more than `MOST_TIMES` that without.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from bayplan.app.live import LiveOptions
from bayplan.app.serving import ProcessFacts, make_metrics, make_parts
from bayplan.app.settings import load_settings
from bayplan.config.own import BayplanConfig
from bayplan.explain.endpoints import PREFIX
from bayplan.explain.wiring import Explaining
from bayplan.observe.clock import SystemClock
from bayplan.observe.metrics import MetricsRegistry
from bayplan.server import ServerOptions, serve
from bench import hostile
from bench.neighbours import Stage

MOST_TIMES = 2.0
_BINDING_SECONDS = 0.02
_WAITING = 200
_QUESTIONS = (
    *(f"{PREFIX}/{page}" for page in ("overview", "nodes", "plugins", "config", "timeline?span=1d", "preemptions")),
    *(f"{PREFIX}/{page}" for page in ("pods?limit=200&sort=waiting", "search?q=plain", "log?limit=200")),
    *(f"{PREFIX}/{page}" for page in ("pending", "pending?change=true", "decisions?limit=1000", "log/decisions")),
    *(f"{PREFIX}/explain/{page}" for page in ("node/node-0001", "pod/hostile/waiting-1?full=true")),
    f"{PREFIX}/explain/pod/hostile/waiting-1/changes",
    *("/metrics", "/metrics/resources", "/configz", "/statusz", "/flagz", "/readyz?verbose"),
    *("/debug/pprof/heap", "/debug/pprof/goroutine", "/debug/pprof/profile?seconds=1", "/dashboard/"),
)
_SCENARIO = json.dumps({"addNodes": [{"like": "node-0001", "count": 2000}]}).encode()


async def hammer(url: str, clients: int, seconds: float) -> Counter[int]:
    """Ask from so many connections at a time; answers by status, 0 for none."""
    address = urlsplit(url)
    answers: Counter[int] = Counter()
    end = time.monotonic() + seconds

    async def ask(method: str, path: str, body: bytes = b"") -> int:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        try:
            line = await reader.readline()
            while await reader.read(1 << 16):
                pass
            return int(line.split()[1])
        finally:
            writer.close()

    async def client(number: int) -> None:
        while time.monotonic() < end:
            for turn in range(len(_QUESTIONS) + 1):
                at = (turn + number) % (len(_QUESTIONS) + 1)
                asked = (
                    ask("GET", _QUESTIONS[at]) if at < len(_QUESTIONS) else ask("POST", f"{PREFIX}/whatif", _SCENARIO)
                )
                try:
                    async with asyncio.timeout(max(end - time.monotonic(), 0.01)):
                        answers[await asked] += 1
                except (OSError, TimeoutError, IndexError):
                    answers[0] += 1
                if time.monotonic() >= end:
                    return

    await asyncio.gather(*(client(number) for number in range(clients)))
    return answers


class Scene(Stage):
    """A whole scheduler with its endpoints."""

    def __init__(self, nodes: int) -> None:
        clock, settings = SystemClock(), load_settings(None, [])
        self.explaining = Explaining(clock, settings=lambda: settings)
        self.registry = MetricsRegistry()
        self.facts = ProcessFacts(
            live=lambda: self.live,
            settings=lambda: settings,
            is_leader=lambda: True,
            is_lease_healthy=lambda: True,
            is_stopping=lambda: False,
            flags={},
            own=BayplanConfig(),
            is_profiling=lambda: True,
            set_verbosity=lambda verbosity: None,
        )
        self.explaining.register(self.registry)
        metrics = make_metrics(self.registry, clock, self.facts)
        super().__init__(nodes, LiveOptions(observers=[metrics, *self.explaining.observers]))
        self.server.binding_seconds = _BINDING_SECONDS
        self.explaining.attach(self.live)
        self.parts = make_parts(self.facts, self.registry, _no_review, clock, self.explaining.routes())

    async def latencies(self, rate: float, seconds: float) -> list[float]:
        """Of pods that arrive one by one; they are gone afterwards."""
        taken: list[float] = []
        end, keys = time.monotonic() + seconds, []
        while time.monotonic() < end:
            began, wanted = time.perf_counter(), self.server.bound + 1
            keys.append(self.server.put(hostile.PODS, self._plain()))
            while self.server.bound < wanted:  # noqa: ASYNC110  # counted by the server
                await asyncio.sleep(0)
            taken.append(time.perf_counter() - began)
            await asyncio.sleep(1 / rate)
        for key in keys:
            self.server.drop(hostile.PODS, key)
        await self.quiet()
        return taken


async def _no_review(path: str, question: Mapping[str, object]) -> Mapping[str, object]:
    return {}


@contextlib.asynccontextmanager
async def hammering(url: str, clients: int, seconds: float) -> AsyncIterator[None]:
    flags = ["--of", url, "--clients", str(clients), "--seconds", str(seconds)]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.hammering", *flags)
    try:
        yield
    finally:
        await process.wait()


async def measure(options: argparse.Namespace) -> int:
    scene = Scene(options.nodes)
    for number in range(_WAITING):
        scene.server.put(hostile.PODS, hostile.pod(f"waiting-{number}", requests={"cpu": f"{1000 + number}"}))
    beside = [asyncio.create_task(scene.live.run()), asyncio.create_task(scene.explaining.run())]
    await scene.live.is_ready.wait()
    async with serve(ServerOptions(port=0, is_plain_http=True), scene.parts) as serving:
        await scene.latencies(options.rate, 2)
        alone = await scene.latencies(options.rate, options.seconds)
        async with hammering(serving.url, options.clients, options.seconds + 2):
            await asyncio.sleep(1)
            together = await scene.latencies(options.rate, options.seconds)
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    for title, taken in (("alone", alone), (f"beside {options.clients} clients", together)):
        median = statistics.median(taken) * 1e3
        print(f"{title:20} {len(taken):6} pods, median {median:7.2f} ms, p99 {_p99(taken):7.2f} ms")
    times = _p99(together) / _p99(alone)
    print(f"p99 beside the clients is {times:.2f} times that without (at most {MOST_TIMES:g})")
    return int(times > MOST_TIMES)


def _p99(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)] * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=50.0, help="pods a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--of", metavar="URL", help="be the clients of a scheduler that runs there")
    options = parser.parse_args()
    if options.of:
        answers = asyncio.run(hammer(options.of, options.clients, options.seconds))
        print("answers:", ", ".join(f"{count} of {status}" for status, count in sorted(answers.items())))
        return 0
    return asyncio.run(measure(options))


if __name__ == "__main__":
    sys.exit(main())
