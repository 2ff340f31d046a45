"""HTTP to scheduler extenders: one question, one answer, within the time that the configuration gives.

An extender is somebody else's web server. Its answers may be late, huge, or nonsense; each of those is an
`ExtenderFailed` that names the address and the verb, and no other request suffers. Redirects are not followed and
nothing is retried: whether an extender may be done without is not decided here.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.client.errors import ClientError
from bayplan.client.tls import TlsContexts, TlsSettings

if TYPE_CHECKING:
    import aiohttp

__all__ = ["ExtenderEndpoint", "ExtenderFailed", "ExtenderHttp"]

_LARGEST_ANSWER_BYTES = 64 << 20
_MOST_CONNECTIONS_TO_ONE = 16


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
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[ExtenderEndpoint, TlsContexts] = {}

    async def post(self, endpoint: ExtenderEndpoint, verb: str, question: object) -> Any:
        """The decoded answer to a question. Raises `ExtenderFailed`, and what is wrong with certificate files."""
        import aiohttp  # only here: it takes longer to load than a scheduler without extenders needs to start

        url = endpoint.url(verb)
        try:
            async with asyncio.timeout(endpoint.timeout_seconds):
                status, body = await self._exchange(endpoint, url, msgspec.json.encode(question))
        except TimeoutError:
            what = f"no answer from the extender at {url} within {endpoint.timeout_seconds:g} s"
            raise ExtenderFailed(what) from None
        except (aiohttp.ClientError, OSError) as error:
            raise ExtenderFailed(f"cannot reach the extender at {url}: {error or type(error).__name__}") from error
        if status != 200:
            raise ExtenderFailed(f"failed {verb} with extender at URL {url}, code {status}")
        return _decoded(url, body)

    async def _exchange(self, endpoint: ExtenderEndpoint, url: str, body: bytes) -> tuple[int, bytes]:
        async with self._sessions().post(
            url,
            data=body,
            headers={"Content-Type": "application/json"},
            allow_redirects=False,
            ssl=self._tls(endpoint),
            server_hostname=endpoint.tls.server_name,
        ) as answer:
            if answer.status != 200:
                return answer.status, b""
            content = bytearray()
            async for piece in answer.content.iter_any():
                content += piece
                if len(content) > _LARGEST_ANSWER_BYTES:
                    raise ExtenderFailed(f"the answer of the extender at {url} is over {_LARGEST_ANSWER_BYTES} bytes")
            return answer.status, bytes(content)

    def _sessions(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, limit_per_host=_MOST_CONNECTIONS_TO_ONE)
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        return self._session

    def _tls(self, endpoint: ExtenderEndpoint) -> ssl.SSLContext | bool:
        if not endpoint.url_prefix.startswith("https://"):
            return True
        contexts = self._contexts.setdefault(endpoint, TlsContexts(endpoint.tls))
        return contexts.context()

    async def close(self) -> None:
        """Give up all connections. Closing twice is allowed."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _decoded(url: str, body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ExtenderFailed(f"the answer of the extender at {url} is not JSON: {error}") from error
