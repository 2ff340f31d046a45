"""A pod in the queue: what queue-sort plugins compare and what the record of a decision has about the wait."""

from __future__ import annotations

from bayplan.cluster.pod_info import PodInfo

__all__ = ["QueuedPod"]

_NONE: frozenset[str] = frozenset()


class QueuedPod:
    """Fields are written by the queue alone. Times are seconds since the epoch."""

    __slots__ = (
        "attempts",
        "backoff_expiration",
        "consecutive_errors",
        "flushed_at",
        "gate_failure",
        "gating_plugin",
        "history",
        "info",
        "initial_attempt_timestamp",
        "last_event",
        "pending_plugins",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
    )

    def __init__(self, info: PodInfo, timestamp: float) -> None:
        self.info = info
        self.timestamp = timestamp
        """When the pod entered, or came back to, the queue."""
        self.initial_attempt_timestamp: float | None = None
        """When it first entered the active queue."""
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.backoff_expiration: float | None = None
        self.unschedulable_plugins = self.pending_plugins = _NONE
        self.gating_plugin = ""
        self.gate_failure = ""
        """How a PreEnqueue plugin failed for the pod, as last reported."""
        self.flushed_at: float | None = None
        """Set when the five-minute timer, not an event, brought the pod back."""
        self.last_event = ""
        """What woke the pod last."""
        self.history: list[tuple[float, str, str]] = []
        """(time, queue entered, cause), oldest first, bounded by the queue."""

    def __repr__(self) -> str:
        return f"<QueuedPod {self.info.key} attempt {self.attempts}>"

    def move_times(self, seconds: float) -> None:
        """The clock was set by so much."""
        self.timestamp += seconds
        if self.initial_attempt_timestamp is not None:
            self.initial_attempt_timestamp += seconds
        if self.flushed_at is not None:
            self.flushed_at += seconds
        self.backoff_expiration = None

    @property
    def key(self) -> str:
        return self.info.key

    @property
    def uid(self) -> str:
        return self.info.uid

    @property
    def priority(self) -> int:
        return self.info.shape.priority

    @property
    def rejectors(self) -> frozenset[str]:
        return self.unschedulable_plugins | self.pending_plugins
