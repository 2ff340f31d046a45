"""The decision record: what it keeps of an attempt, and what it never holds up."""

from __future__ import annotations

import msgspec

from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Error, Unschedulable
from bayplan.framework.times import Sampling
from bayplan.loop.decide import Decision
from bayplan.loop.decision import DecisionRecord, DecisionRecorder
from bayplan.observe.clock import VirtualClock
from bayplan.testing import Harness, apart, node, pod, taint


def decided(
    recorder: DecisionRecorder, harness: Harness, name: str = "web", **spec: object
) -> tuple[QueuedPod, Decision]:
    info = harness.info(pod(name, **spec))  # type: ignore[arg-type]
    queued = QueuedPod(info, 0.0)
    queued.attempts = 1
    queued.story = [(1.0, "active", "PodAdd"), (2.0, "in-flight", "Pop")]
    decision = harness.scheduler.decide(info)
    recorder.decided(queued, decision, 0.001)
    return queued, decision


def three_nodes() -> Harness:
    return Harness(
        nodes=[node("small", cpu=1), node("large", cpu=8), node("tainted", cpu=8, taints=[taint("team=a:NoSchedule")])],
        always_score=False,
    )


def test_a_scheduled_pod_leaves_funnel_scores_and_outcome() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), three_nodes()
    recorder.cluster = harness.cluster
    queued, decision = decided(recorder, harness, cpu="500m")
    recorder.bound(queued, decision.node_name, 0.02)

    (record,) = recorder.of_pod("default/web")

    assert (record.node, record.outcome) == ("large", "bound")
    assert record.generation == harness.cluster.generation > 0
    assert record.rejected == (("TaintToleration", 1),)
    assert record.refused[0].sample == ("tainted",)
    assert [best.node for best in record.best] == ["large", "small"]
    assert all(sum(score.weighted for score in best.scores) == best.total for best in record.best)
    assert record.best[0].total == record.total
    assert record.story[-1] == (2.0, "in-flight", "Pop")


def test_scores_are_those_of_an_explained_decision() -> None:
    """Read from remembered columns here, worked out by plugin there."""
    harness = Harness(nodes=[node(f"n{i}", cpu=2 + i, zone="ab"[i % 2]) for i in range(9)], always_score=False)
    for anti in (None, apart("topology.kubernetes.io/zone", {"app": "web"}, weight=10)):
        recorder = DecisionRecorder(VirtualClock())
        affinity = {"affinity": anti} if anti is not None else {}
        queued, _ = decided(recorder, harness, cpu="700m", labels={"app": "web"}, **affinity)
        explained = harness.scheduler.decide(queued.info, explains=True, always_score=True)
        assert explained.scores is not None
        names = [harness.cluster.nodes.at(row).name for row in explained.scores.rows.tolist()]

        for best in recorder.of_pod("default/web")[0].best:
            place = names.index(best.node)
            shares = {name: int(share[place]) for name, share in explained.scores.shares.items()}
            assert {score.plugin: score.weighted for score in best.scores} == shares
            assert best.total == int(explained.scores.totals[place])


def test_an_unschedulable_pod_is_always_complete() -> None:
    recorder = DecisionRecorder(VirtualClock(), share_of_time=1e-12)
    queued, _ = decided(recorder, three_nodes(), cpu="20")
    recorder.attempt_failed(queued, Unschedulable("0/3 nodes are available"), 0.003)

    record = recorder.of_pod("default/web")[0]

    assert record.is_complete
    assert record.outcome == "unschedulable"
    assert record.message.startswith("0/3 nodes are available: ")
    assert {group.plugin: group.count for group in record.refused} == {"NodeResourcesFit": 2, "TaintToleration": 1}


def test_an_error_after_the_choice_is_told() -> None:
    recorder = DecisionRecorder(VirtualClock())
    queued, _ = decided(recorder, three_nodes())
    recorder.attempt_failed(queued, Error("the API server said no"), 0.003)

    assert recorder.of_pod("default/web")[0].error == "the API server said no"
    assert recorder.failed_count == 1


def test_the_past_is_bounded() -> None:
    recorder, harness = DecisionRecorder(VirtualClock(), keep=3), three_nodes()
    for number in range(10):
        queued, decision = decided(recorder, harness, f"web-{number}")
        recorder.bound(queued, decision.node_name, 0.01)

    assert [record.pod for record in recorder] == ["default/web-9", "default/web-8", "default/web-7"]
    assert (recorder.count, recorder.bound_count) == (10, 10)


