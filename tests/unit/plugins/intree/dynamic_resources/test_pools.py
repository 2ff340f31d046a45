"""`pools`: which slices of which generation make up what a node has."""

from __future__ import annotations

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    claim,
    counters,
    device,
    devices_of,
    evaluate,
    node,
    refusal,
    request,
    slice_of,
    takes,
)

CANNOT, INVALID = "cannot allocate all claims", "invalid resource pools were encountered"
ASKING = claim("c", request())


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old, new = slice_of(device("old"), name="s1"), slice_of(device("new"), name="s2", generation=2)

    assert devices_of(evaluate(old, new, ASKING)) == ["r: pool/new"]


def test_a_pool_whose_newer_generation_is_on_another_node_is_obsolete() -> None:
    old, new = slice_of(device("old"), name="s1", count=2), slice_of(device("new"), name="s2", generation=2, node="m")

    assert refusal(evaluate(old, new, node("n"), node("m"), ASKING)) == CANNOT


def test_an_incomplete_pool_offers_nothing() -> None:
    assert refusal(evaluate(slice_of(device("a"), count=2), ASKING)) == CANNOT


def test_a_pool_is_complete_when_the_missing_slice_is_on_another_node() -> None:
    here, there = slice_of(device("a"), name="s1", count=2), slice_of(device("b"), name="s2", count=2, node="m")
    outcome = evaluate(here, there, node("n"), node("m"), claim("c", request("r", "true")))

    assert outcome["best"] == ["m", "n"]


@pytest.mark.parametrize(
    "slices",
    [
        pytest.param([slice_of(device("a"), device("a"))], id="one name twice"),
        pytest.param([slice_of(device("a", consumesCounters=[takes("x", memory="1Gi")]))], id="no such counter set"),
        pytest.param(
            [
                slice_of(device("a", consumesCounters=[takes("x", disk="1Gi")]), name="s1", count=2),
                slice_of(name="s2", count=2, sharedCounters=[counters("x", memory="8Gi")]),
            ],
            id="no such counter",
        ),
        pytest.param(
            [
                slice_of(device("a"), name="s1", count=3),
                slice_of(name="s2", count=3, sharedCounters=[counters("x", memory="8Gi")]),
                slice_of(name="s3", count=3, sharedCounters=[counters("x", memory="8Gi")]),
            ],
            id="one counter set twice",
        ),
    ],
)
def test_an_invalid_pool_is_named_when_nothing_else_helps(slices: list[dict[str, object]]) -> None:
    assert refusal(evaluate(*slices, ASKING)) == INVALID


def test_an_invalid_pool_does_no_harm_to_a_sound_one() -> None:
    broken, sound = slice_of(device("a"), device("a"), pool="broken"), slice_of(device("b"), pool="sound")

    assert devices_of(evaluate(broken, sound, ASKING)) == ["r: sound/b"]


def test_devices_on_the_network_are_reached_by_label() -> None:
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}
    shared = slice_of(device("a"), nodeSelector={"nodeSelectorTerms": [term]})
    outcome = evaluate(shared, node("n", labels={"rack": "r1"}), node("m", labels={"rack": "r2"}), ASKING)

    assert outcome["best"] == ["n"]
    assert outcome["allocations"]["default/c"]["allocation"]["nodeSelector"] == {"nodeSelectorTerms": [term]}


def test_devices_for_all_nodes_leave_the_claim_usable_everywhere() -> None:
    outcome = evaluate(slice_of(device("a"), allNodes=True), node("n"), node("m"), ASKING)

    assert outcome["best"] == ["m", "n"]
    assert "nodeSelector" not in outcome["allocations"]["default/c"]["allocation"]


def test_each_device_may_choose_its_own_nodes() -> None:
    mixed = slice_of(device("a", nodeName="m"), device("b", nodeName="n"), node=None, perDeviceNodeSelection=True)
    outcome = evaluate(mixed, node("n"), ASKING)

    assert devices_of(outcome) == ["r: pool/b"]
