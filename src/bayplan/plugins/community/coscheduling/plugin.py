"""Coscheduling: the pods of a group are bound together, or none of them is.

Pods with a node wait at Permit, holding their place, until enough of the group do; then all are allowed at once. A
group that cannot be completed releases its places and rests until an event may help it. Placed pods are not tracked
here: the cluster and the waiting pods are the only source, so that nothing can diverge, and a reload loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from bayplan.framework import (
    ALL,
    ActionType,
    ClusterEvent,
    CycleState,
    Diagnosis,
    EventHint,
    Hint,
    HintView,
    NodeColumns,
    ObjectRemedy,
    Plugin,
    PluginArgs,
    PodInfo,
    QueuedPod,
    Resource,
    Status,
    Unresolvable,
    Unschedulable,
    Wait,
    by_view,
)
from bayplan.framework.columns import PodSet
from bayplan.framework.objects import parse_time
from bayplan.plugins.community.coscheduling.gang_room import described_gap, resource_gap
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup, group_key

__all__ = ["Coscheduling"]

_NO_GROUP = Unschedulable("can not find pod group")
_GROUP_MISSING = Unschedulable("PodGroup not found")
_KEEP = Unschedulable()
_DEFAULT_WAIT_SECONDS = 60
_GROUP_ALONE = HintView(
    names=lambda pod: [(POD_GROUP_LABEL, ("", pod.labels.get(POD_GROUP_LABEL, "")))], sees=lambda pod: None
)
_LONGEST_REST_SECONDS = 15.0
"""Slightly longer than the longest back-off of a pod: the group's own release must not requeue it."""

_ANY_CHANGE = (
    Resource.PERSISTENT_VOLUME,
    Resource.PERSISTENT_VOLUME_CLAIM,
    Resource.CSI_NODE,
    Resource.CSI_DRIVER,
    Resource.CSI_STORAGE_CAPACITY,
    Resource.STORAGE_CLASS,
    Resource.RESOURCE_CLAIM,
    Resource.RESOURCE_SLICE,
    Resource.DEVICE_CLASS,
)
"""A pod that rests with its group is not requeued by the events of the plugins that rejected it, so the group registers
them."""


class _Rest(NamedTuple):
    """A group released its places; another attempt before something changes would fail the same way."""

    until: float
    members: frozenset[str]
    """uids at the time; a pod that is created later ends the rest."""
    blockers: frozenset[str]
    """Groups that held places at the time: what they release counts, what others reserve and release does not."""
    why: str


class _History:
    """Past attempts of a group, as far as they decide the next one."""

    __slots__ = ("backed_off_until", "last_failed", "rest")

    def __init__(self) -> None:
        self.last_failed: float | None = None
        self.backed_off_until = 0.0
        self.rest: _Rest | None = None


