from __future__ import annotations

import inspect
import json

import pytest

from bayplan.client import errors
from bayplan.client.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    ClientError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Gone,
    Invalid,
    KubeconfigError,
    NotFound,
    RequestTimeout,
    ServerError,
    ServerTimeout,
    TooManyRequests,
    Unauthorized,
    api_error,
)

# Every StatusReason that apimachinery declares (v0.36), with the HTTP code it travels with.
REASONS = {
    "Unauthorized": (401, Unauthorized),
    "Forbidden": (403, Forbidden),
    "NotFound": (404, NotFound),
    "AlreadyExists": (409, AlreadyExists),
    "Conflict": (409, Conflict),
    "Gone": (410, Gone),
    "Invalid": (422, Invalid),
    "ServerTimeout": (500, ServerTimeout),
    "StoreReadError": (500, ServerError),
    "Timeout": (504, ServerTimeout),
    "TooManyRequests": (429, TooManyRequests),
    "BadRequest": (400, BadRequest),
    "MethodNotAllowed": (405, ApiError),
    "NotAcceptable": (406, ApiError),
    "RequestEntityTooLarge": (413, ApiError),
    "UnsupportedMediaType": (415, ApiError),
    "InternalError": (500, ServerError),
    "Expired": (410, Gone),
    "ServiceUnavailable": (503, ServerError),
}


def status_body(code: int, reason: str, **more: object) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": "the message", **more}).encode()


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_of_kubernetes_has_its_exception(reason: str) -> None:
    code, kind = REASONS[reason]

    error = api_error(code, status_body(code, reason))

    assert type(error) is kind
    assert (error.code, error.reason, error.message) == (code, reason, "the message")
    assert str(error) == f"the message ({code} {reason})"


def test_the_map_of_reasons_names_all_of_them_and_nothing_else() -> None:
    assert set(errors.ERROR_BY_REASON) == set(REASONS)


@pytest.mark.parametrize("code", range(400, 600))
def test_every_error_code_without_a_status_has_an_exception(code: int) -> None:
    error = api_error(code, b"")

    assert isinstance(error, ServerError) == (code >= 500)
    assert error.code == code
    assert str(code) in str(error)


def test_an_unknown_reason_is_judged_by_its_code() -> None:
    assert type(api_error(404, status_body(404, "Brandnew"))) is NotFound
    assert type(api_error(555, status_body(555, "Brandnew"))) is ServerError
    assert type(api_error(418, status_body(418, "Brandnew"))) is ApiError


def test_every_exception_of_the_module_is_drawn_in_the_tree() -> None:
    drawn = inspect.getdoc(errors) or ""
    classes = [item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, Exception)]

    assert [item.__name__ for item in classes if item.__name__ not in drawn] == []
    assert all(issubclass(item, ClientError) for item in classes)


def test_an_error_page_of_a_proxy_is_shown_in_part_and_on_one_line() -> None:
    error = api_error(502, b"<html>\n  <h1>Bad\tGateway</h1>" + b"x" * 1000)

    assert type(error) is ServerError
    assert "`<html> <h1>Bad Gateway</h1>" in error.message
    assert "\n" not in error.message
    assert len(error.message) < 400


def test_a_body_of_random_bytes_is_no_problem() -> None:
    assert type(api_error(500, b"\xff\xfe{")) is ServerError
    assert type(api_error(404, b'{"kind": "Pod"}')) is NotFound


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [
        ("7", None, 7.0),
        ("7", 3, 7.0),
        (None, 3, 3.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None, None),
        ("-5", None, 0.0),
        ("31536000", None, 30.0),
        pytest.param("9" * 400, None, 30.0, id="header of 400 digits"),
        pytest.param("9" * 5000, None, None, id="header of 5000 digits"),
        (None, 31536000, 30.0),
        pytest.param(None, 10**400, 30.0, id="status of 400 digits"),
        pytest.param(None, -(10**400), None, id="negative status of 400 digits"),
        (None, None, None),
    ],
)
def test_retry_after_comes_from_the_header_else_from_the_status(
    header: str | None, details: int | None, expected: float | None
) -> None:
    body = status_body(429, "TooManyRequests", **({"details": {"retryAfterSeconds": details}} if details else {}))

    error = api_error(429, body, headers={"retry-after": header} if header else {})

    assert error.retry_after == expected


def test_the_causes_of_a_status_are_kept() -> None:
    body = status_body(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]})

    assert api_error(504, body).causes == ("ResourceVersionTooLarge",)


def test_a_kubeconfig_error_says_what_to_do_on_its_own_line() -> None:
    error = KubeconfigError("it is broken", hint="mend it")

    assert str(error) == "it is broken\nhint: mend it"


def test_the_absence_of_an_answer_says_whether_the_server_may_have_acted() -> None:
    assert ConnectionFailed("x", may_have_been_processed=False).may_have_been_processed is False
    assert RequestTimeout("x", may_have_been_processed=True).may_have_been_processed is True


def test_a_patch_for_an_object_that_was_replaced_is_a_conflict() -> None:
    cause = {"reason": "FieldValueInvalid", "field": "metadata.uid"}
    other = {"reason": "FieldValueInvalid", "field": "spec.nodeName"}

    assert type(api_error(422, status_body(422, "Invalid", details={"causes": [cause]}))) is Conflict
    assert type(api_error(422, status_body(422, "Invalid", details={"causes": [other]}))) is Invalid
