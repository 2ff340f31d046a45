"""A bounded set of keep-alive connections to one server.

The most recently used connection is taken first, so that few stay warm under light load. When all are busy, callers
wait in order. A connection is closed after some minutes of use, so that load spreads again over API servers that came
back, and after some time idle, before the server closes it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bayplan.client.connection import HttpConnection
from bayplan.client.errors import ConnectionFailed

Connect = Callable[[Callable[[HttpConnection], None]], Awaitable[HttpConnection]]
"""Opens one connection, which calls the given function when it is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """`spread` varies the maximum age of each connection, so that they are not all replaced at once."""

    max_connections: int = 64
    max_age_seconds: float = 300.0
    max_rest_seconds: float = 45.0
    spread: float = 0.2


class ConnectionPool:
    """`acquire` a connection, use it for one exchange, `release` it."""

    def __init__(self, connect: Connect, *, settings: PoolSettings, draw: Callable[[], float]) -> None:
        self._connect = connect
        self._settings = settings
        self._draw = draw
        self._resting: deque[HttpConnection] = deque()
        """Idle connections, the longest idle first."""
        self._all: set[HttpConnection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[HttpConnection | None]] = deque()
        self._is_closed = False

    @property
    def open_connections(self) -> int:
        return len(self._all)

    async def acquire(self) -> HttpConnection:
        """A connection for one exchange. Raises `ConnectionFailed` when none can be opened."""
        while True:
            if self._is_closed:
                raise ConnectionFailed("the client is closed", may_have_been_processed=False)
            rested = self.take_resting()
            if rested is not None:
                return rested
            if len(self._all) + self._opening < self._settings.max_connections:
                return await self._open()
            handed = await self._wait_turn()
            if handed is not None:
                return handed

    def take_resting(self) -> HttpConnection | None:
        """An idle connection, without waiting; None when there is none."""
        while self._resting:
            connection = self._resting.pop()
            if self._is_good(connection, connection.time()):
                return connection
            self.discard(connection)
        return None

    def release(self, connection: HttpConnection) -> None:
        """Return a connection to the pool; one that is no longer usable is closed and frees its slot."""
        now = connection.time()
        if not connection.is_open or now >= connection.retire_at or self._is_closed:
            self.discard(connection)
            return
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        connection.idle_since = now
        self._resting.append(connection)
        # Connections from a burst stay below those in use and are never taken: check one of them each time.
        if not self._is_good(self._resting[0], now):
            self.discard(self._resting.popleft())

    def discard(self, connection: HttpConnection) -> None:
        """Close a connection whose state is unknown and free its slot."""
        connection.close()
        self._lost(connection)

    def retire_all(self) -> None:
        """Use no present connection for a new request; requests in flight may finish."""
        for connection in self._all:
            connection.retire_at = 0.0
        resting, self._resting = self._resting, deque()
        for connection in resting:
            self.discard(connection)

    def close(self) -> None:
        self._is_closed = True
        for connection in list(self._all):
            self.discard(connection)
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _is_good(self, connection: HttpConnection, now: float) -> bool:
        has_rested_too_long = now - connection.idle_since > self._settings.max_rest_seconds
        return connection.is_open and not has_rested_too_long and now < connection.retire_at

    async def _open(self) -> HttpConnection:
        self._opening += 1
        try:
            connection = await self._connect(self._lost)
        except BaseException:
            self._opening -= 1
            self._wake_one()
            raise
        self._opening -= 1
        self._all.add(connection)
        age = self._settings.max_age_seconds * (1.0 + self._settings.spread * (2.0 * self._draw() - 1.0))
        connection.retire_at = connection.time() + age
        return connection

    async def _wait_turn(self) -> HttpConnection | None:
        waiter: asyncio.Future[HttpConnection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            # A connection may have been handed over in the same instant: pass it on.
            if waiter.done() and not waiter.cancelled():
                handed = waiter.result()
                if handed is not None:
                    self.release(handed)
                else:
                    self._wake_one()
            raise

    def _lost(self, connection: HttpConnection) -> None:
        if connection in self._all:
            self._all.remove(connection)
            self._wake_one()

    def _wake_one(self) -> None:
        """Wake the longest waiter, which may now open a connection."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
