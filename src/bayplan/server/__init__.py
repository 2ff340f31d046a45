"""The scheduler's HTTPS endpoints: health, metrics, configuration and debugging, with Kubernetes' delegated
authentication."""

from __future__ import annotations

from bayplan.server.health import Check, HealthChecks
from bayplan.server.options import (
    AuthenticationOptions,
    AuthorityText,
    AuthorizationOptions,
    Limits,
    RequestHeaderOptions,
    Review,
    ServerOptions,
    ServerParts,
    ServingError,
    TlsFiles,
)
from bayplan.server.serving import Serving, serve
from bayplan.server.users import User, user_of

__all__ = [
    "AuthenticationOptions",
    "AuthorityText",
    "AuthorizationOptions",
    "Check",
    "HealthChecks",
    "Limits",
    "RequestHeaderOptions",
    "Review",
    "ServerOptions",
    "ServerParts",
    "Serving",
    "ServingError",
    "TlsFiles",
    "User",
    "serve",
    "user_of",
]
