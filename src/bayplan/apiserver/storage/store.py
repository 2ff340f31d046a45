"""The objects: one revision counter, immutable entries, and a bounded history that watches resume from.

Every write makes a new `Entry` with the next revision and appends one `Change` to the resource's history. Entries
hold the object as JSON bytes, encoded once, plus the few parsed facts that selectors need. Nothing here waits and
nothing here validates: a write either happens entirely or raises before anything changed.

Objects handed out are immutable; a revision that was compacted away raises `Compacted`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


class Entry(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One version of one object.

    The garbage collector passes over entries and changes: there are many, and nothing they hold leads back to them.
    """

    key: Key
    raw: bytes
    revision: int
    uid: str
    labels: dict[str, str] = {}
    """Shared with other entries, like everything here: not to be changed."""
    fields: tuple[str, ...] = ()
    """The values of the selectable fields of its kind."""
    owners: tuple[str, ...] = ()
    """The uids of its owners."""
    controller: str = ""
    """The uid of the owner that controls it; empty when none does."""

    @property
    def namespace(self) -> str:
        return self.key[0]

    @property
    def name(self) -> str:
        return self.key[1]


class Change(msgspec.Struct, eq=False, gc=False):
    """One write: what the object was, what it is. `encoded` keeps what was sent to watchers, by representation."""

    type: str
    entry: Entry
    previous: Entry | None
    encoded: dict[object, bytes] | None = None

    @property
    def revision(self) -> int:
        return self.entry.revision


