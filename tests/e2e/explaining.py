"""A scheduler inside the test's own event loop, with everything that explains it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.app.settings import Settings, load_settings
from bayplan.explain.service import ExplainService
from bayplan.explain.wiring import Explaining
from bayplan.observe.clock import SystemClock
from tests.e2e.clusters import Cluster
from tests.e2e.running import RunSettings, scheduling

__all__ = ["explaining"]


@contextlib.asynccontextmanager
async def explaining(cluster: Cluster, config: str = "") -> AsyncIterator[tuple[LiveScheduler, ExplainService]]:
    """`config` is a KubeSchedulerConfiguration as YAML."""
    settings = _settings(config)
    explains = Explaining(SystemClock(), settings=lambda: settings)
    run = RunSettings(config=config, options=LiveOptions(observers=explains.observers))
    async with scheduling(cluster.kubeconfig, run) as live:
        explains.attach(live)
        yield live, explains.service


def _settings(config: str) -> Settings:
    if not config:
        return load_settings(None, [])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(config)
        return load_settings(path, [])
