"""Authenticates requests by a front proxy's headers, a client certificate or a bearer token, in that order.

Headers such as `x-remote-user` count only on a connection whose certificate the request-header authority signed; they
are ignored on all others. A client certificate is verified in the TLS handshake; here it is matched with the authority
that signed it, because a certificate of the front proxy's authority must not pass as a user's. An intermediate
authority counts when it is part of the configured bundle.

Requests without valid credentials have no user: unlike kube-scheduler, which may authorise `system:anonymous`, the
server answers 401 on every path that is not open to everybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from bayplan.observe.clock import Clock
from bayplan.server.certificates import AuthorityFile
from bayplan.server.options import AuthenticationOptions, RequestHeaderOptions
from bayplan.server.reviews import TokenReviews
from bayplan.server.users import AUTHENTICATED, User

__all__ = ["Authenticator", "RequestCredentials", "bearer_token"]

_BEARER = "bearer "
_LONGEST_TOKEN = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCredentials:
    """The credentials of a request: header lines (names in lower case) and the peer's certificate, verified by TLS."""

    headers: tuple[tuple[str, str], ...]
    certificate: bytes | None = None

    def values(self, name: str) -> list[str]:
        return [value for header, value in self.headers if header == name]


class Authenticator:
    def __init__(self, options: AuthenticationOptions, tokens: TokenReviews | None, clock: Clock) -> None:
        self._now = clock.now
        self._tokens = tokens
        self._clients = AuthorityFile(options.client_ca_file) if options.client_ca_file else None
        header = options.request_header
        self._proxy = _FrontProxy(header, AuthorityFile(header.client_ca_file)) if header else None

    async def user(self, credentials: RequestCredentials) -> User | None:
        """The user, or None. Raises `ReviewUnavailable` when a token cannot be checked."""
        certificate = self._valid_certificate(credentials.certificate)
        if certificate is not None:
            user = self._proxy.user(certificate, credentials) if self._proxy else None
            user = user or self._certificate_user(certificate)
            if user is not None:
                return user
        token = bearer_token(credentials)
        if token is None or self._tokens is None:
            return None
        return await self._tokens.user(token)

    def _valid_certificate(self, der: bytes | None) -> x509.Certificate | None:
        """The peer's certificate, unless it has expired since the handshake."""
        if der is None:
            return None
        certificate = _parsed(der)
        if certificate is None:
            return None
        now = datetime.fromtimestamp(self._now(), UTC)
        is_valid = certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc
        return certificate if is_valid else None

    def _certificate_user(self, certificate: x509.Certificate) -> User | None:
        if self._clients is None or not _is_signed_by(certificate, self._clients.certificates()):
            return None
        name = _common_name(certificate)
        organizations = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        groups = [str(attribute.value) for attribute in organizations]
        return User(name=name, groups=_with_authenticated(groups)) if name else None


class _FrontProxy:
    """The user that an authenticating front proxy names in its headers."""

    def __init__(self, options: RequestHeaderOptions, authority: AuthorityFile) -> None:
        self._options = options
        self._authority = authority

    def user(self, certificate: x509.Certificate, credentials: RequestCredentials) -> User | None:
        options = self._options
        if not _is_signed_by(certificate, self._authority.certificates()):
            return None
        if options.allowed_names and _common_name(certificate) not in options.allowed_names:
            return None
        name = _first(credentials, options.username_headers)
        if not name:
            return None
        groups = [value for header in options.group_headers for value in credentials.values(header.lower())]
        return User(
            name=name,
            uid=_first(credentials, options.uid_headers),
            groups=_with_authenticated(groups),
            extra=self._extra(credentials),
        )

    def _extra(self, credentials: RequestCredentials) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        for header, value in credentials.headers:
            for prefix in self._options.extra_header_prefixes:
                if header.startswith(prefix.lower()):
                    key = unquote(header[len(prefix) :])
                    extra[key] = (*extra.get(key, ()), value)
        return extra


def bearer_token(credentials: RequestCredentials) -> str | None:
    """The token of the one Authorization header; None when there is none, or several."""
    values = credentials.values("authorization")
    if len(values) != 1 or not values[0].lower().startswith(_BEARER):
        return None
    token = values[0][len(_BEARER) :].strip()
    return token if token and len(token) <= _LONGEST_TOKEN and token.isascii() and token.isprintable() else None


def _first(credentials: RequestCredentials, headers: Iterable[str]) -> str:
    return next((value for header in headers for value in credentials.values(header.lower()) if value), "")


def _with_authenticated(groups: list[str]) -> tuple[str, ...]:
    return tuple(groups) if AUTHENTICATED in groups else (*groups, AUTHENTICATED)


@lru_cache(maxsize=256)
def _parsed(der: bytes) -> x509.Certificate | None:
    try:
        return x509.load_der_x509_certificate(der)
    except ValueError:
        return None


def _common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _is_signed_by(certificate: x509.Certificate, authorities: Iterable[x509.Certificate]) -> bool:
    return any(_is_issuer(authority, certificate) for authority in authorities)


@lru_cache(maxsize=1024)
def _is_issuer(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
