"""Answers that came whole: the usual end of a binding, read without a parser.

Nearly every answer to a write is a few hundred bytes that say 200 or 201 and arrive at once. Such a one is recognised
by a few searches; whatever is unusual about it (another status, another framing, a connection that ends, a byte too
few or too many) is left to the parser, which knows HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from bayplan.client.transport import Response

__all__ = ["RawHeaders", "whole_answer"]

_LENGTH: Final = b"\r\ncontent-length: "


class RawHeaders(Mapping[str, str]):
    """Header lines as received, decoded only when somebody looks: most answers are judged by their status alone."""

    __slots__ = ("_decoded", "_lines")

    def __init__(self, lines: list[tuple[bytes, bytes]] | bytes) -> None:
        """Names and values, or everything before the empty line as it came, the status line included."""
        self._lines = lines
        self._decoded: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._as_dict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._as_dict())

    def __len__(self) -> int:
        return len(self._as_dict())

    def _as_dict(self) -> dict[str, str]:
        if self._decoded is None:
            lines = _split(self._lines) if isinstance(self._lines, bytes) else self._lines
            self._decoded = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in lines}
        return self._decoded


def _split(head: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        yield name, value.strip()


def whole_answer(data: bytes) -> Response | None:
    """The answer, if `data` is exactly one that leaves nothing open; else None."""
    if not data.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 ")):
        return None
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = data[: end + 2].lower()
    at = head.find(_LENGTH)
    length = head[at + len(_LENGTH) : head.find(b"\r\n", at + 2)]
    if at < 0 or not length.isdigit() or int(length) != len(data) - end - 4:
        return None
    if head.find(b"\r\ncontent-length", at + 2) >= 0 or b"\r\ntransfer-" in head or b"\r\nconnection:" in head:
        return None
    return Response(int(data[9:12]), RawHeaders(data[:end]), data[end + 4 :])
