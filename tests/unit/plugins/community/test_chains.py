"""The chain found at once is the chain found by trying all of them."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.plugins.community.chains import Link, best_chain
from bayplan.plugins.community.network_metrics import NetworkTables

NAMES = ["a", "b", "c", "d", "e"]
numbers = st.integers(0, 8).map(float)
tables = st.dictionaries(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(NAMES), numbers))
links = st.tuples(numbers, numbers, numbers, numbers).map(lambda four: Link(*four))


def _score(chain: tuple[str, ...], network: NetworkTables, wanted: list[Link]) -> float | None:
    total = 0.0
    for link, source, target in zip(wanted, chain, chain[1:], strict=False):
        bandwidth, latency = network.bandwidth_between(source, target), network.latency_between(source, target)
        if bandwidth < link.least_bandwidth or latency > link.most_latency:
            return None
        if bandwidth >= link.wanted_bandwidth or latency <= link.wanted_latency:
            total += 200
            continue
        total += (bandwidth - link.least_bandwidth) / (link.wanted_bandwidth - link.least_bandwidth) * 100
        total += (link.most_latency - latency) / (link.most_latency - link.wanted_latency) * 100
    return total + 200 * max(0, len(chain) - 1 - len(wanted))


@given(bandwidth=tables, latency=tables, wanted=st.lists(links, max_size=3), length=st.integers(1, 4))
def test_no_chain_scores_higher(
    bandwidth: dict[str, dict[str, float]], latency: dict[str, dict[str, float]], wanted: list[Link], length: int
) -> None:
    network = NetworkTables(bandwidth=bandwidth, latency=latency)
    wanted = wanted[: length - 1]
    scores = {chain: _score(chain, network, wanted) for chain in combinations(NAMES, length)}
    highest = max((score for score in scores.values() if score is not None), default=None)

    found = best_chain(NAMES, network, wanted, length=length)

    assert (found is None) == (highest is None)
    if found is not None:
        assert scores[tuple(found)] == pytest.approx(highest)


def test_fewer_nodes_than_workloads_have_no_chain() -> None:
    assert best_chain(["a"], NetworkTables(), [], length=2) is None


def test_two_thousand_nodes_and_twelve_workloads_are_no_trouble() -> None:
    names = [f"n{number:04}" for number in range(2000)]

    chain = best_chain(names, NetworkTables(), [], length=12)

    assert chain == names[:12]
