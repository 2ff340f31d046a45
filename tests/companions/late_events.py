"""A slow connection: each event about pods, and each write, waits for a while that a seed chooses."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

from bayplan.client.transport import Response, Transport
from bayplan.observe.clock import Clock


class LateEvents:
    """The order of events is kept. Counts the pods that are deleted through it."""

    def __init__(self, transport: Transport, clock: Clock, *, seed: int, most_seconds: float) -> None:
        self._transport = transport
        self._clock = clock
        self._random = random.Random(seed)
        self.most_seconds = most_seconds
        self.is_frozen = False
        """While it is set, watches say nothing, also new ones."""
        self.deleted: list[str] = []
        """Paths of pods, one for each request."""

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if method == "DELETE" and "/pods/" in path:
            self.deleted.append(path)
        if method != "GET":
            await self._clock.sleep(self._random.choice((0.0, 0.1, self.most_seconds / 4)) * self._random.random())
        return await self._transport.request(method, path, **options)

    @contextlib.asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._transport.stream(path, query=query) as pieces:
            yield self._late(pieces, is_late=path == "/api/v1/pods")

    async def _late(self, pieces: AsyncIterator[bytes], *, is_late: bool) -> AsyncIterator[bytes]:
        async for piece in pieces:
            for event in piece.splitlines(keepends=True):
                if is_late and self.most_seconds:
                    await self._clock.sleep(self._random.choice((0.0, 0.1, self.most_seconds)) * self._random.random())
                while self.is_frozen:
                    await self._clock.sleep(1.0)
                yield event

    async def close(self) -> None:
        await self._transport.close()
