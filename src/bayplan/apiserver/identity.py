"""Who is asking. Authentication makes a `User`; authorisation and managed fields read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated identity."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
LOOPBACK = User("system:apiserver", ("system:masters", "system:authenticated"))


def certificate_user(certificate: Any) -> User:
    """The user of a verified client certificate: its common name, with its organisations as groups."""
    subject = [pair for names in (certificate or {}).get("subject", ()) for pair in names]
    name = next((value for key, value in subject if key == "commonName"), "")
    groups = tuple(value for key, value in subject if key == "organizationName")
    return User(name, (*groups, "system:authenticated")) if name else ANONYMOUS


def service_account_user(namespace: str, name: str, uid: str = "") -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid)
