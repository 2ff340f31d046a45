"""Pods that wait alike are asked about once, and held ones not at all until they are let go: exactly those wake who
would if each were asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.unit.queue.kit import NODE_ADD, NODE_LABEL, POD_DELETED, PROFILE, Bench, make_pod

from bayplan.cluster.changes import NameLog
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    EventHint,
    Hint,
    HintFunction,
    HintView,
    Resource,
    by_shape,
    by_shapes,
    by_view,
)
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Status, Unresolvable

POD_CHANGED = ClusterEvent(Resource.POD, ActionType.UPDATE_POD_LABEL)
SIZES = ("1", "2", "3")
NAMES = [f"p{number}" for number in range(6)]


class Asked:
    """A hint that queues pods of one size, and the pod that the event is about. The size is that of the changed pod;
    one without a node helps no other. A hint that is marked as one by shapes answers by shapes alone."""

    def __init__(self) -> None:
        self.helped = ""
        self.times = 0

    def __call__(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        self.times += 1
        pods = [side for side in (old, new) if isinstance(side, PodInfo)]
        sizes = [_size(side) for side in pods if side.node_name]
        is_itself = any(side.uid == pod.uid for side in pods)
        is_helped = _size(pod) == (sizes[0] if sizes else "" if pods else self.helped)
        return Hint.QUEUE if is_itself or is_helped else Hint.SKIP


def _size(pod: PodInfo) -> str:
    return str(pod.shape.amounts.get("cpu", 0) // 1000)


def make_bench(hint: HintFunction, held: set[str], **keywords: Any) -> Bench:
    def gate(pod: PodInfo) -> Status | None:
        return Unresolvable("held") if pod.name in held else None

    def registered(*events: ClusterEvent) -> list[EventHint]:
        return [EventHint(event, hint) for event in events]

    return Bench(
        *(("Fit", hint) for hint in registered(NODE_ADD, POD_DELETED, POD_CHANGED)),
        *(("Taint", hint) for hint in registered(NODE_LABEL, POD_DELETED)),
        *(("Gate", hint) for hint in registered(NODE_ADD, POD_DELETED)),
        ("Free", EventHint(NODE_LABEL)),
        pre_enqueue={"Gate": gate},
        **keywords,
    )


class TwoQueues(RuleBasedStateMachine):
    """The same history for a queue whose hints answer by shape and whose gate tells whom it let go, and for one that
    asks about each pod."""

    mark: Callable[[Asked], Asked] = staticmethod(by_shape)

    def __init__(self) -> None:
        super().__init__()
        self.held: set[str] = set()
        self.once, self.each = Asked(), Asked()
        self.released = NameLog()
        informed = make_bench(self.mark(self.once), self.held, releases={PROFILE: {"Gate": lambda: self.released}})
        self.benches = [informed, make_bench(self.each, self.held)]
        self.flying: dict[str, list[QueuedPod]] = {}
        self.births = 0

    @rule(name=st.sampled_from(NAMES), size=st.sampled_from(SIZES), is_held=st.booleans(), is_known=st.booleans())
    def create(self, name: str, size: str, is_held: bool, is_known: bool) -> None:
        self.hold(name, is_held)
        if name in self.flying or f"ns/{name}" in self.benches[0].server:
            return
        self.births += 1
        profile = PROFILE if is_known else "gone"
        info = make_pod(name, uid=f"{name}-{self.births}", cpu=size, profile=profile)
        for bench in self.benches:
            bench.server[info.key] = info.pod
            bench.queue.add(info)

    @rule(name=st.sampled_from(NAMES), is_held=st.booleans())
    def hold(self, name: str, is_held: bool) -> None:
        if is_held:
            self.held.add(name)
        elif name in self.held:
            self.held.discard(name)
            self.released.record(f"ns/{name}")

    @rule()
    def fall_behind(self) -> None:
        for _ in range(9000):
            self.released.record("ns/another")

    @rule()
    def pop(self) -> None:
        first, second = (bench.queue.pop() for bench in self.benches)

        assert (first is None) == (second is None)
        if first is not None and second is not None:
            assert first.info is second.info
            self.flying[first.info.name] = [first, second]

    @rule(
        blamed=st.frozensets(st.sampled_from(["Fit", "Taint", "Free"])),
        pending=st.frozensets(st.sampled_from(["Fit", "Taint"]), max_size=1),
    )
    def come_back(self, blamed: frozenset[str], pending: frozenset[str]) -> None:
        if self.flying:
            pair = self.flying.pop(next(iter(self.flying)))
            for bench, queued in zip(self.benches, pair, strict=True):
                bench.queue.add_unschedulable_if_not_present(
                    queued, unschedulable_plugins=blamed, pending_plugins=pending
                )

    @rule(
        event=st.sampled_from([NODE_ADD, NODE_LABEL, POD_DELETED]),
        helped=st.sampled_from([*SIZES, ""]),
        about=st.sampled_from(["", "another", *NAMES]),
        least=st.sampled_from([0, 2]),
    )
    def happen(self, event: ClusterEvent, helped: str, about: str, least: int) -> None:
        self.once.helped = self.each.helped = helped
        waiting = self.benches[0].queue.get(f"ns/{about}")
        old = waiting.info if waiting is not None else make_pod(about, node="n", cpu=helped or "9") if about else None
        predicate = (lambda info: info.shape.amounts.get("cpu", 0) >= least * 1000) if least else None

        woken = [bench.queue.move_all(event, old=old, predicate=predicate) for bench in self.benches]

        assert woken[0] == woken[1]

    @rule(name=st.sampled_from(NAMES), size=st.sampled_from(SIZES), label=st.sampled_from("ab"))
    def update(self, name: str, size: str, label: str) -> None:
        queued = self.benches[0].queue.get(f"ns/{name}")
        if queued is not None:
            old = queued.info
            new = make_pod(name, uid=old.uid, cpu=size, labels={"l": label}, profile=old.scheduler_name)
            for bench in self.benches:
                bench.queue.update(old, new)

    @rule(seconds=st.sampled_from([0.5, 3.0, 400.0]))
    def wait(self, seconds: float) -> None:
        for bench in self.benches:
            bench.clock.advance(seconds)
            bench.queue.flush_backoff()
            bench.queue.flush_unschedulable()

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        if name not in self.flying and (queued := self.benches[0].queue.get(f"ns/{name}")) is not None:
            for bench in self.benches:
                bench.queue.delete(queued.info)
                bench.server.pop(f"ns/{name}")

    @invariant()
    def both_are_in_the_same_state(self) -> None:
        first, second = (bench.queue for bench in self.benches)

        for place, pods in first.pending_pods().items():
            others = second.pending_pods()[place]
            assert [queued.key for queued in pods] == [queued.key for queued in others]
            for mine, other in zip(pods, others, strict=True):
                assert (mine.flushed_at, mine.history) == (other.flushed_at, other.history)
                assert mine.last_event == other.last_event or mine.gating_plugin
        assert first.incoming == second.incoming


class TwoQueuesByShapes(TwoQueues):
    """The same where events like earlier ones are shown to those that came since."""

    mark = staticmethod(by_shapes)


class TwoQueuesByView(TwoQueues):
    """The same where pods of other shapes are alike too, if the hint reads nothing of what they differ in."""

    mark = staticmethod(by_view(HintView(names=lambda pod: (), sees=_size)))


class LabelAsked(Asked):
    """A hint that queues the pods that look for the label of the changed pod; what they look for is their own label."""

    def __call__(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        self.times += 1
        side = new or old
        if side is None or side.uid == pod.uid:
            return Hint.QUEUE
        return Hint.QUEUE if pod.labels.get("l", "a") == side.labels.get("l") else Hint.SKIP


_LOOKED_FOR = HintView(names=lambda pod: [("l", (pod.labels.get("l", "a"),))], sees=lambda pod: None)


class TwoQueuesByLabel(TwoQueues):
    """The same for pods that look for labels of others, which they change at times themselves."""

    mark = staticmethod(by_view(_LOOKED_FOR))

    def __init__(self) -> None:
        super().__init__()
        self.held = set()
        self.once, self.each = LabelAsked(), LabelAsked()
        informed = make_bench(self.mark(self.once), self.held, releases={PROFILE: {"Gate": lambda: self.released}})
        self.benches = [informed, make_bench(self.each, self.held)]

    @rule(label=st.sampled_from("abcd"), number=st.integers(0, 3), is_change=st.booleans())
    def leave(self, label: str, number: int, is_change: bool) -> None:
        old = make_pod("other", node="n", labels={"l": label, "number": str(number)})
        event = POD_CHANGED if is_change else POD_DELETED
        new = make_pod("other", node="n", labels={"l": "a"}) if is_change else None

        woken = [bench.queue.move_all(event, old=old, new=new) for bench in self.benches]

        assert woken[0] == woken[1]


TestTwoQueues = TwoQueues.TestCase
TestTwoQueuesByShapes = TwoQueuesByShapes.TestCase
TestTwoQueuesByView = TwoQueuesByView.TestCase
TestTwoQueuesByLabel = TwoQueuesByLabel.TestCase
for test in (TestTwoQueues, TestTwoQueuesByShapes, TestTwoQueuesByView, TestTwoQueuesByLabel):
    test.settings = settings(
        max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


def test_an_event_like_an_earlier_one_is_shown_to_those_who_came_since() -> None:
    hint = by_shapes(Asked())
    bench = Bench(("Fit", EventHint(POD_DELETED, hint)))
    for number in range(2000):
        bench.reject(f"p{number}", "Fit", cpu=str(number + 1))

    assert bench.queue.move_all(POD_DELETED, old=make_pod("first", node="n", cpu="9999")) == 0
    assert hint.times == 2000
    bench.reject("late", "Fit", cpu="3000")
    for name in ("second", "third"):
        bench.queue.move_all(POD_DELETED, old=make_pod(name, node="n", cpu="9999"))
    assert hint.times == 2001
    assert bench.queue.move_all(POD_DELETED, old=make_pod("fourth", node="n", cpu="7")) == 1


def test_pods_that_differ_in_labels_that_nobody_looks_for_are_alike() -> None:
    """As those of a StatefulSet, which have an index each: thousands that wait are not asked about each of them."""
    hint = by_view(_LOOKED_FOR)(LabelAsked())
    bench = Bench(("Fit", EventHint(POD_DELETED, hint)))
    for number in range(500):
        bench.reject(f"p{number}", "Fit", labels={"l": f"nobody-{number}"})

    for index in range(50):
        labels = {"l": f"web-{index}", "index": str(index)}
        assert bench.queue.move_all(POD_DELETED, old=make_pod(f"web-{index}", node="n", labels=labels)) == 0
    assert hint.times == 500

    bench.reject("late", "Fit", labels={"l": "web-60"})
    assert bench.queue.move_all(POD_DELETED, old=make_pod("x", node="n", labels={"l": "web-61"})) == 0
    assert hint.times == 501
    assert bench.queue.move_all(POD_DELETED, old=make_pod("y", node="n", labels={"l": "web-60"})) == 1


def test_a_hint_that_cannot_say_what_it_looks_for_is_asked_by_shapes() -> None:
    def broken(pod: PodInfo) -> list[tuple[str, tuple[str, ...]]]:
        raise ValueError("unreadable")

    hint = by_view(HintView(names=broken, sees=lambda pod: None))(LabelAsked())
    bench = Bench(("Fit", EventHint(POD_DELETED, hint)))
    bench.reject("p", "Fit", labels={"l": "wanted"})

    for label in ("a", "b", "a", "b", "wanted"):
        woken = bench.queue.move_all(POD_DELETED, old=make_pod("x", node="n", labels={"l": label}))
        assert woken == (label == "wanted")
    assert hint.times == 3


def test_a_thousand_pods_of_one_template_are_one_question() -> None:
    hint = by_shape(Asked())
    bench = Bench(("Fit", EventHint(NODE_ADD, hint)))
    for number in range(1000):
        bench.reject(f"p{number}", "Fit", cpu="1")

    bench.queue.move_all(NODE_ADD)

    assert hint.times == 1


def test_the_pod_that_the_event_is_about_is_asked_about_itself() -> None:
    hint = by_shape(Asked())
    bench = Bench(("Fit", EventHint(POD_DELETED, hint)))
    own, other = bench.reject("own", "Fit", cpu="1"), bench.reject("other", "Fit", cpu="1")

    assert bench.queue.move_all(POD_DELETED, old=own.info) == 1
    assert bench.queue.get(own.key) is own
    assert [queued.key for queued in bench.queue._pool] == [other.key]


def test_a_hint_that_empties_the_pool_disturbs_nobody() -> None:
    bench: Bench

    def activates_all(pod: PodInfo, old: Any, new: Any) -> Hint:
        bench.queue.activate([queued.info for queued in list(bench.queue._pool)])
        return Hint.QUEUE

    bench = Bench(("Fit", EventHint(NODE_ADD, activates_all)))
    for number in range(3):
        bench.reject(f"p{number}", "Fit", cpu=str(number + 1))

    assert bench.queue.move_all(NODE_ADD) == 0
    assert sorted(bench.popped_names()) == ["p0", "p1", "p2"]


def test_held_pods_are_asked_about_when_their_plugin_let_them_go() -> None:
    held, log = {"p0", "p1", "p2"}, NameLog()
    asked: list[str] = []

    def gate(pod: PodInfo) -> Status | None:
        asked.append(pod.name)
        return Unresolvable("held") if pod.name in held else None

    bench = Bench(("Gate", EventHint(NODE_ADD)), pre_enqueue={"Gate": gate}, releases={PROFILE: {"Gate": lambda: log}})
    for name in sorted(held):
        bench.add(name, cpu="1")
    assert bench.queue.move_all(NODE_ADD) == 0
    asked.clear()

    assert bench.queue.move_all(NODE_ADD) == 0
    assert asked == []
    held.remove("p1")
    log.record("ns/p1")
    assert bench.queue.move_all(NODE_ADD) == 1
    assert set(asked) == {"p1"}
    assert bench.popped_names() == ["p1"]


def test_a_pod_that_was_let_go_waits_for_an_event_that_helps() -> None:
    held, log, hint = {"p0"}, NameLog(), Asked()
    bench = make_bench(by_shape(hint), held, releases={PROFILE: {"Gate": lambda: log}})
    bench.add("p0", cpu="1")
    bench.queue.move_all(NODE_ADD)
    held.clear()
    log.record("ns/p0")

    assert bench.queue.move_all(NODE_ADD) == 0
    hint.helped = "1"
    assert bench.queue.move_all(NODE_ADD) == 1


def test_a_pod_that_changed_keeps_its_place_among_those_who_wake() -> None:
    bench = Bench(("Fit", EventHint(NODE_ADD, by_shape(Asked()))), ("Free", EventHint(NODE_ADD)))
    for name in "abc":
        bench.reject(name, "Free", cpu="1")
    old = bench.queue.get("ns/b")
    assert old is not None
    bench.queue.update(old.info, make_pod("b", cpu="1", labels={"l": "new"}))
    bench.queue.update(old.info, make_pod("b", cpu="1"))
    bench.clock.advance(60)

    assert bench.queue.move_all(NODE_ADD) == 3
    assert bench.popped_names() == ["a", "b", "c"]
