"""Whatever happens in whatever order: no pod is lost or doubled, and nobody sleeps through what it waited for."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.unit.queue.kit import EVERYTHING, NODE_ADD, NODE_DELETE, NODE_LABEL, PROFILE, make_pod

from bayplan.api.pod import Pod
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.events import ActionType, ClusterEvent, EventHint, Hint, HintFunction, Resource
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Status, Unresolvable
from bayplan.observe.clock import VirtualClock
from bayplan.queue import Nominations, Place, QueuePolicy, SchedulingQueue
from bayplan.queue.heap import by_priority

NAMES = st.sampled_from([f"p{number}" for number in range(4)])
PLUGINS = ("Fit", "Taint", "Devices", "Gate")
EVENTS = {NODE_ADD: {"Fit", "Taint"}, NODE_LABEL: {"Taint", "Devices"}, NODE_DELETE: {"Gate", "Fit"}}
POD_CHANGE = ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.UPDATE)
Heard = list[tuple[ClusterEvent, frozenset[str]]]
AWAKE = (Place.ACTIVE, Place.BACKOFF)


def hint_of(plugin: str) -> HintFunction:
    """The event itself says which plugins find it helpful, so an answer is the same now and later."""
    return lambda pod, old, new: Hint.QUEUE if plugin in new else Hint.SKIP


class QueueUnderRandomUse(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.server: dict[str, PodInfo] = {}
        self.flying: dict[str, QueuedPod] = {}
        self.heard: dict[str, Heard] = {}
        self.held: set[str] = set()
        self.births = 0
        registrations = [
            (plugin, EventHint(event, hint_of(plugin)))
            for event, plugins in EVENTS.items()
            for plugin in sorted(plugins)
        ]
        policy = QueuePolicy(
            registrations={PROFILE: registrations}, pre_enqueue={PROFILE: {"Gate": self.gate, "Open": lambda pod: None}}
        )
        self.queue = SchedulingQueue(self.clock, policy, nominations=Nominations(self.get_pod))

    def gate(self, pod: PodInfo) -> Status | None:
        return Unresolvable("held") if pod.name in self.held else None

    def get_pod(self, namespace: str, name: str) -> Pod | None:
        info = self.server.get(f"{namespace}/{name}")
        return info.pod if info else None

    # What the world does.

    @rule(
        name=NAMES,
        priority=st.integers(0, 3),
        profile=st.sampled_from([PROFILE, PROFILE, "unknown"]),
        is_held=st.booleans(),
    )
    def create(self, name: str, priority: int, profile: str, is_held: bool) -> None:
        if f"ns/{name}" in self.server:
            return
        self.hold_or_release(name, is_held)
        self.births += 1
        info = make_pod(name, uid=f"{name}-{self.births}", priority=priority, profile=profile)
        self.server[info.key] = info
        self.queue.add(info)

    @rule(name=NAMES, priority=st.integers(0, 3), label=st.sampled_from("ab"), nominated=st.sampled_from(["", "n1"]))
    def update(self, name: str, priority: int, label: str, nominated: str) -> None:
        old = self.server.get(f"ns/{name}")
        if old is None:
            return
        new = make_pod(
            name,
            uid=old.uid,
            priority=priority,
            labels={"l": label},
            nominated=nominated,
            profile=old.scheduler_name,
        )
        self.server[new.key] = new
        before = self.queue.place_of(new.key)
        place = self.queue.update(old, new)
        if new.scheduler_name == PROFILE or before not in (Place.UNSCHEDULABLE, Place.GATED):
            assert place is (before or Place.IN_FLIGHT), "nobody waits for changes of the pod itself"
        else:
            assert place in AWAKE, "nobody speaks for the pod, so anything counts"
        if before is None:
            self.tell_everybody_in_flight(POD_CHANGE, frozenset())

    def tell_everybody_in_flight(self, event: ClusterEvent, helps: frozenset[str]) -> None:
        for events in self.heard.values():
            events.append((event, helps))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        info = self.server.pop(f"ns/{name}", None)
        if info is not None:
            self.queue.delete(info)

    @rule(event=st.sampled_from(list(EVENTS)), helps=st.frozensets(st.sampled_from(PLUGINS)))
    def happen(self, event: ClusterEvent, helps: frozenset[str]) -> None:
        asleep = {q.key: (q, self.queue.place_of(q.key)) for q in self.asleep()}
        due = {key for key, (q, place) in asleep.items() if self.is_due(q, place, event, helps)}

        self.queue.move_all(event, new=helps)

        for key, (queued, place) in asleep.items():
            now = self.queue.place_of(key)
            if key not in due:
                assert now is place, "woken by what it did not wait for"
            elif queued.info.name in self.held and queued.info.scheduler_name == PROFILE:
                assert now is Place.GATED
            else:
                assert now in AWAKE, "slept through what it waited for"
        self.tell_everybody_in_flight(event, helps)

    def is_due(self, queued: QueuedPod, place: Place | None, event: ClusterEvent, helps: frozenset[str]) -> bool:
        if queued.info.scheduler_name != PROFILE:
            return True
        if place is Place.GATED and queued.gating_plugin not in EVENTS[event]:
            return False
        return bool(queued.rejectors & EVENTS[event] & helps)

    @rule()
    def everything_changes(self) -> None:
        self.queue.move_all(EVERYTHING)

        assert all(queued.info.name in self.held for queued in self.asleep())
        self.tell_everybody_in_flight(EVERYTHING, frozenset())

    @rule(name=NAMES, is_held=st.booleans())
    def hold_or_release(self, name: str, is_held: bool) -> None:
        (self.held.add if is_held else self.held.discard)(name)

    @rule(seconds=st.sampled_from([0.3, 1.0, 2.5, 11.0, 200.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    # What the scheduler does.

    @rule()
    def pop(self) -> None:
        waiting = self.queue.pending_pods()
        queued = self.queue.pop()
        if waiting[Place.ACTIVE]:
            assert queued is not None
            assert by_priority(queued) == min(by_priority(each) for each in waiting[Place.ACTIVE])
        rejected = [each for each in waiting[Place.BACKOFF] if each.rejectors]
        if queued is None:
            assert not rejected
            return
        if not waiting[Place.ACTIVE]:
            assert queued.backoff_expiration == min(each.backoff_expiration or 0.0 for each in rejected)
        assert queued.gating_plugin == "", "a gated pod was popped"
        self.flying[queued.uid] = queued
        self.heard[queued.uid] = []

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        queued = self.land(data)
        if (info := self.server.get(queued.key)) is not None and info.uid == queued.uid:
            del self.server[queued.key]
            self.queue.delete(info)
        self.queue.done(queued.uid)
        del self.heard[queued.uid]

    @precondition(lambda self: self.flying)
    @rule(
        data=st.data(),
        blamed=st.frozensets(st.sampled_from(("Fit", "Taint"))),
        pending=st.frozensets(st.just("Devices")),
    )
    def fail(self, data: st.DataObject, blamed: frozenset[str], pending: frozenset[str]) -> None:
        queued = self.land(data)
        heard = self.heard.pop(queued.uid)
        info = self.server.get(queued.key)
        if info is None or info.uid != queued.uid:
            self.queue.done(queued.uid)
            return
        place = self.queue.add_unschedulable_if_not_present(
            queued, unschedulable_plugins=blamed, pending_plugins=pending, info=info
        )
        is_known = info.scheduler_name == PROFILE
        if is_known and info.name in self.held and place is not Place.UNSCHEDULABLE:
            assert place is Place.GATED
        elif self.is_worth_a_try(heard, blamed | pending, is_known=is_known):
            assert place in AWAKE, "an event during the attempt was lost"
            if is_known and any(pending & EVENTS[event] & helps for event, helps in heard if event in EVENTS):
                assert place is Place.ACTIVE, "what a pending plugin waited for skips the back-off"
        else:
            assert place is Place.UNSCHEDULABLE

    def is_worth_a_try(self, heard: Heard, rejectors: frozenset[str], *, is_known: bool) -> bool:
        if not rejectors or (heard and not is_known):
            return True
        return any(event is EVERYTHING or rejectors & EVENTS.get(event, set()) & helps for event, helps in heard)

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        info = self.server.get(f"ns/{name}")
        if info is None:
            return
        before = self.queue.place_of(info.key)
        self.queue.activate([info])
        if before is not None:
            allowed = (Place.ACTIVE, Place.GATED) if name in self.held else (Place.ACTIVE,)
            assert self.queue.place_of(info.key) in allowed
        elif info.uid in self.flying:
            self.heard[info.uid].append((EVERYTHING, frozenset()))

    @rule()
    def flush(self) -> None:
        self.queue.flush_backoff()
        for queued in self.queue.pending_pods()[Place.BACKOFF]:
            assert (queued.backoff_expiration or 0.0) >= self.clock.now() // 1

        overdue = [q for q in self.asleep() if self.clock.now() - max(q.timestamp, q.flushed_at or 0.0) > 300]
        self.queue.flush_unschedulable()
        if overdue:
            self.tell_everybody_in_flight(EVERYTHING, frozenset())
        for queued in overdue:
            if queued.info.name not in self.held:
                assert self.queue.place_of(queued.key) in AWAKE

    def land(self, data: st.DataObject) -> QueuedPod:
        return self.flying.pop(data.draw(st.sampled_from(sorted(self.flying)), label="pod in flight"))

    def asleep(self) -> list[QueuedPod]:
        pods = self.queue.pending_pods()
        return [*pods[Place.UNSCHEDULABLE], *pods[Place.GATED]]

    # What always holds.

    @invariant()
    def every_pod_is_in_one_place(self) -> None:
        waiting = [queued for pods in self.queue.pending_pods().values() for queued in pods]
        uids = [queued.uid for queued in waiting] + list(self.flying)
        assert len(uids) == len(set(uids)), "a pod is in two places"
        assert {info.uid for info in self.server.values()} <= set(uids), "a pod is lost"
        assert {queued.uid for queued in waiting} <= {info.uid for info in self.server.values()}, "a ghost is queued"
        assert all(self.server[queued.key] is queued.info for queued in waiting), "an update is lost"

    @invariant()
    def sizes_and_places_agree(self) -> None:
        pods = self.queue.pending_pods()
        assert self.queue.sizes == (*(len(pods[place]) for place in list(Place)[:4]), len(self.flying))
        for place, queued in ((place, queued) for place, group in pods.items() for queued in group):
            assert self.queue.place_of(queued.key) is place
            assert bool(queued.gating_plugin) is (place is Place.GATED)

    @invariant()
    def only_needed_events_are_kept(self) -> None:
        in_flight = self.queue._in_flight
        assert set(in_flight._pods) == set(self.flying)
        if in_flight.recorded:
            assert in_flight._events[0].number > min(in_flight._pods.values())

    @invariant()
    def the_pool_is_indexed_by_who_rejected_its_pods(self) -> None:
        pool = self.queue._pool
        for queued in pool:
            if queued.info.scheduler_name == PROFILE:
                assert {plugin for _, plugin in pool._files[pool._kinds[queued.key]].rejectors} == queued.rejectors
        assert all(pool._by_rejector.values())

    @invariant()
    def nominations_belong_to_pods_that_exist(self) -> None:
        uids = {info.uid for info in self.server.values()}
        nominator = self.queue.nominations
        assert {info.uid for node in nominator.nominated_nodes() for info in nominator.nominated_pods(node)} <= uids


QueueUnderRandomUse.TestCase.settings = settings(
    max_examples=120, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestQueueUnderRandomUse = QueueUnderRandomUse.TestCase
