"""The checker finds what was changed behind the cache's back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.api.selectors import from_labels
from bayplan.cache import Cache
from bayplan.cache.check import check_cache
from bayplan.cluster.pod_index import PodQuery
from bayplan.cluster.state import ClusterState
from bayplan.testing import HOSTNAME, ZONE, apart, node, pod


@pytest.fixture
def cache() -> Cache:
    cache = Cache()
    for name, zone in (("n1", "a"), ("n2", "b"), ("gone", "c")):
        cache.add_node(node(name, zone=zone, images={"app:1": "1Gi"}))
    cache.cluster.nodes.label(ZONE)
    cache.cluster.pods.counter(PodQuery(((None, from_labels({"app": "web"})),)))
    rules = [apart(HOSTNAME, {"app": "web"})]
    for number, name in enumerate(("n1", "n1", "n2", "nowhere")):
        made = pod(f"p{number}", cpu=1, node=name, labels={"app": "web"}, host_ports=[80 + number], affinity=rules)
        cache.add_pod(made)
    cache.remove_node("gone")
    return cache


def test_a_cache_that_was_left_alone_is_right(cache: Cache) -> None:
    assert check_cache(cache) == []


def _zone_of_first(cluster: ClusterState) -> None:
    cluster.nodes.label(ZONE).values[0] = 1


def _a_class_less(cluster: ClusterState) -> None:
    next(iter(cluster.pods.classes())).rows[0] -= 1


def _a_term_more(cluster: ClusterState) -> None:
    next(iter(cluster.terms.groups())).counts[1] = 7


def _a_counter_more(cluster: ClusterState) -> None:
    next(iter(cluster.pods.counters())).rows[1] += 1


def _a_sum_more(cluster: ClusterState) -> None:
    counter = next(iter(cluster.pods.counters()))
    counter.by_domain(cluster.nodes.label(ZONE).bins(), cluster.nodes.label(ZONE).domains)
    counter.rows[0] += 1


def _a_namespace_less(cluster: ClusterState) -> None:
    cluster.namespace_usage.of("default").pod_count -= 1


def _an_image_less(cluster: ClusterState) -> None:
    dict(cluster.images.items())["app:1"].held(cluster.nodes.capacity)[0] = False


def _a_pod_less(cluster: ClusterState) -> None:
    info = cluster.nodes.at(0)
    del info.pods["uid-default-p0"]


def _write(name: str, place: object, number: int) -> Callable[[ClusterState], None]:
    def write(cluster: ClusterState) -> None:
        getattr(cluster.nodes, name)[place] = number

    return write


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (_write("requested", (0, 0), 5), "requested column of node n1"),
        (_write("allocatable", (1, 1), 5), "allocatable column of node n2"),
        (_write("nonzero", (0, 1), 5), "non-zero request column of node n2"),
        (_write("pod_count", 0, 9), "pod count of node n1"),
        (_write("allowed_pods", 0, 9), "allowed pods of node n1"),
        (_write("unschedulable", 0, 1), "unschedulable of node n1"),
        (_write("valid", 0, 0), "row 0 is valid: False"),
        (_write("pod_count", 2, 1), "row 2 holds no node"),
        (_zone_of_first, "label topology.kubernetes.io/zone of row 0"),
        (_a_class_less, "pods of class"),
        (_a_counter_more, "the counter of"),
        (_a_term_more, "is counted 7 times"),
        (_a_pod_less, "pod default/p0 belongs on node n1"),
        (lambda cluster: cluster.port_rows.clear(), "ports in use by row"),
        (_a_sum_more, "sums to"),
        (_a_namespace_less, "namespace default uses"),
        (_an_image_less, "the column of image app:1"),
        (lambda cluster: cluster.claims_in_use.update({"default/x": 1}), "claims in use"),
        (lambda cluster: cluster.images.set_row(0, None), "images by row"),
        (lambda cluster: cluster.nodes.row_of.pop("n1"), "rows by name"),
    ],
)
def test_what_went_wrong_is_named(cache: Cache, break_it: Callable[[ClusterState], None], says: str) -> None:
    break_it(cache.cluster)

    assert any(says in problem for problem in check_cache(cache))
