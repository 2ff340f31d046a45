"""Answers that were false once, each asked again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.unit.explain.stage import JsonObject, Stage, raw_pod, staged

from bayplan.api.pod import Pod
from bayplan.api.storage import StorageClass
from bayplan.explain.builders import root_cause
from bayplan.explain.claims.pods import Chosen, Frees, GoesTo, HeldAtPermit, Left, Preempted, WouldMove
from bayplan.explain.claims.wording import sentence
from bayplan.explain.model import Changes, WhatIf
from bayplan.explain.pending import find_best_change
from bayplan.explain.suggestions.relocation import find_moves
from bayplan.explain.suggestions.search import find_changes
from bayplan.explain.terminal.decision_printer import DecisionPrinter
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.explain.whatif.scenario import Scenario, play
from bayplan.loop.decide import decide
from bayplan.loop.recorder import DecisionRecorder, refused_nodes
from bayplan.observe.clock import SystemClock
from bayplan.observe.time_slices import at_once
from bayplan.plugins.community.coscheduling.plugin import Coscheduling
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup
from bayplan.testing import Harness, node, pod, spread

LICENCES = '''
from bayplan.framework import Plugin, Unschedulable, Wait

class Licences(Plugin):
    """Refuses pods for want of the licence that their annotations name; lets those wait that are patient."""

    def events_to_register(self):
        return []

    def permit(self, state, pod, node_name):
        return Wait(600) if "patient" in pod.annotations else None

    def reserve(self, state, pod, node_name):
        wanted = pod.annotations.get("licence")
        return Unschedulable(f"no licence of {wanted} is free") if wanted else None
'''
WITH_LICENCES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 600
podMaxBackoffSeconds: 600
profiles: [{plugins: {multiPoint: {enabled: [{name: Licences}]}}}]
"""


