"""Watch streams: order, selection, slow readers."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.apiserver.objects import watch
from bayplan.apiserver.objects.selection import Selection
from bayplan.apiserver.objects.watch import WatchStream
from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.storage.store import Entry, Store


def write(store: Store, name: str, labels: dict[str, str] | None = None) -> None:
    revision = store.next_revision()
    raw = b'{"metadata":{"name":"%b","resourceVersion":"%d"}}' % (name.encode(), revision)
    store.put("things", Entry(("", name), raw, revision=revision, uid=name, labels=labels or {}))


def events(data: bytes) -> list[Json]:
    return [decode_object(line) for line in data.splitlines()]


async def test_what_exists_comes_before_what_happens() -> None:
    store = Store()
    write(store, "old")
    stream = WatchStream(Selection())
    stream.begin_with(store.listing("things").entries)
    store.listen("things", stream.on_change)
    write(store, "new")

    assert [event["object"]["metadata"]["name"] for event in events(stream.take())] == ["old", "new"]


async def test_leaving_the_selection_looks_like_a_deletion_at_that_revision() -> None:
    store = Store()
    stream = WatchStream(Selection(labels=lambda labels: labels.get("in") == "yes"))
    store.listen("things", stream.on_change)
    write(store, "a", {"in": "yes"})
    write(store, "a", {"in": "no"})
    write(store, "a", {"in": "no"})
    seen = events(stream.take())

    assert [event["type"] for event in seen] == ["ADDED", "DELETED"]
    assert seen[1]["object"]["metadata"]["resourceVersion"] == "3"


async def test_a_reader_is_woken_by_a_change() -> None:
    store = Store()
    stream = WatchStream(Selection())
    store.listen("things", stream.on_change)
    reading = asyncio.ensure_future(anext(aiter(stream)))
    await asyncio.sleep(0)
    assert not reading.done()
    write(store, "a")

    assert len(events(await reading)) == 1


async def test_a_reader_that_falls_too_far_behind_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_BACKLOG", 3)
    store = Store()
    stream = WatchStream(Selection())
    closed: list[bool] = []
    stream.on_close(lambda: closed.append(True))
    store.listen("things", stream.on_change)
    for number in range(5):
        write(store, f"n{number}")

    assert stream.closed
    assert closed == [True]
    assert len(events(stream.take())) == 3


async def test_a_closed_stream_still_delivers_what_was_queued() -> None:
    store = Store()
    stream = WatchStream(Selection())
    store.listen("things", stream.on_change)
    write(store, "a")
    stream.close()
    stream.close()

    assert [len(events(batch)) async for batch in stream] == [1]


async def test_another_representation_is_encoded_once_for_everybody() -> None:
    store = Store()
    made: list[str] = []

    def encode(entry: Entry) -> bytes:
        made.append(entry.name)
        return b'{"shown":"%b"}' % entry.name.encode()

    streams = [WatchStream(Selection(), encode_entry=encode, representation="table") for _ in range(3)]
    for stream in streams:
        store.listen("things", stream.on_change)
    write(store, "a")

    assert [events(stream.take())[0]["object"] for stream in streams] == [{"shown": "a"}] * 3
    assert made == ["a"]
