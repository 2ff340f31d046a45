"""The body of one answer as an asynchronous iterator over its pieces; watches are read from it.

The connection feeds it, one consumer iterates. When the consumer falls behind, the connection stops reading, so that
TCP slows the server down and memory stays bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from bayplan.client.errors import ClientError, ConnectionFailed

__all__ = ["BodyStream"]

_MOST_BYTES_AHEAD: Final = 4 << 20


class BodyStream:
    """Await `begun` for the status; then iterate. `close` closes the connection at once."""

    def __init__(self, *, pause: Callable[[], None], resume: Callable[[], None], close: Callable[[], None]) -> None:
        self._pause, self._resume, self.close = pause, resume, close
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._bytes_ahead = 0
        self._wakes: asyncio.Future[None] | None = None
        self._has_ended = False
        self._error: ClientError | None = None
        self.begun: asyncio.Future[tuple[int, Mapping[str, str]]] = self._loop.create_future()

    def __aiter__(self) -> BodyStream:
        return self

    async def __anext__(self) -> bytes:
        """Everything that came since the last time, in one piece. Raises `ConnectionFailed` when the rest is lost."""
        while not self._pieces:
            if self._error is not None:
                what = f"the stream broke: {self._error}"
                raise ConnectionFailed(what, may_have_been_processed=True) from self._error
            if self._has_ended:
                raise StopAsyncIteration
            self._wakes = self._loop.create_future()
            await self._wakes
        taken, self._pieces = self._pieces, []
        if self._bytes_ahead > _MOST_BYTES_AHEAD and not self._has_ended and self._error is None:
            self._resume()
        self._bytes_ahead = 0
        return taken[0] if len(taken) == 1 else b"".join(taken)

    # for the connection

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        if not self.begun.done():
            self.begun.set_result((status, headers))

    def feed(self, piece: bytes) -> None:
        self._pieces.append(piece)
        was_behind = self._bytes_ahead > _MOST_BYTES_AHEAD
        self._bytes_ahead += len(piece)
        if not was_behind and self._bytes_ahead > _MOST_BYTES_AHEAD:
            self._pause()
        self._wake()

    def end(self) -> None:
        self._has_ended = True
        self._wake()

    def fail(self, error: ClientError) -> None:
        """Record the error. What arrived before can still be read; then iteration raises it."""
        if self._has_ended or self._error is not None:
            return
        self._error = error
        if not self.begun.done():
            self.begun.set_exception(error)
        self._wake()

    def _wake(self) -> None:
        if self._wakes is not None and not self._wakes.done():
            self._wakes.set_result(None)
