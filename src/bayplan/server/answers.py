"""Refusals and errors as Kubernetes writes them: a JSON `Status` with message and reason, without a traceback."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse

__all__ = ["Refusal", "status_response"]

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    421: "BadRequest",
    429: "TooManyRequests",
    431: "RequestEntityTooLarge",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class Refusal(Exception):
    """Raised to answer a request with an error status."""

    def __init__(self, code: int, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def status_response(refusal: Refusal) -> JSONResponse:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refusal.message,
        "reason": _REASONS.get(refusal.code, ""),
        "code": refusal.code,
    }
    return JSONResponse(body, status_code=refusal.code, headers=refusal.headers)
