"""The file of a recording: what a crash, a full disk or a stranger does to it costs a sentence, never more."""

from __future__ import annotations

import gzip
import os
import stat
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from tests.unit.sim.recording.recorded import ROOM
from tests.waiting import wait_until

from bayplan.sim.recording.entries import ClusterRead, ObjectGone, RecordingHeader
from bayplan.sim.recording.file import RecordingError, RecordingFile, is_recording, read_recording

HEADER = b'{"format":"bayplan-recording","version":1,"by":"scheduler","time":5.0}'
GONE = b'["-",6.0,"Pod","default/web"]'


def write(path: Path, *lines: bytes, limit: int = ROOM) -> RecordingFile:
    file = RecordingFile(path, limit_bytes=limit)
    for line in lines:
        file.append(line)
    file.close()
    return file


def entries(path: Path, notes: list[str] | None = None) -> list[object]:
    return [placed.entry for placed in read_recording(path, note=[].append if notes is None else notes.append)]


def member(raw: bytes, *, length: int | None = None, crc: int | None = None) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    body = packer.compress(raw) + packer.flush()
    size = 20 + len(body) + 8 if length is None else length
    head = b"\x1f\x8b\x08\x04" + struct.pack("<IBBH2sHI", 0, 0, 255, 8, b"BP", 4, size)
    return head + body + struct.pack("<II", zlib.crc32(raw) if crc is None else crc, len(raw))


def test_lines_come_back_as_entries_and_gzip_reads_them_too(tmp_path: Path) -> None:
    path = tmp_path / "r"
    write(path, HEADER, GONE)

    header, gone = entries(path)

    assert isinstance(header, RecordingHeader)
    assert gone == ObjectGone(6.0, "Pod", "default/web")
    assert gzip.decompress(path.read_bytes()) == HEADER + b"\n" + GONE + b"\n"
    assert is_recording(path)


def test_only_the_owner_may_read_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.touch(mode=0o644)
    write(path, HEADER)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_writer_appends(tmp_path: Path) -> None:
    path = tmp_path / "r"
    write(path, HEADER, GONE)
    write(path, HEADER, b'["r",7.0]')

    assert [type(entry) for entry in entries(path)] == [RecordingHeader, ObjectGone, RecordingHeader, ClusterRead]


def test_two_writers_at_once_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    first = RecordingFile(path, limit_bytes=ROOM)

    with pytest.raises(RecordingError, match="another process writes"):
        RecordingFile(path, limit_bytes=ROOM)
    first.close()


def test_a_torn_end_is_left_out_and_told_wherever_it_was_torn(tmp_path: Path) -> None:
    path = tmp_path / "r"
    write(path, HEADER, GONE)
    whole = path.stat().st_size
    write(path, GONE)
    data = path.read_bytes()
    for cut in range(whole + 1, len(data)):
        notes: list[str] = []
        path.write_bytes(data[:cut])

        assert len(entries(path, notes)) == 2
        assert notes == [f"{path}: the last {cut - whole:,} bytes are torn and left out: the writer ended in between"]


