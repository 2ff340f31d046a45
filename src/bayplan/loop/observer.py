"""What the loop tells about its work: metrics, decision records and tests listen here.

Every method has an empty body, so a listener overrides what it needs. Listeners must be quick and must not raise; the
loop does not wait for them.
"""

from __future__ import annotations

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

    def preempted(self, victims: int) -> None:
        """A nomination was made at the price of that many victims."""

    def plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        """A plugin raised."""

    def event_handled(self, name: str, seconds: float) -> None:
        """A change from the API server was taken in."""


class Observers(Observer):
    """Several listeners as one."""

    def __init__(self, listeners: list[Observer]) -> None:
        self.listeners = listeners

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        for listener in self.listeners:
            listener.decided(queued, decision, seconds)

    def attempt_failed(self, queued: QueuedPod, status: Status, seconds: float) -> None:
        for listener in self.listeners:
            listener.attempt_failed(queued, status, seconds)

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        for listener in self.listeners:
            listener.bound(queued, node_name, seconds)

    def permit_waited(self, result: str, seconds: float) -> None:
        for listener in self.listeners:
            listener.permit_waited(result, seconds)

    def preempted(self, victims: int) -> None:
        for listener in self.listeners:
            listener.preempted(victims)

    def plugin_failed(self, plugin: str, point: str, exception: BaseException) -> None:
        for listener in self.listeners:
            listener.plugin_failed(plugin, point, exception)

    def event_handled(self, name: str, seconds: float) -> None:
        for listener in self.listeners:
            listener.event_handled(name, seconds)
