"""Coscheduling: what it says at each point; `tests/companions` tells what comes of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.api.meta import Metadata
from bayplan.api.pod import Pod
from bayplan.config.errors import ConfigError
from bayplan.framework import Code, CycleState, Diagnosis, Hint, QueuedPod, Resource, Status, Unschedulable
from bayplan.plugins.community.coscheduling import Coscheduling
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup, PodGroupSpec, group_key
from bayplan.testing import Harness, expect, node, pod

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
                "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
            }
        }
    ],
}


def _group(name: str = "g", *, minimum: int = 3, created: str | None = None, **spec: Any) -> PodGroup:
    metadata = Metadata(name=name, namespace="default", uid=name, creation_timestamp=created)
    return PodGroup(metadata=metadata, spec=PodGroupSpec(min_member=minimum, **spec))


def _pod(name: str, group: str = "g", **more: Any) -> Pod:
    return pod(name, labels={POD_GROUP_LABEL: group}, **more)


def _harness(*objects: Any, nodes: Any = ("n1", "n2"), pods: Any = (), **args: Any) -> Harness:
    return Harness(
        nodes=nodes, pods=pods, objects=objects, config=CONFIG, args={"Coscheduling": args} if args else None
    )


def _running(count: int) -> list[Pod]:
    return [_pod(f"running-{i}", node="n1") for i in range(count)]


# PreFilter


def test_a_pod_without_a_group_is_none_of_its_business() -> None:
    expect(_harness().schedule(pod("alone"))).scheduled_on("n1", "n2")


def test_a_pod_whose_group_does_not_exist_passes_until_permit() -> None:
    expect(_harness().schedule(_pod("p1"))).rejected_because("PodGroup not found", by="Coscheduling")


def test_a_group_with_too_few_pods_is_not_tried() -> None:
    outcome = _harness(_group(minimum=3), pods=[_pod("p1")]).schedule(_pod("p2"))

    expect(outcome).message_says(
        "pre-filter pod p2 cannot find enough sibling pods, current pods number: 2, minMember of group: 3"
    )


@pytest.mark.parametrize(("gated", "passes"), [(1, True), (2, False)])
def test_gated_pods_count_only_as_far_as_the_group_can_do_without_them(gated: int, passes: bool) -> None:
    others = [_pod(f"gated-{i}", gates=["example.com/wait"]) for i in range(gated)]
    others += [_pod(f"open-{i}") for i in range(3 - gated)]
    outcome = _harness(_group(minimum=3), pods=others).schedule(_pod("p0"))

    if passes:
        expect(outcome).scheduled_on("n1", "n2")
    else:
        expect(outcome).message_says("pre-filter pod p0 cannot proceed due to gated pods in the same PodGroup")


def test_groups_of_the_same_name_in_other_namespaces_do_not_count() -> None:
    strangers = [_pod("p1", namespace="other"), _pod("p2", namespace="other")]

    expect(_harness(_group(minimum=2), pods=strangers).schedule(_pod("p0"))).message_says("cannot find enough sibling")


def test_the_cluster_must_have_the_groups_resources_free() -> None:
    group = _group(minimum=2, min_resources={"cpu": "9", "memory": "1Gi"})
    outcome = _harness(group, nodes=[node("n1", cpu=4), node("n2", cpu=4)], pods=[_pod("p1")]).schedule(_pod("p0"))

    expect(outcome).message_says("resource gap: map[cpu:1]")


def test_what_the_group_holds_already_counts_as_free_for_it() -> None:
    group = _group(minimum=2, min_resources={"cpu": "8"})
    mine = _pod("p1", cpu=4, node="n1")
    harness = _harness(group, nodes=[node("n1", cpu=4), node("n2", cpu=4)], pods=[mine])

    expect(harness.schedule(_pod("p0", cpu=4))).scheduled_on("n2")


def test_an_overcommitted_node_takes_nothing_from_the_others() -> None:
    group = _group(minimum=1, min_resources={"cpu": "4"})
    nodes = [node("n1", cpu=1), node("n2", cpu=4)]
    harness = _harness(group, nodes=nodes, pods=[pod("huge", cpu=3, node="n1")])

    expect(harness.schedule(_pod("p0"))).scheduled_on("n2", "n1")


def test_a_resource_that_nobody_has_and_room_for_pods_are_part_of_the_gap() -> None:
    group = _group(minimum=3, min_resources={"example.com/gpu": "1"})
    harness = _harness(group, nodes=[node("n1", pods=2)], pods=[_pod("p1"), _pod("p2")])

    expect(harness.schedule(_pod("p0"))).message_says("resource gap: map[example.com/gpu:1 pods:1]")


# Permit


def test_the_first_pod_waits_and_brings_its_siblings_forward() -> None:
    siblings = [_pod("p1"), _pod("p2")]
    harness = _harness(_group(minimum=3, schedule_timeout_seconds=7), pods=siblings)
    assert harness.schedule(_pod("p0")).waits_for == ("Coscheduling",)

    state, info = CycleState(), harness.info(_pod("p1"))
    status = harness.plugin("Coscheduling").permit(state, info, "n1")
    assert (status.code, status.timeout_seconds) == (Code.WAIT, 7)
    assert set(state.pods_to_activate) == {"default/p1", "default/p2"}


@pytest.mark.parametrize(("args", "stated", "seconds"), [({}, None, 60), ({"permitWaitingTimeSeconds": 10}, None, 10)])
def test_how_long_a_pod_waits(args: dict[str, int], stated: int | None, seconds: int) -> None:
    plugin = _harness(_group(), **args).plugin("Coscheduling")

    assert plugin._wait_seconds(_group(schedule_timeout_seconds=stated)) == seconds
    assert plugin._wait_seconds(_group(schedule_timeout_seconds=5)) == 5


def test_a_wait_of_zero_seconds_means_the_default() -> None:
    plugin = _harness(_group(), permitWaitingTimeSeconds=0).plugin("Coscheduling")

    assert plugin._wait_seconds(_group()) == 60


def test_the_last_pod_of_a_group_goes_through() -> None:
    harness = _harness(_group(minimum=3), pods=[_pod("p1", node="n1"), _pod("p2", node="n2")])

    assert harness.schedule(_pod("p0")).waits_for == ()


# PostFilter


@pytest.mark.parametrize(
    ("placed", "percentage", "is_kept"),
    [(9, 10, True), (8, 10, False), (9, 0, False), (0, 100, True), (6, 50, True), (4, 50, False), (10, 0, True)],
)
def test_a_group_that_misses_few_is_kept(placed: int, percentage: int, is_kept: bool) -> None:
    harness = _harness(_group(minimum=10), pods=_running(placed), podGroupRejectPercentage=percentage)

    status = _post_filter(harness, _pod("late"))
    if is_kept:
        assert status == Unschedulable()
    else:
        assert status.reasons == (
            "PodGroup default/g gets rejected due to Pod late is unschedulable even after PostFilter",
        )


def test_a_pod_without_a_group_gets_the_reason_of_the_original() -> None:
    assert _post_filter(_harness(), pod("alone")).reasons == ("can not find pod group",)


def _post_filter(harness: Harness, manifest: Pod) -> Status:
    diagnosis = Diagnosis(total_nodes=2, absent=Unschedulable("Insufficient cpu"))
    status: Status = harness.plugin("Coscheduling").post_filter(CycleState(), harness.info(manifest), diagnosis)
    return status


def test_a_group_that_failed_is_left_alone_for_its_back_off() -> None:
    others = [_pod(f"p{i}") for i in range(1, 4)]
    harness = _harness(_group(minimum=4), pods=others, podGroupBackoffSeconds=100)
    harness.scheduler.cache.note_pod(None, _pod("p0"))
    _post_filter(harness, _pod("p0"))

    expect(harness.schedule(_pod("p0"))).message_says("podGroup default/g failed recently")


def test_a_pod_that_the_back_off_keeps_out_does_not_make_it_longer() -> None:
    others = [_pod(f"p{i}") for i in range(1, 4)]
    harness = _harness(_group(minimum=4), pods=others, podGroupBackoffSeconds=100)
    harness.scheduler.cache.note_pod(None, _pod("p0"))
    _post_filter(harness, _pod("p0"))
    history = harness.plugin("Coscheduling")._histories["default/g"]
    before = (history.backed_off_until, history.last_failed)
    _post_filter(harness, _pod("p0"))

    assert (history.backed_off_until, history.last_failed) == before


def test_a_group_without_all_its_pods_is_not_backed_off() -> None:
    harness = _harness(_group(minimum=4), pods=[_pod("p1")], podGroupBackoffSeconds=100)
    _post_filter(harness, _pod("p0"))

    expect(harness.schedule(_pod("p0"))).message_says("cannot find enough sibling pods")


def test_what_is_known_of_a_group_goes_with_it() -> None:
    group = _group(minimum=4)
    harness = _harness(group)
    _post_filter(harness, _pod("p0"))
    assert list(harness.plugin("Coscheduling")._histories) == ["default/g"]

    harness.remove(group)
    assert harness.plugin("Coscheduling")._histories == {}


# QueueSort


def _order(harness: Harness, *queued: QueuedPod) -> list[str]:
    return [each.info.name for each in sorted(queued, key=harness.plugin("Coscheduling").sort_key)]


def _queued(harness: Harness, manifest: Pod, at: float) -> QueuedPod:
    queued = QueuedPod(harness.info(manifest), at + 1000)
    queued.initial_attempt_timestamp = at
    return queued


def _made_at(manifest: Pod, second: int) -> Pod:
    metadata = msgspec.structs.replace(manifest.metadata, creation_timestamp=f"1970-01-01T00:00:{second:02}Z")
    return msgspec.structs.replace(manifest, metadata=metadata)


def test_priority_goes_first_then_time_then_the_name() -> None:
    harness = _harness()
    pods = [
        _queued(harness, pod("late"), 20),
        _queued(harness, pod("b"), 10),
        _queued(harness, pod("a"), 10),
        _queued(harness, pod("urgent", priority=5), 30),
    ]

    assert _order(harness, *pods) == ["urgent", "a", "b", "late"]


def test_a_group_stands_in_the_queue_since_it_was_created() -> None:
    old, new = (
        _group("old", created="1970-01-01T00:00:05Z"),
        _group("new", created="1970-01-01T00:00:50Z"),
    )
    harness = _harness(old, new)
    pods = [
        _queued(harness, _pod("n1", "new"), 1),
        _queued(harness, pod("single"), 20),
        _queued(harness, _pod("o2", "old"), 90),
        _queued(harness, _pod("o1", "old"), 80),
        _queued(harness, _pod("no-group", "unknown"), 3),
    ]

    assert _order(harness, *pods) == ["no-group", "o1", "o2", "single", "n1"]


def test_a_group_that_failed_goes_behind_the_others() -> None:
    harness = _harness(
        _group("first", created="1970-01-01T00:00:05Z"), _group("second", created="1970-01-01T00:00:50Z")
    )
    _post_filter(harness, _pod("x", "first"))
    pods = [_queued(harness, _pod("f", "first"), 1), _queued(harness, _pod("s", "second"), 2)]

    assert _order(harness, *pods) == ["s", "f"]


def test_a_pod_that_never_was_active_is_ordered_by_its_arrival() -> None:
    harness = _harness()
    waiting = QueuedPod(harness.info(pod("new")), 5.0)

    assert harness.plugin("Coscheduling").sort_key(waiting) == (0, 5.0, "default/new", "default/new")


def test_groups_made_in_one_second_are_not_mixed() -> None:
    harness = _harness(_group("a", created="1970-01-01T00:00:05Z"), _group("b", created="1970-01-01T00:00:05Z"))
    pods = [_queued(harness, _pod(name, group), 9) for name, group in [("1", "a"), ("2", "b"), ("3", "a"), ("4", "b")]]

    assert _order(harness, *pods) == ["1", "3", "2", "4"]


def test_pods_that_come_before_their_group_stand_together() -> None:
    """By the time at which the first of them was made; a scheduler that starts lists pods and groups in any order."""
    made = {"1": ("late", 7), "2": ("early", 5), "3": ("late", 8), "4": ("early", 6)}
    pods = [_made_at(_pod(name, group), second) for name, (group, second) in made.items()]
    harness = _harness(pods=pods)
    queued = [_queued(harness, each, 9) for each in pods]

    assert _order(harness, *queued) == ["2", "4", "1", "3"]


# Events


def test_only_changes_of_its_own_group_wake_a_pod() -> None:
    plugin, harness = _plugin_and_harness()
    mine = harness.info(_pod("p0"))

    assert plugin._after_group_changed(mine, None, _group("g")) is Hint.QUEUE
    assert plugin._after_group_changed(mine, None, _group("other")) is Hint.SKIP
    assert plugin._after_pod_added(mine, None, harness.info(_pod("p1", node="n1"))) is Hint.QUEUE
    assert plugin._after_pod_added(mine, None, harness.info(pod("p1", node="n1"))) is Hint.SKIP


def test_places_that_its_own_group_gives_back_wake_nobody_of_it() -> None:
    harness = _harness(_group(), pods=_running(3))
    plugin: Coscheduling = harness.plugin("Coscheduling")
    mine, sibling = harness.info(_pod("p0")), harness.info(_pod("p1"))

    assert plugin._after_pod_deleted(mine, sibling.placed("n1"), None) is Hint.SKIP
    assert plugin._after_pod_deleted(mine, harness.info(_pod("p2", node="n1")), None) is Hint.QUEUE
    assert plugin._after_pod_deleted(mine, harness.info(pod("other")).placed("n1"), None) is Hint.QUEUE


def test_room_wakes_no_pod_whose_siblings_are_missing() -> None:
    """One user's groups that are never complete would be tried again with every pod of others that ends."""
    harness = _harness(_group(), pods=_running(2))
    plugin: Coscheduling = harness.plugin("Coscheduling")
    mine, others = harness.info(_pod("mine")), harness.info(pod("other")).placed("n1")
    (after_node,) = (each.hint for each in plugin.events_to_register() if each.event.resource is Resource.NODE)

    assert plugin._after_pod_deleted(mine, others, None) is Hint.SKIP
    assert after_node is not None and after_node(mine, None, None) is Hint.SKIP
    assert plugin._after_pod_added(mine, None, harness.info(_pod("p1", node="n1"))) is Hint.QUEUE
    assert plugin._after_group_changed(mine, None, _group(minimum=2)) is Hint.QUEUE


def _plugin_and_harness() -> tuple[Coscheduling, Harness]:
    harness = _harness(_group())
    return harness.plugin("Coscheduling"), harness


# Arguments and contract


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"permitWaitingTimeSeconds": -1}, "permitWaitingTimeSeconds: must be greater than 0"),
        ({"podGroupBackoffSeconds": -1}, "podGroupBackoffSeconds: must be greater than 0"),
        ({"podGroupRejectPercentage": 101}, "podGroupRejectPercentage: must be between 0 and 100"),
        ({"podGroupRejectPercentage": -1}, "podGroupRejectPercentage: must be between 0 and 100"),
        ({"permitWaitingSeconds": 1}, "permitWaitingTimeSeconds"),
    ],
)
def test_wrong_arguments_are_refused(args: dict[str, int], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _harness(**args)

    assert problem in str(caught.value)


def test_an_empty_label_is_no_group() -> None:
    harness = _harness()

    assert group_key(harness.info(_pod("p0", ""))) is None
