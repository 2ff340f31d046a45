"""The outermost layer: refuses malformed and oversized requests, adds security headers, and turns every failure into a
plain answer. Exceptions are logged here and answered with "internal error", without a traceback.

Paths are authorised and routed by the same text. An ambiguous one (`..`, `//`, encoded slashes, control characters) is
refused before authorisation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from email.utils import formatdate

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bayplan.observe.clock import Clock
from bayplan.server.answers import Refusal, status_response
from bayplan.server.options import Limits

__all__ = ["Guard"]

_log = logging.getLogger(__name__)
_PROBES = frozenset(("healthz", "livez", "readyz"))
_HARMLESS_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""Default headers; a page may set its own."""


class Guard:
    def __init__(self, app: ASGIApp, limits: Limits, clock: Clock, *, turn: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._turn = turn
        self._limits = limits
        self._now = clock.now
        self.is_stopping = False
        """Set before requests in flight are cancelled: their end is then expected."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = _Answer(send, self._date())
        try:
            _check(scope, self._limits)
            if scope["path"].split("/")[1] not in _PROBES:
                await self._turn()
            await self._app(scope, _LimitedBody(receive, self._limits.body_bytes), answer.send)
        except Refusal as refusal:
            await answer.refuse(scope, receive, refusal)
        except HTTPException as error:
            await answer.refuse(scope, receive, Refusal(error.status_code, error.detail, headers=error.headers))
        except asyncio.CancelledError:
            if not self.is_stopping:
                raise
        except ClientDisconnect:
            _log.debug("the client closed the connection while its request was read: %s", scope["path"])
        except Exception:
            _log.exception("%s %s failed", scope["method"], scope["path"])
            await answer.refuse(scope, receive, Refusal(500, "internal error; see the log"))

    def _date(self) -> tuple[bytes, bytes]:
        return (b"date", formatdate(self._now(), usegmt=True).encode())


class _Answer:
    """Follows the state of one answer while it is sent."""

    def __init__(self, send: Send, date: tuple[bytes, bytes]) -> None:
        self._send = send
        self._date = date
        self._has_started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._has_started = True
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            added = [header for header in (*_SECURITY_HEADERS, self._date) if header[0] not in names]
            message = {**message, "headers": given + added}
        await self._send(message)

    async def refuse(self, scope: Scope, receive: Receive, refusal: Refusal) -> None:
        if self._has_started:
            # Too late for another answer: end the connection, so that the client sees a broken one, not a short one.
            raise ConnectionAbortedError(refusal.message) from None
        if scope["method"] not in _HARMLESS_METHODS:
            # The body may not have been read; the rest of it must not be taken for the next request.
            refusal.headers.setdefault("connection", "close")
        await status_response(refusal)(scope, receive, self.send)


class _LimitedBody:
    """`receive` that refuses more than so many bytes."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._left = limit

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise _too_large(self._limit)
        return message


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"the request body is limited to {limit} bytes")


def _check(scope: Scope, limits: Limits) -> None:
    if not _is_plain_path(scope["path"], scope.get("raw_path") or b""):
        raise Refusal(400, "the path cannot be understood")
    headers = scope["headers"]
    if len(headers) > limits.headers or sum(len(name) + len(value) for name, value in headers) > limits.header_bytes:
        raise Refusal(431, f"headers are limited to {limits.headers} and {limits.header_bytes} bytes")
    _check_length(headers, limits.body_bytes)
    if sum(1 for name, _ in headers if name == b"host") > 1:
        raise Refusal(400, "a request has one Host header")
    if scope["method"] not in _HARMLESS_METHODS and _is_from_elsewhere(scope):
        raise Refusal(403, "forbidden: the request comes from another site")


def _is_plain_path(path: str, raw_path: bytes) -> bool:
    if not path.startswith("/") or "//" in path or "\\" in path or not path.isprintable():
        return False
    raw = raw_path.lower()
    if b"%2f" in raw or b"%5c" in raw or b"%25" in raw:
        return False
    return not any(part in (".", "..") for part in path.split("/"))


def _check_length(headers: list[tuple[bytes, bytes]], limit: int) -> None:
    for name, value in headers:
        if name == b"content-length" and (not value.isdigit() or len(value) > 18 or int(value) > limit):
            raise _too_large(limit)


def _is_from_elsewhere(scope: Scope) -> bool:
    """Whether a browser sent this for a page of another site (CSRF)."""
    headers = dict(scope["headers"])
    if headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
        return True
    origin = headers.get(b"origin")
    own = scope["scheme"].encode() + b"://" + headers.get(b"host", b"")
    return origin is not None and origin.lower() != own.lower()
