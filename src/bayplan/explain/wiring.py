"""All of this room that a scheduler process carries: one object to build, and four places to hook it in.

explaining = Explaining(clock, settings=lambda: current_settings)
LiveOptions(observers=[*others, *explaining.observers])       1. it listens
explaining.attach(live)                                       2. it knows the scheduler, once that is built
ServerParts(routes=explaining.routes())                       3. it answers
task_group.create_task(explaining.run())                      4. it writes decision file, summaries and figures
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bayplan.app.live import LiveScheduler
from bayplan.app.live_api import LiveApi
from bayplan.app.settings import Settings
from bayplan.config.own import DecisionSettings
from bayplan.explain.annotating import Annotator
from bayplan.explain.decision_file import DecisionFile, newest_decisions
from bayplan.explain.pages.timeline import EVERY_SECONDS
from bayplan.explain.service import ExplainService, Sources
from bayplan.framework.handle import ApiPort
from bayplan.loop.observer import Observer
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import Clock
from bayplan.observe.component_metrics import DECISION_RECORD_BYTES, DECISION_RECORDS, DECISION_RECORDS_DROPPED
from bayplan.observe.metrics import MetricsRegistry

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

__all__ = ["Explaining"]

_MOST_RESTORED = 50_000


class Explaining:
    def __init__(
        self,
        clock: Clock,
        *,
        settings: Callable[[], Settings],
        decisions: DecisionSettings | None = None,
    ) -> None:
        """The file of `decisions` is one that an earlier process may have written to, or a folder for it.

        Raises `DecisionFileError` when the file cannot be written.
        """
        kept = decisions or DecisionSettings()
        self._clock = clock
        self._live: LiveScheduler | None = None
        self._api: ApiPort | None = None
        self.recorder = DecisionRecorder(clock, memory_bytes=kept.memory_bytes)
        self._annotator = Annotator(self.recorder, lambda: self._api)
        self._file = _decision_file(kept)
        if self._file is not None:
            self.recorder.restore(newest_decisions(self._file.path, most=_MOST_RESTORED))
            self.recorder.on_settled.append(self._file.append)
        self.service = ExplainService(Sources(live=lambda: self._live, settings=settings, recorder=self.recorder))

    @property
    def observers(self) -> list[Observer]:
        return [self.recorder, self._annotator]

    def register(self, registry: MetricsRegistry) -> None:
        recorder = self.recorder
        registry.read_one(DECISION_RECORDS, lambda: len(recorder))
        registry.read_one(DECISION_RECORD_BYTES, lambda: recorder.bytes_kept)
        registry.read_one(DECISION_RECORDS_DROPPED, lambda: recorder.dropped)

    def attach(self, live: LiveScheduler) -> None:
        """The scheduler at work from now on."""
        self._live, self._api = live, LiveApi(live.writer)
        self.recorder.cluster = live.cache.cluster

    def routes(self, *, with_dashboard: bool = True) -> list[BaseRoute]:
        from bayplan.explain.http.endpoints import explain_routes
        from bayplan.server.dashboard import dashboard_routes

        return [*explain_routes(self.service, self._clock), *(dashboard_routes() if with_dashboard else ())]

    def note_reload(self, what: str, problems: Sequence[str]) -> None:
        """Has the shape of `bayplan.sim.reloading.ReloadReport`."""
        self.service.note_reload(self._clock.now(), what, list(problems))

    async def run(self) -> None:
        """Until cancelled; the decision file is complete then."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._annotator.run(self._clock), name="summaries")
            group.create_task(self._sample(), name="figures over time")
            if self._file is not None:
                group.create_task(self._file.run(self._clock), name="decision file")

    async def _sample(self) -> None:
        while True:
            self.service.sample()
            await self._clock.sleep(EVERY_SECONDS)


def _decision_file(kept: DecisionSettings) -> DecisionFile | None:
    if not kept.file:
        return None
    return DecisionFile(Path(kept.file), max_bytes=kept.file_bytes, keep=kept.files_kept)
