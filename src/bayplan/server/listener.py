"""The listening sockets of a server with TLS, and a limit on the connections that are in their handshake.

The limits of `protocol` begin when a handshake is done; until then a connection takes some 50 KiB. Here at most as many
are in a handshake as may be connected, of one peer and of all. One more replaces the one that began first: clients that
never finish theirs take bounded memory, and keep no probe out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable

from bayplan.server.options import Limits

__all__ = ["TlsListener"]

_log = logging.getLogger(__name__)
_BACKLOG = 128
_SECONDS_AFTER_A_FAILURE = 1.0


class TlsListener:
    """Closed as an `asyncio.Server` is: `close`, then `wait_closed`."""

    def __init__(self, factory: Callable[[], asyncio.Protocol], context: ssl.SSLContext, limits: Limits) -> None:
        self.sockets: list[socket.socket] = []
        self._factory = factory
        self._context = context
        self._limits = limits
        self._accepting: list[asyncio.Task[None]] = []
        self._handshakes: dict[asyncio.Task[None], str] = {}
        """The address of the peer, in the order of their beginning."""
        self._accepted: set[socket.socket] = set()
        """Those whose handshake has not begun."""

    async def listen(self, host: str, port: int) -> None:
        """Bind all addresses of a name. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        with contextlib.ExitStack() as undoing:
            for family, address in dict.fromkeys((family, address[:2]) for family, _, _, _, address in found):
                listening = undoing.enter_context(socket.create_server(address, family=family, backlog=_BACKLOG))
                listening.setblocking(False)
                self.sockets.append(listening)
            undoing.pop_all()
        self._accepting = [asyncio.create_task(self._accept(each), name="accept connections") for each in self.sockets]

    def close(self) -> None:
        for task in (*self._accepting, *self._handshakes):
            task.cancel()
        for listening in self.sockets:
            listening.close()
        for connection in self._accepted:
            connection.close()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._accepting, *self._handshakes, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:
                _log.warning("cannot accept a connection: %s", error.strerror or error)
                await asyncio.sleep(_SECONDS_AFTER_A_FAILURE)
                continue
            peer = str(address[0])
            self._make_room(peer)
            self._accepted.add(connection)
            task = asyncio.create_task(self._shake_hands(connection), name=f"TLS handshake with {peer}")
            self._handshakes[task] = peer
            task.add_done_callback(self._handshakes.pop)
            # One connection that waits to be accepted after the other would keep everything else waiting.
            await asyncio.sleep(0)

    def _make_room(self, peer: str) -> None:
        """End the handshake that began first where one more would be too many."""
        under_way = {task: of for task, of in self._handshakes.items() if not task.cancelling()}
        of_peer = [task for task, of in under_way.items() if of == peer]
        if len(of_peer) >= self._limits.connections_per_peer:
            of_peer[0].cancel()
        elif len(under_way) >= self._limits.connections:
            next(iter(under_way)).cancel()

    async def _shake_hands(self, connection: socket.socket) -> None:
        self._accepted.discard(connection)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._factory,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.handshake_seconds,
            )
        except (OSError, EOFError) as error:
            # Among them `ssl.SSLError` and `TimeoutError`.
            _log.debug("a TLS handshake failed: %s", error)
