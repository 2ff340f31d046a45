"""Changes on their way to the database, in files that a killed process leaves behind.

A change is appended before it is announced, so what a client was answered survives a kill of the process: the bytes
are the operating system's by then. It does not wait for the disk, so a machine that loses its power may lose the last
moments. Two files take turns: one is written while the other is carried over into the database and then emptied. A
record that was cut off at the end of a file was never acknowledged and is dropped.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from bayplan.apiserver.storage.store import NotStored

_log = logging.getLogger("bayplan.apiserver.storage.persistence")
_LENGTH_BYTES = 4
_NAMES = ("changes-0.log", "changes-1.log")


class Record(NamedTuple):
    """One change; `raw` is None when the object is gone."""

    revision: int
    resource: str
    namespace: str
    name: str
    raw: bytes | None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


class StorageLog:
    """The two files."""

    def __init__(self, folder: Path) -> None:
        self._paths = [folder / name for name in _NAMES]
        self._current = 0
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._files = [os.open(path, flags, 0o600) for path in self._paths]
        for path, file in zip(self._paths, self._files, strict=True):
            os.fchmod(file, 0o600)
            os.ftruncate(file, _readable_bytes(path.read_bytes()))

    def left_behind(self) -> list[Record]:
        """What the last process wrote here and did not carry over, oldest first."""
        found = [record for path in self._paths for _, record in _records(path.read_bytes())]
        return sorted(found, key=lambda record: record.revision)

    def append(self, record: Record) -> None:
        """Hand a change to the operating system, whole or not at all. Raises `NotStored`."""
        content = _encoder.encode(record)
        data = len(content).to_bytes(_LENGTH_BYTES, "big") + content
        file = self._files[self._current]
        size = os.fstat(file).st_size
        try:
            while data:
                data = data[os.write(file, data) :]
        except OSError as problem:
            # What follows a record that is cut off could not be read.
            os.ftruncate(file, size)
            raise NotStored(f"cannot write to {self._paths[self._current]}: {problem.strerror}") from problem

    def switch(self) -> None:
        """Go on in the other file, if nothing there waits for the database any more."""
        other = 1 - self._current
        if os.fstat(self._files[other]).st_size == 0:
            self._current = other

    def forget_carried_over(self) -> None:
        """Empty the file that is not being written; everything in it is in the database."""
        os.ftruncate(self._files[1 - self._current], 0)

    def forget_everything(self) -> None:
        for file in self._files:
            os.ftruncate(file, 0)

    def close(self) -> None:
        for file in self._files:
            os.close(file)


def _records(content: bytes) -> Iterator[tuple[int, Record]]:
    """The records of a file, each with the place where it ends, up to the first that is cut off or unreadable."""
    start = 0
    while start + _LENGTH_BYTES <= len(content):
        begin = start + _LENGTH_BYTES
        start = begin + int.from_bytes(content[start:begin], "big")
        if start > len(content):
            return
        try:
            yield start, _decoder.decode(content[begin:start])
        except (msgspec.DecodeError, UnicodeDecodeError):
            _log.warning("a change that cannot be read was left out; what follows it too")
            return


def _readable_bytes(content: bytes) -> int:
    return max((end for end, _ in _records(content)), default=0)
