"""Calling admission webhooks: one HTTPS request with a review, one answer."""

from __future__ import annotations

import asyncio
import base64
import http.client
import ssl
from urllib.parse import urlsplit

from bayplan.apiserver.objects.webhooks import Review, ReviewFailed
from bayplan.apiserver.protocol.encoding import BadJson, Json, decode, encode

__all__ = ["call_webhook"]

_LARGEST_ANSWER = 8 << 20


async def call_webhook(review: Review) -> Json | ReviewFailed:
    """The response of the webhook, or why there is none. Never raises."""
    timeout = float(review.webhook.get("timeoutSeconds") or 10)
    try:
        async with asyncio.timeout(timeout):
            return await asyncio.to_thread(_post, review, timeout)
    except TimeoutError:
        return ReviewFailed("context deadline exceeded")
    except ReviewFailed as problem:
        return problem
    except (OSError, ssl.SSLError, http.client.HTTPException, ValueError) as problem:
        return ReviewFailed(f"{problem}" or type(problem).__name__)


def _post(review: Review, timeout: float) -> Json:
    client = review.webhook.get("clientConfig") or {}
    url = client.get("url")
    if not url:
        raise ReviewFailed("services of this cluster have no network; give the webhook a url")
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise ReviewFailed("the url must begin with https://")
    context = ssl.create_default_context(cadata=_authority(client))
    connection = http.client.HTTPSConnection(parts.hostname, parts.port or 443, timeout=timeout, context=context)
    target = f"{parts.path or '/'}?timeout={timeout:.0f}s"
    try:
        connection.request("POST", target, body=encode(review.body), headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read(_LARGEST_ANSWER + 1)
    finally:
        connection.close()
    if answer.status != 200:
        raise ReviewFailed(f"the server answered with status {answer.status}")
    return _response(body, review.body["request"]["uid"])


def _authority(client: Json) -> str | None:
    bundle = client.get("caBundle")
    return base64.b64decode(bundle).decode("ascii") if bundle else None


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