class Coscheduling(Plugin):
    """Bind the pods of a PodGroup once `minMember` of them have a node, and none before.

    *What it does*: pods with the label `scheduling.x-k8s.io/pod-group` wait at Permit until the group is complete. The
    first that waits activates its siblings; the last allows all of them.
    *Rejects when*: fewer pods than minMember exist or are free of scheduling gates; the cluster as a whole lacks
    minResources; the group failed and nothing has changed since; the PodGroup does not exist (at Permit); the
    wait took too long. A pod that fits nowhere has its waiting siblings rejected, unless only few are missing
    (podGroupRejectPercentage).
    *Scores by*: nothing. Orders the queue by priority, then by the group's creation or last failure, then by the names
    of group and pod.
    *Retries on*: room made by other pods, changes of nodes, volumes and claims, the PodGroup, a new sibling, the end of
    the group's back-off.
    *Arguments*: permitWaitingTimeSeconds (60), podGroupBackoffSeconds (0, none), podGroupRejectPercentage (10).
    *Differs from the original*: a group that released its places is not requeued by its own release, nor by a
    failed attempt of another group that did not affect it, so two groups that cannot be placed do not requeue each
    other forever; events that may help requeue it at once, where the original waits for a timer, but room does not
    help a group of which too few pods are there; the first waiting pod activates its siblings also when some
    members run already; members are known by uid, so a pod created again under an old name is another one; pods
    that are about to lose their place do not count; room is summed over nodes that have some; groups made in the
    same second are queued one after the other, not mixed by the names of their pods, and pods that arrive before
    their PodGroup are queued together too; the history of a group is dropped with the PodGroup.
    """

    watches = (PodGroup,)
    reasons = (
        "podGroup <group> failed recently",
        "pre-filter pod <pod> cannot find enough sibling pods, current pods number: <n>, minMember of group: <m>",
        "pre-filter pod <pod> cannot proceed due to gated pods in the same PodGroup",
        "resource gap: <resources>",
        *_NO_GROUP.reasons,
        *_GROUP_MISSING.reasons,
        "PodGroup <group> gets rejected due to Pod <pod> is unschedulable even after PostFilter",
    )

    class Args(PluginArgs):
        permit_waiting_time_seconds: int = _DEFAULT_WAIT_SECONDS
        pod_group_backoff_seconds: int = 0
        pod_group_reject_percentage: int = 10

        def validate(self) -> list[str]:
            seconds = {
                "permitWaitingTimeSeconds": self.permit_waiting_time_seconds,
                "podGroupBackoffSeconds": self.pod_group_backoff_seconds,
            }
            problems = [f"{name}: must be greater than 0, got {value}" for name, value in seconds.items() if value < 0]
            if not 0 <= self.pod_group_reject_percentage <= 100:
                problems.append(
                    f"podGroupRejectPercentage: must be between 0 and 100, got {self.pod_group_reject_percentage}"
                )
            return problems

    def setup(self) -> None:
        self._histories: dict[str, _History] = {}
        self._released: set[str] = set()
        """uids of pods that were rejected at Permit and still hold their place."""
        self._labelled = self.handle.cluster.labelled_pods
        self._labelled.follow(POD_GROUP_LABEL)
        self._groups = self.handle.resources(PodGroup)
        self._groups.on_change(self._group_changed)

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        if new is None and old is not None:
            self._histories.pop(old.key, None)

    def _group_of(self, pod: PodInfo) -> PodGroup | None:
        name = pod.labels.get(POD_GROUP_LABEL)
        group: PodGroup | None = self._groups.get(name, pod.namespace) if name else None
        return group

    def _members(self, pod: PodInfo) -> PodSet:
        return self._labelled.get(POD_GROUP_LABEL, pod.namespace, pod.labels.get(POD_GROUP_LABEL, ""))

    def object_remedies(self, pod: PodInfo) -> Iterator[ObjectRemedy]:
        """The PodGroup, where the label names one that does not exist."""
        key = group_key(pod)
        if key is not None and self._group_of(pod) is None:
            there = max(len(self._members(pod)), 1)
            metadata = {"name": pod.labels[POD_GROUP_LABEL], "namespace": pod.namespace}
            wanted = msgspec.convert({"metadata": metadata, "spec": {"minMember": there}}, PodGroup)
            yield ObjectRemedy(f"the PodGroup {key} existed with minMember {there}", None, wanted)

    # QueueSort

    def sort_key(self, queued: QueuedPod) -> tuple[int, float, str, str]:
        # Creation times are whole seconds. Groups created in one second must not be mixed: each would hold places and
        # wait for the others.
        return -queued.priority, self._queued_since(queued), group_key(queued.info) or queued.key, queued.key

    def _queued_since(self, queued: QueuedPod) -> float:
        """A group has one position in the queue, behind the others after a failure."""
        key = group_key(queued.info)
        history = self._histories.get(key) if key else None
        if history is not None and history.last_failed is not None:
            return history.last_failed
        group = self._group_of(queued.info)
        made = group.metadata.creation_timestamp if group is not None else self._first_member_made(queued.info)
        if made:
            return parse_time(made)
        first = queued.initial_attempt_timestamp
        return queued.timestamp if first is None else first

    def _first_member_made(self, pod: PodInfo) -> str | None:
        """For a group that is not known yet, as at a start, or when its pods arrive before the PodGroup."""
        first = next(iter(self._members(pod).pods.values()), None) if group_key(pod) else None
        return first.pod.metadata.creation_timestamp if first is not None else None

    # PreFilter

    def is_relevant(self, pod: PodInfo) -> bool:
        return group_key(pod) is not None

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        group, members = self._group_of(pod), self._members(pod)
        if group is None:
            return None
        if self._is_backed_off(group.key):
            return Unresolvable(f"podGroup {group.key} failed recently")
        return self._incomplete(pod, group, members) or self._resting(pod, group.key) or _lacks(group, members, nodes)

    def _is_backed_off(self, key: str) -> bool:
        history = self._histories.get(key)
        return history is not None and self.handle.clock.monotonic() < history.backed_off_until

    def _incomplete(self, pod: PodInfo, group: PodGroup, members: PodSet) -> Status | None:
        wanted, there = group.spec.min_member, len(members)
        if there < wanted:
            return Unresolvable(
                f"pre-filter pod {pod.name} cannot find enough sibling pods, "
                f"current pods number: {there}, minMember of group: {wanted}"
            )
        gated = sum(1 for member in members.pods.values() if member.shape.spec.scheduling_gates)
        if there - gated < wanted:
            return Unresolvable(f"pre-filter pod {pod.name} cannot proceed due to gated pods in the same PodGroup")
        return None

    def _resting(self, pod: PodInfo, key: str) -> Status | None:
        rest = self._rest(key)
        if rest is None:
            return None
        if pod.uid not in rest.members:
            self._end_rest(key)
            return None
        return Unresolvable(f"podGroup {key} failed recently", rest.why)

    def _rest(self, key: str) -> _Rest | None:
        """The rest that the group is in, if it has not ended."""
        history = self._histories.get(key)
        if history is None or history.rest is None or self.handle.clock.monotonic() >= history.rest.until:
            return None
        return history.rest

    def _end_rest(self, key: str) -> None:
        history = self._histories.get(key)
        if history is not None:
            history.rest = None

    # PostFilter

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> Status:
        group = self._group_of(pod)
        if group is None:
            return _NO_GROUP
        members, wanted = self._members(pod), group.spec.min_member
        missing = wanted - self._count_placed(members)
        if missing <= 0 or missing * 100 <= self.args.pod_group_reject_percentage * wanted:
            return _KEEP
        # A pod that was rejected for its group's rest or back-off is no new failure: it must not prolong either of
        # them.
        if self._rest(group.key) is not None or self._is_backed_off(group.key) or self._is_room_coming():
            return _KEEP
        self._release(group.key, members, "optimistic rejection in PostFilter", why=_reasons(diagnosis))
        if len(members) >= wanted:
            self._back_off(group.key)
        return Unschedulable(
            f"PodGroup {group.key} gets rejected due to Pod {pod.name} is unschedulable even after PostFilter"
        )

    def _is_room_coming(self) -> bool:
        """Whether rejected pods still count on their nodes: the pod may fit once they are removed."""
        return any(held.is_rejected for held in self.handle.waiting_pods)

    def _count_placed(self, members: PodSet) -> int:
        """Members with a node, without those that are about to lose it."""
        waiting = self.handle.waiting_pods
        lost = sum(1 for uid in members.placed if (held := waiting.get(uid)) is not None and held.is_rejected)
        return len(members.placed) - lost

    def _release(self, key: str, members: PodSet, message: str, *, why: str, leaving: str = "") -> None:
        """Reject the waiting siblings; if there were any, the group rests until another event."""
        waiting = self.handle.waiting_pods
        held = [w for uid in members.placed if uid != leaving and (w := waiting.get(uid)) is not None]
        released = [w.info.uid for w in held if w.reject(self.name, message)]
        self._released.update(released)
        history = self._histories.setdefault(key, _History())
        history.last_failed = self.handle.clock.now()
        if released:
            history.rest = _Rest(
                self.handle.clock.monotonic() + _LONGEST_REST_SECONDS,
                frozenset(members.pods),
                self._groups_holding() - {key},
                why,
            )

    def _groups_holding(self) -> frozenset[str]:
        """The groups that hold places at Permit, or have not released them yet."""
        keys = (group_key(held.info) for held in self.handle.waiting_pods)
        return frozenset(key for key in keys if key is not None)

    def _back_off(self, key: str) -> None:
        seconds = self.args.pod_group_backoff_seconds
        if seconds:
            self._histories[key].backed_off_until = self.handle.clock.monotonic() + seconds
            self.handle.call_later(seconds, partial(self._bring_back, key))

    def _bring_back(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        members = self._labelled.get(POD_GROUP_LABEL, namespace, name)
        self.handle.activate([pod for uid, pod in members.pods.items() if uid not in members.placed])

    # Permit

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        key = group_key(pod)
        if key is None:
            return None
        group, members = self._group_of(pod), self._members(pod)
        if group is None:
            return _GROUP_MISSING
        if len(members.placed) >= group.spec.min_member and self._count_placed(members) >= group.spec.min_member:
            self._let_through(key, members)
            return None
        if not self._has_waiting(members):
            state.pods_to_activate.update(
                (sibling.key, sibling) for uid, sibling in members.pods.items() if uid not in members.placed
            )
        needed = f"pod group {key} needs {group.spec.min_member} pods that have a node"
        return Wait(self._wait_seconds(group), needed)

    def _let_through(self, key: str, members: PodSet) -> None:
        history = self._histories.get(key)
        if history is not None:
            history.last_failed = history.rest = None
        for uid in list(members.placed):
            held = self.handle.waiting_pods.get(uid)
            if held is not None:
                held.allow(self.name)

    def _has_waiting(self, members: PodSet) -> bool:
        """Whether siblings wait already, so that the others were activated before."""
        waiting = self.handle.waiting_pods
        return any((held := waiting.get(uid)) is not None and not held.is_rejected for uid in members.placed)

    def _wait_seconds(self, group: PodGroup) -> int:
        stated = group.spec.schedule_timeout_seconds
        return stated if stated is not None else self.args.permit_waiting_time_seconds or _DEFAULT_WAIT_SECONDS

    # Reserve

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Reject the siblings that wait for the group of a pod that loses its place.

        Not for a pod that was rejected with its group: others may already wait in a new attempt.
        """
        if pod.uid in self._released:
            self._released.discard(pod.uid)
            return
        group = self._group_of(pod)
        if group is not None:
            why = f"pod {pod.name} lost its place"
            self._release(group.key, self._members(pod), "rejection in Unreserve", why=why, leaving=pod.uid)

    # Requeueing

    def events_to_register(self) -> list[EventHint]:
        added_or_changed = ActionType.ADD | ActionType.UPDATE
        return [
            EventHint(ClusterEvent(Resource.POD, ActionType.ADD), self._after_pod_added),
            EventHint(ClusterEvent(Resource.POD, ActionType.DELETE), self._after_pod_deleted),
            EventHint(ClusterEvent(Resource.POD, ActionType.UPDATE_POD_SCALE_DOWN), self._after_room_was_made),
            EventHint(PodGroup.changes(added_or_changed), self._after_group_changed),
            EventHint(ClusterEvent(Resource.NODE, added_or_changed), self._after_room_was_made),
            *(EventHint(ClusterEvent(resource, ALL), self._after_room_was_made) for resource in _ANY_CHANGE),
        ]

    def _after_any(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        key = group_key(pod)
        if key is not None:
            self._end_rest(key)
        return Hint.QUEUE

    def _after_room_was_made(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        """Room is no help to a group of which too few pods are there: PreFilter would reject the pod again."""
        group = self._group_of(pod)
        is_short = group is not None and len(self._members(pod)) < group.spec.min_member
        return Hint.SKIP if is_short else self._after_any(pod, old, new)

    @by_view(_GROUP_ALONE)
    def _after_pod_added(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        """A sibling may have been placed by another scheduler."""
        return self._after_any(pod, old, new) if group_key(new) == group_key(pod) else Hint.SKIP

    def _after_group_changed(self, pod: PodInfo, old: Any, new: PodGroup) -> Hint:
        return self._after_any(pod, old, new) if new.key == group_key(pod) else Hint.SKIP

    def _after_pod_deleted(self, pod: PodInfo, old: PodInfo, new: Any) -> Hint:
        """A place that was only reserved, never bound, concerns only the groups that failed because of it."""
        key, other = group_key(pod), group_key(old)
        if key is not None and other is not None and not old.pod.spec.node_name:
            rest = self._rest(key)
            if other == key or (rest is not None and other not in rest.blockers):
                return Hint.SKIP
        return self._after_room_was_made(pod, old, new)


def _reasons(diagnosis: Diagnosis) -> str:
    """Why the pod fits nowhere, without the numbers of nodes."""
    counts = diagnosis.reason_counts()
    return diagnosis.pre_filter_message or ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def _lacks(group: PodGroup, members: PodSet, nodes: NodeColumns) -> Status | None:
    if group.spec.min_resources is None:
        return None
    gap = resource_gap(group, members, nodes)
    return Unresolvable(f"resource gap: {described_gap(gap)}") if gap else None
