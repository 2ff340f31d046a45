"""ENDPOINTS: health, metrics, configuration and debugging over HTTPS, behind Kubernetes' own authentication."""

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
