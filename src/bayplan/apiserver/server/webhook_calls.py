"""Calling admission webhooks: one HTTPS request with a review, one answer.

On the event loop and not in a thread: a webhook that sends a byte now and then would hold a thread for as long as it
likes, and with it the end of the process.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from urllib.parse import urlsplit

import httptools

from bayplan.apiserver.objects.webhooks import Review, ReviewFailed
from bayplan.apiserver.protocol.encoding import BadJson, Json, decode, encode

__all__ = ["call_webhook"]

_LARGEST_ANSWER = 8 << 20
_LARGEST_HEAD = 256 << 10
_PIECE = 64 << 10


async def call_webhook(review: Review) -> Json | ReviewFailed:
    """The response of the webhook, or why there is none. Never raises."""
    timeout = float(review.webhook.get("timeoutSeconds") or 10)
    try:
        async with asyncio.timeout(timeout):
            return await _post(review, timeout)
    except TimeoutError:
        return ReviewFailed("context deadline exceeded")
    except ReviewFailed as problem:
        return problem
    except (OSError, ValueError, OverflowError) as problem:
        return ReviewFailed(f"{problem}" or type(problem).__name__)


async def _post(review: Review, timeout: float) -> Json:
    client = review.webhook.get("clientConfig") or {}
    url = client.get("url")
    if not url:
        raise ReviewFailed("services of this cluster have no network; give the webhook a url")
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise ReviewFailed("the url must begin with https://")
    context = ssl.create_default_context(cadata=_authority(client))
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=context)
    try:
        target = f"{parts.path or '/'}?timeout={timeout:.0f}s"
        writer.write(_request(target, parts.netloc.rpartition("@")[2], encode(review.body)))
        body = await _body(reader)
    finally:
        writer.transport.abort()
    return _response(body, review.body["request"]["uid"])


def _authority(client: Json) -> str | None:
    bundle = client.get("caBundle")
    return base64.b64decode(bundle).decode("ascii") if bundle else None


def _request(target: str, host: str, body: bytes) -> bytes:
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", "Accept: application/json"]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("ascii") + body


async def _body(reader: asyncio.StreamReader) -> bytes:
    answer = _Answer()
    parser = httptools.HttpResponseParser(answer)
    received = 0
    try:
        while not (answer.is_complete and parser.get_status_code() >= 200):  # after one of 1xx comes another
            piece = await reader.read(_PIECE)
            if not piece:
                if answer.ends_with_connection:
                    break
                raise ReviewFailed("the server closed the connection before its answer was complete")
            received += len(piece)
            if received > _LARGEST_ANSWER + _LARGEST_HEAD or (answer.is_in_head and received > _LARGEST_HEAD):
                raise ReviewFailed("the answer is too large")
            parser.feed_data(piece)
    except httptools.HttpParserError as problem:
        raise ReviewFailed(f"the answer is no HTTP: {problem}") from problem
    if (status := parser.get_status_code()) != 200:
        raise ReviewFailed(f"the server answered with status {status}")
    return b"".join(answer.body)


class _Answer:
    """What the parser finds in an answer."""

    def __init__(self) -> None:
        self.body: list[bytes] = []
        self.is_in_head = True
        self.is_complete = False
        self._has_length = False

    @property
    def ends_with_connection(self) -> bool:
        return not self.is_in_head and not self._has_length

    def on_message_begin(self) -> None:
        self.is_in_head, self.is_complete, self._has_length = True, False, False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._has_length |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        self.is_in_head = False

    def on_body(self, body: bytes) -> None:
        self.body.append(body)

    def on_message_complete(self) -> None:
        self.is_complete = True


def _response(body: bytes, uid: str) -> Json:
    if len(body) > _LARGEST_ANSWER:
        raise ReviewFailed("the answer is too large")
    try:
        answer = decode(body)
    except BadJson as problem:
        raise ReviewFailed(f"the answer is no JSON: {problem}") from problem
    response = answer.get("response") if isinstance(answer, dict) else None
    if not isinstance(response, dict):
        raise ReviewFailed("webhook response was absent")
    if response.get("uid") != uid:
        raise ReviewFailed(f"expected response.uid={uid}, got {response.get('uid')}")
    return response
