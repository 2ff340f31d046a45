"""Watches: the changes of a selection, encoded once and shared by all watchers.

A `WatchStream` holds references to changes, not copies, and turns them into bytes when its reader is ready: a slow
reader costs a queue of pointers. A reader that falls too far behind is cut off and has to start again, as with a
real API server. Writing the bytes is up to the transport.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

import msgspec

from bayplan.apiserver.objects.selection import Selection
from bayplan.apiserver.protocol.encoding import Json, encode
from bayplan.apiserver.storage.store import ADDED, DELETED, MODIFIED, Change, Entry

Encode = Callable[[Entry], bytes]
"""An object in another representation than the stored bytes (a Table row, another version)."""
MAX_BACKLOG = 200_000
_BATCH = 500
_END = b"}\n"
_PREFIX = {
    ADDED: b'{"type":"ADDED","object":',
    MODIFIED: b'{"type":"MODIFIED","object":',
    DELETED: b'{"type":"DELETED","object":',
}


def error_event(status: Json) -> bytes:
    return b'{"type":"ERROR","object":' + encode(status) + b"}\n"


class WatchStream:
    """One watch. Iterate over it for batches of newline-separated events; it ends when it is closed."""

    def __init__(
        self, selection: Selection, *, encode_entry: Encode | None = None, representation: object = None
    ) -> None:
        self._selection = selection
        self._selects_everything = selection.is_everything
        self._encode = encode_entry
        self._representation = representation
        self._initial: deque[Entry] = deque()
        self._ready: deque[bytes | Change | tuple[str, Change]] = deque()
        """Lines, changes, and changes that are shown as another type of event."""
        self._wake: asyncio.Future[None] | None = None
        self._on_close: list[Callable[[], None]] = []
        self.closed = False
        self.sent_revision = 0
        self.wants_bookmarks = False

    # ---- filling

    def begin_with(self, entries: list[Entry]) -> None:
        """Objects that exist already, sent as ADDED before anything else."""
        self._initial.extend(entries)

    def on_change(self, resource: str, change: Change) -> None:
        """A store listener."""
        event = self._event_type(change)
        if event is not None:
            self._push(change if event == change.type else (event, change))

    def push(self, line: bytes) -> None:
        """A bookmark or an error, ready to send."""
        self._push(line)

    def _push(self, item: bytes | Change | tuple[str, Change]) -> None:
        if self.closed:
            return
        if len(self._ready) >= MAX_BACKLOG:
            self.close()
            return
        self._ready.append(item)
        self._wake_up()

    def _event_type(self, change: Change) -> str | None:
        """A change as seen through the selection: objects that enter it are added, those that leave it deleted."""
        if self._selects_everything:
            return change.type
        is_selected = change.type != DELETED and self._selection.matches(change.entry)
        was_selected = change.previous is not None and self._selection.matches(change.previous)
        if is_selected:
            return MODIFIED if was_selected else ADDED
        return DELETED if was_selected else None

    # ---- reading

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._batches()

    async def _batches(self) -> AsyncIterator[bytes]:
        try:
            while True:
                batch = self.take()
                if batch:
                    yield batch
                elif self.closed:
                    return
                else:
                    await self._wait()
        finally:
            self.close()

    def take(self) -> bytes:
        """What can be sent now, up to a batch."""
        parts: list[bytes] = []
        taken = 0
        while self._initial and taken < _BATCH:
            entry = self._initial.popleft()
            parts += (_PREFIX[ADDED], entry.raw if self._encode is None else self._encode(entry), _END)
            taken += 1
        while self._ready and not self._initial and taken < _BATCH:
            item = self._ready.popleft()
            if isinstance(item, Change):
                self._add_change(parts, item.type, item)
            elif isinstance(item, bytes):
                parts.append(item)
            else:
                self._add_change(parts, *item)
            taken += 1
        return b"".join(parts)

    def _add_change(self, parts: list[bytes], event: str, change: Change) -> None:
        self.sent_revision = change.revision
        leaves_selection = event == DELETED and change.type != DELETED
        if self._encode is None and not leaves_selection:
            parts += (_PREFIX[event], change.entry.raw, _END)
            return
        key = (event, self._representation)
        if change.encoded is None:
            change.encoded = {}
        encoded = change.encoded.get(key)
        if encoded is None:
            seen = _as_left(change) if leaves_selection else change.entry
            encoded = seen.raw if self._encode is None else self._encode(seen)
            change.encoded[key] = encoded
        parts += (_PREFIX[event], encoded, _END)

    async def _wait(self) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        await self._wake

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # ---- ending

    def on_close(self, callback: Callable[[], None]) -> None:
        self._on_close.append(callback)

    def close(self) -> None:
        """End the watch; what is queued is still delivered."""
        if self.closed:
            return
        self.closed = True
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback()
        self._wake_up()


def _as_left(change: Change) -> Entry:
    """An object that left the selection is shown as it was, at the revision at which it left."""
    previous = change.previous or change.entry
    old_version = b'"resourceVersion":"%d"' % previous.revision
    raw = previous.raw.replace(old_version, b'"resourceVersion":"%d"' % change.revision, 1)
    return msgspec.structs.replace(previous, raw=raw, revision=change.revision)
