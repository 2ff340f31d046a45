"""Notifications of the loop about its work, for metrics, decision records and tests.

Every method has an empty body, so a listener overrides what it needs. Listeners must be quick and must not raise; they
run inside the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision

__all__ = ["Observer", "Observers"]


class Observer:
    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        """A scheduling cycle found a node, or not. `seconds` is the time the decision took."""

    def attempt_failed(self, queued: QueuedPod, status: Status, seconds: float) -> None:
        """An attempt ended without a binding: unschedulable, or an error. `seconds` since the attempt began."""

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        """The API server has the binding. `seconds` since the attempt began."""

    def permit_waited(self, result: str, seconds: float) -> None:
        """A pod left Permit after waiting."""

    def held_at_permit(self, info: PodInfo, node_name: str, timeouts: Mapping[str, float]) -> None:
        """Plugins make a pod wait at Permit; `timeouts` are theirs, in seconds."""

    def left_permit(self, info: PodInfo, result: str, seconds: float) -> None:
        """A pod that was held left Permit."""

    def refused_after_choice(self, info: PodInfo, node_name: str, point: str, status: Status) -> None:
        """A node was chosen, and then Reserve, Permit, PreBind or Bind refused the pod."""

    def preempted(self, victims: int) -> None:
        """A nomination was made at the price of that many victims."""

    def plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        """A plugin raised."""

    def event_handled(self, name: str, seconds: float) -> None:
        """A change from the API server was taken in."""

    def extension_point_ran(self, point: str, status: str, profile: str, seconds: float) -> None:
        """An extension point after the decision was run; those of the decision itself are in `Decision.marks`."""


class Observers(Observer):
    """Several listeners as one. A notification calls only the listeners that override its method."""

    def __init__(self, listeners: Sequence[Observer]) -> None:
        self._decided = _listening(listeners, "decided")
        self._attempt_failed = _listening(listeners, "attempt_failed")
        self._bound = _listening(listeners, "bound")
        self._permit_waited = _listening(listeners, "permit_waited")
        self._held_at_permit = _listening(listeners, "held_at_permit")
        self._left_permit = _listening(listeners, "left_permit")
        self._refused_after_choice = _listening(listeners, "refused_after_choice")
        self._preempted = _listening(listeners, "preempted")
        self._plugin_failed = _listening(listeners, "plugin_failed")
        self._event_handled = _listening(listeners, "event_handled")
        self._extension_point_ran = _listening(listeners, "extension_point_ran")

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        for notify in self._decided:
            notify(queued, decision, seconds)

    def attempt_failed(self, queued: QueuedPod, status: Status, seconds: float) -> None:
        for notify in self._attempt_failed:
            notify(queued, status, seconds)

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        for notify in self._bound:
            notify(queued, node_name, seconds)

    def permit_waited(self, result: str, seconds: float) -> None:
        for notify in self._permit_waited:
            notify(result, seconds)

    def held_at_permit(self, info: PodInfo, node_name: str, timeouts: Mapping[str, float]) -> None:
        for tell in self._held_at_permit:
            tell(info, node_name, timeouts)

    def left_permit(self, info: PodInfo, result: str, seconds: float) -> None:
        for tell in self._left_permit:
            tell(info, result, seconds)

    def refused_after_choice(self, info: PodInfo, node_name: str, point: str, status: Status) -> None:
        for tell in self._refused_after_choice:
            tell(info, node_name, point, status)

    def preempted(self, victims: int) -> None:
        for notify in self._preempted:
            notify(victims)

    def plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        for notify in self._plugin_failed:
            notify(plugin, point, exception)

    def event_handled(self, name: str, seconds: float) -> None:
        for notify in self._event_handled:
            notify(name, seconds)

    def extension_point_ran(self, point: str, status: str, profile: str, seconds: float) -> None:
        for notify in self._extension_point_ran:
            notify(point, status, profile, seconds)


def _listening(listeners: Sequence[Observer], method: str) -> list[Callable[..., None]]:
    """The methods that override the empty one."""
    empty = getattr(Observer, method)
    return [getattr(each, method) for each in listeners if getattr(type(each), method) is not empty]
