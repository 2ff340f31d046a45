"""Pods held at Permit: which plugins they wait for, and what ends the wait.

A wait ends when every plugin allowed the pod, when one rejected it, when a plugin's time is up, or when the pod is
preempted or deleted. The binding cycle awaits the outcome; plugins reach the pods through the handle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from bayplan.cluster.pod_info import PodInfo
from bayplan.config.durations import format_duration
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.observe.clock import Clock

__all__ = ["HeldPod", "HeldPods"]

LONGEST_WAIT_SECONDS = 15 * 60.0


class HeldPod:
    """Implements `framework.handle.WaitingPod`."""

    def __init__(
        self, info: PodInfo, node_name: str, timeouts: Mapping[str, float], reasons: Mapping[str, str], now: float
    ) -> None:
        self._info = info
        self._node_name = node_name
        self.began = now
        """When the wait did, on the monotonic clock."""
        self.timeouts = {plugin: min(max(asked, 0.0), LONGEST_WAIT_SECONDS) for plugin, asked in timeouts.items()}
        """For how many seconds each plugin lets the pod wait."""
        self._deadlines = {plugin: now + seconds for plugin, seconds in self.timeouts.items()}
        self._reasons = reasons
        self._outcome: asyncio.Future[Status] = asyncio.get_running_loop().create_future()

    @property
    def info(self) -> PodInfo:
        return self._info

    @property
    def node_name(self) -> str:
        return self._node_name

    @property
    def is_rejected(self) -> bool:
        return self._outcome.done() and not self._outcome.cancelled() and not self._outcome.result().is_success

    def pending_plugins(self) -> list[str]:
        return list(self._deadlines)

    def waits_for(self) -> str:
        """What the plugins that hold the pod said when they did; empty if none of them said anything."""
        return "; ".join(filter(None, (self._reasons.get(plugin, "") for plugin in self._deadlines)))

    @property
    def deadline(self) -> float:
        """When the first time-out of the plugins that hold the pod passes, on the monotonic clock."""
        return min(self._deadlines.values(), default=0.0)

    def allow(self, plugin: str) -> None:
        self._deadlines.pop(plugin, None)
        if not self._deadlines:
            self._end(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        return self._end(Status(Code.UNSCHEDULABLE, (message,), plugin=plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        return self._end(Status(Code.ERROR, (f"waiting on permit for pod: {message}",), plugin=plugin))

    def _end(self, status: Status) -> bool:
        if self._outcome.done():
            return False
        self._outcome.set_result(status)
        return True

    async def outcome(self, clock: Clock) -> Status:
        """Wait for the outcome; the first plugin whose time-out passes rejects the pod."""
        while not self._outcome.done():
            plugin, deadline = min(self._deadlines.items(), key=lambda entry: entry[1])
            left = deadline - clock.monotonic()
            if left <= 0:
                waited = format_duration(timedelta(seconds=self.timeouts[plugin]))
                self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")
                break
            await self._outcome_or_timeout(clock, left)
        return self._outcome.result()

    async def settles_within(self, seconds: float, clock: Clock) -> bool:
        """Whether the wait ends within so many seconds; it goes on otherwise."""
        if not self._outcome.done():
            await self._outcome_or_timeout(clock, seconds)
        return self._outcome.done()

    async def _outcome_or_timeout(self, clock: Clock, seconds: float) -> None:
        timer: asyncio.Future[None] = asyncio.ensure_future(clock.sleep(seconds))
        both: set[asyncio.Future[Any]] = {self._outcome, timer}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()


class HeldPods:
    """Implements `framework.handle.WaitingPods`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, HeldPod] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[HeldPod]:
        return iter(list(self._held.values()))

    def get(self, uid: str) -> HeldPod | None:
        return self._held.get(uid)

    def reject_all(self, message: str) -> None:
        """Reject every held pod, as when the scheduler stops."""
        for held in self:
            held.reject("", message)

    def hold(
        self, info: PodInfo, node_name: str, timeouts: Mapping[str, float], reasons: Mapping[str, str] | None = None
    ) -> HeldPod:
        """`reasons` are what the pod waits for, by plugin."""
        held = self._held[info.uid] = HeldPod(info, node_name, timeouts, reasons or {}, self._clock.monotonic())
        return held

    def release(self, uid: str) -> None:
        """Hold the pod no longer, however its wait ended."""
        self._held.pop(uid, None)

    async def wait(self, uid: str) -> Status:
        """The end of a pod's wait; success at once for a pod that is not held."""
        held = self._held.get(uid)
        if held is None:
            return SUCCESS
        try:
            return await held.outcome(self._clock)
        finally:
            self.release(uid)
