"""The scheduler's HTTPS endpoints: health, metrics, configuration and debugging, with Kubernetes' delegated
authentication.

What serves is loaded when it is first used: a scheduler that starts has asked for the cluster by then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayplan.server.options import (
    AuthenticationOptions,
    AuthorityText,
    AuthorizationOptions,
    Check,
    HealthChecks,
    Limits,
    RequestHeaderOptions,
    Review,
    ServerOptions,
    ServerParts,
    ServingError,
    TlsFiles,
)

if TYPE_CHECKING:
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

_LOADED_LATER = {"Serving": "serving", "serve": "serving", "User": "users", "user_of": "users"}


def __getattr__(name: str) -> Any:
    if name not in _LOADED_LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LOADED_LATER[name]}"), name)
