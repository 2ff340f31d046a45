"""A plain JSON client for the launcher and for tests that prepare a cluster: one request, one answer.

It uses the standard library alone, so that a bug in the project's own client cannot hide behind itself. It opens a
connection per request and retries nothing: it is for setting things up, not for speed.
"""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.controlplane.certificates import KeyPair

# Longer than the minute after which the API server itself gives a request up.
_TIMEOUT_SECONDS = 70.0
_PATCH_TYPE = "application/merge-patch+json"


class Answer(NamedTuple):
    """The status of a response and its body, decoded when it is JSON."""

    status: int
    body: Any


class RestClient:
    """Requests as one user against one API server (or another server of the same authority)."""

    def __init__(self, url: str, *, ca_file: Path, pair: KeyPair | None = None, token: str | None = None) -> None:
        self._address = urlsplit(url).netloc
        self._context = ssl.create_default_context(cafile=str(ca_file))
        if pair is not None:
            self._context.load_cert_chain(str(pair.certificate), str(pair.key))
        self._authorization = {"Authorization": f"Bearer {token}"} if token is not None else {}

    def request(self, method: str, path: str, body: Any = None) -> Answer:
        """Send one request; `body` goes out as JSON (as a merge patch with PATCH)."""
        headers = {"Accept": "application/json", **self._authorization}
        if body is not None:
            headers["Content-Type"] = _PATCH_TYPE if method == "PATCH" else "application/json"
        connection = http.client.HTTPSConnection(self._address, timeout=_TIMEOUT_SECONDS, context=self._context)
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            response = connection.getresponse()
            return Answer(response.status, _decode(response.read(), response.headers.get_content_type()))
        finally:
            connection.close()

    def is_healthy(self, path: str) -> bool:
        """Whether `path` answers 200; a server that cannot be reached is not healthy."""
        try:
            return self.request("GET", path).status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False


def answers_plain_http(address: str, path: str) -> bool:
    """Whether a server without TLS (etcd) answers `path` with 200."""
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _decode(content: bytes, content_type: str) -> Any:
    if content_type == "application/json":
        return json.loads(content)
    return content.decode("utf-8", errors="replace")
