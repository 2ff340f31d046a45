"""Pods, plugins and a clock for the tests of the queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bayplan.api.meta import Metadata
from bayplan.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements, SchedulingGate, Toleration
from bayplan.cluster.pod_info import PodInfo, pod_info
from bayplan.cluster.resources import ResourceAxis
from bayplan.cluster.shapes import ShapeTable
from bayplan.framework.events import ALL, ActionType, ClusterEvent, EventHint, Hint, Resource
from bayplan.framework.plugin import Plugin
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.call import sort_key_call
from bayplan.framework.status import Status, Unresolvable
from bayplan.observe.clock import VirtualClock
from bayplan.queue import BackoffTimes, Nominations, Place, QueuePolicy, SchedulingQueue
from bayplan.queue.heap import SortKey

START = 1_700_000_000.0
PROFILE = "default-scheduler"

NODE_ADD = ClusterEvent(Resource.NODE, ActionType.ADD)
FIT = ("Fit", EventHint(NODE_ADD))
NODE_DELETE = ClusterEvent(Resource.NODE, ActionType.DELETE)
NODE_LABEL = ClusterEvent(Resource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(Resource.NODE, ActionType.UPDATE_NODE_TAINT)
POD_ASSIGNED = ClusterEvent(Resource.ASSIGNED_POD, ActionType.ADD)
POD_DELETED = ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE)
GATES_GONE = ClusterEvent(Resource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
EVERYTHING = ClusterEvent(Resource.ANY, ALL, "Everything")

_shapes = ShapeTable(ResourceAxis())


def sort_key_of(plugin: Plugin) -> SortKey:
    """The order of a plugin as the scheduler takes it, without anyone to complain to."""
    return sort_key_call(plugin, lambda *_complaint: None)


def make_pod(
    name: str = "pod",
    *,
    uid: str | None = None,
    priority: int | None = None,
    gates: Iterable[str] = (),
    labels: dict[str, str] | None = None,
    profile: str = PROFILE,
    node: str = "",
    nominated: str = "",
    cpu: str | None = None,
    tolerations: int = 0,
) -> PodInfo:
    requests = ResourceRequirements(requests={"cpu": cpu}) if cpu else None
    pod = Pod(
        metadata=Metadata(name=name, namespace="ns", uid=f"uid-{name}" if uid is None else uid, labels=labels),
        spec=PodSpec(
            priority=priority,
            scheduler_name=profile,
            node_name=node,
            scheduling_gates=[SchedulingGate(name=gate) for gate in gates] or None,
            containers=[Container(name="main", resources=requests)],
            tolerations=[Toleration(key=str(number)) for number in range(tolerations)] or None,
        ),
        status=PodStatus(nominated_node_name=nominated),
    )
    return pod_info(pod, _shapes)


def make_queued(name: str = "pod", *, timestamp: float = START, **keywords: Any) -> QueuedPod:
    return QueuedPod(make_pod(name, **keywords), timestamp)


def scheduling_gates(pod: PodInfo) -> Status | None:
    gates = pod.spec.scheduling_gates
    return Unresolvable("waiting for scheduling gates") if gates else None


def queue_itself(pod: PodInfo, old: Any, new: Any) -> Hint:
    """A hint that only cares about changes of the waiting pod."""
    return Hint.QUEUE if isinstance(new, PodInfo) and new.uid == pod.uid else Hint.SKIP


class ScriptedHint:
    """A hint with a settable answer that remembers whom it was asked about."""

    def __init__(self, answer: Any = Hint.QUEUE) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.changes: list[tuple[Any, Any]] = []

    def __call__(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        self.asked.append(pod.name)
        self.changes.append((old, new))
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: Hint = self.answer
        return answer


class ScriptedGate:
    """A PreEnqueue plugin with a settable answer that counts its calls."""

    def __init__(self, answer: Status | Exception | None = None) -> None:
        self.answer = answer
        self.calls = 0

    def __call__(self, pod: PodInfo) -> Status | None:
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Bench:
    """A queue on a virtual clock, with the API server's pods in a dictionary."""

    def __init__(
        self,
        *registrations: tuple[str, EventHint],
        pre_enqueue: dict[str, Any] | None = None,
        times: BackoffTimes | None = None,
        clock: VirtualClock | None = None,
        **keywords: Any,
    ) -> None:
        self.clock = clock or VirtualClock(START)
        self.server: dict[str, Pod] = {}
        self.rings = 0
        policy = QueuePolicy(
            registrations={PROFILE: registrations},
            pre_enqueue={PROFILE: {"SchedulingGates": scheduling_gates, **(pre_enqueue or {})}},
            **keywords,
        )
        self.queue = SchedulingQueue(
            self.clock,
            policy,
            nominations=Nominations(self._get_pod),
            times=times,
            on_ready=self._ring,
            hint_observer=None,
        )

    def _ring(self) -> None:
        self.rings += 1

    def _get_pod(self, namespace: str, name: str) -> Pod | None:
        return self.server.get(f"{namespace}/{name}")

    def add(self, name: str = "pod", **keywords: Any) -> PodInfo:
        info = make_pod(name, **keywords)
        self.server[info.key] = info.pod
        self.queue.add(info)
        return info

    def pop(self) -> QueuedPod:
        queued = self.queue.pop()
        assert queued is not None
        return queued

    def reject(self, name: str = "pod", *plugins: str, **keywords: Any) -> QueuedPod:
        """Add a pod, try it, and let these plugins reject it."""
        self.add(name, **keywords)
        queued = self.pop()
        assert queued.info.name == name, "add the pod to an empty active queue"
        self.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins=plugins)
        return queued

    def popped_names(self) -> list[str]:
        names = []
        while (queued := self.queue.pop()) is not None:
            names.append(queued.info.name)
        return names


def held() -> Status:
    return Unresolvable("held")


def fail(bench: Bench, name: str = "pod", *, rejected: bool = False, **keywords: Any) -> QueuedPod:
    """A pod in back-off, by an error or by a rejection that an event overtook."""
    bench.add(name, **keywords)
    queued = bench.pop()
    assert queued.info.name == name
    bench.queue.move_all(NODE_ADD)
    bench.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins={"Fit"} if rejected else ())
    assert bench.queue.place_of(queued.key) is Place.BACKOFF
    return queued
