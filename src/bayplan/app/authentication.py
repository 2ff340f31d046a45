"""Delegated authentication: tokens and permissions are reviewed by the API server, client authorities read from it.

Every API server publishes the authorities of its clients and of its front proxies in the ConfigMap
`kube-system/extension-apiserver-authentication`. Flags take precedence; the ConfigMap fills in what they leave open. It
is read again once a minute, so that new authorities are in use before the old ones expire; a ConfigMap that cannot be
read or decoded leaves the last good ones in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import structlog
from cryptography import x509

from bayplan.app.run_options import RunOptions
from bayplan.client.errors import ClientError, InvalidResponse, api_error
from bayplan.client.transport import Transport
from bayplan.observe.clock import Clock
from bayplan.server.options import AuthenticationOptions, AuthorityText, RequestHeaderOptions, Review, ServingError

__all__ = ["ClientAuthorities", "LookupFailed", "find_authorities", "review_with"]

_log = structlog.get_logger()
_NAME = "kube-system/extension-apiserver-authentication"
_PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_TOKENS = "/tokenreviews"
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_TIMEOUT_SECONDS = 10.0
_EVERY_SECONDS = 60.0
_HINT = (
    "bind the Role `extension-apiserver-authentication-reader` of kube-system to this user, name the authorities with "
    "--client-ca-file, or do without client certificates by --authentication-skip-lookup"
)


class LookupFailed(Exception):
    """The ConfigMap cannot be read or used."""


async def find_authorities(options: RunOptions, transport: Transport, clock: Clock) -> ClientAuthorities | None:
    """The authorities that the cluster publishes; None when flags name all, disable the lookup, or it fails and may."""
    given = options.server.authentication
    is_all_given = given.client_ca_file is not None and given.request_header is not None
    if options.skip_lookup or is_all_given or not options.server.is_enabled:
        return None
    found = ClientAuthorities(transport, clock)
    try:
        await found.look_up()
    except LookupFailed as failure:
        if not options.tolerate_lookup_failure:
            raise ServingError(f"{failure}\nhint: {_HINT}") from failure
        _log.warning("client certificates are trusted by flags alone", reason=str(failure), hint=_HINT)
        return None
    return found


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class _Published(NamedTuple):
    clients: bytes
    proxies: bytes
    names: tuple[str, ...]
    username_headers: tuple[str, ...]
    uid_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]


class ClientAuthorities:
    """`look_up` once, `complete` the options of the server, then `follow` until cancelled."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._published = _Published(b"", b"", (), (), (), (), ())
        self._clients = AuthorityText(f"client-ca-file of {_NAME}", b"")
        self._proxies = AuthorityText(f"requestheader-client-ca-file of {_NAME}", b"")

    async def look_up(self) -> None:
        """Raises LookupFailed; what was known stays known."""
        published = await self._read()
        self._published = published
        self._clients.pem, self._proxies.pem = published.clients, published.proxies

    def complete(self, options: AuthenticationOptions) -> AuthenticationOptions:
        published = self._published
        if options.client_ca_file is None and published.clients:
            options = replace(options, client_ca_file=self._clients)
        if options.request_header is None and published.proxies and published.username_headers:
            header = RequestHeaderOptions(
                client_ca_file=self._proxies,
                allowed_names=published.names,
                username_headers=published.username_headers,
                uid_headers=published.uid_headers,
                group_headers=published.group_headers,
                extra_header_prefixes=published.extra_prefixes,
            )
            options = replace(options, request_header=header)
        return options

    async def follow(self) -> None:
        """Keep the authorities up to date. Names and headers of front proxies stay as they were at the start."""
        complaint = ""
        while True:
            await self._clock.sleep(_EVERY_SECONDS)
            try:
                published = await self._read()
            except LookupFailed as failure:
                if str(failure) != complaint:
                    complaint = str(failure)
                    _log.warning("client authorities stay as they were read last", reason=complaint)
                continue
            complaint = ""
            self._take(self._clients, published.clients)
            self._take(self._proxies, published.proxies)

    def _take(self, authority: AuthorityText, pem: bytes) -> None:
        if pem and pem != authority.pem:
            authority.pem = pem
            _log.info("client authorities were replaced", source=authority.source)

    async def _read(self) -> _Published:
        try:
            response = await self._transport.request("GET", _PATH, timeout=_TIMEOUT_SECONDS)
            if response.status != 200:
                raise api_error(response.status, response.body, headers=response.headers)
            data = msgspec.json.decode(response.body, type=_ConfigMap).data or {}
            return _published(data)
        except (ClientError, msgspec.MsgspecError, ValueError) as error:
            raise LookupFailed(f"cannot read the ConfigMap {_NAME}: {error}") from error


def _published(data: dict[str, str]) -> _Published:
    return _Published(
        clients=_bundle(data.get("client-ca-file", "")),
        proxies=_bundle(data.get("requestheader-client-ca-file", "")),
        names=_names(data, "requestheader-allowed-names"),
        username_headers=_names(data, "requestheader-username-headers"),
        uid_headers=_names(data, "requestheader-uid-headers"),
        group_headers=_names(data, "requestheader-group-headers"),
        extra_prefixes=_names(data, "requestheader-extra-headers-prefix"),
    )


def _bundle(pem: str) -> bytes:
    """Raises ValueError for text that is no bundle of certificates."""
    found = pem.encode()
    if found.strip():
        x509.load_pem_x509_certificates(found)
        return found
    return b""


def _names(data: dict[str, str], key: str) -> tuple[str, ...]:
    """A list in JSON, as the API server writes it."""
    text: Any = data.get(key, "")
    return tuple(msgspec.json.decode(text, type=list[str])) if text else ()


def review_with(tokens: Transport, access: Transport | None = None) -> Review:
    """Review through these transports, whose users must be allowed to create tokenreviews and subjectaccessreviews.

    Without the second, both reviews use the first.
    """

    async def review(path: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
        transport = tokens if access is None or path.endswith(_TOKENS) else access
        response = await transport.request("POST", path, body=msgspec.json.encode(question))
        if response.status >= 300:
            raise api_error(response.status, response.body, headers=response.headers)
        try:
            return _decode(response.body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidResponse(f"the answer from {path} is not an object: {error}") from error

    return review
