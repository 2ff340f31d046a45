"""Conditions of pods that could not be scheduled, written behind the bindings.

At most one write a pod waits: a newer outcome replaces an older one. A write that changes nothing is not sent, so a pod
that keeps failing for the same reason costs the API server nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import structlog

from bayplan.api.pod import Pod, PodCondition
from bayplan.client.errors import Forbidden, NotFound
from bayplan.client.writer import Writer
from bayplan.loop.profile import StatusPort
from bayplan.observe.clock import Clock

__all__ = ["StatusWriter"]

_log = structlog.get_logger()
_SIDE_BY_SIDE = 8


class _Report(NamedTuple):
    pod: Pod
    reason: str
    message: str
    nominated_node_name: str | None


class StatusWriter(StatusPort):
    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._waiting: OrderedDict[str, _Report] = OrderedDict()
        self._has_work = asyncio.Event()
        self._under_way = 0

    def __len__(self) -> int:
        return len(self._waiting) + self._under_way

    def report(self, pod: Pod, *, reason: str, message: str, nominated_node_name: str | None) -> None:
        earlier = self._waiting.pop(pod.key, None)
        if nominated_node_name is None and earlier is not None:
            nominated_node_name = earlier.nominated_node_name
        self._waiting[pod.key] = _Report(pod, reason, message, nominated_node_name)
        self._has_work.set()

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(_SIDE_BY_SIDE):
                group.create_task(self._work(), name=f"pod status writer {number}")

    async def drain(self, *, timeout: float) -> None:
        """Wait until everything is written or the time-out passed. `run` must still be running."""
        deadline = self._clock.monotonic() + timeout
        while len(self) and self._clock.monotonic() < deadline:
            await self._clock.sleep(0.01)

    async def _work(self) -> None:
        while True:
            await self._has_work.wait()
            if not self._waiting:
                self._has_work.clear()
                continue
            _, report = self._waiting.popitem(last=False)
            self._under_way += 1
            try:
                await self._write(report)
            finally:
                self._under_way -= 1

    async def _write(self, report: _Report) -> None:
        status = self._change(report)
        if not status:
            return
        try:
            await self._writer.patch_pod_status(report.pod.namespace, report.pod.name, status)
        except NotFound:
            return
        except Exception as error:
            hint = {"hint": "grant patch on pods/status to this user"} if isinstance(error, Forbidden) else {}
            _log.warning("could not write the status of a pod", pod=report.pod.key, error=str(error), **hint)

    def _change(self, report: _Report) -> dict[str, Any]:
        """What differs from the status that the API server last sent."""
        change: dict[str, Any] = {}
        known = report.pod.condition("PodScheduled")
        wanted = ("False", report.reason, report.message)
        if known is None or (known.status, known.reason, known.message) != wanted:
            change["conditions"] = [msgspec.to_builtins(self._condition(report, known))]
        nominated = report.nominated_node_name
        if nominated is not None and nominated != report.pod.status.nominated_node_name:
            change["nominatedNodeName"] = nominated or None
        return change

    def _condition(self, report: _Report, known: PodCondition | None) -> PodCondition:
        keeps_time = known is not None and known.status == "False" and known.last_transition_time
        now = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return PodCondition(
            type="PodScheduled",
            status="False",
            reason=report.reason,
            message=report.message,
            last_transition_time=known.last_transition_time if known is not None and keeps_time else now,
            observed_generation=report.pod.metadata.generation or None,
        )
