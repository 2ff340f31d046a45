"""Answers that came whole, and everything that must be left to the parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.client.whole_answer import RawHeaders, whole_answer

HEAD = b"HTTP/1.1 201 Created\r\nAudit-Id: 7\r\nContent-Type: application/json\r\n"


def test_an_answer_that_leaves_nothing_open_is_read() -> None:
    found = whole_answer(HEAD + b"Content-Length: 2\r\n\r\n{}")

    assert found is not None
    assert (found.status, found.body) == (201, b"{}")
    assert dict(found.headers) == {"audit-id": "7", "content-type": "application/json", "content-length": "2"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEAD,
        HEAD + b"\r\n{}",
        HEAD + b"Content-Length: 2\r\n\r\n{",
        HEAD + b"Content-Length: 2\r\n\r\n{}x",
        HEAD + b"Content-Length: +2\r\n\r\n{}",
        HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
        HEAD + b"Content-Length:\r\n\r\n",
        HEAD + b"Content-Length: 2\r\ncontent-length: 9\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nconnection: close\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 2010 Created\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_whatever_is_unusual_is_left_to_the_parser(data: bytes) -> None:
    assert whole_answer(data) is None


@given(st.binary(max_size=300), st.integers(0, 300))
def test_a_part_of_an_answer_is_never_taken_for_the_whole(body: bytes, cut: int) -> None:
    data = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    found = whole_answer(data)

    assert found is not None
    assert found.body == body
    assert whole_answer(data[: min(cut, len(data) - 1)]) is None


def test_headers_are_found_in_lower_case_and_the_last_one_counts() -> None:
    headers = RawHeaders([(b"Retry-After", b"1"), (b"retry-after", b"2"), (b"X", b"\xff")])

    assert headers["retry-after"] == "2"
    assert dict(headers) == {"retry-after": "2", "x": "\xff"}
    assert len(headers) == 2
    assert "Retry-After" not in headers
