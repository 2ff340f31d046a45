"""What a cluster has besides a scheduler and a measurement needs: a provisioner of volumes, and things that churn.

Both are the same for both schedulers. There is no kubelet: pods that are to be evicted ask for no grace period.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec

from bayplan.client.errors import ClientError
from bench.versus.cluster import BenchCluster, Json
from bench.versus.workload import Churn, Place

_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_WORKERS = 16


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel"):
    volume_name: str = ""
    storage_class_name: str = ""


class _Claim(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Claim


_EVENT = msgspec.json.Decoder(_Event)


class Provisioner:
    """Makes the volume of a claim once a scheduler has chosen the node, and binds the two."""

    def __init__(self, cluster: BenchCluster) -> None:
        self._cluster = cluster
        self._due: asyncio.Queue[_Claim] = asyncio.Queue()
        self._taken: set[str] = set()
        self._version = "0"

    async def follow(self) -> None:
        while True:
            with contextlib.suppress(ClientError):
                await self._watch_once()
            await asyncio.sleep(0.1)

    async def _watch_once(self) -> None:
        query = {"watch": "true", "resourceVersion": self._version, "timeoutSeconds": "3000"}
        async with self._cluster.transport.stream(_CLAIMS, query=query) as chunks:
            rest = b""
            async for chunk in chunks:
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    self.take(line)

    def take(self, line: bytes) -> None:
        event = _EVENT.decode(line)
        if event.type == "ERROR":
            self._version = "0"
            return
        claim = event.object
        self._version = claim.metadata.resource_version
        is_due = event.type != "DELETED" and not claim.spec.volume_name
        if is_due and _SELECTED_NODE in claim.metadata.annotations and claim.metadata.uid not in self._taken:
            self._taken.add(claim.metadata.uid)
            self._due.put_nowait(claim)

    async def work(self) -> None:
        while True:
            claim = await self._due.get()
            await bind_volume(
                self._cluster, claim.metadata.name, uid=claim.metadata.uid, storage_class=claim.spec.storage_class_name
            )


async def choose_node(cluster: BenchCluster, claim: str, node: str) -> None:
    """What a scheduler writes to a claim that waits for it."""
    await cluster.patch(f"{_CLAIMS}/{claim}", {"metadata": {"annotations": {_SELECTED_NODE: node}}})


async def bind_volume(cluster: BenchCluster, claim: str, *, uid: str = "", storage_class: str = "") -> None:
    volume = volume_for(claim, uid, storage_class)
    await cluster.create_one(volume)
    change = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume["metadata"]["name"]},
    }
    await cluster.patch(f"{_CLAIMS}/{claim}", change)


def volume_for(claim: str, uid: str, storage_class: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-of-{claim}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": storage_class,
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "default",
                "name": claim,
                "uid": uid,
            },
            "csi": {"driver": "disk.bench.example", "volumeHandle": claim},
        },
    }


@contextlib.asynccontextmanager
async def provisioning(cluster: BenchCluster) -> AsyncIterator[None]:
    provisioner = Provisioner(cluster)
    jobs = [provisioner.follow(), *(provisioner.work() for _ in range(_WORKERS))]
    async with _background(*(asyncio.create_task(job, name="provisioner") for job in jobs)):
        yield


@contextlib.asynccontextmanager
async def churning(cluster: BenchCluster, churn: Churn, place: Place, begin: asyncio.Event) -> AsyncIterator[None]:
    """Objects come, or come and go, once `begin` is set."""

    async def churn_on() -> None:
        await begin.wait()
        for i in range(1_000_000):
            objects = churn.objects(i, place)
            await cluster.create(objects)
            await asyncio.sleep(churn.every_seconds)
            if churn.recreate:
                await cluster.delete(objects)

    async with _background(asyncio.create_task(churn_on(), name="churn")):
        yield


@contextlib.asynccontextmanager
async def _background(*tasks: asyncio.Task[None]) -> AsyncIterator[None]:
    """Tasks that run meanwhile. One that failed makes the measurement fail: it would measure something else."""
    try:
        yield
        failed = [task for task in tasks if task.done() and not task.cancelled() and task.exception()]
        if failed:
            raise RuntimeError(f"{failed[0].get_name()} failed: {failed[0].exception()}")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
