"""What an entry knows of its object without decoding it."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.kind import Kinds
from bayplan.apiserver.objects.entries import make_entry
from bayplan.apiserver.storage.store import ADDED, Change, Entry

KINDS = Kinds(builtin_kinds())
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u-1", "controller": True}
OTHER = {"apiVersion": "v1", "kind": "Pod", "name": "y", "uid": "u-2"}


def pod_entry(document: dict[str, Any]) -> Entry:
    return make_entry(KINDS, KINDS.resource("pods"), document, 7)


@pytest.mark.parametrize(
    ("document", "owners", "controller"),
    [
        ({"metadata": {"name": "a"}, "spec": {}}, (), ""),
        ({"metadata": {"name": "a", "ownerReferences": None}, "spec": {}}, (), ""),
        ({"metadata": {"name": "a", "ownerReferences": [OTHER]}, "spec": {}}, ("u-2",), ""),
        ({"metadata": {"name": "a", "ownerReferences": [OTHER, OWNER]}, "spec": {}}, ("u-2", "u-1"), "u-1"),
        ({"metadata": {"name": "a"}, "spec": {"template": {"metadata": {"ownerReferences": [OTHER]}}}}, (), ""),
    ],
)
def test_the_owners_are_the_objects_own(document: dict[str, Any], owners: tuple[str, ...], controller: str) -> None:
    entry = pod_entry(document)

    assert (entry.owners, entry.controller) == (owners, controller)


def test_entries_of_one_template_share_what_they_have_in_common() -> None:
    one, other = (
        pod_entry(
            {
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "labels": {"app": "web"},
                    "ownerReferences": [OWNER],
                },
                "spec": {"nodeName": "n"},
            }
        )
        for name in ("a", "b")
    )

    assert (one.key, one.labels) == (("default", "a"), {"app": "web"})
    assert one.labels is other.labels
    assert one.fields is other.fields
    assert one.owners is other.owners


def test_the_garbage_collector_passes_over_entries_and_changes() -> None:
    entry = pod_entry({"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": {}})

    assert not gc.is_tracked(entry)
    assert not gc.is_tracked(Change(ADDED, entry, None))
