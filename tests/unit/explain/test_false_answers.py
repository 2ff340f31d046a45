"""Answers that were false once, each asked again."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from tests.unit.explain.stage import JsonObject, Stage, raw_pod, staged

from bayplan.api.pod import Pod
from bayplan.api.storage import StorageClass
from bayplan.explain.builders import root_cause
from bayplan.explain.claims import Chosen, Frees, Preempted, WouldMove
from bayplan.explain.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.explain.model import Changes
from bayplan.explain.suggestions import find_changes, find_moves
from bayplan.explain.time_slices import at_once
from bayplan.explain.whatif import Scenario, WhatIf, play
from bayplan.loop.decide import decide
from bayplan.loop.recorder import refused_nodes
from bayplan.plugins.community.coscheduling.plugin import Coscheduling
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup
from bayplan.testing import Harness, node, pod, spread


async def put(stage: Stage, path: str, item: JsonObject) -> None:
    response = await stage.local.transport().request("POST", path, body=json.dumps(item).encode())
    assert response.status < 300, response.body


async def priority_class(stage: Stage, name: str, value: int) -> None:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    await put(stage, "/apis/scheduling.k8s.io/v1/priorityclasses", kind)


async def test_every_pod_of_a_burst_has_its_points_and_no_node_of_now_is_said_to_be_of_then() -> None:
    async with staged(40) as stage:
        await stage.create(*(raw_pod(f"web-{number}") for number in range(90)))
        await stage.settled(bound=90)
        found = [stage.explaining.service.explain_pod(f"default/web-{number}") for number in range(90)]

    for each in found:
        decided = each.decision
        assert decided is not None and decided.points and decided.total
        assert decided.node == each.node and sum(p.weighted for p in decided.points.values()) == decided.total
        if decided.ties > 1:
            assert decided.runner_up is not None and decided.runner_up.total == decided.total
            assert f"one of {decided.ties} nodes with as many, {decided.runner_up.node} among them" in each.verdict
            assert decided.tie_break == "drawn with the seed"


async def test_a_preemption_is_told_of_the_preemptor_and_of_its_victim_after_it_is_gone() -> None:
    async with staged(1) as stage:
        await priority_class(stage, "vip", 1000)
        await stage.create(raw_pod("low", cpu="6"))
        await stage.settled(bound=1)
        await stage.create(raw_pod("vip", cpu="6", priorityClassName="vip"))
        await stage.settled(bound=2)
        service = stage.explaining.service
        await stage.until(lambda: stage.local.live.watching.pod("default", "low") is None)
        vip, low = service.explain_pod("default/vip"), service.explain_pod("default/low")

    assert isinstance(vip.claim, Chosen) and vip.claim.victims == ("default/low",)
    assert "where default/low had to leave for it" in vip.verdict
    assert vip.decision is not None and [victim.pod for victim in vip.decision.victims] == ["default/low"]
    assert isinstance(low.claim, Preempted) and low.claim.by == "default/vip"
    assert "to make room for default/vip" in low.verdict


def copied(nodes: list[Any], running: list[Pod], waiting: list[Pod]) -> ClusterCopy:
    harness = Harness()
    objects = ClusterObjects(
        nodes=nodes, placed=[(each, each.spec.node_name) for each in running], others=[], waiting=waiting
    )
    return at_once(ClusterCopy.build(objects, harness.profiles, harness.registry))


def moves_of(copy: ClusterCopy, key: str) -> list[WouldMove]:
    info = next(info for info in copy.cache.pods() if info.key == key)
    changes: Changes = at_once(find_moves(copy, info))
    return [each.claim for each in changes.suggestions if isinstance(each.claim, WouldMove)]


def test_a_drained_pod_goes_where_it_may_preempt() -> None:
    running = [pod("vip", cpu=4, node="n1", priority=10), pod("low", cpu=4, node="n2", priority=0)]
    moves = moves_of(copied([node("n1", cpu=4), node("n2", cpu=4)], running, []), "default/vip")

    assert [(move.drain, move.node, move.victims) for move in moves] == [("n1", "n2", ("default/low",))]


def test_a_pod_is_never_said_to_go_to_the_node_that_is_drained_for_it() -> None:
    tolerant = pod("agent", cpu=1, node="n1", tolerations=["node.kubernetes.io/unschedulable:NoSchedule"])
    moves = moves_of(copied([node("n1", cpu=8), node("n2", cpu=1)], [tolerant], []), "default/agent")

    assert all(move.node != move.home for move in moves)


def test_a_drained_node_has_the_taint_that_the_node_controller_adds() -> None:
    """A spread that honours taints leaves the drained node out, so that the others may hold more."""
    web = {"app": "web"}
    rule = msgspec.structs.replace(spread("kubernetes.io/hostname", web), node_taints_policy="Honor")
    running = [pod("first", node="n1", labels=web, spread=[rule]), pod("second", node="n2", labels=web, spread=[rule])]
    moves = moves_of(copied([node("n1"), node("n2")], running, []), "default/first")

    assert [(move.drain, move.node) for move in moves if move.drain] == [("n1", "n2")]


def test_nodes_that_lack_the_same_for_now_and_for_ever_are_counted_together() -> None:
    card = "example.com/card"
    nodes = [node("n1"), node("n2"), node("n3", allocatable={card: 2})]
    running = [pod("plays", node="n3", requests={card: 1})]
    copy = copied(nodes, running, [pod("wants", requests={card: 2})])
    waiting = copy.info(copy.waiting["default/wants"])
    decider = copy.trial_deciders["default-scheduler"]
    decision = decide(decider, waiting)

    found = root_cause(decider.framework, decision, refused_nodes(decision))
    assert found == ("NodeResourcesFit", f"Insufficient {card}", 3)


def member(number: int, **spec: Any) -> Pod:
    return pod(f"member-{number}", cpu=2, labels={POD_GROUP_LABEL: "gang"}, **spec)


def gang_copy(running: list[Pod], waiting: list[Pod]) -> tuple[ClusterObjects, Harness]:
    group = msgspec.convert({"metadata": {"name": "gang", "namespace": "default"}, "spec": {"minMember": 3}}, PodGroup)
    objects = ClusterObjects(
        nodes=[node(f"n{number}", cpu=2) for number in range(5)],
        placed=[(each, each.spec.node_name) for each in running],
        others=[group],
        waiting=waiting,
    )
    return objects, Harness(plugins=[Coscheduling])


def test_a_drained_member_of_a_gang_runs_elsewhere_and_its_siblings_are_counted() -> None:
    objects, harness = gang_copy([member(number, node=f"n{number}") for number in range(3)], [])
    answer: WhatIf = at_once(play(objects, harness.profiles, harness.registry, Scenario(drain=["n0"])))

    assert [(each.pod, each.node) for each in answer.placed] == [("default/member-0", "n3")]
    assert not answer.pending


def test_a_gang_is_placed_as_one_and_one_that_lacks_members_says_how_many() -> None:
    objects, harness = gang_copy([], [member(number) for number in range(3)])
    answer: WhatIf = at_once(play(objects, harness.profiles, harness.registry, Scenario()))
    assert answer.placed_count == 3 and not answer.pending

    objects, harness = gang_copy([], [member(0)])
    copy = at_once(ClusterCopy.build(objects, harness.profiles, harness.registry))
    changes = at_once(find_changes(copy, copy.waiting["default/member-0"]))

    assert changes.suggestions[0].sentence == "It would fit if there were 2 more pods like it."
    assert [edit.kind for edit in changes.suggestions[0].edits] == ["addPod", "addPod"]


async def test_a_change_is_counted_for_all_pods_that_it_changes_and_for_no_others() -> None:
    async with staged(3) as stage:
        picky = [raw_pod(f"picky-{number}", cpu="10m", nodeSelector={"disktype": "ssd"}) for number in range(250)]
        await stage.create(*picky, raw_pod("other", nodeSelector={"gpu": "yes"}))
        await stage.settled(failed=251)
        board = await stage.explaining.service.pending(with_change=True)

    assert board.change is not None and isinstance(board.change.claim, Frees)
    assert (board.frees, board.change.claim.of, board.change.claim.is_limited) == (250, 251, False)
    assert all(edit.patch != {"spec": {"nodeSelector": None}} for edit in board.change.edits)


async def test_weights_of_then_are_shown_for_a_pod_that_was_deleted() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("web"))
        await stage.settled(bound=1)
        await stage.local.transport().request("DELETE", "/api/v1/namespaces/default/pods/web?gracePeriodSeconds=0")
        await stage.until(lambda: stage.local.live.watching.pod("default", "web") is None)
        gone = stage.explaining.service.explain_pod("default/web")

    assert gone.state == "gone" and gone.decision is not None
    assert gone.decision.points["TaintToleration"].weight == 3


async def test_pods_that_wait_for_a_scheduler_that_nobody_runs_are_pending() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("lost", schedulerName="nobody"))
        await stage.until(lambda: stage.local.live.watching.pod("default", "lost") is not None)
        board = await stage.explaining.service.pending()
        lost = stage.explaining.service.explain_pod("default/lost")

    assert board.verdict == "1 pod pending: 1 because of waiting for the scheduler `nobody`, which is none of ours."
    assert lost.verdict.startswith("default/lost waits for the scheduler `nobody`, which is none of ours")


def test_a_missing_claim_is_to_be_made_where_a_class_can_provide_it() -> None:
    harness = Harness()
    slow = msgspec.convert(
        {
            "metadata": {"name": "standard"},
            "provisioner": "example.com/disk",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        StorageClass,
    )
    waiting = pod("db", volumes=["data"])
    objects = ClusterObjects(nodes=[node("n1")], placed=[], others=[slow], waiting=[waiting])
    copy = at_once(ClusterCopy.build(objects, harness.profiles, harness.registry))
    first = at_once(find_changes(copy, waiting)).suggestions[0]

    assert first.sentence == "It would fit on n1 if the claim data of class standard existed."
    assert first.edits[0].kind == "create" and first.edits[0].object["kind"] == "PersistentVolumeClaim"
