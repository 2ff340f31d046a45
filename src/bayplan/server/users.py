"""The user of a request: made by an authenticator, read by the authoriser and by pages."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["AUTHENTICATED", "MASTERS", "User", "remember_user", "user_of"]

AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
_STATE_KEY = "bayplan.user"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """As Kubernetes describes a user in reviews."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def identity(self) -> tuple[object, ...]:
        """The cache key of a user: equal for users whose attributes are equal."""
        extra = tuple(sorted((key, tuple(values)) for key, values in self.extra.items()))
        return (self.name, self.uid, tuple(sorted(self.groups)), extra)


def remember_user(scope: MutableMapping[str, Any], user: User) -> None:
    scope.setdefault("state", {})[_STATE_KEY] = user


def user_of(scope: Mapping[str, Any]) -> User | None:
    """The user of a request; None on paths that are open to everybody."""
    user = scope.get("state", {}).get(_STATE_KEY)
    return user if isinstance(user, User) else None
