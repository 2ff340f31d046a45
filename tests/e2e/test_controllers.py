"""The controllers as processes against a real kube-apiserver: alone, and inside `bayplan run`."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bayplan.plugins.community.elastic_quota import ElasticQuota
from bayplan.plugins.community.pod_group import POD_GROUP_LABEL, PodGroup
from tests.companions.world import World, configuration, real_world
from tests.controlplane import ControlPlane
from tests.e2e.objects import node, pod

GANGS = configuration("Coscheduling", disabled=["PrioritySort"])


@contextlib.asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A `bayplan` process while the block lasts; it must end by itself, and well, when it is told to."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bayplan.cli", *arguments, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
        assert process.returncode is None, f"ended with {process.returncode}"
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 20) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def status(world: World, kind: type[PodGroup] | type[ElasticQuota], name: str) -> dict[str, object]:
    found = await world.api.call("GET", f"{world.path_of(kind)}/{name}")
    return dict(found.get("status") or {})


@pytest.mark.parametrize("is_inside", [False, True], ids=["alone", "inside the scheduler"])
async def test_the_status_of_groups_and_quotas_is_written(
    empty_control_plane: ControlPlane, tmp_path: Path, is_inside: bool
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(GANGS)
    kubeconfig = f"--kubeconfig={empty_control_plane.kubeconfig}"
    alone = ["controllers", kubeconfig, "--leader-elect", "--kube-api-qps=100"]
    inside = ["run", f"--config={config}", kubeconfig, "--with-controllers", "--secure-port=0"]
    async with real_world(empty_control_plane.kubeconfig) as world:
        await world.install(PodGroup, ElasticQuota)
        await world.put(PodGroup, "g", {"spec": {"minMember": 2}})
        await world.put(ElasticQuota, "q", {"spec": {"min": {"cpu": "4"}}})
        await world.api.create(node("n1"))
        async with running(*(inside if is_inside else alone)):
            await world.until(lambda: _has(world, phase="Pending", used="0"), what="empty status")
            await world.api.create(*(pod(f"p{i}", cpu="1", labels={POD_GROUP_LABEL: "g"}) for i in range(2)))
            used = "2" if is_inside else "0"
            await world.until(lambda: _has(world, phase="Scheduling", used=used), what="status of pods")


async def _has(world: World, *, phase: str, used: str) -> bool:
    group, quota = await status(world, PodGroup, "g"), await status(world, ElasticQuota, "q")
    return group.get("phase") == phase and quota.get("used") == {"cpu": used}
