"""The decision record: what it keeps of an attempt, and what it never holds up."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest

from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.remembered.combined_score import CombinedScoreCall
from bayplan.framework.status import Error, Unschedulable
from bayplan.framework.times import Sampling
from bayplan.loop.decide import Decision, decide
from bayplan.loop.record import DecisionRecord, PermitWait, Points
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import VirtualClock
from bayplan.testing import Harness, apart, node, pod, taint

_ZONE = "topology.kubernetes.io/zone"
_IMAGES = ({}, {"app:1": 500 * 2**20}, {"app:1": 900 * 2**20})


def decided(
    recorder: DecisionRecorder, harness: Harness, name: str = "web", **spec: object
) -> tuple[QueuedPod, Decision]:
    info = harness.info(pod(name, **spec))  # type: ignore[arg-type]
    queued = QueuedPod(info, 0.0)
    queued.attempts = 1
    queued.history = [(1.0, "active", "PodAdd"), (2.0, "in-flight", "Pop")]
    decision = harness.scheduler.decide(info)
    recorder.cluster = harness.cluster
    recorder.decided(queued, decision, 0.001)
    return queued, decision


def three_nodes() -> Harness:
    return Harness(
        nodes=[node("small", cpu=1), node("large", cpu=8), node("tainted", cpu=8, taints=[taint("team=a:NoSchedule")])],
        always_score=False,
    )


def test_a_scheduled_pod_leaves_funnel_scores_and_outcome() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), three_nodes()
    queued, decision = decided(recorder, harness, cpu="500m")
    recorder.bound(queued, decision.node_name, 0.02)

    (record,) = recorder.of_pod("default/web")

    assert (record.node, record.outcome) == ("large", "bound")
    assert record.generation == harness.cluster.generation > 0
    assert (record.nodes, record.feasible, record.ties, record.chosen_by) == (3, 2, 1, "points")
    assert [(step.plugin, step.rejected, step.left) for step in record.funnel] == [("TaintToleration", 1, 2)]
    assert record.runner_up is not None and record.runner_up.node == "small"
    assert sum(points.weighted for points in record.points.values()) == record.total
    assert sum(points.weighted for points in record.runner_up.points.values()) == record.runner_up.total
    assert record.history[-1] == (2.0, "in-flight", "Pop")


def points_by_node(record: DecisionRecord) -> dict[str, tuple[int, dict[str, Points]]]:
    found = {record.node: (record.total, record.points)}
    if record.runner_up is not None:
        found[record.runner_up.node] = (record.runner_up.total, record.runner_up.points)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_points_are_those_of_an_explained_decision(seed: int) -> None:
    """Read from remembered columns here, worked out by plugin there; over many decisions on a cluster that fills."""
    chance = random.Random(seed)
    soft = taint("team=a:PreferNoSchedule")
    taints = {number: [soft] if seed % 2 and not number % 4 else [] for number in range(9)}
    nodes = [node(f"n{i}", cpu=2 + i, zone="ab"[i % 2], taints=taints[i], images=_IMAGES[i % 3]) for i in range(9)]
    harness = Harness(nodes=nodes, always_score=False)
    recorder = DecisionRecorder(VirtualClock())
    kinds: list[dict[str, object]] = [
        {"cpu": "300m", "labels": {"app": "web"}},
        {"cpu": "100m", "memory": "1Gi", "labels": {"app": "web"}, "affinity": apart(_ZONE, {"app": "web"}, weight=10)},
        {"cpu": "200m", "labels": {"app": "db"}, "image": "app:1"},
    ]
    for number in range(40):
        spec = chance.choice(kinds)
        queued, decision = decided(recorder, harness, f"web-{number}", **spec)
        explained = harness.scheduler.decide(queued.info, explains=True, always_score=True)
        if decision.node_name and explained.scores is not None:
            names = [harness.cluster.nodes.at(row).name for row in explained.scores.rows.tolist()]
            for name, (total, points) in points_by_node(recorder.latest(1)[0]).items():
                place = names.index(name)
                shares = {plugin: int(share[place]) for plugin, share in explained.scores.shares.items()}
                raw = {plugin: int(each[place]) for plugin, each in explained.scores.raw.items()}
                assert {plugin: each.weighted for plugin, each in points.items()} == shares
                assert {plugin: each.raw for plugin, each in points.items()} == raw
                assert total == int(explained.scores.totals[place])
            best = sorted(explained.scores.totals.tolist())[-2:]
            assert recorder.latest(1)[0].runner_up is None or recorder.latest(1)[0].runner_up.total == best[0]
            harness.scheduler.assume(queued.info, decision.node_name)


def test_points_of_all_nodes_are_computed_at_once_after_a_few_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods of one template are spread over nodes that are alike: each of them would be the first on its node."""
    calls, one = [], CombinedScoreCall.one
    monkeypatch.setattr(CombinedScoreCall, "one", lambda self, *args: calls.append(1) or one(self, *args))
    harness = Harness(nodes=[node(f"n{number}", cpu=2 + number % 5) for number in range(300)], always_score=False)
    recorder = DecisionRecorder(VirtualClock())
    for number in range(60):
        queued, decision = decided(recorder, harness, f"web-{number}", cpu="300m")
        read = len(calls)
        explained = harness.scheduler.decide(queued.info, explains=True, always_score=True)
        assert explained.scores is not None
        place = explained.scores.rows.tolist().index(harness.cluster.nodes.row_of[decision.node_name])
        raw = {plugin: int(each[place]) for plugin, each in explained.scores.raw.items()}
        assert {plugin: each.raw for plugin, each in recorder.latest(1)[0].points.items()} == raw
        del calls[read:]

    assert len(calls) <= 20


