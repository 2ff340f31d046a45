"""A client that asks a running Bayplan everything that people ask, one question after the other, and times answers.

Each question has a connection of its own, as commands do. `pending`, `explain` and `whatif` are those of the command
line, the others what pages of the dashboard read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

__all__ = ["Answers", "asking"]

_V1 = "/bayplan/v1"
_WAITING = "init-1-000000"
"""A pod of the workload that fits nowhere."""
_QUESTIONS = {
    "pending": f"{_V1}/pending",
    "pending, with the best change": f"{_V1}/pending?change=true",
    "explain a waiting pod": f"{_V1}/explain/pod/default/{_WAITING}",
    "explain it with every node": f"{_V1}/explain/pod/default/{_WAITING}?full=true",
    "explain a running pod": f"{_V1}/explain/pod/default/pod-000000",
    "whatif": f"{_V1}/whatif",
    "page: overview": f"{_V1}/overview",
    "page: pods": f"{_V1}/pods?limit=200&sort=waiting",
    "page: nodes": f"{_V1}/nodes",
    "page: a node": f"{_V1}/explain/node/node-00001",
    "page: decisions": f"{_V1}/decisions?limit=200",
    "page: timeline": f"{_V1}/timeline?span=1d",
    "page: preemptions": f"{_V1}/preemptions",
    "page: plugins": f"{_V1}/plugins",
    "page: configuration": f"{_V1}/config",
    "search": f"{_V1}/search?q=pod-0004",
}
_SCENARIO = json.dumps({"addNodes": [{"like": "node-00001", "count": 10}]}).encode()
_LEAST_TURNS = 2


@dataclass
class Answers:
    """Seconds that answers took, by question."""

    url: str
    token: str = field(repr=False)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    async def ask_all(self) -> None:
        """Every question once."""
        for name, path in _QUESTIONS.items():
            began = time.perf_counter()
            status = await self._ask(path, _SCENARIO if path.endswith("/whatif") else b"")
            if status != 200:
                raise RuntimeError(f"{path} was answered {status}")
            self.seconds.setdefault(name, []).append(round(time.perf_counter() - began, 4))

    async def _ask(self, path: str, body: bytes) -> int:
        address = urlsplit(self.url)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # loopback, a certificate of its own
        reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=context)
        lines = [
            f"{'POST' if body else 'GET'} {path} HTTP/1.1",
            f"host: {address.netloc}",
            f"authorization: Bearer {self.token}",
            f"content-length: {len(body)}",
            "connection: close",
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        try:
            line = await reader.readline()
            while await reader.read(1 << 16):
                pass
            return int(line.split()[1])
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def asking(answers: Answers, begin: asyncio.Event) -> AsyncIterator[None]:
    """Ask again and again from `begin` on until the block ends, and twice at least."""
    is_over, turns = asyncio.Event(), 0

    async def ask_on() -> None:
        nonlocal turns
        await begin.wait()
        while not is_over.is_set() or turns < _LEAST_TURNS:
            await answers.ask_all()
            turns += 1

    task = asyncio.create_task(ask_on(), name="questions")
    try:
        yield
        is_over.set()
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
