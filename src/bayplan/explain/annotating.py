"""Summaries on pods that ask for one: `bayplan.dev/explain: summary` gets `bayplan.dev/explanation: …` once bound.

Opt-in a pod, short, and behind everything else: bindings are not waited for and do not wait, a full backlog drops the
oldest, a failed write is dropped. Scores of all nodes never go into annotations; that is what the record is for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import structlog

from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.builders import summary_of
from bayplan.framework.handle import ApiPort
from bayplan.framework.queued import QueuedPod
from bayplan.loop.observer import Observer
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import Clock

__all__ = ["ANSWER", "ASK", "Annotator"]

ASK = "bayplan.dev/explain"
ANSWER = "bayplan.dev/explanation"
_LONGEST = 512
_MOST_WAITING = 1000
_EVERY_SECONDS = 0.25

_log = structlog.get_logger()


class Annotator(Observer):
    def __init__(self, recorder: DecisionRecorder, api: Callable[[], ApiPort | None]) -> None:
        """`recorder` must be notified of a binding before this listener is."""
        self._recorder = recorder
        self._api = api
        self._waiting: deque[PodInfo] = deque(maxlen=_MOST_WAITING)

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        annotations = queued.info.pod.metadata.annotations
        if annotations and annotations.get(ASK) == "summary":
            self._waiting.append(queued.info)

    async def run(self, clock: Clock) -> None:
        """Write summaries until cancelled."""
        while True:
            await clock.sleep(_EVERY_SECONDS)
            while self._waiting:
                await self._annotate(self._waiting.popleft())

    async def _annotate(self, info: PodInfo) -> None:
        try:
            api, text = self._api(), self._summary(info)
            if api is not None and text:
                await api.patch_pod(info, {"metadata": {"annotations": {ANSWER: text}}})
        except Exception as error:
            _log.debug("a summary could not be written", pod=info.key, error=str(error))

    def _summary(self, info: PodInfo) -> str:
        records = self._recorder.of_pod(info.key, most=1)
        if not records or records[0].uid != info.uid:
            return ""
        text = summary_of(records[0])
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
