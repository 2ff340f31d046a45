"""What becomes free is for the pods whose turn comes first: more important ones, and those that have waited longer."""

from __future__ import annotations

from typing import Any

from tests.unit.explain.stage import raw_pod, staged

from bayplan.api.pod import Pod
from bayplan.explain.claims.pods import Frees, WouldFit
from bayplan.explain.pending import find_best_change
from bayplan.explain.suggestions.search import find_changes
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.observe.time_slices import at_once
from bayplan.testing import Harness, node, pod


def in_line(nodes: list[Any], *waiting: Pod) -> ClusterCopy:
    """Pods that wait, in the order in which they entered the queue."""
    harness = Harness()
    entered = {each.key: float(place) for place, each in enumerate(waiting)}
    objects = ClusterObjects(nodes=nodes, placed=[], others=[], waiting=waiting, entered=entered)
    return at_once(ClusterCopy.build(objects, harness.profiles, harness.registry))


def claims_for(copy: ClusterCopy, key: str) -> list[WouldFit]:
    changes = at_once(find_changes(copy, copy.waiting[key]))
    return [each.claim for each in changes.suggestions if isinstance(each.claim, WouldFit)]


def said(copy: ClusterCopy, key: str) -> list[str]:
    return [each.sentence for each in at_once(find_changes(copy, copy.waiting[key])).suggestions]


def test_room_that_pods_who_waited_longer_take_is_offered_for_another_order_only() -> None:
    copy = in_line([node("n1", cpu=2, unschedulable=True)], pod("first", cpu=2), pod("second", cpu=2))

    assert said(copy, "default/first")[0] == "It would fit on n1 if n1 were uncordoned."
    assert said(copy, "default/second")[0] == (
        "It would fit on n1 if n1 were uncordoned, and its turn came before that of 1 pod that waited longer."
    )


def test_room_that_is_enough_for_all_is_offered_as_it_is() -> None:
    copy = in_line([node("n1", cpu=4, unschedulable=True)], pod("first", cpu=2), pod("second", cpu=2))

    assert {claim.before for claim in claims_for(copy, "default/second")} == {0}


def test_what_needs_no_other_order_comes_first() -> None:
    """A smaller request takes nothing from others, an uncordoned node is taken by them."""
    nodes = [node("n1", cpu=2, unschedulable=True), node("n2", cpu=1)]
    copy = in_line(nodes, *(pod(f"pod-{number}", cpu=2) for number in range(3)))
    before = [claim.before for claim in claims_for(copy, "default/pod-2")]

    assert before == sorted(before) and {0, 2} == set(before)


def test_gated_pods_take_no_room() -> None:
    gated, second = pod("gated", cpu=2, gates=["example.com/wait"]), pod("second", cpu=2)
    copy = in_line([node("n1", cpu=2, unschedulable=True)], gated, second)

    assert said(copy, "default/second")[0] == "It would fit on n1 if n1 were uncordoned."


def test_a_change_is_counted_after_the_pods_of_other_namespaces_had_their_turn() -> None:
    """`pending -n shop --change` is about pods of the shop, and others wait beside them."""
    shop = [pod(f"shop-{number}", namespace="shop", cpu=1) for number in range(3)]
    copy = in_line([node("n1", cpu=3, unschedulable=True)], pod("other", cpu=2, priority=10), *shop)
    best, frees = at_once(find_best_change(copy, {"cordon": [each.key for each in shop]}, total=3))

    assert best is not None and isinstance(best.claim, Frees)
    uncordoned = [edit.kind for edit in best.edits] == ["patchNode"]
    assert frees == (1 if uncordoned else 3)
    assert not best.claim.is_limited


async def test_the_order_is_that_of_the_queue() -> None:
    async with staged(1) as stage:
        await stage.create(raw_pod("fills", cpu="7"))
        await stage.settled(bound=1)
        for number in range(3):
            await stage.create(raw_pod(f"large-{number}", cpu="6"))
            await stage.settled(bound=1, failed=number + 1)
        service = stage.explaining.service
        found = [await service.changes(f"default/large-{number}") for number in range(3)]

    fitting = [[each.claim for each in changes.suggestions if isinstance(each.claim, WouldFit)] for changes in found]
    leaving = [[claim.before for claim in claims if "left" in claim.what] for claims in fitting]
    assert leaving == [[0], [1], [2]]


def test_all_nodes_are_counted_for_a_pod_that_is_nominated_to_one() -> None:
    copy = in_line([node("n1", cpu=1), node("n2", cpu=1)], pod("vip", cpu=2, nominated="n1"))
    changes = at_once(find_changes(copy, copy.waiting["default/vip"]))

    assert [each.sentence for each in changes.without] == ["without NodeResourcesFit: 2 nodes"]
