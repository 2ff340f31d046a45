"""What was answered survives: kills at every write, full disks, short writes."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.apiserver.protocol.encoding import encode
from bayplan.apiserver.storage import change_log, persistence
from bayplan.apiserver.storage.persistence import Journal
from bayplan.apiserver.storage.store import Entry, NotStored, Store

MAPS = "/api/v1/namespaces/default/configmaps"
WRITES = 6


class Killed(BaseException):
    """Ends the process, as far as a test can tell."""


class FaultPoints:
    """Counts the writes that go to the operating system or to SQLite, and ends the process at one of them."""

    def __init__(self, last: int) -> None:
        self.left = last

    def reached(self) -> bool:
        self.left -= 1
        return self.left < 0

    def write(self, file: int, data: bytes) -> int:
        if self.reached():
            _real_write(file, data[: len(data) // 2])
            raise Killed
        return _real_write(file, data)

    def truncate(self, file: int, size: int) -> None:
        if self.reached():
            raise Killed
        _real_truncate(file, size)


_real_write, _real_truncate, _real_open = os.write, os.ftruncate, os.open
_real_connect = sqlite3.connect


class Database:
    """A connection whose statements are fault points."""

    def __init__(self, real: Any, points: FaultPoints) -> None:
        self._real, self._points = real, points

    def execute(self, *arguments: Any) -> Any:
        if self._points.reached():
            raise Killed
        return self._real.execute(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def put(store: Store, name: str, value: bytes) -> None:
    store.put("configmaps", Entry(("default", name), value, revision=store.next_revision(), uid=name))


def kept(folder: Path) -> dict[str, bytes]:
    journal = Journal(folder)
    rows = {name: raw for _, _, name, raw in journal.rows()}
    journal._log.close()
    journal._database.close()
    return rows


def write_until_killed(
    folder: Path, points: FaultPoints, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What was answered when the process ended, and that with the change that was under way."""
    journal = Journal(folder)
    real = journal._database
    journal._database = Database(real, points)  # type: ignore[assignment]  # the part of a connection that is used
    store = Store()
    store.write_ahead(journal._write_ahead)
    answered: dict[str, bytes] = {}
    asked: dict[str, bytes] = {}
    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(change_log.os, "write", points.write)
        patched.setattr(change_log.os, "ftruncate", points.truncate)
        for number in range(WRITES):
            if number % 2:
                # The next change comes while what came before it is being carried over.
                pending, journal._pending = journal._pending, {}
                journal._log.switch()
                revision = journal._revision
            asked = answered | {f"m{number // 2 % 2}": b'{"n":%d}' % number}
            put(store, f"m{number // 2 % 2}", b'{"n":%d}' % number)
            answered = asked
            if number % 2:
                assert journal._write(pending, revision)
                journal._log.forget_carried_over()
    real.close()
    journal._log.close()
    return answered, asked


async def test_a_kill_at_any_write_loses_nothing_that_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = 0
    while True:
        points = FaultPoints(kills)
        folder = tmp_path / str(kills)
        answered, asked = write_until_killed(folder, points, monkeypatch)
        assert kept(folder) in (answered, asked)
        if points.left >= 0:
            break
        kills += 1

    assert kills > 20
    assert len(answered) == 2


def start_until_killed(folder: Path, points: FaultPoints, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed while it takes over what the one before it left."""
    opened: list[Callable[[], None]] = []

    def connect(*arguments: Any, **options: Any) -> Database:
        real = _real_connect(*arguments, **options)
        opened.append(real.close)
        return Database(real, points)

    def open_file(*arguments: Any) -> int:
        file = _real_open(*arguments)
        opened.append(partial(os.close, file))
        return file

    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(persistence.sqlite3, "connect", connect)
        patched.setattr(change_log.os, "open", open_file)
        patched.setattr(change_log.os, "ftruncate", points.truncate)
        Journal(folder)
    for close in opened:
        close()


async def test_a_kill_at_any_write_of_a_start_loses_nothing_that_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does one while a process starts that was to take over after a start that was killed."""
    starts = 0
    for kill_after in count():
        left, first = tmp_path / f"left-{kill_after}", FaultPoints(kill_after)
        answered, asked = write_until_killed(left, first, monkeypatch)
        for kill_again_after in count():
            folder = Path(shutil.copytree(left, tmp_path / f"{kill_after}-{kill_again_after}"))
            points = FaultPoints(kill_again_after)
            start_until_killed(folder, points, monkeypatch)
            starts += points.left < 0
            assert kept(folder) in (answered, asked), (kill_after, kill_again_after)
            shutil.rmtree(folder)
            if points.left >= 0:
                break
        if first.left >= 0:
            break

    assert starts > 200


def failing(problem: int, written: int = 3) -> Callable[[int, bytes], int]:
    def write(file: int, data: bytes) -> int:
        if len(data) <= 3:
            raise OSError(problem, os.strerror(problem))
        return _real_write(file, data[:written])

    return write


async def test_a_change_that_cannot_be_stored_does_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)
    store = Store()
    store.write_ahead(journal._write_ahead)
    put(store, "first", b"1")
    revision = store.revision
    with monkeypatch.context() as patched:
        patched.setattr(change_log.os, "write", failing(errno.ENOSPC))
        with pytest.raises(NotStored, match="No space left on device"):
            put(store, "second", b"2")
    put(store, "third", b"3")
    journal._log.close()
    journal._database.close()

    assert store.get("configmaps", "default", "second") is None
    assert store.revision == revision + 1
    assert kept(tmp_path) == {"first": b"1", "third": b"3"}


async def test_a_write_that_the_system_cuts_short_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)
    store = Store()
    store.write_ahead(journal._write_ahead)
    with monkeypatch.context() as patched:
        patched.setattr(change_log.os, "write", lambda file, data: _real_write(file, data[:2]))
        put(store, "a", b"1")
    put(store, "b", b"2")
    journal._log.close()
    journal._database.close()

    assert kept(tmp_path) == {"a": b"1", "b": b"2"}


def serve(folder: Path, limit_bytes: int = 0) -> tuple[subprocess.Popen[str], str, str]:
    def limit() -> None:
        if limit_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

    config = folder.parent / "kubeconfig"
    command = [sys.executable, "-m", "bayplan.apiserver", "--bare", "--data-dir", str(folder)]
    process = subprocess.Popen(
        [*command, "--kubeconfig-out", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=limit,
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    return process, url, yaml.safe_load(config.read_text())["users"][0]["user"]["token"]


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def call(url: str, token: str, body: Any = None) -> int:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(url, encode(body) if body else None, headers)
    insecure = ssl.create_default_context()
    insecure.check_hostname, insecure.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, context=insecure, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code


def test_everything_that_was_answered_survives_a_full_disk_and_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    process, url, token = serve(folder, limit_bytes=400_000)
    created, refused = [], 0
    for number in range(60):
        status = call(url + MAPS, token, {"metadata": {"name": f"m{number}"}, "data": {"a": "x" * 20_000}})
        created += [f"m{number}"] if status == 201 else []
        refused += status >= 500
    kill(process)
    process, url, token = serve(folder)
    missing = [name for name in created if call(f"{url}{MAPS}/{name}", token) != 200]
    kill(process)

    assert created
    assert refused
    assert missing == []
