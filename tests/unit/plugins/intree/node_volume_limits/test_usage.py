"""Exact counts that are kept: after any change they are what a fresh count gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import (
    VolumeCluster,
    attachment,
    claim,
    csi_node,
    judged,
    storage_class,
    uses,
    volume,
)

from bayplan.plugins.intree.node_volume_limits import NodeVolumeLimits
from bayplan.plugins.intree.node_volume_limits.limit_columns import VolumeLimitColumns
from bayplan.plugins.intree.node_volume_limits.usage import VolumeUse

NODES, CLAIMS = ("n0", "n1", "n2"), ("c0", "c1", "c2", "c3")
DRIVERS = ("csi.x", "csi.y")
Step = Callable[[VolumeCluster], object]


def csi(name: str, driver: str, handle: str) -> Any:
    return volume(name, csi={"driver": driver, "volumeHandle": handle})


_numbers = st.integers(0, 3)
_claims = st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3, unique=True)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """One thing that happens to a cluster."""
    number, where, driver = draw(_numbers), draw(st.sampled_from(NODES)), draw(st.sampled_from(DRIVERS))
    used, handle, limit = draw(_claims), f"h{draw(_numbers)}", draw(_numbers)
    storage = draw(st.sampled_from(("fast", "slow")))
    driver_limit = {driver.replace(".", "_"): limit}
    options: list[Step] = [
        lambda cluster: cluster.run(f"p{number}", where, volumes=uses(*used)),
        lambda cluster: cluster.cache.remove_pod(f"uid-p{number}"),
        lambda cluster: cluster.put(csi(f"v{number}", driver, handle)),
        lambda cluster: cluster.cache.remove_object(volume(f"v{number}")),
        lambda cluster: cluster.put(claim(used[0], bound_to=f"v{number}", storage_class=storage)),
        lambda cluster: cluster.put(claim(used[0], storage_class=storage)),
        lambda cluster: cluster.cache.remove_object(claim(used[0])),
        lambda cluster: cluster.put(storage_class(storage, provisioner=driver)),
        lambda cluster: cluster.cache.remove_object(storage_class(storage)),
        lambda cluster: cluster.put(csi_node(where, **driver_limit)),
        lambda cluster: cluster.cache.remove_object(csi_node(where)),
        lambda cluster: cluster.put(attachment(f"a{number}", node=where, volume=f"v{limit}", attacher=driver)),
        lambda cluster: cluster.cache.remove_object(attachment(f"a{number}", node=where, volume=None)),
        lambda cluster: cluster.cache.remove_node(where),
        lambda cluster: cluster.cache.add_node(node(where)),
    ]
    return draw(st.sampled_from(options))


@settings(max_examples=120, deadline=None)
@given(happening=st.lists(st.lists(steps(), max_size=4), min_size=1, max_size=8), used=_claims)
def test_kept_counts_are_as_good_as_fresh_ones(happening: list[list[Step]], used: list[str]) -> None:
    """`judged` compares the kept counts of the column form with the fresh ones of the one-node form."""
    cluster = VolumeCluster(*(node(name) for name in NODES))
    cluster.put(storage_class(), storage_class("slow", provisioner="csi.y"))
    cluster.put(*(csi_node(name, csi_x=1, csi_y=1) for name in NODES))
    for number, name in enumerate(CLAIMS):
        cluster.put(csi(f"v{number}", DRIVERS[number % 2], f"h{number}"), claim(name, bound_to=f"v{number}"))
    plugin = cluster.plugin(NodeVolumeLimits)
    for group in happening:
        for step in group:
            step(cluster)
        judged(plugin, cluster.pod_with(*used), cluster)


def use_of(cluster: VolumeCluster) -> tuple[VolumeUse, VolumeLimitColumns]:
    use, columns = VolumeUse(cluster.state), VolumeLimitColumns(cluster.state)
    columns.follow()
    return use, columns


def test_rows_are_counted_when_asked_for() -> None:
    cluster = VolumeCluster(node("n0"), node("n1")).put(csi("v", "csi.x", "h"), claim("c", bound_to="v"))
    cluster.put(csi("w", "csi.y", "i"), attachment("a", node="n0", volume="w", attacher="csi.y"))
    cluster.run("p", "n0", volumes=uses("c"))
    use, columns = use_of(cluster)
    use.count([0], columns)

    assert use.counts("csi.x")[:2].tolist() == [1, 0]
    assert use.counts("csi.y")[:2].tolist() == [1, 0]
    assert use.counts("csi.z")[:2].tolist() == [0, 0]
    assert use.of_pods(0) == {("csi.x", "h")}


def test_only_rows_that_a_change_concerns_are_forgotten() -> None:
    cluster = VolumeCluster(node("n0"), node("n1"))
    for name, where in (("c", "n0"), ("d", "n1")):
        cluster.put(csi(f"v{name}", "csi.x", name), claim(name, bound_to=f"v{name}"))
        cluster.run(f"p{name}", where, volumes=uses(name))
    use, columns = use_of(cluster)
    use.count([0, 1], columns)
    cluster.put(csi("vc", "csi.x", "other"), csi("unrelated", "csi.x", "u"), storage_class("unrelated"))
    use.follow(columns.follow())

    assert set(use._used) == {1}
    use.count([0, 1], columns)
    assert use.of_pods(0) == {("csi.x", "other")}
    use.follow([0])
    use.follow([0, 1])
    assert not use._used
    assert not use._rows_by_source


def test_counts_grow_with_the_table() -> None:
    cluster = VolumeCluster(node("n0")).put(csi("v", "csi.x", "h"), claim("c", bound_to="v"))
    cluster.run("p", "n0", volumes=uses("c"))
    use, columns = use_of(cluster)
    use.count([0], columns)
    for number in range(200):
        cluster.cache.add_node(node(f"m{number}"))

    assert use.counts("csi.x")[[0, 200]].tolist() == [1, 0]
