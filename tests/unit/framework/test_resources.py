"""Custom resources as types: coordinates, mistakes in them, listers and what changes cause."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest

from bayplan.api.meta import Metadata
from bayplan.cache import Cache
from bayplan.framework import ActionType, CustomResource, CycleState, NodeInfo, Plugin, PodInfo, ResourcePart, Status
from bayplan.framework.resources import ObjectLister, resource_info
from bayplan.testing import Harness, pod


class PoolSpec(ResourcePart):
    free_seats: int


class Pool(CustomResource, group="seats.example.com", version="v1", plural="pools", short_names=("po",)):
    """Seats of a namespace."""

    spec: PoolSpec


def _pool(name: str, *, namespace: str = "ns", seats: int = 1) -> Pool:
    return Pool(metadata=Metadata(name=name, namespace=namespace), spec=PoolSpec(free_seats=seats))


def test_the_class_line_says_where_the_resource_lives() -> None:
    info = resource_info(Pool)

    assert info.path == "/apis/seats.example.com/v1/pools"
    assert info.crd_name == "pools.seats.example.com"
    assert info.event_name == "pools.v1.seats.example.com"
    assert (info.kind, info.singular, info.is_namespaced) == ("Pool", "pool", True)


def test_objects_are_read_with_their_wire_names_and_unknown_fields_are_skipped() -> None:
    text = b'{"kind": "Pool", "metadata": {"name": "a"}, "spec": {"freeSeats": 3, "colour": "red"}}'

    assert msgspec.json.decode(text, type=Pool).spec.free_seats == 3


@pytest.mark.parametrize(
    ("keywords", "complaint"),
    [
        ({"group": "seats", "version": "v1", "plural": "pools"}, "is not a domain name"),
        ({"group": "seats.example.com", "version": "", "plural": "pools"}, "is not a version"),
        ({"group": "seats.example.com", "version": "v1", "plural": "Pools"}, 'write plural="broken'),
        ({"group": "seats.example.com", "version": "v1", "plural": "p", "scope": "World"}, "scope `World` is unknown"),
        ({"group": "seats.example.com", "version": "v1", "plural": "p", "kind": "pool"}, "capital letter"),
        ({"namespaced": False}, '`namespaced` is not an option; write `scope="Cluster"`'),
        ({"namespaced": True}, 'write `scope="Namespaced"`'),
        ({"shortnames": ("p",)}, "write `short_names`"),
        ({"xyz": "red"}, "it takes group, version"),
    ],
)
def test_wrong_coordinates_are_refused_where_they_are_written(keywords: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        type(CustomResource)("Broken", (CustomResource,), {"__module__": __name__}, **keywords)


def test_a_class_without_coordinates_is_no_custom_resource() -> None:
    with pytest.raises(TypeError, match=r"write `class PoolSpec\(CustomResource"):
        resource_info(PoolSpec)


def test_a_lister_finds_lists_and_tells() -> None:
    cache = Cache()
    lister = ObjectLister(cache.cluster.objects, Pool)
    heard: list[tuple[object, object]] = []
    lister.on_change(lambda old, new: heard.append((old, new)))
    first, second = _pool("a"), _pool("b", namespace="other")
    cache.put_object(first)
    cache.put_object(second)
    changed = _pool("a", seats=2)
    cache.put_object(changed)
    cache.remove_object(second)

    assert lister.get("a", "ns") is changed
    assert lister.get("b", "other") is None
    assert lister.list() == [changed] == lister.list("ns")
    assert lister.list("other") == []
    assert heard == [(None, first), (None, second), (first, changed), (second, None)]


def test_a_listener_that_is_gone_is_forgotten() -> None:
    cache = Cache()

    class Ear:
        heard = 0

        def listen(self, old: object, new: object) -> None:
            Ear.heard += 1

    ear = Ear()
    ObjectLister(cache.cluster.objects, Pool).on_change(ear.listen)
    cache.put_object(_pool("a"))
    del ear
    gc.collect()
    cache.put_object(_pool("b"))

    assert Ear.heard == 1


class Watcher(Plugin):
    watches = (Pool,)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None


def test_a_change_raises_the_version_of_every_plugin_that_watches() -> None:
    harness = Harness(nodes=["n1"], plugins=[Watcher])
    plugin = harness.plugin("Watcher")

    harness.add(_pool("a"))

    assert plugin.version == 1


class Careless(Plugin):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.handle.resources(Pool)
        return None


def test_asking_for_what_nobody_watches_says_what_to_write() -> None:
    outcome = Harness(nodes=["n1"], plugins=[Careless]).schedule(pod("web"))

    assert outcome.failure is not None
    assert "write `watches = (Pool,)` in the plugin" in outcome.message


def test_changes_are_cluster_events() -> None:
    assert Pool.changes(ActionType.ADD).name == "pools.v1.seats.example.comAdd"
