"""The decision file: settled attempts as JSON lines, appended, rotated, and read back after a restart.

    decisions.jsonl      the newest; a folder that is named in its place holds it under this name
    decisions.jsonl.1    the one before, and so on up to `keep`

The first line of each file is its version. Only the user of the process can read the files: names of pods may be
confidential. A listener of the decision record hands attempts over as they settle; `run` writes them in
batches beside the loop. A line that was cut off by a crash, or was edited, is left out when reading, and
counted. A full disk costs records, never a decision.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from bayplan.api.decode import InputError
from bayplan.loop.record import DecisionRecord
from bayplan.observe.clock import Clock

__all__ = ["FILE_VERSION", "DecisionFile", "DecisionFileError", "newest_decisions", "read_decisions"]

_log = structlog.get_logger()
_EVERY_SECONDS = 0.5
_MOST_WAITING = 50_000
_BATCH = 500
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(DecisionRecord)
_MODE = 0o600
FILE_VERSION = "bayplan.dev/decisions/v1"
"""In the first line. Fields may be added; one that goes, or means something else, is another version."""


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    version: str


_header = msgspec.json.Decoder(_Header)


class DecisionFileError(InputError):
    """The file cannot be used; the text says what to do."""


class DecisionFile:
    def __init__(self, path: Path, *, max_bytes: int = 64 * 2**20, keep: int = 4) -> None:
        self.path = path = _inside(path)
        self._max_bytes = max_bytes
        self._keep = keep
        self._waiting: deque[DecisionRecord] = deque(maxlen=_MOST_WAITING)
        self.lost = 0
        """Attempts that could not be written."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "ab", opener=_private) as stream:
                is_new = not stream.tell()
            if is_new:
                self._append([])
            else:
                path.chmod(_MODE)
                _end_cut_line(path)
        except OSError as error:
            raise DecisionFileError(
                f"`{path}` cannot be written: {error.strerror or error}\nhint: name a file in a folder that can"
            ) from error

    def append(self, record: DecisionRecord) -> None:
        """Keep an attempt until it is written. Never waits."""
        if len(self._waiting) == _MOST_WAITING:
            self.lost += 1
        self._waiting.append(record)

    async def run(self, clock: Clock) -> None:
        """Write until cancelled, and once more then."""
        try:
            while True:
                await clock.sleep(_EVERY_SECONDS)
                while self._waiting:
                    await asyncio.to_thread(self._write, self._next_lines())
        finally:
            self.flush()

    def flush(self) -> None:
        """Write everything that waits."""
        while self._waiting:
            self._write(self._next_lines())

    def _next_lines(self) -> list[bytes]:
        lines: list[bytes] = []
        for _ in range(min(_BATCH, len(self._waiting))):
            try:
                lines.append(_encoder.encode(self._waiting.popleft()))
            except (UnicodeEncodeError, msgspec.MsgspecError):
                self.lost += 1  # half a letter in a plugin's message
        return lines

    def _write(self, lines: list[bytes]) -> None:
        try:
            if self._append(lines) >= self._max_bytes:
                self._rotate()
        except OSError as error:
            self.lost += len(lines)
            _log.warning("decisions could not be written", file=str(self.path), lost=len(lines), error=str(error))

    def _append(self, lines: list[bytes]) -> int:
        """The size of the file afterwards."""
        with open(self.path, "ab", opener=_private) as stream:
            lines = lines if stream.tell() else [_encoder.encode(_Header(version=FILE_VERSION)), *lines]
            stream.write(b"".join(line + b"\n" for line in lines))
            return stream.tell()

    def _rotate(self) -> None:
        for number in range(self._keep - 1, 0, -1):
            older = _numbered(self.path, number)
            if older.exists():
                os.replace(older, _numbered(self.path, number + 1))
        os.replace(self.path, _numbered(self.path, 1))
        self._append([])


def _inside(path: Path) -> Path:
    return path / "decisions.jsonl" if path.is_dir() else path


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, _MODE)


def _end_cut_line(path: Path) -> None:
    """After a crash the last line may lack its end; what is appended must not become part of it."""
    if not path.stat().st_size:
        return
    with path.open("rb+") as existing:
        existing.seek(-1, os.SEEK_END)
        if existing.read(1) != b"\n":
            existing.write(b"\n")


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def read_decisions(path: Path) -> tuple[list[DecisionRecord], int]:
    """Every attempt of a file and its older parts, newest first, and how many lines could not be read."""
    path = _inside(path)
    if not path.name or not path.exists():
        raise DecisionFileError(f"`{path}` does not exist\nhint: `bayplan run --decision-file FILE` writes one")
    records: list[DecisionRecord] = []
    bad = 0
    for part in _parts(path):
        try:
            lines = part.read_bytes().splitlines()
        except OSError as error:
            what = f"`{part}` cannot be read: {error.strerror or error}"
            raise DecisionFileError(f"{what}\nhint: `bayplan run --decision-file FILE` writes one") from error
        version, lines = _version_of(lines)
        if version != FILE_VERSION:
            bad += len(lines)
            continue
        for line in lines:
            try:
                records.append(_decoder.decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                bad += bool(line.strip())
    records.reverse()
    return records, bad


def _version_of(lines: list[bytes]) -> tuple[str, list[bytes]]:
    """The version of a file, and its other lines; files without one were written before there was another."""
    try:
        return (_header.decode(lines[0]).version, lines[1:]) if lines else (FILE_VERSION, [])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return FILE_VERSION, lines


def newest_decisions(path: Path, *, most: int) -> list[DecisionRecord]:
    """The last attempts of a file that an earlier process wrote, oldest first; empty where there is none."""
    if not path.exists():
        return []
    records, bad = read_decisions(path)
    if bad:
        _log.warning("lines of the decision file could not be read", file=str(path), lines=bad)
    return records[:most][::-1]


def _parts(path: Path) -> Iterator[Path]:
    """Oldest first."""
    number = 1
    older = []
    while (part := _numbered(path, number)).exists():
        older.append(part)
        number += 1
    yield from reversed(older)
    yield path
