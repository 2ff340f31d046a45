"""uvicorn's HTTP/1.1 connection with limits against slow and numerous clients.

Added to it: a request must arrive whole within a time limit, a client must read its answer, the number of connections
is limited, of one peer and of all, with some slots kept for probes, and the peer's certificate is passed to the
application. A connection that breaks a rule is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from bayplan.server.options import Limits

__all__ = ["PEER_CERTIFICATE", "PROBES_ONLY", "GuardedProtocol"]

PEER_CERTIFICATE = "bayplan.peer_certificate"
"""The key in the request's state: the certificate as DER, verified by TLS, or None."""
PROBES_ONLY = "bayplan.probes_only"
"""The key in the request's state: whether the connection has a slot that is kept for probes."""

_log = logging.getLogger(__name__)
_WHOLE = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)


class GuardedProtocol(H11Protocol):
    def __init__(self, config: Config, server_state: ServerState, limits: Limits) -> None:
        super().__init__(config=config, server_state=server_state, app_state={})
        self._limits = limits
        self._receive_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._peer = ""
        self._heard_at = 0.0
        self._is_for_probes = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        self._peer = _address(transport)
        self._heard_at = self.loop.time()
        super().connection_made(transport)
        if not self._has_room():
            transport.abort()
            return
        self.app_state = {PEER_CERTIFICATE: _peer_certificate(transport), PROBES_ONLY: self._is_for_probes}
        self._receive_timer = self.loop.call_later(self._limits.receive_seconds, self.drop)

    @property
    def is_evictable(self) -> bool:
        """Whether no request of this connection is being answered: it is idle, or its request is incomplete."""
        return self.cycle is None or self.cycle.response_complete

    def _has_room(self) -> bool:
        """Whether this connection may stay. One more than allowed, from one peer or from all, replaces the one that was
        silent for longest and has no request in progress: a client that holds connections open cannot keep probes out.
        While all are busy, it gets one of the slots for probes, where the same holds."""
        others = [
            each
            for each in self.connections
            if isinstance(each, GuardedProtocol) and each is not self and not each.transport.is_closing()
        ]
        ordinary = [each for each in others if not each._is_for_probes]
        of_peer = [each for each in ordinary if each._peer == self._peer]
        limits = self._limits
        if _make_room(of_peer, limits.connections_per_peer) and _make_room(ordinary, limits.connections):
            return True
        self._is_for_probes = True
        if _make_room([each for each in others if each._is_for_probes], limits.probe_connections):
            return True
        _log.warning("a connection from %s is refused: %d are busy already", self._peer, len(others))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        _cancel(self._write_timer)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self.loop.time()
        try:
            super().data_received(data)
        except (h11.ProtocolError, UnicodeError) as error:
            _log.debug("a connection is dropped: %s", error)
            self.drop()
            return
        if self.conn.their_state in _WHOLE:
            self._expect_nothing()
        elif self._receive_timer is None:
            self._receive_timer = self.loop.call_later(self._limits.receive_seconds, self.drop)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is not None:
            # The keep-alive timer covers the wait for the next request.
            self._expect_nothing()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self._limits.stalled_write_seconds, self.drop)

    def resume_writing(self) -> None:
        _cancel(self._write_timer)
        self._write_timer = None
        super().resume_writing()

    def _unsupported_upgrade_warning(self) -> None:
        """Upgrades are not supported; suppress uvicorn's advice to install a WebSocket library."""

    def _expect_nothing(self) -> None:
        _cancel(self._receive_timer)
        self._receive_timer = None

    def drop(self) -> None:
        """End the connection at once."""
        if self.transport is not None:
            self.transport.abort()


def _make_room(connections: list[GuardedProtocol], most: int) -> bool:
    """Whether there is room for one more, if need be in the place of the one that was silent for longest."""
    if len(connections) < most:
        return True
    evictable = [each for each in connections if each.is_evictable]
    if evictable:
        min(evictable, key=lambda each: each._heard_at).drop()
    return bool(evictable)


def _address(transport: asyncio.Transport) -> str:
    name = transport.get_extra_info("peername")
    return str(name[0]) if name else ""


def _peer_certificate(transport: asyncio.Transport) -> bytes | None:
    tls: Any = transport.get_extra_info("ssl_object")
    certificate: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
    return certificate


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
