"""The exceptions of the API client, as one tree.

    ClientError
    ├── KubeconfigError        the kubeconfig (or service account) cannot be used; the message says what to change
    ├── CredentialError        a credential could not be obtained: exec plugin, token file
    ├── NoAnswer               the server may or may not have acted
    │   ├── ConnectionFailed       refused, reset, TLS failure, name unknown
    │   └── RequestTimeout         nothing whole in time
    ├── NotSent                a write of a replica that no longer leads; the next leader is in charge of the object
    ├── InvalidResponse        an answer that is not HTTP, or not JSON where JSON was asked for
    └── ApiError               the server answered, and the answer is no
        ├── BadRequest             400
        ├── Unauthorized           401
        ├── Forbidden              403
        ├── NotFound               404
        ├── Conflict               409, or 422 because of metadata.uid: a patch for an object that was replaced
        │   └── AlreadyExists      409, reason AlreadyExists
        ├── Gone                   410: a resourceVersion or continue token that is too old
        ├── Invalid                422
        ├── TooManyRequests        429
        └── ServerError            5xx
            └── ServerTimeout      504, or reason Timeout/ServerTimeout

`api_error` is the only place that turns an answer into an exception: by the Status' reason, else by the HTTP code, else
by the code's hundred. No message holds a header, a token or a request body.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

_SHOWN_BODY_BYTES = 300
_LONGEST_RETRY_AFTER_SECONDS = 30
"""A server that asks for more, or something between here and it, must not end the scheduling of others for an hour."""


class ClientError(Exception):
    """Base of all errors of the API client."""


class KubeconfigError(ClientError):
    """A kubeconfig or service account that cannot be used. `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(f"{message}\nhint: {hint}")
        self.message = message
        self.hint = hint


class CredentialError(ClientError):
    """The credential a kubeconfig describes could not be obtained right now."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(f"{message}\nhint: {hint}")
        self.message = message
        self.hint = hint


class NoAnswer(ClientError):
    """There is no whole answer to a request; the server may or may not have acted on it."""

    def __init__(self, message: str, *, may_have_been_processed: bool) -> None:
        super().__init__(message)
        self.may_have_been_processed = may_have_been_processed


class ConnectionFailed(NoAnswer):
    """The connection could not be made, or broke before the whole answer was read."""


class RequestTimeout(NoAnswer):
    """The time for the request ran out."""


class NotSent(ClientError):
    """A request that was held back because its sender may no longer write; the server does not know of it."""


class InvalidResponse(ClientError):
    """What came back is not an answer of a Kubernetes API server."""


class ApiError(ClientError):
    """The server refused the request.

    `code` is the HTTP status, `reason` the machine-readable word of the Status object ("" when there was none),
    `retry_after` the seconds the server asks us to wait, `causes` the reasons of the Status' causes.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str = "",
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.retry_after = retry_after
        self.causes = causes

    def __str__(self) -> str:
        return f"{self.message} ({self.code} {self.reason})" if self.reason else f"{self.message} ({self.code})"


class BadRequest(ApiError):
    """The request itself is wrong; sending it again cannot help."""


class Unauthorized(ApiError):
    """The server does not accept the credential: it is missing, wrong or expired."""


class Forbidden(ApiError):
    """The user is not allowed to do this: an RBAC rule is missing."""


class NotFound(ApiError):
    """The object, or the resource type itself, does not exist."""


class Conflict(ApiError):
    """The object is not in the state the request assumed."""


class AlreadyExists(Conflict):
    """An object of that name exists already."""


class Gone(ApiError):
    """The history asked for has been compacted away: list again."""


class Invalid(ApiError):
    """The object fails validation."""


class TooManyRequests(ApiError):
    """The server limits requests; an eviction that a disruption budget forbids is answered the same way."""


class ServerError(ApiError):
    """The server failed; it may nevertheless have acted on the request."""


class ServerTimeout(ServerError):
    """The server timed out waiting for its storage, or for a resourceVersion that it does not have yet."""


ERROR_BY_REASON: Final[Mapping[str, type[ApiError]]] = MappingProxyType(
    {
        "Unauthorized": Unauthorized,
        "Forbidden": Forbidden,
        "NotFound": NotFound,
        "AlreadyExists": AlreadyExists,
        "Conflict": Conflict,
        "Gone": Gone,
        "Expired": Gone,
        "Invalid": Invalid,
        "BadRequest": BadRequest,
        "TooManyRequests": TooManyRequests,
        "Timeout": ServerTimeout,
        "ServerTimeout": ServerTimeout,
        "InternalError": ServerError,
        "ServiceUnavailable": ServerError,
        "StoreReadError": ServerError,
        "MethodNotAllowed": ApiError,
        "NotAcceptable": ApiError,
        "RequestEntityTooLarge": ApiError,
        "UnsupportedMediaType": ApiError,
    }
)

ERROR_BY_CODE: Final[Mapping[int, type[ApiError]]] = MappingProxyType(
    {
        400: BadRequest,
        401: Unauthorized,
        403: Forbidden,
        404: NotFound,
        409: Conflict,
        410: Gone,
        422: Invalid,
        429: TooManyRequests,
        504: ServerTimeout,
    }
)


class _Cause(msgspec.Struct):
    reason: str | None = None
    field: str | None = None


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    kind: str = ""
    code: int = 0
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_STATUS_DECODER = msgspec.json.Decoder(_Status)


def api_error(code: int, body: bytes, *, headers: Mapping[str, str] | None = None) -> ApiError:
    """The exception for an answer that is not a success.

    The body is a Status object when an API server answered, and anything when a proxy did.
    """
    status = _decode_status(body)
    retry_after = _retry_after(status, headers or {})
    if status is None:
        kind = ERROR_BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)
        return kind(_shown(body) or f"HTTP status {code} without a message", code=code, retry_after=retry_after)
    code = status.code or code
    reason = status.reason or ""
    given = (status.details and status.details.causes) or []
    causes = tuple(cause.reason or "" for cause in given)
    message = status.message or reason or f"HTTP status {code} without a message"
    kind = _kind(code, reason)
    if kind is Invalid and any(cause.field == "metadata.uid" for cause in given):
        kind = Conflict
    return kind(message, code=code, reason=reason, retry_after=retry_after, causes=causes)


def advice_to_follow(failure: ClientError) -> str:
    """A hint what to do about the failure of a list or watch, where that is clear."""
    if isinstance(failure, Forbidden):
        return "; grant list and watch on it to this user (`bayplan doctor` names every rule that is missing)"
    if isinstance(failure, Unauthorized):
        return "; the credential is missing, wrong or expired: renew it where the kubeconfig says it comes from"
    return ""


def _kind(code: int, reason: str) -> type[ApiError]:
    by_reason = ERROR_BY_REASON.get(reason)
    if by_reason is not None and by_reason is not ApiError:
        return by_reason
    return ERROR_BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)


def _decode_status(body: bytes) -> _Status | None:
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        status = _STATUS_DECODER.decode(body)
        if status.kind == "Status":
            return status
    return None


def _retry_after(status: _Status | None, headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: the header wins over the Status; a date instead of a number is ignored."""
    with contextlib.suppress(KeyError, ValueError):
        return float(min(max(0, int(headers["retry-after"])), _LONGEST_RETRY_AFTER_SECONDS))
    if status is not None and status.details is not None and status.details.retry_after_seconds > 0:
        return float(min(status.details.retry_after_seconds, _LONGEST_RETRY_AFTER_SECONDS))
    return None


def _shown(body: bytes) -> str:
    """The start of a foreign body on one line, so that a proxy's error page can be recognised."""
    text = " ".join(body[:_SHOWN_BODY_BYTES].decode("utf-8", "replace").split())
    return f"`{text}…`" if len(body) > _SHOWN_BODY_BYTES else (f"`{text}`" if text else "")
