"""How long pods wait for their binding while twenty clients ask everything that can be asked, as fast as they can.

    python -m bench.hammering [--nodes 1000] [--rate 50] [--seconds 20] [--turns 3] [--clients 20] [--server none]

`bayplan run` works on a real API server; another process is the clients, each of which goes through all questions again
and again over TLS, large what-ifs among them. Pods arrive at a steady rate, in turns without and beside the clients;
the latency of one is from its creation to its binding, both as a watch sees them. Fails when the 99th percentile beside
the clients is more than `MOST_TIMES` that without, or when most of what the clients ask is not answered. With
`--server none` the scheduler works in this process, on a server that answers at once, and the latency is from the
watch event to the request of the binding: the scheduler's own time, in which every millisecond shows that its thread
was held.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import ssl
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from urllib.parse import urlsplit

import msgspec
from tests.controlplane import ControlPlane, ControlPlaneOptions

from bayplan.app.live import LiveOptions
from bayplan.app.serving import ProcessFacts, make_metrics, make_parts
from bayplan.app.settings import load_settings
from bayplan.config.own import BayplanConfig
from bayplan.explain.http.endpoints import PREFIX
from bayplan.explain.wiring import Explaining
from bayplan.observe.clock import SystemClock
from bayplan.observe.metrics import MetricsRegistry
from bayplan.server import ServerOptions, serve
from bench import hostile
from bench.bytecode import compile_sources
from bench.neighbours import Stage
from bench.versus.cluster import BenchCluster, collection_of
from bench.versus.measure import create_steadily, no_pauses
from bench.versus.schedulers import ADMIN, SCHEDULER, started
from bench.versus.watching import PodWatch

MOST_TIMES = 2.0
_WAITING = 200
_GIVE_UP_SECONDS = 120.0
_TOKEN = "HAMMERING_TOKEN"
_PAUSE_SECONDS = 0.1
"""After a connection that failed."""
QUESTIONS = (
    *(f"{PREFIX}/{page}" for page in ("overview", "nodes", "plugins", "config", "timeline?span=1d", "preemptions")),
    *(f"{PREFIX}/{page}" for page in ("pods?limit=200&sort=waiting", "search?q=plain", "log?limit=200")),
    *(f"{PREFIX}/{page}" for page in ("pending", "pending?change=true", "decisions?limit=1000", "log/decisions")),
    *(f"{PREFIX}/explain/{page}" for page in ("node/node-0001", "pod/hostile/waiting-1?full=true")),
    f"{PREFIX}/explain/pod/hostile/waiting-1/changes",
    *("/metrics", "/metrics/resources", "/configz", "/statusz", "/flagz", "/readyz?verbose"),
    *("/debug/pprof/heap", "/debug/pprof/goroutine", "/debug/pprof/profile?seconds=1", "/dashboard/"),
)
_SCENARIO = json.dumps({"addNodes": [{"like": "node-0001", "count": 2000}]}).encode()


class Client:
    """Asks one question after the other on a connection that it keeps."""

    def __init__(self, url: str, token: str) -> None:
        self._address = urlsplit(url)
        self._tls: ssl.SSLContext | None = None
        if self._address.scheme == "https":
            self._tls = ssl.create_default_context()
            self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._head = f"host: localhost\r\nauthorization: Bearer {token}\r\n" if token else "host: localhost\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> int:
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(
                    self._address.hostname, self._address.port, ssl=self._tls, limit=1 << 20
                )
            reader, writer = self._streams
            writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}content-length: {len(body)}\r\n\r\n".encode() + body)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await _read_body(reader, head)
        except BaseException:
            self.close()
            raise
        if b"connection: close" in head:
            self.close()
        return int(head.split()[1])

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _read_body(reader: asyncio.StreamReader, head: bytes) -> None:
    if b"transfer-encoding: chunked" in head:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))


async def hammer(url: str, token: str, clients: int, seconds: float) -> Counter[str]:
    """Ask on so many connections at a time; answers by status, or by what happened instead."""
    answers: Counter[str] = Counter()
    end = time.monotonic() + seconds
    questions = [("GET", path, b"") for path in QUESTIONS] + [("POST", f"{PREFIX}/whatif", _SCENARIO)]

    async def work(number: int) -> None:
        client = Client(url, token)
        for turn in itertools.count(number):
            left = end - time.monotonic()
            if left <= 0:
                break
            try:
                async with asyncio.timeout(left):
                    answers[str(await client.ask(*questions[turn % len(questions)]))] += 1
            except TimeoutError:
                continue
            except (OSError, EOFError, ValueError, IndexError) as error:
                answers[type(error).__name__] += 1
                await asyncio.sleep(_PAUSE_SECONDS)
        client.close()

    await asyncio.gather(*(work(number) for number in range(clients)))
    return answers


def is_hammering(answers: Mapping[str, int], clients: int) -> bool:
    """Whether the clients were at work: most of what they asked was answered, and each could ask more than once."""
    good = answers.get("200", 0)
    return good > 2 * clients and good > sum(answers.values()) / 2


class Scene(Stage):
    """A whole scheduler with its endpoints, in this process."""

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
async def hammering(url: str, token: str, options: argparse.Namespace) -> AsyncIterator[None]:
    flags = ["--of", url, "--clients", str(options.clients), "--seconds", str(options.seconds + 2)]
    environment = os.environ | {_TOKEN: token}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.hammering", *flags, env=environment)
    try:
        await asyncio.sleep(1)
        yield
        if await process.wait():
            raise SystemExit("the clients were not answered, so that nothing was measured")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def in_turns(
    url: str, token: str, arrive: Callable[[], Awaitable[list[float]]], options: argparse.Namespace
) -> int:
    """Without and beside the clients, in turns; 1 when it is too slow beside them."""
    alone: list[float] = []
    together: list[float] = []
    for _ in range(options.turns):
        alone += await arrive()
        async with hammering(url, token, options):
            together += await arrive()
    for title, taken in (("alone", alone), (f"beside {options.clients} clients", together)):
        median = statistics.median(taken) * 1e3
        print(f"{title:20} {len(taken):6} pods, median {median:7.2f} ms, p99 {_p99(taken):7.2f} ms")
    times = _p99(together) / _p99(alone)
    print(f"p99 beside the clients is {times:.2f} times that without (at most {MOST_TIMES:g})")
    return int(times > MOST_TIMES)


async def measure_alone(options: argparse.Namespace) -> int:
    """Without an API server."""
    scene = Scene(options.nodes)
    for pod in _waiting():
        scene.server.put(hostile.PODS, pod)
    beside = [asyncio.create_task(scene.live.run()), asyncio.create_task(scene.explaining.run())]
    await scene.live.is_ready.wait()
    async with serve(ServerOptions(port=0, is_plain_http=True), scene.parts) as serving:
        await scene.latencies(options.rate, 2)
        found = await in_turns(serving.url, "", lambda: scene.latencies(options.rate, options.seconds), options)
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    return found


async def measure_on(plane: ControlPlane, options: argparse.Namespace) -> int:
    """On a real API server."""
    cluster = BenchCluster(plane.token_kubeconfig(plane.token_for(*ADMIN)))
    serial = itertools.count()

    async def arrive(seconds: float = options.seconds) -> list[float]:
        prefix, count = f"plain-{next(serial)}-", int(options.rate * seconds)
        bodies = [(collection_of(pod), msgspec.json.encode(pod)) for pod in _plain(prefix, count)]
        watch = PodWatch(cluster, count, prefix=prefix, with_creation=True)
        with no_pauses():
            async with watch:
                await create_steadily(cluster, bodies, options.rate)
                if not await watch.wait(_GIVE_UP_SECONDS, goes_on=running.is_alive):
                    raise SystemExit(f"pods were not bound:\n{running.log.read_text(errors='replace')[-2000:]}")
        await cluster.delete_all("/api/v1/namespaces/plain/pods")
        return [bound - watch.created[pod] for pod, bound in watch.bound.items()]

    try:
        await cluster.create({"kind": "Namespace", "metadata": {"name": name}} for name in ("plain", "hostile"))
        await cluster.create(hostile.node(f"node-{number:04}") for number in range(options.nodes))
        await cluster.create(_waiting())
        async with started(plane, "bayplan", {}) as running:
            await arrive(2)
            return await in_turns(running.url, plane.token_for(*ADMIN), arrive, options)
    finally:
        await cluster.close()


def _waiting() -> Iterator[hostile.Json]:
    """Pods that fit on no node, to ask about."""
    for number in range(_WAITING):
        yield hostile.pod(f"waiting-{number}", requests={"cpu": f"{1000 + number}"})


def _plain(prefix: str, count: int) -> Iterator[hostile.Json]:
    for number in range(count):
        yield hostile.pod(f"{prefix}{number}", namespace="plain", metadata={"labels": {"app": "plain"}})


def _p99(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)] * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=50.0, help="pods a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each turn")
    parser.add_argument("--turns", type=int, default=3, help="of each: without and beside the clients")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--server", choices=["kube-apiserver", "none"], default="kube-apiserver")
    parser.add_argument("--of", metavar="URL", help="be the clients of a scheduler that runs there")
    options = parser.parse_args()
    if options.of:
        answers = asyncio.run(hammer(options.of, os.environ.get(_TOKEN, ""), options.clients, options.seconds))
        print("answers:", ", ".join(f"{count} of {status}" for status, count in sorted(answers.items())), flush=True)
        return 0 if is_hammering(answers, options.clients) else 1
    if options.server == "none":
        return asyncio.run(measure_alone(options))
    compile_sources()
    with ControlPlane(ControlPlaneOptions(users={ADMIN[0]: ADMIN[1], SCHEDULER: ()})) as plane:
        return asyncio.run(measure_on(plane, options))


if __name__ == "__main__":
    sys.exit(main())
