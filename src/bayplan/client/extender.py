"""HTTP to scheduler extenders: one POST request and its JSON answer, within the configured time.

An extender is a foreign web server. A late, oversized or malformed answer is an `ExtenderFailed` that names the address
and the verb; other requests are not affected. Redirects are not followed and nothing is retried: the caller decides
whether an extender may be ignored.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import msgspec

from bayplan.client.access import ClusterAccess
from bayplan.client.credentials import StaticCredentials
from bayplan.client.errors import ClientError, InvalidResponse, NoAnswer
from bayplan.client.http_transport import HttpTransport
from bayplan.client.pool import PoolSettings
from bayplan.client.tls import TlsSettings

__all__ = ["ExtenderEndpoint", "ExtenderFailed", "ExtenderHttp"]

_MAX_ANSWER_BYTES = 64 << 20
_POOL = PoolSettings(max_connections=16, max_rest_seconds=15.0, spread=0.0)


class ExtenderFailed(ClientError):
    """An extender gave no usable answer."""


@dataclass(frozen=True, kw_only=True)
class ExtenderEndpoint:
    """Where an extender is and how to reach it. `tls` is for addresses that begin with https."""

    url_prefix: str
    timeout_seconds: float = 5.0
    tls: TlsSettings = field(default_factory=TlsSettings, repr=False)

    def url(self, verb: str) -> str:
        return f"{self.url_prefix.rstrip('/')}/{verb}"


class ExtenderHttp:
    """Connections to all extenders of a scheduler. `close` it at the end."""

    def __init__(self) -> None:
        self._transports: dict[ExtenderEndpoint, HttpTransport] = {}

    async def post(self, endpoint: ExtenderEndpoint, verb: str, arguments: object) -> Any:
        """The decoded answer. Raises `ExtenderFailed`, and `KubeconfigError` for unusable certificate files."""
        url, seconds = endpoint.url(verb), endpoint.timeout_seconds
        transport = self._transport(endpoint)
        try:
            async with asyncio.timeout(seconds):
                response = await transport.request(
                    "POST", f"/{quote(verb)}", body=msgspec.json.encode(arguments), timeout=seconds
                )
        except TimeoutError:
            raise ExtenderFailed(f"no answer from the extender at {url} within {seconds:g} s") from None
        except NoAnswer as error:
            raise ExtenderFailed(f"cannot reach the extender at {url}: {error.__cause__ or error}") from error
        except InvalidResponse as error:
            raise ExtenderFailed(f"the answer of the extender at {url} cannot be used: {error}") from error
        if response.status != 200:
            raise ExtenderFailed(f"failed {verb} with extender at URL {url}, code {response.status}")
        try:
            return msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ExtenderFailed(f"the answer of the extender at {url} is not JSON: {error}") from error

    def _transport(self, endpoint: ExtenderEndpoint) -> HttpTransport:
        known = self._transports.get(endpoint)
        if known is None:
            access = ClusterAccess(server=endpoint.url_prefix, credentials=StaticCredentials(), tls=endpoint.tls)
            known = self._transports[endpoint] = HttpTransport(
                access, draw=_no_draw, pool=_POOL, max_response_bytes=_MAX_ANSWER_BYTES
            )
        return known

    async def close(self) -> None:
        """Close all connections. Closing twice is allowed."""
        transports, self._transports = self._transports, {}
        for transport in transports.values():
            await transport.close()


def _no_draw() -> float:
    return 0.0
