"""Overlays: pods come and go on some rows, and nobody else notices."""

from __future__ import annotations

import numpy as np

from bayplan.cache import Cache
from bayplan.cluster.derived import DerivedColumns
from bayplan.cluster.overlay import OverlayColumns, overlay_of
from bayplan.cluster.resources import CPU
from bayplan.testing.build import node, pod


def _cache() -> Cache:
    cache = Cache()
    for name in ("a", "b"):
        cache.add_node(node(name))
    cache.add_pod(pod("old", node="a", cpu=1))
    return cache


def test_an_overlay_counts_on_its_own() -> None:
    cache = _cache()
    overlay = OverlayColumns(cache.cluster.nodes, np.array([1, 0], dtype=np.intp))
    old, new = cache.pod("uid-default-old"), cache.info(pod("new", cpu="250m"))
    assert old is not None

    overlay.remove(1, old)
    overlay.add(0, new)

    assert overlay.requested(CPU).tolist() == [250, 0]
    assert overlay.nonzero_cpu.tolist() == [250, 0]
    assert overlay.pod_count.tolist() == [1, 0]
    assert list(overlay.info(0).pods) == [new.uid]
    assert [list(info.pods) for info in overlay.infos() if info is not None] == [[new.uid], []]
    assert cache.cluster.nodes.requested[CPU, :2].tolist() == [1000, 0]
    assert list(cache.cluster.nodes.at(0).pods) == [old.uid]


def test_part_of_an_overlay_keeps_its_pods() -> None:
    cache = _cache()
    overlay = OverlayColumns(cache.cluster.nodes, np.array([0, 1], dtype=np.intp))
    new = cache.info(pod("new", cpu=2))
    overlay.add(1, new)

    part = overlay.take(np.array([1], dtype=np.intp))

    assert part.requested(CPU).tolist() == [2000]
    assert list(part.info(0).pods) == [new.uid]


def test_a_pod_may_name_resources_that_no_node_offers() -> None:
    cache = _cache()
    overlay = overlay_of(cache.cluster.nodes, 0)
    new = cache.info(pod("new", requests={f"example.com/r{number}": 2 for number in range(12)}))

    overlay.add(0, new)

    assert [overlay.info(0).requested_of(name) for name in new.shape.unplaced] == [2] * 12


def test_derived_columns_are_not_for_dry_runs() -> None:
    assert overlay_of(_cache().cluster.nodes, 0).derived(DerivedColumns) is None
