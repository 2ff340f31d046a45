"""The index of owners follows the store."""

from __future__ import annotations

from bayplan.apiserver.simulation.controllers.owners import OwnerIndex
from bayplan.apiserver.storage.store import Entry, Store


def test_the_index_follows_the_store() -> None:
    store = Store()
    index = OwnerIndex(store)

    def put(name: str, uid: str, *owners: str) -> None:
        store.put("things", Entry(("", name), b"{}", revision=store.next_revision(), uid=uid, owners=owners))

    put("owner", "u-1")
    put("child", "c", "u-1")
    assert index.place("u-1") == ("things", ("", "owner"))
    assert index.dependents("u-1", "things") == [("", "child")]
    put("child", "c", "u-2")
    assert index.dependents("u-1") == []
    last = Entry(("", "child"), b"{}", revision=store.next_revision(), uid="c", owners=("u-2",))
    store.remove("things", last)

    assert index.dependents("u-2") == []
    assert index.place("c") is None
