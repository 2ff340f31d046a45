"""A transport that gives the answers it was made with, one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import msgspec

from bayplan.client.errors import NotSent
from bayplan.client.transport import JSON, ByteStream, Response, always


def answer(status: int, body: object) -> Response:
    return Response(status, {}, msgspec.json.encode(body))


class Answering:
    def __init__(self, *answers: Response | Exception) -> None:
        self._answers = list(answers)
        self.calls: list[tuple[str, str, bytes | None]] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        may_send: Callable[[], bool] = always,
    ) -> Response:
        if not may_send():
            raise NotSent(f"{method} {path}")
        self.calls.append((method, path, body))
        given = self._answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        return self._nothing()

    @asynccontextmanager
    async def _nothing(self) -> AsyncIterator[AsyncIterator[bytes]]:
        async def no_pieces() -> AsyncIterator[bytes]:
            return
            yield b""

        yield no_pieces()

    async def close(self) -> None:
        self._answers.clear()
