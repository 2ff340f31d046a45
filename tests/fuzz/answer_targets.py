"""Targets for what others answer (credential plugins, lease holders, extenders) and ask (clients of the scheduler)."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import Awaitable, Mapping
from random import Random
from typing import Any
from urllib.parse import quote, unquote

from bench import hostile
from bench.hammering import QUESTIONS, Scene

from bayplan.cli.completion import print_candidates
from bayplan.client.errors import CredentialError
from bayplan.client.exec_plugin import ExecCredentials, ExecPlugin
from bayplan.client.transport import Response
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.resources import ResourceAxis
from bayplan.cluster.shapes import ShapeTable
from bayplan.explain.http.endpoints import PREFIX
from bayplan.leader.lease import LeaseClient, LeaseUnavailable
from bayplan.loop.extender import Extender, ExtenderError
from bayplan.observe.clock import VirtualClock
from bayplan.server import ServerOptions
from bayplan.server.answers import Refusal
from bayplan.server.serving import build_app
from bayplan.testing import node, pod
from tests.fuzz.file_targets import Failed
from tests.fuzz.mutation import mutated_bytes, mutated_document, mutated_text

_SAFE = "".join(map(chr, range(0x21, 0x7F)))


class Credentials:
    """What a credential plugin prints."""

    _SEED: Mapping[str, Any] = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "t", "expirationTimestamp": "2026-01-01T00:00:00Z", "clientCertificateData": "c"},
    }

    def __init__(self) -> None:
        plugin = ExecPlugin(api_version="client.authentication.k8s.io/v1", command="true")
        self._credentials = ExecCredentials(plugin, clock=VirtualClock(), environment={})

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        given = _document(self._SEED, random)
        try:
            self._credentials._remember(given)
            self._credentials.cached()
        except CredentialError:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given


class Leases:
    """A lease as the API server, or whoever writes it, gives it: read, and written over."""

    _SEED: Mapping[str, Any] = {
        "metadata": {"name": "l", "namespace": "n", "resourceVersion": "1", "annotations": {"a": "b"}},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"},
    }

    def __init__(self) -> None:
        self._given = b""
        self._client = LeaseClient(self, namespace="n", name="l")

    async def request(self, method: str, path: str, **_: Any) -> Response:
        return Response(200, {}, self._given)

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        self._given = _document(self._SEED, random)
        try:
            _now(self._read_and_write())
        except LeaseUnavailable:
            pass
        except BaseException as error:
            raise Failed(self._given) from error
        return self._given

    async def _read_and_write(self) -> None:
        record = await self._client.get(timeout=1)
        if record is not None:
            await self._client.replace(record, onto=record, timeout=1)


class Extenders:
    """What an extender answers to each of its verbs."""

    _SEEDS: tuple[Any, ...] = (
        {"NodeNames": ["n1"], "FailedNodes": {"n2": "no"}, "Error": ""},
        {"Nodes": {"items": [{"metadata": {"name": "n1"}}]}, "FailedAndUnresolvableNodes": {"n2": "no"}},
        [{"Host": "n1", "Score": 5}, {"Host": "n2", "Score": 10}],
        {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}},
    )

    def __init__(self) -> None:
        shapes = ShapeTable(ResourceAxis())
        made = pod("p")
        self._pod = PodInfo(made, shapes.shape_of(made))
        self._nodes = {name: node(name) for name in ("n1", "n2")}
        self._answer: Any = None

    async def _send(self, verb: str, question: object) -> Any:
        return self._answer

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        self._answer = mutated_document(random.choice(self._SEEDS), random)
        extender = Extender(name="x", send=self._send, is_node_cache_capable=random.random() < 0.5)
        for work in (
            extender.filter(self._pod, self._nodes),
            extender.prioritize(self._pod, self._nodes),
            extender.preempt(self._pod, {}, lambda name: None),
            extender.bind(self._pod, "n1"),
        ):
            try:
                _now(work)
            except ExtenderError:
                continue
            except BaseException as error:
                raise Failed(self._answer) from error
        return self._answer


class Questions:
    """Paths, query parameters and bodies of what the scheduler can be asked: an answer, never one of 500."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        self._scene = Scene(3)
        for number in range(3):
            self._scene.server.put(hostile.PODS, hostile.pod(f"waiting-{number}", requests={"cpu": "1000"}))
        self._running = asyncio.create_task(self._scene.live.run())
        await self._scene.live.is_ready.wait()
        self._app = build_app(ServerOptions(port=0, is_plain_http=True), self._scene.parts)

    def close(self) -> None:
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._running)
        self._loop.close()

    def attempt(self, random: Random) -> object:
        path, _, query = random.choice([each for each in QUESTIONS if "pprof" not in each]).partition("?")
        method, body = "GET", b""
        if random.random() < 0.3:
            method, path, query = "POST", f"{PREFIX}/whatif", ""
            body = _document({"addNodes": [{"like": "node-0001", "count": 2}], "pending": True}, random)
        given = (
            method,
            mutated_text(path, random) if random.random() < 0.3 else path,
            mutated_text(query, random),
            body,
        )
        status = self._loop.run_until_complete(self._ask(*given))
        if status >= 500 and status != 503:
            raise Failed((status, given))
        return given

    async def _ask(self, method: str, path: str, query: str, body: bytes) -> int:
        statuses: list[int] = []
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            for part in parts:
                return part
            return await asyncio.Event().wait()

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])

        # As the HTTP parser lets them through: printable ASCII, the rest escaped.
        raw, raw_path = (quote(part.encode("utf-8", "replace"), safe=_SAFE).encode() for part in (query, path))
        scope = {"type": "http", "method": method, "path": unquote(raw_path.decode()), "raw_path": raw_path}
        scope |= {
            "query_string": raw,
            "scheme": "http",
            "http_version": "1.1",
            "root_path": "",
            "asgi": {"version": "3.0"},
        }
        scope |= {"headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
        async with asyncio.timeout(60):
            try:
                await self._app(scope, receive, send)
            except Refusal as refusal:
                return refusal.code
        return statuses[0]


class Completion:
    """Words before the cursor of a shell: candidates or nothing, whatever stands there."""

    _SEEDS = ("evaluate -f x --pod ", "simulate --cluster=x -o ", "up --nodes 3 ", "help ", "plan drain -")

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        words = mutated_text(random.choice(self._SEEDS), random).split(" ")
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                print_candidates(words)
        except BaseException as error:
            raise Failed(words) from error
        return words


def _document(seed: Mapping[str, Any], random: Random) -> bytes:
    given = json.dumps(mutated_document(seed, random)).encode()
    return mutated_bytes(given, random) if random.random() < 0.3 else given


def _now(work: Awaitable[Any]) -> None:
    """Run what waits for nothing."""
    with contextlib.suppress(StopIteration):
        work.__await__().send(None)  # type: ignore[union-attr]  # a coroutine
