"""The table of kinds."""

from __future__ import annotations

from bayplan.api.kinds import KINDS, kind_named, kind_of
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.storage import StorageClass


def test_a_kind_is_found_by_version_and_name() -> None:
    assert kind_named("v1", "Pod") is kind_of(Pod)
    assert kind_named("storage.k8s.io/v1", "StorageClass") is kind_of(StorageClass)
    assert kind_named("v1", "StorageClass") is None
    assert kind_named("v1", "Lettuce") is None


def test_paths_lead_to_the_collection_of_all_namespaces() -> None:
    assert kind_of(Node).path == "/api/v1/nodes"
    assert kind_of(StorageClass).path == "/apis/storage.k8s.io/v1/storageclasses"


def test_every_kind_is_listed_once() -> None:
    assert len({kind.type for kind in KINDS}) == len(KINDS)
    assert len({(kind.group, kind.plural) for kind in KINDS}) == len(KINDS)
    assert all(kind.plural == kind.plural.lower() for kind in KINDS)
