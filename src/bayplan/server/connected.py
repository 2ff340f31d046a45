"""Work for a client that ends when the client is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import Request

__all__ = ["CLIENT_CLOSED_REQUEST", "ClientGone", "while_connected"]

T = TypeVar("T")
CLIENT_CLOSED_REQUEST = 499
"""The status of an answer to a client that closed the connection; it is only logged."""


class ClientGone(Exception):
    """The client closed the connection before the answer."""


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """The result of the work, which is cancelled when the client goes. The request's body has been read. Raises
    `ClientGone`."""
    answer, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientGone
        return answer.result()
    finally:
        for task in (answer, gone):
            task.cancel()
        await asyncio.wait((answer, gone))


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