class Compacted(Exception):
    """The history no longer reaches back to `asked`; the oldest revision still known is `oldest`."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} was compacted; the oldest is {oldest}")
        self.asked = asked
        self.oldest = oldest


class NotStored(Exception):
    """A change could not be written where it has to survive; nothing was changed."""


Listener = Callable[[str, Change], None]


class Listing(NamedTuple):
    """Entries of a resource at one revision, in key order."""

    entries: list[Entry]
    revision: int


class Collection:
    """All objects of one resource and the recent changes to them."""

    __slots__ = ("_ordered", "_unsorted", "compacted", "entries", "history", "listeners")

    def __init__(self, *, history_limit: int) -> None:
        self.entries: dict[Key, Entry] = {}
        self.history: deque[Change] = deque(maxlen=history_limit)
        self.compacted = 0
        """The newest revision that watches can no longer start from."""
        self.listeners: dict[Listener, None] = {}
        self._ordered: list[Key] = []
        self._unsorted = False

    def put(self, change: Change) -> None:
        key = change.entry.key
        if change.type == DELETED:
            self.entries.pop(key, None)
            self._unsorted = True
        else:
            if key not in self.entries:
                self._unsorted = True
            self.entries[key] = change.entry
        if len(self.history) == self.history.maxlen:
            self.compacted = self.history[0].revision
        self.history.append(change)

    def resort(self) -> None:
        self._unsorted = True

    def in_order(self) -> list[Entry]:
        if self._unsorted:
            self._ordered = sorted(self.entries)
            self._unsorted = False
        entries = self.entries
        return [entries[key] for key in self._ordered]


class Store:
    """All collections under one revision counter."""

    def __init__(self, *, history_limit: int = 20_000) -> None:
        self._history_limit = history_limit
        self._collections: dict[str, Collection] = {}
        self._everything: list[Listener] = []
        self._compacted = 0
        self._announcing = False
        self._before_commit: Listener | None = None
        self.revision = 1

    # ---- reading

    def collection(self, resource: str) -> Collection:
        found = self._collections.get(resource)
        if found is None:
            found = self._collections[resource] = Collection(history_limit=self._history_limit)
            found.compacted = self._compacted
        return found

    def get(self, resource: str, namespace: str, name: str) -> Entry | None:
        return self.collection(resource).entries.get((namespace, name))

    def listing(self, resource: str) -> Listing:
        return Listing(self.collection(resource).in_order(), self.revision)

    def listing_at(self, resource: str, revision: int) -> Listing:
        """The resource as it was at a revision, rebuilt by undoing the changes since. Raises `Compacted`."""
        collection = self.collection(resource)
        if revision < collection.compacted:
            raise Compacted(revision, collection.compacted)
        newer = [change for change in reversed(collection.history) if change.revision > revision]
        if not newer:
            return Listing(collection.in_order(), revision)
        entries = dict(collection.entries)
        for change in newer:
            if change.previous is None:
                entries.pop(change.entry.key, None)
            else:
                entries[change.entry.key] = change.previous
        return Listing([entries[key] for key in sorted(entries)], revision)

    def changes_since(self, resource: str, revision: int) -> list[Change]:
        """The changes after a revision, oldest first. Raises `Compacted`."""
        collection = self.collection(resource)
        if revision < collection.compacted:
            raise Compacted(revision, collection.compacted)
        newer = []
        for change in reversed(collection.history):
            if change.revision <= revision:
                break
            newer.append(change)
        newer.reverse()
        return newer

    def resources(self) -> Iterator[str]:
        return iter(list(self._collections))

    def count(self, resource: str) -> int:
        return len(self.collection(resource).entries)

    # ---- writing

    def next_revision(self) -> int:
        """The revision the next write will get; the caller encodes it into the object before `put`."""
        return self.revision + 1

    def put(self, resource: str, entry: Entry) -> Change:
        """Add or replace. The entry must carry `next_revision()`."""
        collection = self.collection(resource)
        previous = collection.entries.get(entry.key)
        return self._commit(resource, collection, Change(MODIFIED if previous else ADDED, entry, previous))

    def remove(self, resource: str, entry: Entry) -> Change:
        """Delete; `entry` is the last state of the object, carrying `next_revision()`."""
        collection = self.collection(resource)
        previous = collection.entries[entry.key]
        return self._commit(resource, collection, Change(DELETED, entry, previous))

    def discard(self, resource: str, entry: Entry) -> None:
        """Delete without a last state of its own, for objects whose kind no longer exists."""
        self.remove(resource, msgspec.structs.replace(entry, revision=self.next_revision()))

    def _commit(self, resource: str, collection: Collection, change: Change) -> Change:
        if change.revision != self.revision + 1:
            raise ValueError(f"write of revision {change.revision} after {self.revision}: encode and put together")
        if self._announcing:
            # Later listeners would receive the second write before the first.
            raise RuntimeError(f"a listener must not write: {resource} {change.entry.key}")
        if self._before_commit is not None:
            self._before_commit(resource, change)
        self.revision = change.revision
        collection.put(change)
        self._announcing = True
        try:
            for listener in list(collection.listeners):
                listener(resource, change)
            for listener in self._everything:
                listener(resource, change)
        finally:
            self._announcing = False
        return change

    # ---- listening

    def listen(self, resource: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` after each change of a resource, until the returned function is called."""
        listeners = self.collection(resource).listeners
        listeners[listener] = None
        return lambda: listeners.pop(listener, None)

    def write_ahead(self, write: Listener) -> Callable[[], None]:
        """Call `write` before each change takes effect; if it raises `NotStored`, the change does not happen."""
        self._before_commit = write

        def stop() -> None:
            self._before_commit = None

        return stop

    def listen_to_everything(self, listener: Listener) -> Callable[[], None]:
        self._everything.append(listener)
        return lambda: self._everything.remove(listener)

    # ---- history

    def compact(self) -> None:
        """Forget all history, as an etcd compaction does: watches and pages from before now are expired."""
        self._compacted = self.revision
        for collection in self._collections.values():
            collection.history.clear()
            collection.compacted = self.revision

    def restore(self, objects: Iterable[tuple[str, Entry]], *, revision: int) -> None:
        """Fill an empty store from storage. No changes are announced."""
        self.revision = max(self.revision, revision)
        for resource, entry in objects:
            collection = self.collection(resource)
            collection.entries[entry.key] = entry
            collection.resort()
        self.compact()