def test_where_a_sample_is_scored_the_record_tells_it_from_the_nodes_that_fitted() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), Harness(nodes=[node(f"n{i}", cpu=4) for i in range(240)])
    for number in range(40):
        harness.scheduler.assume(harness.info(pod(f"full-{number}", cpu=4)), f"n{number}")
    queued = QueuedPod(harness.info(pod("web", cpu=1)), 0.0)
    decider = replace(harness.scheduler.deciders["default-scheduler"], percentage_of_nodes_to_score=50)
    recorder.cluster = harness.cluster
    recorder.decided(queued, decide(decider, queued.info), 0.001)
    record = recorder.latest(1)[0]

    assert (record.nodes, record.feasible, record.scored, record.chosen_by) == (240, 200, 120, "points")
    assert [(step.plugin, step.left) for step in record.funnel] == [("NodeResourcesFit", 200)]
    assert record.ties <= record.scored


def test_where_one_node_fits_the_record_says_that_nothing_was_scored() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), three_nodes()
    decided(recorder, harness, cpu="4")
    record = recorder.latest(1)[0]

    assert (record.node, record.chosen_by, record.points, record.runner_up) == ("large", "only node", {}, None)
    assert not record.is_scored and record.feasible == 1


def test_a_nominated_node_is_taken_without_looking_at_others() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), three_nodes()
    info = harness.info(pod("web", cpu="500m"))
    info.nominated_node_name = "small"
    recorder.decided(QueuedPod(info, 0.0), harness.scheduler.decide(info), 0.001)
    record = recorder.latest(1)[0]

    assert (record.node, record.chosen_by, record.funnel) == ("small", "nomination", ())


def test_a_preemption_is_kept_by_the_preemptor_and_for_its_victim() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), Harness(nodes=[node("a", cpu=2), node("b", cpu=2)])
    for name, where, priority in (("low", "a", 1), ("lower", "b", 0)):
        harness.scheduler.assume(harness.info(pod(name, cpu="2", priority=priority)), where)
    queued, decision = decided(recorder, harness, "vip", cpu="2", priority=10)
    recorder.attempt_failed(queued, Unschedulable(decision.message), 0.003)
    failed = recorder.latest(1)[0]

    assert [victim.pod for victim in failed.victims] == ["default/lower"]
    assert failed.preemption is not None and (failed.preemption.node, failed.preemption.candidates) == ("b", 2)
    assert [(key.key, key.value, key.left) for key in failed.preemption.keys] == [
        ("disruption budgets broken", 0, 2),
        ("highest priority of a victim", 0, 1),
    ]
    assert (taken := recorder.preempted_for("default/lower")) is not None and taken.pod == "default/vip"

    harness.scheduler.cache.forget(failed.victims[0].uid)
    again = harness.scheduler.decide(queued.info)
    queued.attempts = 2
    recorder.decided(queued, again, 0.001)
    bound = recorder.latest(1)[0]

    assert bound.node == "b" and bound.preemption == failed.preemption
    assert recorder.preemption_by(queued.uid) == failed.preemption

    # An attempt that is refused after the choice takes the victims from no later one.
    recorder.attempt_failed(queued, Unschedulable("no licence is free").by("Licences"), 0.003)
    queued.attempts = 3
    recorder.decided(queued, again, 0.001)
    recorder.bound(queued, "b", 0.02)

    assert recorder.latest(1)[0].preemption == failed.preemption and recorder.latest(1)[0].outcome == "bound"
    assert recorder.preemption_by(queued.uid) is None

    later = DecisionRecorder(VirtualClock())
    later.restore(reversed(list(recorder)))
    assert (taken := later.preempted_for("default/lower")) is not None and taken.pod == "default/vip"


