"""Delegated authentication, wired: the server's questions about tokens and permissions go to the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.client.errors import InvalidResponse, api_error
from bayplan.client.transport import Transport
from bayplan.server import Review

__all__ = ["review_with"]

_TOKENS = "/tokenreviews"
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def review_with(tokens: Transport, access: Transport | None = None) -> Review:
    """Ask through these transports, whose users must be allowed to create tokenreviews and subjectaccessreviews.

    Without the second, both are asked through the first.
    """

    async def review(path: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
        transport = tokens if access is None or path.endswith(_TOKENS) else access
        response = await transport.request("POST", path, body=msgspec.json.encode(question))
        if response.status >= 300:
            raise api_error(response.status, response.body, headers=response.headers)
        try:
            return _decode(response.body)
        except msgspec.MsgspecError as error:
            raise InvalidResponse(f"the answer from {path} is not an object: {error}") from error

    return review
