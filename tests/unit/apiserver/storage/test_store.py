"""The store: revisions, history, compaction, lists of the past."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.apiserver.storage.store import ADDED, DELETED, MODIFIED, Change, Compacted, Entry, Store


def put(store: Store, name: str, raw: bytes = b"{}") -> Change:
    return store.put("things", Entry(("", name), raw, revision=store.next_revision(), uid=name))


def remove(store: Store, name: str) -> Change:
    return store.remove("things", Entry(("", name), b"{}", revision=store.next_revision(), uid=name))


def test_every_write_gets_the_next_revision_and_is_announced_once() -> None:
    store = Store()
    seen: list[tuple[str, int]] = []
    stop = store.listen("things", lambda resource, change: seen.append((change.type, change.revision)))
    put(store, "a")
    put(store, "a")
    remove(store, "a")
    stop()
    put(store, "b")

    assert seen == [(ADDED, 2), (MODIFIED, 3), (DELETED, 4)]
    assert store.revision == 5


def test_a_write_with_a_stale_revision_is_a_programming_error() -> None:
    store = Store()
    with pytest.raises(ValueError, match="encode and put together"):
        store.put("things", Entry(("", "a"), b"{}", revision=99, uid="a"))

    assert store.count("things") == 0


def test_a_listener_must_not_write() -> None:
    """Whoever listens after it would see the second change before the first."""
    store = Store()
    store.listen("things", lambda resource, change: put(store, "nested") and None)

    with pytest.raises(RuntimeError, match="a listener must not write"):
        put(store, "a")


def test_the_past_can_be_listed_until_it_is_compacted() -> None:
    store = Store()
    put(store, "a")
    then = store.revision
    put(store, "b")
    remove(store, "a")

    assert [entry.name for entry in store.listing_at("things", then).entries] == ["a"]
    assert [entry.name for entry in store.listing("things").entries] == ["b"]
    store.compact()
    with pytest.raises(Compacted):
        store.listing_at("things", then)
    with pytest.raises(Compacted):
        store.changes_since("things", then)
    assert store.changes_since("things", store.revision) == []


def test_a_full_history_forgets_its_oldest_changes() -> None:
    store = Store(history_limit=3)
    for number in range(5):
        put(store, f"n{number}")

    with pytest.raises(Compacted):
        store.changes_since("things", 2)
    assert [change.entry.name for change in store.changes_since("things", 3)] == ["n2", "n3", "n4"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=30), st.integers(0, 30))
def test_undoing_changes_gives_the_past_exactly(operations: list[tuple[str, bool]], index: int) -> None:
    store = Store()
    states: list[tuple[int, list[tuple[str, int]]]] = []
    for name, is_put in operations:
        if is_put:
            put(store, name)
        elif store.get("things", "", name) is not None:
            remove(store, name)
        current = [(entry.name, entry.revision) for entry in store.listing("things").entries]
        states.append((store.revision, current))
    if not states:
        return
    revision, expected = states[index % len(states)]

    assert [(entry.name, entry.revision) for entry in store.listing_at("things", revision).entries] == expected
