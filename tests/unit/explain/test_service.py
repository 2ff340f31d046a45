"""Questions to a running scheduler: answered from its state and records, without changing either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.explain.stage import Stage, raw_pod, staged

from bayplan.explain.builders import decide_on, now_of
from bayplan.explain.claims.pods import AwaitsVictims
from bayplan.explain.service import ExplainService, NotReady, Sources, UnknownObject
from bayplan.explain.whatif.scenario import AddedNodes, AddedPods, Scenario, ScenarioError
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import VirtualClock
from bayplan.testing import pod

PATIENCE = '''
from bayplan.framework import Plugin, Wait

class Patience(Plugin):
    """Lets every pod wait at Permit."""

    def permit(self, state, pod, node_name):
        return Wait(600)
'''


async def test_a_placed_pod_is_explained_by_its_record() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("web"))
        await stage.settled(bound=1)
        explanation = stage.explaining.service.explain_pod("default/web")

    assert explanation.state == "placed" and explanation.decision is not None
    assert explanation.verdict.startswith(f"default/web runs on {explanation.node} with ")
    assert explanation.decision.node == explanation.node and explanation.decision.points
    assert [record.outcome for record in explanation.attempts] == ["bound"]
    assert explanation.attempts[0].generation > 0


async def test_a_pending_pod_is_explained_on_the_cluster_as_it_is() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("big", cpu="900"))
        await stage.settled(failed=1)
        before = placements(stage)
        explanation = stage.explaining.service.explain_pod("default/big", in_full=True)
        after = placements(stage)

    assert explanation.state == "pending" and explanation.now is not None
    assert explanation.now.message == explanation.attempts[0].message
    assert explanation.queue is not None and explanation.queue.place == "unschedulable"
    assert explanation.queue.rejected_by == ["NodeResourcesFit"]
    assert explanation.result is not None and len(explanation.result["nodes"]) == 4
    assert before == after


async def test_a_gated_pod_names_its_gate() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("later", schedulingGates=[{"name": "quota"}]))
        await stage.until(lambda: stage.local.live.queue.sizes.gated == 1)
        explanation = stage.explaining.service.explain_pod("default/later")
        board = await stage.explaining.service.pending()

    assert explanation.verdict == "default/later is held back before scheduling by gate `quota`."
    assert board.causes[0].title == "held back by SchedulingGates: `quota`"


async def test_a_deleted_pod_leaves_its_record() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("web"))
        await stage.settled(bound=1)
        await stage.local.transport().request("DELETE", "/api/v1/namespaces/default/pods/web?gracePeriodSeconds=0")
        await stage.until(lambda: stage.local.live.watching.pod("default", "web") is None)
        explanation = stage.explaining.service.explain_pod("default/web")

    assert explanation.state == "gone"
    assert len(explanation.attempts) == 1


async def test_unknown_objects_are_said_to_be_unknown() -> None:
    async with staged() as stage:
        with pytest.raises(UnknownObject, match="no pod `default/nobody`"):
            stage.explaining.service.explain_pod("default/nobody")
        with pytest.raises(UnknownObject, match="no node `nowhere`"):
            stage.explaining.service.explain_node("nowhere")
        with pytest.raises(UnknownObject):
            await stage.explaining.service.changes("default/nobody")


async def test_changes_of_pending_and_moves_of_placed_pods() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("web"), raw_pod("picky", nodeSelector={"disk": "ssd"}))
        await stage.settled(bound=1, failed=1)
        service = stage.explaining.service
        changes, moves = await service.changes("default/picky"), await service.changes("default/web")

    assert "had the label disk=ssd" in changes.suggestions[0].sentence
    assert "if the pod did not select disk=ssd" in changes.suggestions[3].sentence
    assert moves.is_placed and moves.suggestions[-1].sentence.endswith(" were cordoned and it were scheduled again.")


async def test_a_node_says_who_fits() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("web"), raw_pod("big", cpu="900"))
        await stage.settled(bound=1, failed=1)
        home = stage.explaining.service.explain_pod("default/web").node
        node = stage.explaining.service.explain_node(home)

    assert [pod.pod for pod in node.pods] == ["default/web"]
    assert (node.pending[0].plugin, node.pending[0].reasons) == ("NodeResourcesFit", ["Insufficient cpu"])
    assert [record.pod for record in node.attempts] == ["default/web"]
    assert node.verdict.endswith("0 of 1 pending pods would fit here now.")


async def test_a_node_says_how_many_pods_it_was_not_asked_about() -> None:
    async with staged(1) as stage:
        await stage.create(*(raw_pod(f"big-{number}", cpu=str(900 + number)) for number in range(45)))
        await stage.settled(failed=45)
        node = stage.explaining.service.explain_node("node-1")

    told = "0 of 40 pending pods would fit here now; 5 more pods of other kinds were not looked at."
    assert node.verdict.endswith(told)


async def test_pending_pods_are_grouped_and_the_best_change_is_found() -> None:
    async with staged() as stage:
        await stage.create(*(raw_pod(f"big-{n}", cpu="900") for n in range(3)))
        await stage.create(raw_pod("picky", nodeSelector={"disk": "ssd"}))
        await stage.settled(failed=4)
        board = await stage.explaining.service.pending(with_change=True)
        again = await stage.explaining.service.pending(with_change=True)

    assert [(cause.plugin, cause.count) for cause in board.causes] == [("NodeResourcesFit", 3), ("NodeAffinity", 1)]
    assert board.frees == 3 and board.change is not None
    assert again.frees == 3


async def test_nothing_pending_is_said() -> None:
    async with staged() as stage:
        assert (await stage.explaining.service.pending(with_change=True)).verdict == "No pod is pending."


async def test_the_overview_counts() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("web"), raw_pod("big", cpu="900"))
        await stage.settled(bound=1, failed=1)
        overview = stage.explaining.service.overview()

    assert (overview.nodes, overview.bound, overview.failed) == (4, 1, 1)
    assert overview.p99_ms > 0


async def test_the_plugins_tell_what_they_did_and_a_reload_is_seen() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("web"), raw_pod("big", cpu="900"))
        await stage.settled(bound=1, failed=1)
        service = stage.explaining.service
        plugins = {state.plugin: state for state in await service.plugins()}
        assert service.overview().reloads == 0
        stage.local.reload(stage.settings[0])
        stage.explaining.note_reload("reloaded", ())
        reloads = service.overview().reloads

    assert plugins["NodeResourcesFit"].rejected == 4
    assert plugins["NodeResourcesFit"].filter_us is not None
    assert plugins["NodeResourcesFit"].points[:2] == ["PreFilter", "Filter"]
    assert reloads == 1
    assert service.reloads[0][1:] == ("reloaded", [])


async def test_the_plugins_of_a_user_come_with_what_was_derived_and_with_their_metrics(tmp_path: Path) -> None:
    file = tmp_path / "named.py"
    file.write_text(
        "from bayplan.framework import GaugeMetric, Plugin\n\n\nclass Named(Plugin):\n"
        "    left = GaugeMetric('What is left.', labels=('cause',))\n\n"
        "    def setup(self):\n        self.left.labels('cpu').set(7)\n\n"
        "    def score(self, state, pod, node):\n        return len(pod.name)\n"
    )
    async with staged(1, plugins=[str(file)]) as stage:
        plugins = {state.plugin: state for state in await stage.explaining.service.plugins()}

    assert [(each.method, each.depends) for each in plugins["Named"].answers] == [("score", "CLUSTER")]
    assert "`pod.name` is the pod's own" in plugins["Named"].answers[0].reasons[0]
    assert plugins["Named"].metrics == {"named_left cpu": 7.0}
    assert plugins["NodeAffinity"].answers == []


def placements(stage: Stage) -> dict[str, str]:
    return {info.key: info.node_name for info in stage.local.live.cache.pods()}


async def test_what_if_answers_and_leaves_the_cluster_alone() -> None:
    async with staged() as stage:
        await stage.create(*(raw_pod(f"web-{n}") for n in range(4)), raw_pod("big", cpu="900"))
        await stage.settled(bound=4, failed=1)
        service = stage.explaining.service
        home = service.explain_pod("default/web-0").node
        before = placements(stage)
        drained = await service.whatif(Scenario(drain=[home]))
        more = await service.whatif(Scenario(add_pods=[AddedPods(pod=raw_pod("new"), count=3)], pending=False))
        unfiltered = await service.whatif(Scenario(disable=["NodeResourcesFit"]))
        after = placements(stage)

    assert {p.pod for p in drained.placed} >= {"default/web-0"}
    assert all(p.node != home for p in drained.placed)
    assert [p.pod for p in drained.pending] == ["default/big"]
    assert more.placed_count == 3 and not more.pending
    assert [p.pod for p in unfiltered.placed] == ["default/big"]
    assert before == after


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        (Scenario(drain=["nowhere"]), "drain: no node `nowhere`"),
        (Scenario(add_nodes=[AddedNodes(like="nowhere")]), "no node `nowhere`"),
        (Scenario(weights={"Nothing": 3}), "no plugin `Nothing`"),
        (Scenario(config={"kind": "Nonsense"}), "Nonsense|apiVersion"),
        (Scenario(add_pods=[AddedPods(pod={"metadata": {"name": "x"}})]), "containers"),
        (Scenario(add_pods=[AddedPods(pod=raw_pod("x"), count=10**9)]), "at most"),
    ],
)
async def test_scenarios_that_make_no_sense_are_refused(scenario: Scenario, problem: str) -> None:
    async with staged(1) as stage:
        with pytest.raises(ScenarioError, match=problem):
            await stage.explaining.service.whatif(scenario)


async def test_before_the_cluster_is_known_nothing_is_answered() -> None:
    service = ExplainService(
        Sources(live=lambda: None, settings=lambda: None, recorder=DecisionRecorder(VirtualClock()))  # type: ignore[arg-type,return-value]
    )
    with pytest.raises(NotReady):
        service.overview()


async def test_preemption_is_shown_and_not_done() -> None:
    async with staged(1) as stage:
        await stage.create(*(raw_pod(f"low-{n}", cpu="3") for n in range(2)))
        await stage.settled(bound=2)
        # No PriorityClass: admission would refuse a priority, so the question is put to the view itself.
        view = stage.explaining.service.view()
        decision = decide_on(view, view.info(pod("high", cpu=6, priority=1000)))
        now = now_of(view.framework("default-scheduler"), decision)
        left = len(stage.local.live.cache)

    assert now.preemption is not None and now.preemption.victims
    assert left == 2


async def test_a_pod_whose_victims_have_not_left_waits_for_them() -> None:
    """Pods take their time to end; until then the preemptor is told to wait for its room, and not to lack it."""
    async with staged(1) as stage:
        low = raw_pod("low", cpu="6")
        low["metadata"]["finalizers"] = ["example.com/hold"]
        await stage.create(low)
        await stage.settled(bound=1)
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
        await stage.local.transport().request(
            "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body=json.dumps(high).encode()
        )
        await stage.create(raw_pod("vip", cpu="6", priorityClassName="high"))
        await stage.until(lambda: (found := stage.local.live.watching.pod("default", "low")) and found.is_terminating)
        service = stage.explaining.service
        vip, board = service.explain_pod("default/vip"), await service.pending()

    assert vip.verdict == (
        "default/vip is pending: it has preempted default/low on node-1, and waits for the room there."
    )
    assert vip.state == "pending" and isinstance(vip.claim, AwaitsVictims)
    assert [cause.title for cause in board.causes] == ["preemption: pods that have to leave are still there"]


async def test_a_pod_that_has_ended_is_not_said_to_be_deleted() -> None:
    """Schedulers are told of pods that wait or run: one that has succeeded is gone for them."""
    async with staged(1) as stage:
        await stage.create(raw_pod("job"))
        await stage.settled(bound=1)
        patch = json.dumps({"status": {"phase": "Succeeded"}}).encode()
        path = "/api/v1/namespaces/default/pods/job/status"
        answer = await stage.local.transport().request(
            "PATCH", path, body=patch, content_type="application/merge-patch+json"
        )
        assert answer.status == 200, answer.body
        await stage.until(lambda: stage.local.live.watching.pod("default", "job") is None)
        found = stage.explaining.service.explain_pod("default/job")
        there = await stage.get("/api/v1/namespaces/default/pods/job")

    assert there["status"]["phase"] == "Succeeded"
    assert found.verdict == "default/job was on node-1, and has ended or been deleted."
    assert found.decision is not None and found.decision.node == "node-1"


async def test_a_node_does_not_run_pods_that_are_not_bound_yet(tmp_path: Path) -> None:
    (tmp_path / "patience.py").write_text(PATIENCE)
    async with staged(1, plugins=[str(tmp_path / "patience.py")]) as stage:
        await stage.create(raw_pod("held"))
        await stage.until(lambda: len(stage.local.live.held_pods) == 1)
        found = stage.explaining.service.explain_node("node-1")

    assert found.verdict.startswith("node-1 runs 0 of 110 pods, and 1 more is not bound yet; ")
    assert found.pod_count == 1 and found.pods[0].is_assumed
