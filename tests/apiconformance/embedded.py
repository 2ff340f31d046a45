"""The embedded cluster on a thread of its own."""

from __future__ import annotations

import asyncio
import base64
import threading

from bayplan.apiserver.cluster import EmbeddedCluster
from tests.apiconformance.client import ApiClient


class EmbeddedThread:
    """An embedded cluster on a thread, for synchronous tests; without simulated parts unless asked."""

    def __init__(self, *, nodes: int = 0, simulate: bool = False, authorization: str = "always-allow") -> None:
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self.cluster = EmbeddedCluster(nodes=nodes, simulate=simulate, authorization=authorization)
        self._thread = threading.Thread(target=self._run, name="embedded cluster")

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(60), "the embedded cluster did not start"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        await self.cluster.start()
        self._started.set()
        await self._stop.wait()
        await self.cluster.stop()

    def client(self) -> ApiClient:
        kubeconfig = self.cluster.kubeconfig()
        authority = base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        return ApiClient(self.cluster.url, authority, token=self.cluster.token)