def test_a_later_history_does_not_change_an_earlier_record() -> None:
    recorder = DecisionRecorder(VirtualClock())
    queued, _ = decided(recorder, three_nodes(), cpu="20")
    queued.story.append((9.0, "active", "NodeAdd"))
    queued.attempts = 2

    record = recorder.of_pod("default/web")[0]

    assert (record.attempt, len(record.story)) == (1, 2)


def test_listeners_hear_of_settled_attempts_once() -> None:
    recorder, heard = DecisionRecorder(VirtualClock()), []
    recorder.on_settled.append(heard.append)
    queued, decision = decided(recorder, three_nodes())
    assert heard == []
    recorder.bound(queued, decision.node_name, 0.01)

    assert [record.outcome for record in heard] == ["bound"]


def test_a_record_survives_json() -> None:
    recorder = DecisionRecorder(VirtualClock())
    decided(recorder, three_nodes(), cpu="500m")
    record = recorder.latest(1)[0]

    assert msgspec.json.decode(msgspec.json.encode(record), type=DecisionRecord) == record


def test_a_node_knows_who_chose_it_and_filters_what_they_rejected() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), three_nodes()
    decided(recorder, harness, "one", cpu="500m")
    decided(recorder, harness, "two", cpu="20")
    recorder.plugin_failed("Mine", "filter", RuntimeError("boom"))

    assert [record.pod for record in recorder.of_node("large")] == ["default/one"]
    assert recorder.rejections() == {"TaintToleration": 2, "NodeResourcesFit": 2}
    assert recorder.plugin_errors == {"Mine": 1}


def test_a_cluster_without_nodes_leaves_a_record_too() -> None:
    recorder = DecisionRecorder(VirtualClock())
    decided(recorder, Harness(nodes=[]))

    assert recorder.latest(1)[0].message == "no nodes available to schedule pods"


def test_counts_of_an_earlier_record_stay_when_the_cluster_changes() -> None:
    """Records share the list of counts with the evaluation, which must replace it and not write to it."""
    recorder, harness = DecisionRecorder(VirtualClock(), share_of_time=1e-12), three_nodes()
    recorder._affordable_at = 1e18
    decided(recorder, harness, "one", cpu="500m")
    harness.scheduler.assume(harness.info(pod("big", cpu="8")), "large")
    decided(recorder, harness, "two", cpu="500m")

    assert [record.rejected for record in recorder] == [
        (("TaintToleration", 1), ("NodeResourcesFit", 1)),
        (("TaintToleration", 1),),
    ]


def test_raw_scores_are_kept_of_plugins_that_are_asked_every_time() -> None:
    recorder = DecisionRecorder(VirtualClock())
    harness = Harness(nodes=[node(f"n{i}", cpu=4, zone="ab"[i % 2]) for i in range(4)], always_score=False)
    anti = apart("topology.kubernetes.io/zone", {"app": "web"}, weight=10)
    harness.scheduler.assume(harness.info(pod("first", labels={"app": "web"})), "n0")
    decided(recorder, harness, cpu="100m", labels={"app": "web"}, affinity=anti)
    best = recorder.latest(1)[0].best

    raw = {node.node: {score.plugin: score.raw for score in node.scores} for node in best}
    assert {name: scores["InterPodAffinity"] for name, scores in raw.items()} == {
        "n0": -10,
        "n1": 0,
        "n2": -10,
        "n3": 0,
    }


def test_ties_are_named_with_the_chosen_node_first() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), Harness(nodes=[node(f"n{i}", cpu=4) for i in range(3)])
    _, decision = decided(recorder, harness)
    record = recorder.latest(1)[0]

    assert record.tied[0] == decision.node_name
    assert sorted(record.tied) == ["n0", "n1", "n2"] and record.ties == 3


def test_times_are_told_by_extension_point_and_by_plugin() -> None:
    clock = VirtualClock()
    recorder, harness = DecisionRecorder(clock), three_nodes()
    info = harness.info(pod("web", cpu="500m"))
    sampling = Sampling(draw=lambda: 0.5, monotonic=clock.monotonic, share=1.0)
    decision = harness.scheduler.decide(info, monotonic=clock.monotonic, sampling=sampling)
    recorder.decided(QueuedPod(info, 0.0), decision, 0.001)
    record = recorder.latest(1)[0]

    assert [phase for phase, _ in record.phases] == ["PreFilter", "Filter", "Score"]
    assert ("NodeResourcesFit", "Filter") in {(time.plugin, time.point) for time in record.times}
    assert recorder.plugin_times()["NodeResourcesFit", "Filter"][0] == 1