@pytest.mark.parametrize("end", [member(GONE + b"\n")[:-3], b"\0" * 4096])
def test_who_appends_to_a_torn_recording_cuts_its_end_off(tmp_path: Path, end: bytes) -> None:
    """Half a block, or the zeros that some file systems leave after a loss of power."""
    path = tmp_path / "r"
    write(path, HEADER)
    path.write_bytes(path.read_bytes() + end)
    torn = write(path, GONE)

    assert torn.cut_bytes == len(end)
    assert len(entries(path)) == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"apiVersion: v1\nkind: Pod\n", "is no recording"),
        (member(HEADER + b"\n")[:-1], "has no whole block"),
        (member(HEADER + b"\n") + b"x" * 40, ": is damaged: no block begins here"),
        (member(HEADER + b"\n", length=2**32 - 1), "byte 0: is damaged: a block of 4,294,967,295 bytes"),
        (member(HEADER + b"\n", crc=1), "block 1: is damaged: its checksum is wrong"),
        (member(HEADER), "block 1: is damaged: its last line has no end"),
        (member(GONE + b"\n"), "block 1, line 1: is damaged: it does not begin with a header"),
        (member(HEADER.replace(b"scheduler", b"elf") + b"\n"), "block 1, line 1: is by `elf`, expected `scheduler` or"),
        (member(HEADER + b"\n[1]\n"), "block 1, line 2: is damaged: "),
        (member(HEADER + b'\n["z",1]\n'), "block 1, line 2: is damaged: "),
        (member(HEADER + b"\n" + b"[" * 100_000 + b"\n"), "block 1, line 2: is damaged: "),
        (member(HEADER + b"\n\xff\xfe\n"), "block 1, line 2: is damaged: "),
        (member(b'{"format":"other"}\n'), "block 1, line 1: is no recording, but `other`"),
    ],
)
def test_a_bad_recording_is_refused_with_the_place(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "r"
    path.write_bytes(data)

    with pytest.raises(RecordingError) as refused:
        entries(path)

    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize("time", [b"-1", b"1e300"])
@pytest.mark.parametrize(
    "line", [HEADER.replace(b"5.0", b"TIME"), GONE.replace(b"6.0", b"TIME")], ids=["header", "gone"]
)
def test_a_time_that_no_clock_shows_is_refused_with_the_place(tmp_path: Path, line: bytes, time: bytes) -> None:
    path = tmp_path / "r"
    write(path, HEADER, line.replace(b"TIME", time))

    with pytest.raises(RecordingError, match=r"block 1, line 2: is damaged: .* is no time"):
        entries(path)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    try:
        assert not is_recording(tmp_path / "pipe")
        with pytest.raises(RecordingError, match="is no regular file; write it to one first"):
            entries(tmp_path / "pipe")
    finally:
        os.close(writer)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_version_of_the_format_is_refused_with_a_sentence(tmp_path: Path, version: int) -> None:
    path = tmp_path / "r"
    path.write_bytes(member(b'{"format":"bayplan-recording","version":%d,"strange":[1]}\n' % version))

    with pytest.raises(RecordingError, match=f"has format version {version}; this bayplan reads version 1"):
        entries(path)


def test_a_block_that_unpacks_to_very_much_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(member(HEADER + b"\n" + b" " * (70 * 2**20) + b"\n"))

    with pytest.raises(RecordingError, match="block 1: is damaged: it unpacks to more than 67,108,864 bytes"):
        entries(path)


def test_a_file_that_is_no_recording_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")

    with pytest.raises(RecordingError, match="is there and is no recording; name another file"):
        RecordingFile(path, limit_bytes=ROOM)

    assert path.read_text() == "mine"


def test_a_recording_ends_at_its_limit_and_what_is_there_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "r"
    file = RecordingFile(path, limit_bytes=2_000)
    file.append(HEADER)
    wait_until(lambda: path.stat().st_size > 0, what="the header in the file")
    for number in range(2_000):
        file.append(b'["-",6.0,"Pod","%d"]' % (number * 7919))
    wait_until(lambda: file.ended, what="the end of the recording")
    file.append(GONE)
    file.close()

    assert file.ended == "it reached its limit of 2,000 bytes"
    assert path.stat().st_size <= 2_000
    assert len(entries(path)) == 1


FULL_DISK = """
import resource, sys
from pathlib import Path
from bayplan.sim.recording.file import RecordingFile
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
file = RecordingFile(Path(sys.argv[1]), limit_bytes=10**9)
file.append(sys.argv[2].encode())
file._write_waiting()
for number in range(5000):
    file.append(b'["-",6.0,"Pod","%d"]' % (number * 7919))
file.close()
print(file.ended)
"""


def test_a_full_disk_ends_the_recording_and_leaves_it_whole(tmp_path: Path) -> None:
    """The limit of file sizes makes the system write a part of a block and refuse the rest, as a full disk does."""
    path = tmp_path / "r"
    command = [sys.executable, "-c", FULL_DISK, str(path), HEADER.decode()]
    found = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "File too large" in found.stdout
    assert "the recording ends here; scheduling goes on" in found.stdout + found.stderr
    assert path.stat().st_size < 1000
    assert len(entries(path)) == 1


def test_a_place_that_cannot_be_written_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="is no regular file"):
        RecordingFile(Path("/dev/null"), limit_bytes=ROOM)
    with pytest.raises(RecordingError, match="cannot be written"):
        RecordingFile(tmp_path, limit_bytes=ROOM)