def test_a_refusal_after_the_choice_says_where_and_by_whom() -> None:
    recorder = DecisionRecorder(VirtualClock())
    queued, decision = decided(recorder, three_nodes())
    status = Unschedulable("no quota left").by("Quota")
    recorder.refused_after_choice(queued.info, decision.node_name, "Reserve", status)
    recorder.attempt_failed(queued, status, 0.003)
    record = recorder.latest(1)[0]

    assert (record.stopped_at, record.stopped_by, record.error) == ("Reserve", "Quota", "no quota left")
    assert record.outcome == "unschedulable" and record.node


def test_a_wait_at_permit_is_part_of_the_record() -> None:
    recorder = DecisionRecorder(VirtualClock())
    queued, decision = decided(recorder, three_nodes())
    recorder.held_at_permit(queued.info, decision.node_name, {"Gang": 60.0})

    assert recorder.latest(1)[0].permit == PermitWait(plugins={"Gang": 60.0})

    recorder.left_permit(queued.info, "Success", 1.5)
    assert recorder.latest(1)[0].permit == PermitWait(plugins={"Gang": 60.0}, seconds=1.5, result="Success")


def test_an_unschedulable_pod_is_always_complete() -> None:
    recorder = DecisionRecorder(VirtualClock())
    queued, _ = decided(recorder, three_nodes(), cpu="20")
    recorder.attempt_failed(queued, Unschedulable("0/3 nodes are available"), 0.003)

    record = recorder.of_pod("default/web")[0]

    assert record.outcome == "unschedulable"
    assert record.message.startswith("0/3 nodes are available: ")
    assert {group.plugin: group.count for group in record.refused} == {"NodeResourcesFit": 2, "TaintToleration": 1}


def test_an_error_after_the_choice_is_told() -> None:
    recorder = DecisionRecorder(VirtualClock())
    queued, _ = decided(recorder, three_nodes())
    recorder.attempt_failed(queued, Error("the API server said no"), 0.003)

    assert recorder.of_pod("default/web")[0].error == "the API server said no"
    assert recorder.failed_count == 1


def test_the_past_is_bounded_by_memory() -> None:
    recorder, harness = DecisionRecorder(VirtualClock(), memory_bytes=4_000), three_nodes()
    for number in range(10):
        queued, decision = decided(recorder, harness, f"web-{number}")
        recorder.bound(queued, decision.node_name, 0.01)

    assert [record.pod for record in recorder] == ["default/web-9", "default/web-8", "default/web-7"]
    assert (recorder.count, recorder.bound_count, recorder.dropped) == (10, 10, 7)
    assert 0 < recorder.bytes_kept <= 4_000


def test_attempts_of_an_earlier_process_are_the_oldest() -> None:
    earlier = DecisionRecorder(VirtualClock())
    decided(earlier, three_nodes(), "first", cpu="500m")
    recorder = DecisionRecorder(VirtualClock())
    recorder.restore(reversed(list(earlier)))
    decided(recorder, three_nodes(), "second", cpu="500m")

    assert [record.pod for record in recorder] == ["default/second", "default/first"]
    assert recorder.of_pod("default/first") == earlier.of_pod("default/first")


def test_a_later_history_does_not_change_an_earlier_record() -> None:
    recorder = DecisionRecorder(VirtualClock())
    queued, _ = decided(recorder, three_nodes(), cpu="20")
    queued.history.append((9.0, "active", "NodeAdd"))
    queued.attempts = 2

    record = recorder.of_pod("default/web")[0]

    assert (record.attempt, len(record.history)) == (1, 2)


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
    recorder, harness = DecisionRecorder(VirtualClock()), three_nodes()
    decided(recorder, harness, "one", cpu="500m")
    harness.scheduler.assume(harness.info(pod("big", cpu="8")), "large")
    decided(recorder, harness, "two", cpu="500m")

    assert [[(step.plugin, step.rejected) for step in record.funnel] for record in recorder] == [
        [("TaintToleration", 1), ("NodeResourcesFit", 1)],
        [("TaintToleration", 1)],
    ]


def test_raw_scores_are_kept_of_plugins_that_are_asked_every_time() -> None:
    recorder = DecisionRecorder(VirtualClock())
    harness = Harness(nodes=[node(f"n{i}", cpu=4, zone="ab"[i % 2]) for i in range(4)], always_score=False)
    anti = apart("topology.kubernetes.io/zone", {"app": "web"}, weight=10)
    harness.scheduler.assume(harness.info(pod("first", labels={"app": "web"})), "n0")
    decided(recorder, harness, cpu="100m", labels={"app": "web"}, affinity=anti)
    found = points_by_node(recorder.latest(1)[0])

    assert {name: points["InterPodAffinity"].raw for name, (_, points) in found.items()} == {"n1": 0, "n3": 0}


