"""The checker finds what was changed behind the cache's back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.api.selectors import from_labels
from bayplan.cache import Cache
from bayplan.cache.check import check_cache
from bayplan.snapshot.pod_index import PodQuery
from bayplan.snapshot.snapshot import Snapshot
from bayplan.testing import HOSTNAME, ZONE, apart, node, pod


@pytest.fixture
def cache() -> Cache:
    cache = Cache()
    for name, zone in (("n1", "a"), ("n2", "b"), ("gone", "c")):
        cache.add_node(node(name, zone=zone, images={"app:1": "1Gi"}))
    cache.snapshot.nodes.label(ZONE)
    cache.snapshot.pods.counter(PodQuery(((None, from_labels({"app": "web"})),)))
    rules = [apart(HOSTNAME, {"app": "web"})]
    for number, name in enumerate(("n1", "n1", "n2", "nowhere")):
        made = pod(f"p{number}", cpu=1, node=name, labels={"app": "web"}, host_ports=[80 + number], affinity=rules)
        cache.add_pod(made)
    cache.remove_node("gone")
    return cache


def test_a_cache_that_was_left_alone_is_right(cache: Cache) -> None:
    assert check_cache(cache) == []


def _zone_of_first(snapshot: Snapshot) -> None:
    snapshot.nodes.label(ZONE).values[0] = 1


def _a_class_less(snapshot: Snapshot) -> None:
    next(iter(snapshot.pods.classes())).rows[0] -= 1


def _a_term_more(snapshot: Snapshot) -> None:
    next(iter(snapshot.terms.groups())).counts[1] = 7


def _a_counter_more(snapshot: Snapshot) -> None:
    next(iter(snapshot.pods.counters())).rows[1] += 1


def _a_sum_more(snapshot: Snapshot) -> None:
    counter = next(iter(snapshot.pods.counters()))
    counter.by_domain(snapshot.nodes.label(ZONE).bins(), snapshot.nodes.label(ZONE).domains)
    counter.rows[0] += 1


def _a_namespace_less(snapshot: Snapshot) -> None:
    snapshot.namespace_usage.of("default").pod_count -= 1


def _an_image_less(snapshot: Snapshot) -> None:
    dict(snapshot.images.items())["app:1"].held(snapshot.nodes.capacity)[0] = False


def _a_pod_less(snapshot: Snapshot) -> None:
    info = snapshot.nodes.at(0)
    del info.pods["uid-default-p0"]


def _write(name: str, place: object, number: int) -> Callable[[Snapshot], None]:
    def write(snapshot: Snapshot) -> None:
        getattr(snapshot.nodes, name)[place] = number

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
        (lambda snapshot: snapshot.port_rows.clear(), "ports in use by row"),
        (_a_sum_more, "sums to"),
        (_a_namespace_less, "namespace default uses"),
        (_an_image_less, "the column of image app:1"),
        (lambda snapshot: snapshot.claims_in_use.update({"default/x": 1}), "claims in use"),
        (lambda snapshot: snapshot.images.set_row(0, None), "images by row"),
        (lambda snapshot: snapshot.nodes.row_of.pop("n1"), "rows by name"),
    ],
)
def test_what_went_wrong_is_named(cache: Cache, break_it: Callable[[Snapshot], None], says: str) -> None:
    break_it(cache.snapshot)

    assert any(says in problem for problem in check_cache(cache))
