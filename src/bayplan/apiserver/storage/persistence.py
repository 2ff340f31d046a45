"""Keeping the objects across restarts: a SQLite file that follows the store.

Each change is written to a log before it takes effect (`change_log`), so that a killed process loses nothing it has
answered and a full disk is an error of the request. A worker thread carries the log over into the database a few times
a second, so the API never waits for the database. The revision counter skips ahead on each start, so that no client
ever sees a revision twice. History is not kept: watches from before a restart are answered 410 Expired and list again,
as after an etcd compaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from bayplan.apiserver.storage.change_log import Record, StorageLog
from bayplan.apiserver.storage.private_files import make_private_file, make_private_folder
from bayplan.apiserver.storage.store import DELETED, Change, Key, Store

_log = logging.getLogger("bayplan.apiserver.storage.persistence")
_FLUSH_SECONDS = 0.2
_REVISIONS_SKIPPED_ON_START = 1000
Row = tuple[str, str, str, bytes]
"""Resource, namespace, name, object."""


class UnusableDataDir(RuntimeError):
    """The data directory cannot be used; the message says what to do."""


class Journal:
    """The file behind a store."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "objects.sqlite3"
        self._pending: dict[tuple[str, Key], bytes | None] = {}
        self._revision = 0
        self._is_closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unlisten: Callable[[], None] | None = None
        self._database = self._open(folder)
        self._log = StorageLog(folder)
        self._take_over()

    def _open(self, folder: Path) -> sqlite3.Connection:
        try:
            make_private_folder(folder)
            make_private_file(self.path)  # files that SQLite puts beside it get its permissions
            database = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None, timeout=0.1)
            database.execute("PRAGMA locking_mode=EXCLUSIVE")
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.execute("BEGIN EXCLUSIVE")
            database.execute(
                "CREATE TABLE IF NOT EXISTS objects (resource TEXT, namespace TEXT, name TEXT, object BLOB NOT NULL,"
                " PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID"
            )
            database.execute("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID")
            database.execute("COMMIT")
        except (OSError, sqlite3.Error) as problem:
            raise UnusableDataDir(
                f"cannot keep objects in {self.path}: {problem}\n"
                "hint: another process may be using it; otherwise move the file away or choose another directory"
            ) from problem
        return database

    def _take_over(self) -> None:
        """Bring what a killed process noted down into the database. One that was killed here, or while it emptied the
        log, left changes that are there already, maybe older ones alone: they must not be brought in again."""
        known = self._carried_over() or 0
        records = [record for record in self._log.left_behind() if record.revision > known]
        pending = {(one.resource, (one.namespace, one.name)): one.raw for one in records}
        if pending and not self._write(pending, max(one.revision for one in records)):
            raise UnusableDataDir(
                f"cannot bring the last changes into {self.path}: the disk may be full\n"
                "hint: make room and start again; nothing is lost"
            )
        self._log.forget_everything()

    # ---- reading

    def revision(self) -> int:
        """Where the counter goes on from; zero for a new file."""
        carried_over = self._carried_over()
        return 0 if carried_over is None else carried_over + _REVISIONS_SKIPPED_ON_START

    def _carried_over(self) -> int | None:
        """All changes up to this revision are in the database; None for a new file."""
        found = self._database.execute("SELECT value FROM facts WHERE name = 'revision'").fetchone()
        return int(found[0]) if found else None

    def rows(self) -> Iterator[Row]:
        yield from self._database.execute("SELECT resource, namespace, name, object FROM objects")

    # ---- following

    def follow(self, store: Store) -> None:
        """Write every change down before it takes effect, from now on."""
        self._unlisten = store.write_ahead(self._write_ahead)
        self._task = asyncio.get_running_loop().create_task(self._keep_writing(), name="journal")

    def _write_ahead(self, resource: str, change: Change) -> None:
        namespace, name = change.entry.key
        raw = None if change.type == DELETED else change.entry.raw
        self._log.append(Record(change.revision, resource, namespace, name, raw))
        self._pending[(resource, change.entry.key)] = raw
        self._revision = change.revision

    async def _keep_writing(self) -> None:
        # The disk is real even when the cluster's clock is virtual.
        while not self._is_closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_closing.wait(), _FLUSH_SECONDS)
            if self._pending:
                await self._carry_over()

    async def _carry_over(self) -> None:
        pending, self._pending = self._pending, {}
        self._log.switch()
        if await asyncio.to_thread(self._write, pending, self._revision):
            self._log.forget_carried_over()
        else:
            self._pending = pending | self._pending

    def _write(self, pending: dict[tuple[str, Key], bytes | None], revision: int) -> bool:
        try:
            self._database.execute("BEGIN")
            for (resource, (namespace, name)), raw in pending.items():
                if raw is None:
                    self._database.execute(
                        "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?",
                        (resource, namespace, name),
                    )
                else:
                    self._database.execute(
                        "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", (resource, namespace, name, raw)
                    )
            self._database.execute("INSERT OR REPLACE INTO facts VALUES ('revision', ?)", (revision,))
            self._database.execute("COMMIT")
        except (sqlite3.Error, OverflowError):
            _log.exception("could not write %d objects to %s; they will be tried again", len(pending), self.path)
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            return False
        return True

    async def close(self) -> None:
        """Write what is left and let the file go."""
        if self._unlisten is not None:
            self._unlisten()
        if self._task is not None:
            self._is_closing.set()
            await self._task
        if not self._pending:
            self._log.forget_everything()
        self.abandon()

    def abandon(self) -> None:
        """Let the files go as they are."""
        self._log.close()
        self._database.close()
