"""The file of a recording: JSON lines in small gzip members, appended by a thread, read as a stream.

Each member is complete in itself, and its header has a subfield `BP` with its length, so that a reader finds the end of
the last whole one without unpacking anything; `zcat` reads the file as well. A crash costs the last second at most. A
file that reached its limit, or a disk that is full, ends the recording with a line in the log; scheduling goes on.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec
import structlog

from bayplan.api.decode import InputError
from bayplan.sim.recording.entries import FORMAT, RECORDERS, VERSION, Entry, RecordingHeader

__all__ = ["PlacedEntry", "RecordingError", "RecordingFile", "is_recording", "read_recording"]

_log = structlog.get_logger()
_HEAD = struct.Struct("<4sIBBH2sHI")
"""Magic with the flag of an extra field, time, flags, system, and that field: its length, name, length, value."""
_MAGIC = b"\x1f\x8b\x08\x04"
_TAIL = struct.Struct("<II")
_BLOCK_BYTES = 256 * 1024
_LARGEST_BLOCK = 64 * 2**20
_EVERY_SECONDS = 1.0
_LATEST = 253_402_300_800.0
"""The end of the year 9999, where dates end."""
_MOST_WAITING = 500_000
_LEVEL = 1
"""Of compression: level 6 takes three times as long for a quarter less."""


_E = TypeVar("_E", bound=Entry | RecordingHeader)


class RecordingError(InputError):
    """A recording that cannot be read or written, in a line with the place."""


class RecordingFile:
    """Takes lines without waiting; one thread compresses and writes them."""

    def __init__(self, path: Path, *, limit_bytes: int, on_end: Callable[[], None] = lambda: None) -> None:
        """Append to the file, or make it; `on_end` is called, in any thread, once nothing more can be written.

        Raises RecordingError.
        """
        self.path = path
        self._on_end = on_end
        self._limit = limit_bytes
        self._lines: deque[bytes] = deque()
        self._fresh_bytes = 0
        self._wake = threading.Event()
        self._is_closing = False
        self.ended = ""
        """Why nothing more is written; empty while all is well."""
        self.cut_bytes = 0
        """How much of a torn end was cut off before the first line."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        except OSError as error:
            raise RecordingError(f"cannot be written: {error.strerror}", source=str(path)) from error
        try:
            self._size = self._prepare()
        except BaseException:
            self._stream.close()
            raise
        self._thread = threading.Thread(target=self._run, name=f"recording {path.name}", daemon=True)
        self._thread.start()

    def _prepare(self) -> int:
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RecordingError("another process writes this recording", source=str(self.path)) from error
        found = os.fstat(self._stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise RecordingError("is no regular file; name another", source=str(self.path))
        os.fchmod(self._stream.fileno(), 0o600)
        whole = found.st_size
        end = 0
        with suppress(RecordingError):  # what follows the last good block is as good as torn
            for member in _members(self._stream, str(self.path)):
                end = member.end
        if whole and not end:
            raise RecordingError("is there and is no recording; name another file", source=str(self.path))
        self.cut_bytes = whole - end
        self._stream.truncate(end)
        self._stream.seek(end)
        return end

    def append(self, line: bytes) -> None:
        """Add a line, without its end. Never waits and never raises."""
        if self.ended:
            return
        self._lines.append(line)
        self._fresh_bytes += len(line)
        if self._fresh_bytes >= _BLOCK_BYTES:
            self._fresh_bytes = 0
            if len(self._lines) > _MOST_WAITING:
                self.end("the disk is too slow for what happens in the cluster")
            self._wake.set()

    def close(self) -> None:
        """Write what waits, and end."""
        self._is_closing = True
        self._wake.set()
        self._thread.join()
        self._stream.close()

    # The thread

    def _run(self) -> None:
        while not self._is_closing:
            self._wake.wait(_EVERY_SECONDS)
            self._wake.clear()
            self._write_waiting()
        self._write_waiting()

    def _write_waiting(self) -> None:
        while self._lines and not self.ended:
            block, size = [], 0
            while self._lines and size < _BLOCK_BYTES:
                block.append(self._lines.popleft())
                size += len(block[-1]) + 1
            self._write(_packed(b"\n".join((*block, b""))))

    def _write(self, member: bytes) -> None:
        if self._size + len(member) > self._limit:
            self.end(f"it reached its limit of {self._limit:,} bytes")
            return
        try:
            written = 0
            while written < len(member):
                written += self._stream.write(member[written:]) or 0
            self._size += len(member)
        except OSError as error:
            self.end(f"{error.strerror or error}")
            self._cut_torn_end()

    def _cut_torn_end(self) -> None:
        try:
            self._stream.truncate(self._size)
        except OSError as error:
            _log.warning("the end of the recording is torn", file=str(self.path), error=str(error))

    def end(self, why: str) -> None:
        """Write nothing more, and log why."""
        self.ended = why
        self._lines.clear()
        _log.error("the recording ends here; scheduling goes on", file=str(self.path), reason=why)
        self._on_end()


def _packed(raw: bytes) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = packer.compress(raw) + packer.flush()
    length = _HEAD.size + len(body) + _TAIL.size
    head = _HEAD.pack(_MAGIC, 0, 0, 255, 8, b"BP", 4, length)
    return head + body + _TAIL.pack(zlib.crc32(raw), len(raw) & 0xFFFFFFFF)


class _Member(NamedTuple):
    number: int
    start: int
    end: int


def _members(stream: BinaryIO, source: str) -> Iterator[_Member]:
    """The whole members of a file, in order, by their headers alone; a torn one ends the iteration."""
    size = os.fstat(stream.fileno()).st_size
    start = number = 0
    while start + _HEAD.size <= size:
        stream.seek(start)
        magic, _, _, _, extra, name, width, length = _HEAD.unpack(stream.read(_HEAD.size))
        number += 1
        if (magic, extra, name, width) != (_MAGIC, 8, b"BP", 4) or length < _HEAD.size + _TAIL.size:
            if number == 1:
                return
            raise RecordingError("is damaged: no block begins here", source=source, where=f"byte {start}")
        if length > _LARGEST_BLOCK:
            raise RecordingError(f"is damaged: a block of {length:,} bytes", source=source, where=f"byte {start}")
        if start + length > size:
            return
        yield _Member(number, start, start + length)
        start += length


def is_recording(path: Path) -> bool:
    """Whether a file begins as recordings do. Of a pipe nothing is read: it would be missing afterwards."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            head = stream.read(_HEAD.size)
    except OSError:
        return False
    return head[:4] == _MAGIC and head[12:14] == b"BP"


_decode_line: Callable[[bytes], Entry] = msgspec.json.Decoder(Entry).decode
_decode_header = msgspec.json.Decoder(RecordingHeader).decode


class PlacedEntry(NamedTuple):
    """An entry of a file with its place, for messages."""

    where: str
    entry: Entry | RecordingHeader


def read_recording(path: Path, *, note: Callable[[str], None] = lambda _: None) -> Iterator[PlacedEntry]:
    """The entries of a recording, a header first. Raises RecordingError; a torn end is reported to `note`."""
    try:
        stream = path.open("rb", buffering=0)
    except OSError as error:
        raise RecordingError(f"cannot be read: {error.strerror}", source=str(path)) from error
    with stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise RecordingError("is no regular file; write it to one first", source=str(path))
        end, is_begun = 0, False
        for member in _members(stream, str(path)):
            lines = _unpacked(stream, member, str(path)).split(b"\n")
            for number, line in enumerate(lines[:-1], start=1):
                where = f"block {member.number}, line {number}"
                entry = _parsed(line, str(path), where)
                if not is_begun and not isinstance(entry, RecordingHeader):
                    raise RecordingError("is damaged: it does not begin with a header", source=str(path), where=where)
                is_begun = True
                yield PlacedEntry(where, entry)
            end = member.end
        size = os.fstat(stream.fileno()).st_size
        if not end:
            raise RecordingError(_no_block(size), source=str(path))
        if end < size:
            note(f"{path}: the last {size - end:,} bytes are torn and left out: the writer ended in between")


def _no_block(size: int) -> str:
    return "is empty" if not size else "has no whole block; it is no recording, or was cut off at once"


def _unpacked(stream: BinaryIO, member: _Member, source: str) -> bytes:
    stream.seek(member.start + _HEAD.size)
    body = stream.read(member.end - member.start - _HEAD.size)
    where = f"block {member.number}"
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        raw = unpacker.decompress(body[: -_TAIL.size], _LARGEST_BLOCK)
    except zlib.error as error:
        raise RecordingError(f"is damaged: {error}", source=source, where=where) from error
    if not unpacker.eof:
        what = f"unpacks to more than {_LARGEST_BLOCK:,} bytes" if unpacker.unconsumed_tail else "is cut short"
        raise RecordingError(f"is damaged: it {what}", source=source, where=where)
    if _TAIL.unpack(body[-_TAIL.size :]) != (zlib.crc32(raw), len(raw)):
        raise RecordingError("is damaged: its checksum is wrong", source=source, where=where)
    if not raw.endswith(b"\n"):
        raise RecordingError("is damaged: its last line has no end", source=source, where=where)
    return raw


def _in_time(entry: _E, source: str, where: str) -> _E:
    if not 0.0 <= entry.time < _LATEST:
        raise RecordingError(f"is damaged: {entry.time:g} is no time", source=source, where=where)
    return entry


class _AnyHeader(msgspec.Struct):
    format: str = ""
    version: int = 0


def _parsed(line: bytes, source: str, where: str) -> Entry | RecordingHeader:
    try:
        if not line.startswith(b"{"):
            return _in_time(_decode_line(line), source, where)
        found = msgspec.json.decode(line, type=_AnyHeader)
        if found.format != FORMAT:
            raise RecordingError(f"is no recording, but `{found.format[:40]}`", source=source, where=where)
        if found.version != VERSION:
            raise RecordingError(
                f"has format version {found.version}; this bayplan reads version {VERSION}"
                f"\nhint: read it with the bayplan that wrote it",
                source=source,
                where=where,
            )
        header = _in_time(_decode_header(line), source, where)
        if header.by not in RECORDERS:
            expected = " or ".join(f"`{name}`" for name in RECORDERS)
            raise RecordingError(f"is by `{header.by[:40]}`, expected {expected}", source=source, where=where)
        return header
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordingError(f"is damaged: {error}", source=source, where=where) from error