SAMPLING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 50
"""


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
        service.recorder = DecisionRecorder(SystemClock())
        service.recorder.restore(reversed(list(stage.explaining.recorder)))
        restarted = service.explain_pod("default/low")

    assert restarted.claim == low.claim
    assert isinstance(vip.claim, Chosen) and vip.claim.victims == ("default/low",)
    assert "where default/low had to leave for it" in vip.verdict
    assert vip.decision is not None and [victim.pod for victim in vip.decision.victims] == ["default/low"]
    assert isinstance(low.claim, Preempted) and low.claim.by == "default/vip"
    assert "to make room for default/vip" in low.verdict


async def test_nodes_refused_before_the_filters_are_in_the_funnel_of_then_as_in_that_of_now() -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    async with staged(3) as stage:
        await stage.create(raw_pod("db", volumes=[claim]))
        await stage.settled(failed=1)
        found = stage.explaining.service.explain_pod("default/db")

    assert found.decision is not None and found.now is not None
    assert [(step.plugin, step.rejected, step.left) for step in found.decision.funnel] == [("VolumeRestrictions", 3, 0)]
    assert found.decision.funnel == found.now.funnel


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
    best, frees = at_once(find_best_change(copy, {"group": ["default/member-0"]}, total=4))
    assert best is not None and frees == 1
    assert best.sentence == "1 of 4 pending pods would find a node if there were 2 more pods like default/member-0."


async def test_a_change_is_counted_for_all_pods_that_it_changes_and_for_no_others() -> None:
    async with staged(3) as stage:
        picky = [raw_pod(f"picky-{number}", cpu="10m", nodeSelector={"disktype": "ssd"}) for number in range(250)]
        await stage.create(*picky, raw_pod("other", nodeSelector={"gpu": "yes"}))
        await stage.settled(failed=251)
        board = await stage.explaining.service.pending(with_change=True)

    assert board.change is not None and isinstance(board.change.claim, Frees)
    assert (board.frees, board.change.claim.of, board.change.claim.is_limited) == (250, 251, False)
    assert all(edit.patch != {"spec": {"nodeSelector": None}} for edit in board.change.edits)


async def test_a_change_of_one_pod_for_all_names_the_pod() -> None:
    async with staged(1) as stage:
        await stage.create(raw_pod("huge", cpu="500"))
        await stage.settled(failed=1)
        board = await stage.explaining.service.pending(with_change=True)

    assert board.change is not None
    assert board.change.sentence == "1 of 1 pending pods would find a node if default/huge asked 8 instead of 500 CPU."


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
        changes = await stage.explaining.service.changes("default/lost")

    assert board.verdict == "1 pod pending: 1 because of waiting for the scheduler `nobody`, which is none of ours."
    assert lost.verdict.startswith("default/lost waits for the scheduler `nobody`, which is none of ours")
    first = changes.suggestions[0]
    assert first.sentence.endswith("other nodes if the pod named the scheduler `default-scheduler`.")
    assert first.edits[0].patch == {"spec": {"schedulerName": "default-scheduler"}}
    assert "kubectl replace --force" in first.commands[0]


async def test_a_what_if_knows_of_pods_that_wait_for_another_scheduler() -> None:
    async with staged(1) as stage:
        await stage.create(raw_pod("theirs", schedulerName="nobody"))
        await stage.until(lambda: stage.local.live.watching.pod("default", "theirs") is not None)
        answer = await stage.explaining.service.whatif(Scenario())

    assert [(each.pod, each.message) for each in answer.pending] == [
        ("default/theirs", "it is for the scheduler `nobody`, which is none of ours")
    ]
    assert answer.verdict == "0 of 1 pod would be placed; 1 would stay pending."


async def test_a_pod_of_another_scheduler_that_runs_is_explained_without_moves() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("theirs", schedulerName="another", nodeName="node-1"))
        await stage.until(lambda: any(info.key == "default/theirs" for info in stage.local.live.cache.pods()))
        changes = await stage.explaining.service.changes("default/theirs")

    assert changes.is_placed and changes.suggestions == []


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


def test_a_missing_claim_is_to_be_made_with_its_volume_where_nobody_provides_any() -> None:
    harness = Harness()
    waiting = pod("db", volumes=["data"])
    objects = ClusterObjects(nodes=[node("n1")], placed=[], others=[], waiting=[waiting])
    copy = at_once(ClusterCopy.build(objects, harness.profiles, harness.registry))
    first = at_once(find_changes(copy, waiting)).suggestions[0]

    assert first.sentence == "It would fit on n1 if the claim data existed, bound to the volume default-data."
    assert [edit.object["kind"] for edit in first.edits] == ["PersistentVolume", "PersistentVolumeClaim"]
    assert len(first.commands) == 2 and not first.how


def test_what_becomes_free_is_for_more_important_pods_first() -> None:
    """The room of `low` is enough for one of those that wait, and a patch of the pod itself takes it from nobody."""
    running = [pod("low", cpu=2, node="n1", priority=0)]
    waiting = [
        pod("second", cpu=2, priority=10, preemption_policy="Never"),
        pod("first", cpu=2, priority=20, preemption_policy="Never"),
    ]
    copy = copied([node("n1", cpu=3)], running, waiting)
    second, first = (at_once(find_changes(copy, each)).suggestions for each in waiting)

    assert [each for each in first if [edit.kind for edit in each.edits] == ["deletePod"]]
    assert [edit.kind for each in second for edit in each.edits] == ["patchPod"]


def test_more_important_pods_that_were_not_tried_are_said_to_be() -> None:
    running = [pod("low", cpu=2, node="n1", priority=0)]
    ahead = [pod(f"first-{number}", cpu=64, priority=20, preemption_policy="Never") for number in range(103)]
    second = pod("second", cpu=2, priority=10, preemption_policy="Never")
    changes = at_once(find_changes(copied([node("n1", cpu=3)], running, [second, *ahead]), second))

    told = "3 more pods whose turn comes first were not tried: they may take what becomes free."
    assert changes.note == told
    assert [each for each in changes.suggestions if [edit.kind for edit in each.edits] == ["deletePod"]]


async def deleted(stage: Stage, name: str) -> None:
    await stage.local.transport().request("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0")
    await stage.until(lambda: stage.local.live.watching.pod("default", name) is None)


async def test_a_new_pod_is_not_said_to_have_been_preempted_because_one_of_its_name_was() -> None:
    """Pods of StatefulSets keep their names: what became of an earlier one is told as that."""
    async with staged(2) as stage:
        await priority_class(stage, "vip", 1000)
        await stage.create(raw_pod("web-0", cpu="6"), raw_pod("web-1", cpu="6"))
        await stage.settled(bound=2)
        await stage.create(raw_pod("vip", cpu="6", priorityClassName="vip"))
        await stage.settled(bound=3)
        service = stage.explaining.service
        vip = service.explain_pod("default/vip")
        assert vip.decision is not None
        victim = vip.decision.victims[0].pod.removeprefix("default/")
        await stage.until(lambda: stage.local.live.watching.pod("default", victim) is None)
        first = service.explain_pod(f"default/{victim}")
        await stage.create(raw_pod(victim))
        await stage.settled(bound=4)
        there = service.explain_pod(f"default/{victim}")
        await deleted(stage, victim)
        gone = service.explain_pod(f"default/{victim}")

    assert isinstance(first.claim, Preempted) and not first.note
    assert isinstance(there.claim, Chosen) and not there.claim.victims
    assert isinstance(gone.claim, Left) and gone.decision is not None
    assert gone.verdict == f"default/{victim} was on {gone.decision.node}, and has ended or been deleted."
    for each in (there, gone):
        assert each.note == f"Another pod of this name: {first.verdict}"


async def test_a_new_pod_is_not_said_to_have_been_refused_because_one_of_its_name_was(tmp_path: Path) -> None:
    (tmp_path / "licences.py").write_text(LICENCES)
    (tmp_path / "config.yaml").write_text(WITH_LICENCES)
    async with staged(2, config=tmp_path / "config.yaml", plugins=[str(tmp_path / "licences.py")]) as stage:
        service = stage.explaining.service
        await stage.create(raw_pod("web", annotations={"licence": "maps"}))
        await stage.until(lambda: any(record.stopped_at for record in service.recorder.of_pod("default/web")))
        await deleted(stage, "web")
        await stage.create(raw_pod("web", annotations={"patient": "yes"}))
        await stage.until(lambda: len(stage.local.live.held_pods) == 1)
        found, board = service.explain_pod("default/web"), await service.pending()

    assert isinstance(found.claim, HeldAtPermit) and found.note == ""
    assert [cause.title for cause in board.causes] == ["held at Permit by Licences"]


async def test_pods_of_one_shape_are_pending_for_what_each_of_them_was_told(tmp_path: Path) -> None:
    """Annotations are no part of a shape, and plugins read them."""
    (tmp_path / "licences.py").write_text(LICENCES)
    (tmp_path / "config.yaml").write_text(WITH_LICENCES)
    async with staged(2, config=tmp_path / "config.yaml", plugins=[str(tmp_path / "licences.py")]) as stage:
        service = stage.explaining.service
        for name, licence in (("one", "maps"), ("two", "films"), ("three", "maps")):
            await stage.create(raw_pod(name, annotations={"licence": licence}))
        await stage.settled(failed=3)
        board = await service.pending()

    found = {cause.title: [each.pod for each in cause.pods] for cause in board.causes}
    assert sorted(found.pop("Licences at Reserve: no licence of maps is free")) == ["default/one", "default/three"]
    assert found == {"Licences at Reserve: no licence of films is free": ["default/two"]}


async def test_a_victim_that_still_ends_is_said_to_have_been_preempted() -> None:
    async with staged(1) as stage:
        await priority_class(stage, "vip", 1000)
        low = raw_pod("low", cpu="6")
        low["metadata"]["finalizers"] = ["example.com/hold"]
        await stage.create(low)
        await stage.settled(bound=1)
        await stage.create(raw_pod("vip", cpu="6", priorityClassName="vip"))
        await stage.until(lambda: (found := stage.local.live.watching.pod("default", "low")) and found.is_terminating)
        found = stage.explaining.service.explain_pod("default/low")

    assert isinstance(found.claim, Chosen) and found.verdict.startswith("default/low runs on node-1")
    assert "default/low was preempted on node-1 at " in found.note
    assert found.note.endswith("to make room for default/vip.")


async def test_nodes_that_fit_are_told_from_those_that_were_scored(tmp_path: Path) -> None:
    """With `percentageOfNodesToScore`, a sample of the nodes that fit is scored, and nobody knows the next one."""
    (tmp_path / "config.yaml").write_text(SAMPLING)
    lines: list[str] = []
    async with staged(120, config=tmp_path / "config.yaml", observers=[DecisionPrinter(lines.append)]) as stage:
        await stage.create(raw_pod("web"))
        await stage.settled(bound=1)
        service = stage.explaining.service
        web, changes = service.explain_pod("default/web"), await service.changes("default/web")

    assert web.decision is not None and (web.decision.feasible, web.decision.scored) == (120, 100)
    assert web.verdict.endswith("; 100 of 120 nodes that fitted were scored.")
    assert "120 nodes fit and 100 were scored" in lines[0]
    assert changes.note == "All nodes were scored; the scheduler scores some at a time and may take another that fits."


def test_where_a_sample_is_scored_another_node_may_be_taken() -> None:
    goes = GoesTo(pod="default/web", node="n1", nodes=400, feasible=300, total=9, ties=300, runner_up="n2", sample=100)

    assert sentence(goes).endswith(", n2 among them, or to another that fits, since 100 are scored at a time.")


async def test_pods_that_name_a_node_that_is_gone_count_for_the_best_change() -> None:
    """No node is refused by a filter: PreFilter leaves out all of them."""
    gone = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [gone]}}
    async with staged() as stage:
        await stage.create(*(raw_pod(f"pinned-{n}", affinity={"nodeAffinity": required}) for n in range(2)))
        await stage.settled(failed=2)
        board = await stage.explaining.service.pending(with_change=True)

    assert board.change is not None and board.change.sentence == (
        "2 of 2 pending pods would find a node if default/pinned-0's required node affinity were left out, "
        "and the same for those like it."
    )
