"""ImageLocality prefers nodes that hold the pod's images."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.small_cluster import STATE, SmallCluster, node, raw_scores

from bayplan.framework import Depends
from bayplan.plugins.intree.image_locality import ImageLocality

MIB = 1 << 20


def holding(name: str, **images: int) -> Any:
    """A node with images of the given sizes in MiB; `app` stands for `app:latest`."""
    listed = [{"names": [f"{image}:latest"], "sizeBytes": size * MIB} for image, size in images.items()]
    return node(name, status={"images": listed})


def containers(*images: str) -> list[dict[str, str]]:
    return [{"name": f"c{place}", "image": image} for place, image in enumerate(images)]


@pytest.mark.parametrize(
    ("nodes", "images", "expected"),
    [
        ([{"app": 500}, {}], ("app",), [23, 0]),
        ([{"app": 500}, {"app": 500}], ("app",), [48, 48]),
        ([{"app": 10}, {"app": 10}], ("app",), [0, 0]),
        ([{"one": 300, "two": 700}, {"one": 300}, {"one": 300}, {"one": 300}], ("one", "two"), [22, 14, 14, 14]),
        ([{"app": 5000}], ("app",), [100]),
        ([{"app": 5000}], ("app", "none"), [100]),
        ([{"app": 700}], ("none",), [0]),
    ],
    ids=["on half", "on all", "small", "two containers", "above the cap", "above the raised cap", "unknown image"],
)
def test_the_score_weighs_size_by_spread(
    nodes: list[dict[str, int]], images: tuple[str, ...], expected: list[int]
) -> None:
    cluster = SmallCluster(*(holding(f"n{place}", **held) for place, held in enumerate(nodes)))
    scores = raw_scores(cluster.plugin(ImageLocality), cluster.pod(containers=containers(*images)), cluster)

    assert list(scores.values()) == expected


def test_init_containers_count_and_raise_the_cap() -> None:
    cluster = SmallCluster(holding("n", app=500))
    pod = cluster.pod(initContainers=containers("app"), containers=containers("app"))

    assert raw_scores(cluster.plugin(ImageLocality), pod, cluster) == {"n": 100 * (1000 - 23) // (2000 - 23)}


def test_image_volumes_count_and_do_not_raise_the_cap() -> None:
    cluster = SmallCluster(holding("n", data=500))
    volumes = [{"name": "v", "image": {"reference": "data"}}]
    pod = cluster.pod(containers=containers("none"), volumes=volumes)

    assert raw_scores(cluster.plugin(ImageLocality), pod, cluster) == {"n": 48}


def test_a_name_without_a_tag_means_latest_and_a_registry_port_is_no_tag() -> None:
    held = [{"names": ["registry:5000/app:latest"], "sizeBytes": 500 * MIB}]
    cluster = SmallCluster(node("n", status={"images": held}))
    plugin = cluster.plugin(ImageLocality)

    assert raw_scores(plugin, cluster.pod(containers=containers("registry:5000/app")), cluster) == {"n": 48}
    assert raw_scores(plugin, cluster.pod(containers=containers("registry:5000/app:v2")), cluster) == {"n": 0}


def test_the_first_reported_size_holds_for_all_nodes() -> None:
    cluster = SmallCluster(holding("first", app=500), holding("second", app=900))
    scores = raw_scores(cluster.plugin(ImageLocality), cluster.pod(containers=containers("app")), cluster)

    assert scores == {"first": 48, "second": 48}


def test_absurd_sizes_end_at_the_cap() -> None:
    huge = [{"names": ["a:latest"], "sizeBytes": 2**63 - 1}, {"names": ["b:latest"], "sizeBytes": 2**63 - 1}]
    cluster = SmallCluster(node("n", status={"images": huge}))
    pod = cluster.pod(containers=containers("a", "b"))

    assert raw_scores(cluster.plugin(ImageLocality), pod, cluster) == {"n": 100}


def test_a_changed_node_changes_the_score_of_others() -> None:
    """Why the answer depends on all nodes: the spread of an image is in every score."""
    cluster = SmallCluster(holding("a", app=500), holding("b"))
    plugin, pod = cluster.plugin(ImageLocality), cluster.pod(containers=containers("app"))
    before = raw_scores(plugin, pod, cluster)["a"]
    cluster.cache.add_node(holding("b", app=500))

    assert plugin.depends is Depends.NODES
    assert (before, raw_scores(plugin, pod, cluster)["a"]) == (23, 48)


def test_pods_with_the_same_images_share_answers() -> None:
    cluster = SmallCluster()
    plugin = cluster.plugin(ImageLocality)
    first = plugin.sign(cluster.pod(containers=containers("a", "b")))

    assert first == plugin.sign(cluster.pod(containers=containers("b:latest", "a")))
    assert first != plugin.sign(cluster.pod(containers=containers("a", "b", "b")))


def test_an_empty_cluster_has_no_scores() -> None:
    cluster = SmallCluster()

    assert cluster.plugin(ImageLocality).score_nodes(STATE, cluster.pod(), cluster.columns).tolist() == []
