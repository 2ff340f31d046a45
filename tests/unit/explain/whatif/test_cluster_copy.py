"""A copy of a cluster counts what the original counts, and shares no shape with it."""

from __future__ import annotations

from bayplan.app.offline import OfflineScheduler
from bayplan.config.loading import default_config
from bayplan.config.profiles import resolve_profiles
from bayplan.explain.whatif.cluster_copy import ClusterCopy, objects_of_cluster
from bayplan.observe.time_slices import at_once
from bayplan.plugins.intree import default_registry
from bayplan.testing import node, pod


def test_pods_of_one_shape_are_of_one_shape_in_a_copy() -> None:
    registry = default_registry()
    profiles = resolve_profiles(default_config(), registry)
    pods = [pod(f"web-{number}", cpu="1", node="a", labels={"app": "web"}) for number in range(3)]
    pods.append(pod("db", cpu="2", node="a", labels={"app": "db"}))
    original = OfflineScheduler(profiles, registry, [node("a", cpu="8"), *pods])
    copy = at_once(ClusterCopy.build(objects_of_cluster(original.cache, [], {}), profiles, registry))

    ours = {info.key: info.shape for info in copy.cache.pods()}
    theirs = {info.key: info.shape for info in original.cache.pods()}
    there = copy.cache.cluster.node("a")
    assert ours["default/web-0"] is ours["default/web-2"] is not ours["default/db"]
    assert ours.keys() == theirs.keys() and not set(map(id, ours.values())) & set(map(id, theirs.values()))
    assert {key: shape.labels for key, shape in ours.items()} == {key: shape.labels for key, shape in theirs.items()}
    assert there is not None and there.requested_of("cpu") == 5000
