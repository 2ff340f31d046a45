"""Recordings of a scheduler on the embedded cluster, with everything that makes the order of things matter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from tests.waiting import until

from bayplan.api.pod import Pod
from bayplan.app.settings import Settings, resolve_settings
from bayplan.config.loading import default_config
from bayplan.framework import Plugin
from bayplan.observe.clock import SystemClock
from bayplan.plugins.intree import default_registry
from bayplan.sim.local import LocalCluster, LocalOptions
from bayplan.sim.recording.file import RecordingFile
from bayplan.sim.recording.writing import RecordingWriter
from bayplan.testing import node, pod, priority_class
from bayplan.testing.local_cluster import TestCluster, document_of

__all__ = ["ROOM", "record_busy_cluster", "recording_cluster", "settings_with", "write_lines"]

ROOM = 256 * 2**20


def settings_with(*plugins: type[Plugin]) -> Settings:
    registry = default_registry()
    names = [registry.add(plugin).name for plugin in plugins]
    return resolve_settings(default_config(), registry, enable=names)


@asynccontextmanager
async def recording_cluster(
    path: Path, *, nodes: Sequence[object], settings: Settings | None = None, limit: int = ROOM, seed: int = 0
) -> AsyncIterator[TestCluster]:
    """A cluster whose scheduler is recorded until the end of the block."""
    file = RecordingFile(path, limit_bytes=limit)
    try:
        recorder = RecordingWriter(file, SystemClock())
        documents = [document_of(each) for each in nodes]  # type: ignore[arg-type]
        options = LocalOptions(nodes=documents, listen=False, recorder=recorder, seed=seed)
        async with LocalCluster(settings or settings_with(), options) as local:
            yield TestCluster(local)
    finally:
        file.close()


def prioritized(each: Pod, name: str) -> Pod:
    return msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, priority_class_name=name))


async def record_busy_cluster(path: Path, *, pods: int = 120, seed: int = 3) -> dict[str, str]:
    """Pods of several kinds at once, more than fit, with preemption, deletions and a node that comes later; where the
    pods ended up."""
    nodes = [node(f"n{number}", cpu=4 + number % 3, zone=f"z{number % 3}") for number in range(10)]
    async with recording_cluster(path, nodes=nodes, seed=seed) as local:
        for name, value in {"level0": 0, "level1": 10, "level2": 20, "urgent": 1000}.items():
            await local.create(priority_class(name, value))
        for number in range(pods):
            cpu = f"{300 + 150 * (number % 4)}m"
            labels = {"app": f"a{number % 5}"}
            await local.create(prioritized(pod(f"p{number}", cpu=cpu, labels=labels), f"level{number % 3}"))
        replica = local.scheduler
        await until(lambda: not replica.queue.sizes.active and not len(replica.tasks), what="a quiet queue")
        for number in range(2, pods, 18):
            await local.delete(pod(f"p{number}"))
        await local.create(node("late", cpu=16, zone="z1"))
        for number in range(6):
            await local.create(prioritized(pod(f"urgent{number}", cpu="3"), "urgent"))
        await until(
            lambda: all(
                each.spec.node_name for each in replica.watching.pods() if each.metadata.name.startswith("urgent")
            ),
            what="urgent pods with nodes",
        )
        # The answer to a binding may be there before the watch has told of it.
        await until(lambda: not len(replica.tasks) and not replica.cache.assumed_count, what="bindings that are seen")
        return {each.key: each.spec.node_name for each in replica.watching.pods()}


def write_lines(path: Path, *lines: bytes) -> None:
    file = RecordingFile(path, limit_bytes=ROOM)
    for line in lines:
        file.append(line)
    file.close()
