"""What a reflector can be set to, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.client.backoff import BackoffSettings

__all__ = ["ReflectorSettings", "ReflectorStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorSettings:
    """Settings of a reflector.

    Pages of `page_size` are large: in pages of 500 the API server took twice the CPU time for 50,000 pods, and a page
    waits for a processor twice, in the server and here, which is most of a start on a busy machine.
    `is_streaming` asks for the list as a stream of events (Kubernetes 1.32 and etcd 3.5 or newer; older ones make the
    reflector fall back). It spares the server's memory and costs it more CPU than a paged list, so it is off.
    `watch_seconds` is the least time the server keeps a watch open; up to as much again is added at random. A watch
    that is silent for `stall_seconds` is taken for dead, since bookmarks come about once a minute; and so is one that
    is silent for `answer_seconds` after a write of our own that must show on it.
    """

    page_size: int = 5_000
    is_streaming: bool = False
    watch_seconds: float = 300.0
    stall_seconds: float = 90.0
    answer_seconds: float = 10.0
    list_timeout_seconds: float = 120.0
    backoff: BackoffSettings = field(default_factory=BackoffSettings)


@dataclass(slots=True)
class ReflectorStats:
    """Counters and state of a reflector. While a watch is open, `last_error` is empty and `is_forbidden` False."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    is_connected: bool = False
    resource_version: str = ""
    last_error: str = ""
    is_forbidden: bool = False
    is_silent: bool = False
    """Whether a watch was found dead, and no other has said anything since."""

    @property
    def relists(self) -> int:
        """Lists after the first."""
        return max(0, self.lists - 1)
