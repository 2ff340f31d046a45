"""Sums that do not fit into 64 bits must not leave the cache half written."""

from __future__ import annotations

from bayplan.cache import Cache
from bayplan.testing import node, pod

INT64_MAX = 2**63 - 1


def test_requests_beyond_64_bits_count_as_the_most_there_is() -> None:
    cache = Cache()
    row = cache.add_node(node("n1", cpu=4, memory="8Gi")).row
    for number in range(12):
        cache.add_pod(pod(f"huge-{number}", memory="1Ei", node="n1"))

    assert cache.cluster.nodes.requested[1, row] == INT64_MAX


def test_the_sum_is_exact_again_once_the_pods_are_gone() -> None:
    cache = Cache()
    row = cache.add_node(node("n1", cpu=4, memory="8Gi")).row
    infos = [cache.add_pod(pod(f"huge-{number}", memory="1Ei", node="n1")) for number in range(12)]
    for info in infos[1:]:
        cache.remove_pod(info.uid)

    assert cache.cluster.nodes.requested[1, row] == 2**60