def test_of_several_best_nodes_one_is_drawn_and_another_is_the_runner_up() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), Harness(nodes=[node(f"n{i}", cpu=4) for i in range(3)])
    _, decision = decided(recorder, harness)
    record = recorder.latest(1)[0]

    assert record.runner_up is not None and record.runner_up.node != decision.node_name
    assert record.runner_up.total == record.total and record.ties == 3
    assert record.tie_break == "drawn with the seed"


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


def test_where_no_plugin_scores_several_nodes_fitted_and_one_was_drawn() -> None:
    """A profile may have no score plugin, or those that it has may skip the pod."""
    recorder = DecisionRecorder(VirtualClock())
    harness = Harness(nodes=[node(name) for name in "abc"], plugins=[], default_plugins=False, always_score=False)
    decided(recorder, harness)
    record = recorder.latest(1)[0]

    assert (record.feasible, record.ties, record.tie_break) == (3, 3, "drawn with the seed")
    assert (record.chosen_by, record.points) == ("points", {})
    assert record.runner_up is not None and record.runner_up.node != record.node


def test_a_preemptor_that_gets_its_node_after_a_restart_still_has_its_victims() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), Harness(nodes=[node("a", cpu=2)])
    harness.scheduler.assume(harness.info(pod("low", cpu="2")), "a")
    queued, decision = decided(recorder, harness, "vip", cpu="2", priority=10)
    recorder.attempt_failed(queued, Unschedulable(decision.message), 0.003)

    later = DecisionRecorder(VirtualClock())
    later.restore(reversed(list(recorder)))
    later.cluster = harness.cluster
    harness.scheduler.cache.forget(recorder.latest(1)[0].victims[0].uid)
    later.decided(queued, harness.scheduler.decide(queued.info), 0.001)

    assert [victim.pod for victim in later.latest(1)[0].victims] == ["default/low"]


def test_every_victim_of_a_preemption_is_kept_however_many_there_are() -> None:
    recorder, harness = DecisionRecorder(VirtualClock()), Harness(nodes=[node("a", cpu=40, pods=200)])
    for number in range(40):
        harness.scheduler.assume(harness.info(pod(f"low-{number}", cpu="1")), "a")
    decided(recorder, harness, "vip", cpu="40", priority=10)
    record = recorder.latest(1)[0]

    assert len(record.victims) == 40
    assert all(recorder.preempted_for(f"default/low-{number}") is not None for number in range(40))


def test_the_outcome_of_every_attempt_is_known_however_many_are_under_way() -> None:
    """A large group waits at Permit as one, and is bound as one."""
    recorder, harness, heard = DecisionRecorder(VirtualClock()), three_nodes(), []
    recorder.on_settled.append(heard.append)
    under_way = [decided(recorder, harness, f"member-{number}") for number in range(5_000)]
    for queued, decision in under_way:
        recorder.bound(queued, decision.node_name, 0.01)

    assert len(heard) == 5_000
    assert {record.outcome for record in recorder} == {"bound"}


def test_attempts_that_never_say_how_they_ended_are_forgotten_with_their_records() -> None:
    recorder, harness = DecisionRecorder(VirtualClock(), memory_bytes=4_000), three_nodes()
    for number in range(50):
        decided(recorder, harness, f"web-{number}")

    assert len(recorder) < 5 and recorder.under_way == len(recorder)


def test_failures_with_thousands_of_reasons_take_no_more_than_their_share() -> None:
    """A pod may ask for a thousand resources of its own, and be made again under another name for ever."""
    recorder, harness = DecisionRecorder(VirtualClock(), memory_bytes=200_000), three_nodes()
    for number in range(60):
        requests = {f"made-up.example/p{number}-{i}": 1 for i in range(500)}
        queued, decision = decided(recorder, harness, name=f"p{number}", requests=requests)
        recorder.attempt_failed(queued, Error(decision.message), 0.0)

    (newest, *_) = recorder.latest(1)
    assert [len(group.reasons) for group in newest.refused if group.plugin == "NodeResourcesFit"] == [33]
    assert newest.refused[0].reasons[-1] == "and for 468 more reasons"
    texts = sum(len(reason) for record in recorder for group in record.refused for reason in group.reasons)
    assert texts < recorder.bytes_kept <= 200_000
    assert len(recorder) < 60


def test_what_attempts_share_is_bounded_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.loop.recorder._MOST_SHARED_BYTES", 20_000)
    recorder, harness = DecisionRecorder(VirtualClock()), three_nodes()
    for number in range(200):
        queued, _ = decided(recorder, harness, name=f"p{number}", cpu=100)
        recorder.attempt_failed(queued, Error(f"{number:05}" * 100), 0.0)

    assert len(recorder._shared) < 30
    assert {id(record.refused) for record in recorder.latest(3)} != {id(())}
