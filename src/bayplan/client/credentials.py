"""Credentials for an API server: tokens, token files that rotate, user names with passwords.

A transport calls `cached` before each request (cheap, does not wait) and `obtain` when that returns None. After a 401
it calls `reject` and, if a newer credential may exist, tries once more. Exec plugins are in `exec_plugin`.

No secret is printed, logged or part of a `repr`.
"""

from __future__ import annotations

import base64
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bayplan.client.errors import CredentialError
from bayplan.client.tls import ClientCertificate
from bayplan.observe.clock import Clock

TOKEN_FILE_MAX_AGE_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """The credential of a request: an Authorization header, a certificate for the connection, either or neither."""

    authorization: str | None = field(default=None, repr=False)
    certificate: ClientCertificate | None = field(default=None, repr=False)


ANONYMOUS = Identity()


class Credentials(Protocol):
    """A source of identities."""

    def cached(self) -> Identity | None:
        """The identity to use now, or None when it has to be obtained first."""
        ...

    async def obtain(self) -> Identity:
        """Get an identity, from a file or a program. Raises `CredentialError`."""
        ...

    def reject(self, identity: Identity) -> bool:
        """Note that the server refused `identity`. True when `obtain` may now return another one."""
        ...


class StaticCredentials:
    """An identity that never changes."""

    def __init__(self, identity: Identity = ANONYMOUS) -> None:
        self._identity = identity

    def cached(self) -> Identity:
        return self._identity

    async def obtain(self) -> Identity:
        return self._identity

    def reject(self, identity: Identity) -> bool:
        return False


class TokenFileCredentials:
    """A bearer token in a file that another process rotates, as the kubelet does for service accounts.

    The file is read again after a minute and after a 401. When it cannot be read, the last good token stays in use:
    the file may be in the middle of being replaced.
    """

    def __init__(self, path: Path, *, clock: Clock, fallback_token: str | None = None) -> None:
        self._path = path
        self._clock = clock
        self._identity = bearer(fallback_token) if fallback_token else None
        self._read_at: float | None = None

    def cached(self) -> Identity | None:
        if self._read_at is None or self._clock.monotonic() - self._read_at > TOKEN_FILE_MAX_AGE_SECONDS:
            return None
        return self._identity

    async def obtain(self) -> Identity:
        try:
            self._identity = self._changed(self._read())
        except CredentialError as error:
            if self._identity is None:
                raise
            _log.warning("keeping the last good token: %s", error.message)
        self._read_at = self._clock.monotonic()
        assert self._identity is not None
        return self._identity

    def reject(self, identity: Identity) -> bool:
        self._read_at = None
        return True

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not text"
            raise CredentialError(
                f"cannot read the token file `{self._path}`: {reason}",
                hint="check that the file exists and that this user may read it",
            ) from error
        if not token or not is_header_safe(token):
            problem = "is empty" if not token else "holds more than one token"
            raise CredentialError(f"the token file `{self._path}` {problem}", hint="it must hold one bearer token")
        return token

    def _changed(self, token: str) -> Identity:
        """The identity of `token`; the same object for the same token, so that caches keyed by identity stay valid."""
        fresh = bearer(token)
        return self._identity if self._identity == fresh and self._identity is not None else fresh


def bearer(token: str) -> Identity:
    return Identity(authorization=f"Bearer {token}")


def basic(username: str, password: str) -> Identity:
    pair = f"{username}:{password}".encode()
    return Identity(authorization=f"Basic {base64.b64encode(pair).decode('ascii')}")


def is_header_safe(value: str) -> bool:
    """Whether a value is safe in a header line; line breaks could inject a second header."""
    return value.isascii() and value.isprintable()
