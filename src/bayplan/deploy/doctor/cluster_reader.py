"""Reads objects of the cluster for checks, as plain data or typed."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.client.decoding import ObjectDecoder, Rejected
from bayplan.client.errors import NotFound, api_error
from bayplan.client.transport import Transport

__all__ = ["ClusterReader"]

K = TypeVar("K", bound=KubeObject)
_SIDE_BY_SIDE = 16
_PAGE = "500"


class ClusterReader:
    """Raises the client's errors."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._places = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def call(self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> bytes:
        content = None if body is None else msgspec.json.encode(body)
        async with self._places:
            response = await self._transport.request(method, path, body=content, query=query or {})
        if response.status >= 300:
            raise api_error(response.status, response.body, headers=response.headers)
        return response.body

    async def json(self, path: str) -> dict[str, Any]:
        return msgspec.json.decode(await self.call("GET", path), type=dict[str, Any])

    async def json_if_any(self, path: str) -> dict[str, Any] | None:
        try:
            return await self.json(path)
        except NotFound:
            return None

    async def objects(self, path: str, kind: type[K], *, field_selector: str = "") -> tuple[list[K], list[Rejected]]:
        """Every object under a path, page by page, and those that do not fit the type."""
        decoder: ObjectDecoder[K] = ObjectDecoder(kind)
        items: list[K] = []
        rejected: list[Rejected] = []
        query = {"limit": _PAGE} | ({"fieldSelector": field_selector} if field_selector else {})
        while True:
            page = decoder.page(await self.call("GET", path, query=query))
            for item in map(decoder.item, page.items):
                if isinstance(item, Rejected):
                    rejected.append(item)
                else:
                    items.append(item)
            if not page.continue_token:
                return items, rejected
            query = {**query, "continue": page.continue_token}
