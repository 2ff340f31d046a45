"""Requests and answers, free of any transport.

The HTTP server and the in-process transport both make a `Request` and get an `ApiAnswer`; everything between them and
the store is the same code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, encode
from bayplan.apiserver.protocol.identity import ANONYMOUS, ApiUser

if TYPE_CHECKING:
    from bayplan.apiserver.objects.watch import WatchStream

JSON_TYPE = "application/json"


@dataclass(slots=True)
class Request:
    """One request; header names are lower-case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: ApiUser = ANONYMOUS

    def flag(self, name: str) -> bool:
        """Whether a parameter is there and not false; without a value, it is true."""
        value = self.query.get(name)
        return value is not None and value.lower() not in ("0", "false")

    def seconds(self, name: str) -> int | None:
        """A whole number from the query, None when absent; one below zero counts as zero."""
        text = self.query.get(name, "")
        if not text:
            return None
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or len(digits) > 9:
            raise errors.bad_request(f'invalid value for {name}: "{text}" is not a whole number')
        return max(0, int(text))


@dataclass(slots=True)
class ApiAnswer:
    """One answer: a body, or a stream of watch events."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON_TYPE
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: WatchStream | None = None


def json_answer(document: Json, status: int = 200) -> ApiAnswer:
    return ApiAnswer(status, encode(document))


def text_answer(text: str, status: int = 200) -> ApiAnswer:
    return ApiAnswer(status, text.encode(), "text/plain; charset=utf-8")


def error_answer(problem: errors.RequestRefused) -> ApiAnswer:
    return ApiAnswer(problem.code, encode(problem.status), headers=list(problem.headers))


def parse_query(text: str) -> dict[str, str]:
    """The first value of each parameter."""
    query: dict[str, str] = {}
    if text:
        for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=200):
            query.setdefault(name, value)
    return query


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options that every write accepts."""

    dry_run: bool = False
    field_manager: str = "unknown"
    field_validation: str = "Warn"
    force: bool = False

    @classmethod
    def of(cls, request: Request) -> WriteOptions:
        query = request.query
        dry_run = query.get("dryRun", "")
        if dry_run not in ("", "All"):
            cause = errors.not_supported("dryRun", dry_run, ["All"])
            raise errors.invalid("CreateOptions", "", [cause], group="meta.k8s.io")
        validation = query.get("fieldValidation", "") or "Warn"
        if validation not in ("Ignore", "Warn", "Strict"):
            cause = errors.not_supported("fieldValidation", validation, ["Ignore", "Strict", "Warn"])
            raise errors.invalid("CreateOptions", "", [cause], group="meta.k8s.io")
        manager = query.get("fieldManager", "")
        if len(manager) > 128:
            detail = "may not be more than 128 bytes"
            cause = errors.Cause("fieldManager", f"Too long: {detail}", "FieldValueTooLong")
            raise errors.invalid("CreateOptions", "", [cause], group="meta.k8s.io")
        if not manager.isprintable():
            position, mark = next((index, one) for index, one in enumerate(manager) if not one.isprintable())
            detail = f"invalid character U+{ord(mark):04X} (at position {position})"
            cause = errors.invalid_value("fieldManager", manager, detail)
            raise errors.invalid("PatchOptions", "", [cause], group="meta.k8s.io")
        if not manager:
            manager = request.headers.get("user-agent", "").partition("/")[0][:128] or "unknown"
        return cls(dry_run == "All", manager, validation, request.flag("force"))
