"""`bayplan run` as a process, on an embedded cluster in this one, with a plugin of a few lines."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.server.inprocess import InProcessTransport
from bayplan.sim.local import CLIENT_ERRORS

__all__ = ["PODS", "scheduler_with"]

PODS = "/api/v1/namespaces/default/pods"
_GIVE_UP_SECONDS = 240.0
"""A start alone takes half a minute where twenty other processes want the processors."""
_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: %s}]}}}]
"""


@asynccontextmanager
async def scheduler_with(
    folder: Path, plugin: str, pods: Sequence[str], *flags: str, before: Callable[[], None] | None = None
) -> AsyncIterator[tuple[asyncio.subprocess.Process, InProcessTransport]]:
    """The process, and a client of the cluster, which has one node and these pods. `before` runs in the process."""
    (folder / "plugin.py").write_text(plugin)
    (folder / "scheduler.yaml").write_text(_CONFIG % re.findall(r"class (\w+)", plugin)[0])
    cluster = EmbeddedCluster(nodes=1)
    await cluster.start()
    process = None
    try:
        (folder / "kubeconfig").write_text(yaml.safe_dump(cluster.kubeconfig()))
        options = ["--config", "scheduler.yaml", "--kubeconfig", "kubeconfig", "--plugin", "plugin.py", *flags]
        options += ["--secure-port", "0", "--leader-elect=false"]
        command = [sys.executable, "-m", "bayplan.cli", "run", *options]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, stderr=asyncio.subprocess.PIPE, preexec_fn=before
        )
        transport = cluster.in_process_transport(errors=CLIENT_ERRORS)
        for name in pods:
            spec = {"containers": [{"name": "c", "image": "example.test/app:1"}]}
            item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
            await transport.request("POST", PODS, body=json.dumps(item).encode())
        async with asyncio.timeout(_GIVE_UP_SECONDS):
            yield process, transport
    finally:
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()
        await cluster.stop()
