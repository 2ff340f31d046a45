"""Reading owners from stored bytes, whatever else the object holds."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.protocol.encoding import encode
from bayplan.apiserver.simulation.controllers.owners import OwnerIndex, owner_uids
from bayplan.apiserver.storage.store import Entry, Store

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u-1", "controller": True}
OTHER = {"apiVersion": "v1", "kind": "Pod", "name": "y", "uid": "u-2"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"metadata": {"name": "a"}, "spec": {}}, ()),
        ({"metadata": {"name": "a", "ownerReferences": [OWNER]}, "spec": {}}, ("u-1",)),
        ({"metadata": {"name": "a", "ownerReferences": [OWNER, OTHER]}, "spec": {}}, ("u-1", "u-2")),
        ({"spec": {}, "metadata": {"name": "a", "ownerReferences": [OWNER]}}, ("u-1",)),
        ({"metadata": {"name": "a", "ownerReferences": [OWNER]}}, ("u-1",)),
        ({"metadata": {"name": "a"}, "spec": {"template": {"metadata": {"ownerReferences": [OTHER]}}}}, ()),
        ({"metadata": {"name": "a"}, "data": {"ownerReferences": [OTHER]}}, ()),
        (
            {
                "metadata": {"name": "a", "annotations": {"last": '{"ownerReferences":[{"uid":"u-9"}],"spec":{}}'}},
                "spec": {},
            },
            (),
        ),
    ],
)
def test_the_owners_are_the_objects_own(document: dict[str, Any], expected: tuple[str, ...]) -> None:
    entry = Entry(("", "a"), encode(document), revision=2, uid="me")

    assert owner_uids(entry) == expected
    assert owner_uids(entry) == expected


def test_the_index_follows_the_store() -> None:
    store = Store()
    index = OwnerIndex(store)

    def put(name: str, uid: str, owners: list[dict[str, Any]]) -> Entry:
        document = {"metadata": {"name": name, "ownerReferences": owners}, "spec": {}}
        entry = Entry(("", name), encode(document), revision=store.next_revision(), uid=uid)
        store.put("things", entry)
        return entry

    put("owner", "u-1", [])
    put("child", "c", [OWNER])
    assert index.place("u-1") == ("things", ("", "owner"))
    assert index.dependents("u-1", "things") == [("", "child")]
    put("child", "c", [OTHER])
    assert index.dependents("u-1") == []
    last = Entry(("", "child"), b"{}", revision=store.next_revision(), uid="c")
    store.remove("things", last)

    assert index.dependents("u-2") == []
    assert index.place("c") is None
