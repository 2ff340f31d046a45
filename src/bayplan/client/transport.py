"""The interface through which everything in Bayplan reaches an API server.

Three methods: `request`, `stream` and `close`. `HttpTransport` implements them over sockets, the embedded API server in
process. Reflectors, writers, the event recorder and leader election use only this protocol, so each runs unchanged on
either.

A transport carries bytes. It does not retry, does not limit rates, does not decode objects, and does not raise for an
answer that the server gave to `request`: a 404 is a `Response`. It raises only when there is no answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

ByteStream: TypeAlias = AbstractAsyncContextManager[AsyncIterator[bytes]]
"""Entered, it yields the pieces of one answer's body."""


def always() -> bool:
    return True


class Response(msgspec.Struct, frozen=True, gc=False):
    """A whole answer. Header names are lower case; of a header sent twice the last value counts."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"Response({self.status}, {len(self.body)} bytes)"


@runtime_checkable
class Transport(Protocol):
    """Requests to one API server as one user."""

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
        """Send one request and return the server's answer, whatever its status.

        `path` starts with a slash, is already percent-encoded and carries no query; `query` values are encoded here.
        `content_type` is sent only with a body. `timeout` is in seconds, for the whole exchange; None means the
        transport's own default. The answer is asked for as JSON unless `headers` says otherwise. `may_send` is called
        right before the first byte leaves, after every wait; if it is False, nothing is sent and `NotSent` is raised.

        Raises `ConnectionFailed` when no whole answer came, `RequestTimeout` when none came in time.
        `may_have_been_processed` of both tells whether the server can have received the request.
        """
        ...

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        """GET `path` and yield the body of the answer in pieces as they arrive, split anywhere.

        Entering raises the matching `ApiError` when the server answers with anything but success, else as `request`.
        The iterator ends when the server ends the body, and raises `ConnectionFailed` when the connection breaks. There
        is no timeout: a watch may be silent for minutes. Leaving the context closes the connection at once.
        """
        ...

    async def close(self) -> None:
        """Close all connections. Requests in flight raise `ConnectionFailed`. Closing twice is allowed."""
        ...
