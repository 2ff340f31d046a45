"""The errors a Kubernetes API server answers with, each as one `Status` object.

    ApiError                 carries the Status document; everything a handler refuses is one of these
      made by not_found, conflict, invalid, … below, with the reasons, codes and sentences that clients match on.

A client (kubectl, client-go, the official Python client) decides by `reason` and `code`, and prints `message`, so
those are Kubernetes' own. This module never logs and never formats a traceback into an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bayplan.apiserver.protocol.encoding import Json, JsonValue, encode

MAX_BODY_BYTES = 3 * 1024 * 1024
NAMESPACE_MISMATCH = "the namespace of the provided object does not match the namespace sent on the request"
OBJECT_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class RequestRefused(Exception):
    """A request was refused; `status` is the body of the answer."""

    def __init__(self, status: Json, *, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(status["message"])
        self.status = status
        self.headers = list(headers)

    @property
    def code(self) -> int:
        return int(self.status["code"])

    @property
    def reason(self) -> str:
        return str(self.status.get("reason", ""))


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why a field was refused."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def as_text(self) -> str:
        return f"{self.field}: {self.message}"

    def as_json(self) -> Json:
        return {"reason": self.reason, "message": self.message, "field": self.field}


def required(field: str, detail: str = "") -> Cause:
    return Cause(field, "Required value" + (f": {detail}" if detail else ""), "FieldValueRequired")


def invalid_value(field: str, value: JsonValue, detail: str) -> Cause:
    return Cause(field, f"Invalid value: {_quoted(value)}: {detail}")


def not_supported(field: str, value: JsonValue, allowed: Sequence[str]) -> Cause:
    listed = ", ".join(f'"{name}"' for name in sorted(allowed))
    return Cause(field, f"Unsupported value: {_quoted(value)}: supported values: {listed}", "FieldValueNotSupported")


def forbidden_field(field: str, detail: str) -> Cause:
    return Cause(field, f"Forbidden: {detail}", "FieldValueForbidden")


def duplicate_value(field: str, value: JsonValue) -> Cause:
    return Cause(field, f"Duplicate value: {_quoted(value)}", "FieldValueDuplicate")


def too_many(field: str, count: int, most: int) -> Cause:
    return Cause(field, f"Too many: {count}: must have at most {most} items", "FieldValueTooMany")


def too_long(field: str, most: int) -> Cause:
    return Cause(field, f"Too long: may not be more than {most} bytes", "FieldValueTooLong")


def _quoted(value: JsonValue) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return encode(value).decode()
    return "null" if value is None else str(value)


def failure(code: int, reason: str, message: str, *, details: Json | None = None, metadata: Json | None = None) -> Json:
    """A Status document of a refused request."""
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": metadata or {}, "status": "Failure"}
    status["message"] = message
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return status


def success(*, details: Json) -> Json:
    """The Status document that answers a finished deletion."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _details(resource: str, group: str, name: str = "", **more: JsonValue) -> Json:
    details: Json = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if resource:
        details["kind"] = resource
    details.update(more)
    return details


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(resource: str, name: str, *, group: str = "") -> RequestRefused:
    message = f'{_qualified(resource, group)} "{name}" not found'
    return RequestRefused(failure(404, "NotFound", message, details=_details(resource, group, name)))


def unknown_path() -> RequestRefused:
    return RequestRefused(failure(404, "NotFound", "the server could not find the requested resource", details={}))


def method_not_allowed() -> RequestRefused:
    message = "the server does not allow this method on the requested resource"
    return RequestRefused(failure(405, "MethodNotAllowed", message, details={}))


def already_exists(resource: str, name: str, *, group: str = "") -> RequestRefused:
    message = f'{_qualified(resource, group)} "{name}" already exists'
    return RequestRefused(failure(409, "AlreadyExists", message, details=_details(resource, group, name)))


def conflict(resource: str, name: str, *, group: str = "", problem: str = OBJECT_MODIFIED) -> RequestRefused:
    message = f'Operation cannot be fulfilled on {_qualified(resource, group)} "{name}": {problem}'
    return RequestRefused(failure(409, "Conflict", message, details=_details(resource, group, name)))


def apply_conflict(message: str, causes: Sequence[Json]) -> RequestRefused:
    return RequestRefused(failure(409, "Conflict", message, details={"causes": list(causes)}))


def invalid(kind: str, name: str, causes: Sequence[Cause], *, group: str = "") -> RequestRefused:
    texts = [cause.as_text() for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = _qualified(kind, group)
    details = _details(kind, group, name, causes=[cause.as_json() for cause in causes])
    return RequestRefused(failure(422, "Invalid", f'{qualified} "{name}" is invalid: {listed}', details=details))


def bad_request(message: str) -> RequestRefused:
    return RequestRefused(failure(400, "BadRequest", message))


def forbidden(
    resource: str, name: str, problem: str, *, group: str = "", causes: Sequence[Json] = ()
) -> RequestRefused:
    subject = _qualified(resource, group) + (f' "{name}"' if name else "")
    details = _details(resource, group, name)
    if causes:
        details["causes"] = list(causes)
    return RequestRefused(failure(403, "Forbidden", f"{subject} is forbidden: {problem}", details=details))


def unauthorized() -> RequestRefused:
    return RequestRefused(failure(401, "Unauthorized", "Unauthorized"))


def unsupported_media_type(accepted: Sequence[str]) -> RequestRefused:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return RequestRefused(failure(415, "UnsupportedMediaType", message))


def not_acceptable(accepted: Sequence[str]) -> RequestRefused:
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return RequestRefused(failure(406, "NotAcceptable", message))


def too_large(limit: int = MAX_BODY_BYTES) -> RequestRefused:
    return RequestRefused(failure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}"))


def expired(message: str, *, metadata: Json | None = None) -> RequestRefused:
    return RequestRefused(failure(410, "Expired", message, metadata=metadata))


def future_version(asked: int, current: int) -> RequestRefused:
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return RequestRefused(failure(504, "Timeout", message, details={"causes": causes, "retryAfterSeconds": 1}))


def too_many_requests(message: str, *, causes: Sequence[Json] = (), retry_after_seconds: int = 0) -> RequestRefused:
    details: Json = {"causes": list(causes)} if causes else {}
    headers = []
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
        headers.append(("Retry-After", str(retry_after_seconds)))
    return RequestRefused(failure(429, "TooManyRequests", message, details=details), headers=headers)


def unavailable(message: str) -> RequestRefused:
    return RequestRefused(failure(503, "ServiceUnavailable", message))


def unexpected(message: str) -> RequestRefused:
    """A failure for which the API server has no reason of its own."""
    return RequestRefused(failure(500, "", message))


def internal_error(message: str) -> RequestRefused:
    details = {"causes": [{"message": message}]}
    return RequestRefused(failure(500, "InternalError", f"Internal error occurred: {message}", details=details))
