"""Who sends a request: users, and the bearer tokens that identify them.

Authentication makes a `ApiUser`; authorisation and managed fields read it. The administrator has one token. Service
accounts have JWTs, signed with a key that lives as long as the server, so that a restart without a data directory
invalidates them. Tokens are compared in constant time and never logged.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from bayplan.apiserver.protocol.encoding import BadJson, Json, JsonValue, decode, encode
from bayplan.observe.clock import Clock


@dataclass(frozen=True, slots=True)
class ApiUser:
    """An authenticated identity."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)


ANONYMOUS = ApiUser("system:anonymous", ("system:unauthenticated",))
ADMIN = ApiUser("kubernetes-admin", ("system:masters", "system:authenticated"))
LOOPBACK = ApiUser("system:apiserver", ("system:masters", "system:authenticated"))


def certificate_user(certificate: JsonValue) -> ApiUser:
    """The user of a verified client certificate: its common name, with its organisations as groups."""
    subject = [pair for names in (certificate or {}).get("subject", ()) for pair in names]
    name = next((value for key, value in subject if key == "commonName"), "")
    groups = tuple(value for key, value in subject if key == "organizationName")
    return ApiUser(name, (*groups, "system:authenticated")) if name else ANONYMOUS


def service_account_user(namespace: str, name: str, uid: str = "") -> ApiUser:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return ApiUser(f"system:serviceaccount:{namespace}:{name}", groups, uid)


def new_admin_token() -> str:
    return secrets.token_urlsafe(24)


class TokenIssuer:
    """Issues and checks tokens."""

    audience = "https://kubernetes.default.svc"

    def __init__(self, *, clock: Clock, admin_token: str, signing_key: bytes | None = None) -> None:
        self._clock = clock
        self._admin = admin_token.encode()
        self._key = signing_key or secrets.token_bytes(32)

    def issue(self, namespace: str, name: str, uid: str, *, seconds: int) -> tuple[str, float]:
        """A token for a service account, and when it expires."""
        now = int(self._clock.now())
        expires = now + seconds
        claims = {
            "aud": [self.audience],
            "exp": expires,
            "iat": now,
            "nbf": now,
            "iss": self.audience,
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "jti": secrets.token_hex(16),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        }
        head = _part({"alg": "HS256", "typ": "JWT"}) + b"." + _part(claims)
        return (head + b"." + self._signature(head)).decode(), float(expires)

    def user(self, token: str) -> ApiUser | None:
        """Who a token belongs to; None when it is unknown, forged or expired."""
        given = token.encode("utf-8", "replace")
        if hmac.compare_digest(given, self._admin):
            return ADMIN
        head, dot, signature = given.rpartition(b".")
        if not dot or not hmac.compare_digest(signature, self._signature(head)):
            return None
        claims = _claims(head)
        if claims is None or claims.get("exp", 0) < self._clock.now():
            return None
        bound = claims["kubernetes.io"]
        return service_account_user(bound["namespace"], bound["serviceaccount"]["name"], bound["serviceaccount"]["uid"])

    def _signature(self, head: bytes) -> bytes:
        return _base64(hmac.new(self._key, head, hashlib.sha256).digest())


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _part(document: Json) -> bytes:
    return _base64(encode(document))


def _claims(head: bytes) -> JsonValue:
    try:
        payload = head.partition(b".")[2]
        return decode(base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4)))
    except (ValueError, BadJson):
        return None
