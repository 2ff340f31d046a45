"""An embedded cluster and a scheduler on it, started and stopped as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.server.inprocess import TransportErrors
from bayplan.apiserver.simulation.devices import DeviceModel
from bayplan.app.live import ChangeRecorder, LiveOptions, LiveScheduler
from bayplan.app.settings import Settings
from bayplan.app.watching import served_kinds
from bayplan.client.errors import ConnectionFailed, NotSent, RequestTimeout, api_error
from bayplan.client.transport import Transport
from bayplan.loop.observer import Observer
from bayplan.observe.clock import Clock, SystemClock
from bayplan.queue.places import MoveListener

__all__ = ["LocalCluster", "LocalOptions"]

CLIENT_ERRORS = TransportErrors(
    lost=lambda what, maybe: ConnectionFailed(what, may_have_been_processed=maybe),
    held_back=NotSent,
    late=lambda what, maybe: RequestTimeout(what, may_have_been_processed=maybe),
    refused=lambda status, headers, body: api_error(status, body, headers=headers),
)
"""How the embedded server's in-process transport raises what the client room expects."""


@dataclass(frozen=True, kw_only=True)
class LocalOptions:
    nodes: int | Sequence[dict[str, Any]] = 3
    """The number of nodes to generate, or the nodes themselves."""
    objects: Sequence[dict[str, Any]] = ()
    data_dir: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    listen: bool = True
    """Serve other programs over HTTPS; the scheduler itself needs no socket."""
    clock: Clock | None = None
    seed: int = 0
    observers: Sequence[Observer] = ()
    on_move: MoveListener | None = None
    """Called for every move of a pod in the queue."""
    devices: Sequence[DeviceModel] = ()
    """Devices that simulated nodes have."""
    wait_to_lead: Callable[[], Awaitable[None]] | None = None
    """Awaited before the first pod is scheduled."""
    recorder: ChangeRecorder | None = None
    """Writes down what the scheduler works on and decides."""


class LocalCluster:
    """`async with LocalCluster(settings, options) as local: ...` and pods are scheduled."""

    def __init__(self, settings: Settings, options: LocalOptions | None = None) -> None:
        self.options = options or LocalOptions()
        self._settings = settings
        clock = self.options.clock or SystemClock()
        nodes = self.options.nodes
        self.cluster = EmbeddedCluster(
            nodes=nodes if isinstance(nodes, int) else list(nodes),
            objects=self.options.objects,
            data_dir=self.options.data_dir,
            host=self.options.host,
            port=self.options.port,
            listen=self.options.listen,
            clock=clock,
            seed=self.options.seed,
            devices=self.options.devices,
        )
        self._live_options = LiveOptions(
            seed=self.options.seed,
            observers=self.options.observers,
            clock=clock,
            on_move=self.options.on_move,
            wait_to_lead=self.options.wait_to_lead,
            recorder=self.options.recorder,
        )
        self._task: asyncio.Task[None] | None = None
        self._live: LiveScheduler | None = None

    @property
    def live(self) -> LiveScheduler:
        if self._live is None:
            raise RuntimeError("the cluster is not started yet; use `async with`")
        return self._live

    def transport(self) -> Transport:
        """A transport for users of the cluster, without sockets."""
        # Structurally compatible; its responses have the embedded server's own class, since that package must not
        # import ours.
        return cast(Transport, self.cluster.in_process_transport(errors=CLIENT_ERRORS))

    async def __aenter__(self) -> LocalCluster:
        try:
            await self._start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def _start(self) -> None:
        await self.cluster.start()
        transport = self.transport()
        kinds = await served_kinds(transport)
        settings = self._settings
        self._live = LiveScheduler(
            transport, settings.config, settings.profiles, settings.registry, kinds, self._live_options
        )
        self._task = asyncio.create_task(self._live.run(), name="scheduler")
        await self._live.is_ready.wait()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.cluster.stop()

    def reload(self, settings: Settings) -> None:
        """Replace plugins and configuration; raises and keeps the old ones if the new ones cannot be built."""
        self.live.reload(settings.config, settings.profiles, settings.registry)
        self._settings = settings

    async def ended(self) -> None:
        """Wait for the scheduler to end; raises what ended it."""
        if self._task is not None:
            await asyncio.shield(self._task)
