"""A running scheduler on an embedded cluster without sockets, with everything that explains it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayplan.app.settings import Settings, load_settings
from bayplan.config.own import DecisionSettings
from bayplan.explain.wiring import Explaining
from bayplan.loop.observer import Observer
from bayplan.observe.clock import SystemClock
from bayplan.sim.local import LocalCluster, LocalOptions

JsonObject = dict[str, Any]


@dataclass
class Stage:
    local: LocalCluster
    explaining: Explaining
    settings: list[Settings]

    async def create(self, *objects: JsonObject) -> None:
        transport = self.local.transport()
        for item in objects:
            path = "/api/v1/nodes" if item["kind"] == "Node" else "/api/v1/namespaces/default/pods"
            response = await transport.request("POST", path, body=json.dumps(item).encode())
            assert response.status < 300, response.body

    async def get(self, path: str) -> JsonObject:
        response = await self.local.transport().request("GET", path)
        found: JsonObject = json.loads(response.body)
        return found

    async def until(self, is_true: Callable[[], bool]) -> None:
        async with asyncio.timeout(90):
            while not is_true():  # noqa: ASYNC110 - the scheduler's state has no event for every question
                await asyncio.sleep(0.005)

    async def settled(self, *, bound: int = 0, failed: int = 0) -> None:
        recorder = self.explaining.recorder
        await self.until(lambda: recorder.bound_count >= bound and recorder.failed_count >= failed)
        # The answer to a binding may be there before the watch has told of it.
        await self.until(lambda: not self.local.live.cache.assumed_count)


def raw_pod(name: str, *, cpu: str = "100m", annotations: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


@asynccontextmanager
async def staged(
    nodes: int = 4,
    *,
    decision_file: Path | None = None,
    config: Path | None = None,
    plugins: Sequence[str] = (),
    observers: Sequence[Observer] = (),
) -> AsyncIterator[Stage]:
    settings = [load_settings(None if config is None else str(config), list(plugins), enable=config is None)]
    decisions = DecisionSettings(file=str(decision_file or ""))
    explaining = Explaining(SystemClock(), settings=lambda: settings[-1], decisions=decisions)
    options = LocalOptions(nodes=nodes, listen=False, observers=[*explaining.observers, *observers])
    async with LocalCluster(settings[0], options) as local:
        explaining.attach(local.live)
        running = asyncio.create_task(explaining.run())
        try:
            yield Stage(local, explaining, settings)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
