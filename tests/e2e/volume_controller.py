"""The part of a controller manager that finishes volume bindings: there is none beside a bare API server.

A scheduler writes which claim a volume is for; this writes the rest: the claim's volume, both phases, the annotation.
Volumes that nobody claims are made available, without which a scheduler must not look at them.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

from bayplan.api.storage import ObjectReference, PersistentVolume
from bayplan.client.errors import ClientError
from bayplan.client.reflector import Reflector
from tests.e2e.api_session import CLOCK, ApiSession, transport_to

_PAUSE_SECONDS = 0.3
_CLAIMS = "/api/v1/namespaces/{}/persistentvolumeclaims/{}"


class VolumeController:
    def __init__(self, api: ApiSession) -> None:
        self._api = api
        self._due: asyncio.Queue[PersistentVolume] = asyncio.Queue()
        self.bound: dict[str, str] = {}
        """Claim to volume."""

    def take(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if new is None:
            return
        if old is None or (old.spec.claim_ref is None and new.spec.claim_ref is not None):
            self._due.put_nowait(new)

    async def run(self) -> None:
        """Until cancelled. What cannot be written now, because the API server is away, is tried again."""
        while True:
            volume = await self._due.get()
            try:
                if volume.spec.claim_ref is None:
                    await self._set_phase(volume, "Available")
                else:
                    await self._bind(volume, volume.spec.claim_ref)
            except (ClientError, AssertionError):
                await asyncio.sleep(_PAUSE_SECONDS)
                self._due.put_nowait(volume)

    async def _set_phase(self, volume: PersistentVolume, phase: str) -> None:
        await self._api.call("PATCH", f"/api/v1/persistentvolumes/{volume.name}/status", {"status": {"phase": phase}})

    async def _bind(self, volume: PersistentVolume, reference: ObjectReference) -> None:
        path = _CLAIMS.format(reference.namespace, reference.name)
        change = {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": volume.name},
        }
        await self._api.call("PATCH", path, change)
        await self._api.call("PATCH", f"{path}/status", {"status": {"phase": "Bound"}})
        await self._set_phase(volume, "Bound")
        self.bound[reference.name] = volume.name


@contextlib.asynccontextmanager
async def binding_volumes(kubeconfig: Path) -> AsyncIterator[VolumeController]:
    transport = transport_to(kubeconfig)
    controller = VolumeController(ApiSession(transport))
    reflector = Reflector(
        transport, "/api/v1/persistentvolumes", PersistentVolume, controller.take, clock=CLOCK, draw=random.random
    )
    tasks = [asyncio.create_task(reflector.run()), asyncio.create_task(controller.run())]
    try:
        yield controller
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await transport.close()
        failures = [r for r in results if isinstance(r, Exception)]
        assert not failures, failures
