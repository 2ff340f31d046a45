"""Configuration of the server: addresses and access (`ServerOptions`), and what it serves (`ServerParts`).

Options mirror kube-scheduler's flags, with two differences that make a mistake harmless: the default address is
loopback (0.0.0.0 must be asked for), and plain HTTP exists on loopback only. Parts are callables, so that this package
does not depend on the scheduler.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bayplan.observe.clock import Clock, SystemClock

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

__all__ = [
    "DEFAULT_PORT",
    "AuthenticationOptions",
    "AuthorityText",
    "AuthorizationOptions",
    "Check",
    "HealthChecks",
    "Limits",
    "PodAccess",
    "RequestHeaderOptions",
    "Review",
    "ServerOptions",
    "ServerParts",
    "ServingError",
    "TlsFiles",
]

DEFAULT_PORT = 10259

Review = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""POST an object to a path of the API server and return its answer, decoded; raises anything when it cannot."""


class ServingError(Exception):
    """The server cannot be started with these options; the message says what to change."""


class AuthorityText:
    """A bundle of authorities as PEM that does not come from a file. `pem` may be replaced at any time."""

    def __init__(self, source: str, pem: bytes) -> None:
        self.source = source
        self.pem = pem

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True)
class TlsFiles:
    """`--tls-cert-file` and `--tls-private-key-file`. Both are read again when they change on disk."""

    certificate: Path
    key: Path


@dataclass(frozen=True, kw_only=True)
class RequestHeaderOptions:
    """The `--requestheader-*` flags: a front proxy that authenticates users and names them in headers."""

    client_ca_file: Path | AuthorityText
    allowed_names: Sequence[str] = ()
    """Common names that the proxy's certificate may have; none means any that the authority signed."""
    username_headers: Sequence[str] = ("x-remote-user",)
    uid_headers: Sequence[str] = ("x-remote-uid",)
    group_headers: Sequence[str] = ("x-remote-group",)
    extra_header_prefixes: Sequence[str] = ("x-remote-extra-",)


@dataclass(frozen=True, kw_only=True)
class AuthenticationOptions:
    client_ca_file: Path | AuthorityText | None = None
    request_header: RequestHeaderOptions | None = None
    token_cache_seconds: float = 10.0
    review_timeout_seconds: float = 10.0


class PodAccess(NamedTuple):
    """Pods that an answer is about: one, those of a namespace, or all."""

    verb: str
    namespace: str = ""
    name: str = ""


def _about_no_pods(path: str, query: str) -> PodAccess | None:
    return None


@dataclass(frozen=True, kw_only=True)
class AuthorizationOptions:
    always_allow_paths: Sequence[str] = ("/healthz", "/livez", "/readyz")
    """Open to everybody. A path that ends with `*` stands for all that begin so."""
    allowed_cache_seconds: float = 10.0
    denied_cache_seconds: float = 10.0
    pods_in: Callable[[str, str], PodAccess | None] = _about_no_pods
    """(path, query) to the pods that the answer is about; users who may not read those in the cluster are refused."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits for one client and for all clients together."""

    connections: int = 256
    connections_per_peer: int = 64
    """Of one address. Beyond either limit a new connection replaces one that has no request in progress."""
    probe_connections: int = 16
    """More connections while all others are busy. Only open paths are answered on them: health probes."""
    headers: int = 200
    header_bytes: int = 32 * 1024
    body_bytes: int = 3 * 1024 * 1024
    receive_seconds: float = 15.0
    """Time limit to receive a whole request."""
    stalled_write_seconds: float = 30.0
    """A client that reads nothing of its answer for this time is dropped."""
    keep_alive_seconds: int = 30
    handshake_seconds: float = 10.0
    shutdown_seconds: float = 0.5
    """Time limit for requests in flight when the server stops."""


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Port 0 picks a free one; `--secure-port 0`, which turns kube-scheduler's server off, is `is_enabled=False`."""

    is_enabled: bool = True
    bind_address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    tls: TlsFiles | None = None
    """Without files a self-signed certificate is made, which lives in memory as long as the server."""
    tls_min_version: str = "VersionTLS12"
    tls_cipher_suites: Sequence[str] = ()
    """Of TLS 1.2, by the names that kube-scheduler takes; none leaves the choice to OpenSSL."""
    is_plain_http: bool = False
    """For `bayplan up`: no TLS and no delegated authentication; refused on an address that others can reach."""
    loopback_token: str = field(default="", repr=False)
    """With plain HTTP: the token that clients must present; empty allows every local client."""
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ServingError(f"the port is a number from 0 to 65535, not {self.port}")
        if self.is_plain_http and not self.is_loopback:
            raise ServingError(
                f"plain HTTP is served on loopback only, not on `{self.bind_address}`\n"
                "hint: leave TLS on, or bind to 127.0.0.1"
            )
        if self.loopback_token and not self.is_plain_http:
            raise ServingError("a loopback token is for plain HTTP; over TLS clients present Kubernetes credentials")

    @property
    def is_loopback(self) -> bool:
        if self.bind_address == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.bind_address).is_loopback
        except ValueError as error:
            raise ServingError(
                f"`{self.bind_address}` is not an address to listen on\nhint: 127.0.0.1, 0.0.0.0, ::1 or :: are usual"
            ) from error


Check = Callable[[], str | None]
"""A check returns None on success, otherwise the reason of the failure. An exception counts as a failure."""


@dataclass(frozen=True, kw_only=True)
class HealthChecks:
    """Checks by endpoint and name, in the order in which they are listed. No checks at all stands for `ping`."""

    healthz: Mapping[str, Check] = field(default_factory=dict)
    livez: Mapping[str, Check] = field(default_factory=dict)
    readyz: Mapping[str, Check] = field(default_factory=dict)


def _nothing_as_text(accept: str) -> tuple[bytes, str]:
    return b"", "text/plain; charset=utf-8"


async def _at_once() -> None:
    await asyncio.sleep(0)


@dataclass(frozen=True, kw_only=True)
class ServerParts:
    """What the endpoints serve. Callables run in the event loop and must be quick."""

    component: str = "bayplan"
    version: str = ""
    health: HealthChecks = field(default_factory=HealthChecks)
    config: Callable[[], Mapping[str, Any]] = dict
    """The configuration as loaded, for /configz; secrets are blanked."""
    own_config: Callable[[], Mapping[str, Any]] = dict
    """The settings that kube-scheduler does not have, for /configz too."""
    flags: Callable[[], Mapping[str, Any]] = dict
    metrics: Callable[[str], tuple[bytes, str]] = _nothing_as_text
    """Accept header to (body, content type)."""
    resource_metrics: Callable[[], Iterable[bytes]] = tuple
    """In pieces: it may be long, and other work is done between two pieces. Empty while not leading."""
    review: Review | None = None
    """Sends token and access reviews to the API server; without it no token is accepted."""
    routes: Sequence[BaseRoute] = ()
    """More pages: dashboard, explain, what-if. Behind the same authentication and authorisation."""
    is_profiling: Callable[[], bool] = lambda: False
    """Whether /debug/pprof is served; evaluated for every request."""
    set_verbosity: Callable[[int], None] | None = None
    """For PUT /debug/flags/v; without it the path does not exist."""
    turn: Callable[[], Awaitable[None]] = _at_once
    """Awaited before each request is answered, except probes, and between pieces: the event loop may have more
    important work."""
    clock: Clock = field(default_factory=SystemClock)
