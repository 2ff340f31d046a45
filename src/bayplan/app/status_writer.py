"""Conditions of pods that could not be scheduled, written behind the bindings.

At most one write a pod waits: a newer outcome replaces an older one. A write that changes nothing is not sent, so a pod
that keeps failing for the same reason costs the API server nothing.

A condition is written onto the version of the pod in which it was seen to be unassigned, so that it cannot contradict a
binding that another scheduler made meanwhile: the API server refuses it then, and the pod is read before another try.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import structlog

from bayplan.api.pod import Pod, PodCondition
from bayplan.app.live_api import LiveApi
from bayplan.client.errors import Conflict, Forbidden, NotFound, NotSent
from bayplan.client.writer import Writer
from bayplan.loop.profile import StatusPort
from bayplan.observe.clock import Clock

__all__ = ["StatusWriter"]

_log = structlog.get_logger()
_SIDE_BY_SIDE = 8
_ATTEMPTS = 5


class _Report(NamedTuple):
    pod: Pod
    reason: str
    message: str
    nominated_node_name: str | None


class StatusWriter(StatusPort):
    def __init__(self, writer: Writer, clock: Clock, get_pod: Callable[[str, str], Pod | None]) -> None:
        """`get_pod` answers the latest version that the watch brought."""
        self._writer = writer
        self._api = LiveApi(writer)
        self._clock = clock
        self._get_pod = get_pod
        self._waiting: OrderedDict[str, _Report] = OrderedDict()
        self._has_work = asyncio.Event()
        self._under_way = 0

    def __len__(self) -> int:
        return len(self._waiting) + self._under_way

    def report(self, pod: Pod, *, reason: str, message: str, nominated_node_name: str | None) -> None:
        earlier = self._waiting.pop(pod.key, None)
        if nominated_node_name is None and earlier is not None and earlier.pod.uid == pod.uid:
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
        try:
            pod = self._get_pod(report.pod.namespace, report.pod.name)
            for _ in range(_ATTEMPTS):
                if pod is None or await self._is_written(report, pod):
                    return
                pod = await self._api.get(Pod, pod.name, pod.namespace)
        except (NotFound, NotSent):
            return
        except Exception as error:
            hint = {"hint": "grant patch on pods/status to this user"} if isinstance(error, Forbidden) else {}
            _log.warning("could not write the status of a pod", pod=report.pod.key, error=str(error), **hint)

    async def _is_written(self, report: _Report, pod: Pod) -> bool:
        """Write what differs onto this version, if it is the pod that waits; False if it was changed meanwhile."""
        if pod.uid != report.pod.uid or pod.spec.node_name:
            return True
        status = self._change(report, pod)
        if not status:
            return True
        try:
            await self._writer.patch_pod_status(
                pod.namespace, pod.name, status, uid=pod.uid, version=pod.metadata.resource_version
            )
        except Conflict:
            return False
        return True

    def _change(self, report: _Report, pod: Pod) -> dict[str, Any]:
        """What differs from the status that the API server last sent."""
        change: dict[str, Any] = {}
        known = pod.condition("PodScheduled")
        wanted = ("False", report.reason, report.message)
        if known is None or (known.status, known.reason, known.message) != wanted:
            change["conditions"] = [msgspec.to_builtins(self._condition(report, known))]
        nominated = report.nominated_node_name
        if nominated is not None and nominated != pod.status.nominated_node_name:
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
