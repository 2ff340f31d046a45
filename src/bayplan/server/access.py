"""Access control: passes a request to the pages, or refuses it with 401, 403 or 503, whatever its path.

`DelegatedAccess` delegates to the API server, as kube-scheduler does. `LoopbackAccess` is for a server on loopback
without TLS: it checks an optional token and, because any web page can make a browser send requests to loopback, that
the Host header is a local name.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bayplan.server.answers import Refusal
from bayplan.server.authentication import Authenticator, RequestCredentials, bearer_token
from bayplan.server.authorization import Authorizer
from bayplan.server.protocol import PEER_CERTIFICATE, PROBES_ONLY
from bayplan.server.reviews import ReviewUnavailable
from bayplan.server.users import MASTERS, User, remember_user

__all__ = ["DelegatedAccess", "LoopbackAccess"]

_log = logging.getLogger(__name__)
_LOCAL_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]"))
_LOCAL_USER = User(name="bayplan:local", groups=(MASTERS,))
_UNAUTHORIZED_HEADERS = {"www-authenticate": 'Bearer realm="bayplan"'}


class DelegatedAccess:
    def __init__(self, app: ASGIApp, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._app = app
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._authorizer.is_open(scope["path"]):
            _check_slot(scope)
            await self._admit(scope)
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope) -> None:
        try:
            user = await self._authenticator.user(credentials_of(scope))
            if user is None:
                raise Refusal(401, "Unauthorized", headers=_UNAUTHORIZED_HEADERS)
            query = scope["query_string"].decode("latin-1")
            refused = await self._authorizer.refusal_of(user, method=scope["method"], path=scope["path"], query=query)
            if refused:
                raise Refusal(403, f'forbidden: User "{user.name}" {refused}')
        except ReviewUnavailable as error:
            _log.warning("a request to %s is refused because the API server cannot be asked: %s", scope["path"], error)
            message = "the API server cannot be asked who you are and what you may do; see the log"
            raise Refusal(503, message, headers={"retry-after": "1"}) from error
        remember_user(scope, user)


class LoopbackAccess:
    """With a token, a browser opens `/?token=…` once and receives a cookie; other clients send it as a bearer token."""

    def __init__(self, app: ASGIApp, authorizer: Authorizer, *, token: str) -> None:
        self._app = app
        self._authorizer = authorizer
        self._token = token
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"bayplan-{hashlib.sha256(self._session.encode()).hexdigest()[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        credentials = credentials_of(scope)
        if _host_name(credentials) not in _LOCAL_NAMES:
            raise Refusal(421, "this server answers to localhost only; open it by that name")
        is_open = self._authorizer.is_open(scope["path"])
        if not is_open:
            _check_slot(scope)
        if self._token and not is_open:
            handed_in = self._token_in_query(scope)
            if handed_in:
                await self._start_session(scope, receive, send)
                return
            if not self._is_known(credentials):
                raise Refusal(401, "Unauthorized", headers=_UNAUTHORIZED_HEADERS)
        remember_user(scope, _LOCAL_USER)
        await self._app(scope, receive, send)

    def _token_in_query(self, scope: Scope) -> bool:
        values = dict(_query(scope))
        return scope["method"] == "GET" and "token" in values and _is_same(values["token"], self._token)

    async def _start_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Redirect the browser to the same page without the token, which would otherwise stay in its history."""
        rest = urlencode([(name, value) for name, value in _query(scope) if name != "token"])
        response = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), status_code=303)
        response.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
        await response(scope, receive, send)

    def _is_known(self, credentials: RequestCredentials) -> bool:
        token = bearer_token(credentials)
        if token is not None:
            return _is_same(token, self._token)
        return any(_is_same(value, self._session) for value in _cookie_values(credentials, self._cookie))


def _check_slot(scope: Scope) -> None:
    if scope.get("state", {}).get(PROBES_ONLY):
        headers = {"retry-after": "1", "connection": "close"}
        raise Refusal(503, "all connections are busy; only health probes are answered", headers=headers)


def credentials_of(scope: Scope) -> RequestCredentials:
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    return RequestCredentials(headers=headers, certificate=scope.get("state", {}).get(PEER_CERTIFICATE))


def _query(scope: Scope) -> list[tuple[str, str]]:
    try:
        return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError as error:
        raise Refusal(400, "the query cannot be read") from error


def _host_name(credentials: RequestCredentials) -> str:
    hosts = credentials.values("host")
    if len(hosts) != 1:
        return ""
    host = hosts[0].lower()
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]


def _cookie_values(credentials: RequestCredentials, name: str) -> list[str]:
    values = []
    for header in credentials.values("cookie"):
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(header)
        except CookieError:
            continue
        if name in cookies:
            values.append(cookies[name].value)
    return values


def _is_same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
