"""Follows a cluster into a recording. Reads lists and watches, and writes nothing to the cluster.

A follower sees what decisions came to, not the decisions: `bayplan.sim.recording.bindings` says what that is worth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from bayplan.api.kinds import ObjectKind
from bayplan.app.custom_resources import CustomResourceReflectors
from bayplan.app.settings import Settings
from bayplan.app.watching import Watching
from bayplan.client.backoff import Draw
from bayplan.client.transport import Transport
from bayplan.observe.clock import Clock
from bayplan.sim.recording.writing import RecordingWriter

__all__ = ["Follower", "watched_by"]


class Follower:
    """Build it, `run` it in a task; cancel the task to stop."""

    def __init__(
        self,
        transport: Transport,
        settings: Settings,
        kinds: Iterable[ObjectKind],
        writer: RecordingWriter,
        *,
        clock: Clock,
        draw: Draw,
    ) -> None:
        """`settings` are those of the scheduler of the cluster, as far as they are known."""
        kinds = list(kinds)
        self.changes = 0
        self._writer = writer
        writer.begin(settings, [kind.name for kind in kinds], by="follower")
        handle = writer.around(self._count)
        self._watching = Watching(transport, kinds, lambda _: handle, clock=clock, draw=draw)
        self._custom = CustomResourceReflectors(transport, lambda _: handle, clock=clock, draw=draw)
        self._custom.follow(watched_by(settings))
        self.is_ready = asyncio.Event()
        """Set once everything that was there at the start is written."""

    def _count(self, old: Any, new: Any) -> None:
        self.changes += 1

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watching.run(), name="reflectors")
            group.create_task(self._custom.run(), name="custom resources")
            await self._watching.wait_until_synced()
            await self._custom.wait_until_settled()
            self._writer.cluster_read()
            self.is_ready.set()


def watched_by(settings: Settings) -> list[type[Any]]:
    """The custom resources that plugins of these settings read."""
    names = dict.fromkeys(name for profile in settings.profiles for name in profile.plugin_names)
    return list(dict.fromkeys(kind for name in names for kind in settings.registry.get(name).watches))
