"""The controllers as processes against a real kube-apiserver, alone and inside `bayplan run`, and as what `bayplan
render` makes of them: started as the deployment says, by a service account that may do what was rendered, no more."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.deploy.bundle import load_bundle
from bayplan.deploy.manifests import Controllers, ManifestOptions, manifests
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup
from tests.companions.world import World, configuration, real_world
from tests.controlplane import ControlPlane
from tests.e2e.objects import node, pod

COMPANIONS = configuration("Coscheduling", "CapacityScheduling", disabled=["PrioritySort"])


@contextlib.asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[list[str]]:
    """A `bayplan` process while the block lasts, and the lines that it said by the end of it. It must end by itself,
    and well, when it is told to."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan.cli", *arguments),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    said: list[str] = []
    listening = asyncio.create_task(_listen(process, said))
    try:
        try:
            yield said
        except BaseException as error:
            error.add_note(f"{arguments[0]} said at last:\n{''.join(said[-20:])}")
            raise
        assert process.returncode is None, f"ended with {process.returncode}: {said[-20:]}"
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 90) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await listening


async def _listen(process: asyncio.subprocess.Process, said: list[str]) -> None:
    assert process.stderr is not None
    while line := await process.stderr.readline():
        said.append(line.decode(errors="replace"))


async def status(world: World, kind: type[PodGroup] | type[ElasticQuota], name: str) -> dict[str, object]:
    found = await world.api.call("GET", f"{world.path_of(kind)}/{name}")
    return dict(found.get("status") or {})


async def _has(world: World, *, phase: str, used: str) -> bool:
    group, quota = await status(world, PodGroup, "g"), await status(world, ElasticQuota, "q")
    return group.get("phase") == phase and quota.get("used") == {"cpu": used}


async def _prepare(world: World) -> None:
    await world.install(PodGroup, ElasticQuota)
    await world.put(PodGroup, "g", {"spec": {"minMember": 2}})
    await world.put(ElasticQuota, "q", {"spec": {"min": {"cpu": "4"}}})
    await world.api.create(node("n1"))


async def _follow(world: World, *, used: str) -> None:
    """The status follows two pods that come."""
    await world.until(lambda: _has(world, phase="Pending", used="0"), what="empty status")
    await world.api.create(*(pod(f"p{i}", cpu="1", labels={POD_GROUP_LABEL: "g"}) for i in range(2)))
    await world.until(lambda: _has(world, phase="Scheduling", used=used), what="status of pods")


@pytest.mark.parametrize("is_inside", [False, True], ids=["alone", "inside the scheduler"])
async def test_the_status_of_groups_and_quotas_is_written(
    empty_control_plane: ControlPlane, tmp_path: Path, is_inside: bool
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(COMPANIONS)
    kubeconfig = f"--kubeconfig={empty_control_plane.kubeconfig}"
    alone = ["controllers", kubeconfig, "--leader-elect", "--kube-api-qps=100"]
    inside = ["run", f"--config={config}", kubeconfig, "--with-controllers", "--secure-port=0"]
    async with real_world(empty_control_plane.kubeconfig) as world:
        await _prepare(world)
        async with running(*(inside if is_inside else alone)):
            await _follow(world, used="2" if is_inside else "0")


@pytest.mark.parametrize("where", ["deployment", "scheduler"])
async def test_the_rendered_controllers_do_their_work_under_the_rendered_rules(
    empty_control_plane: ControlPlane, tmp_path: Path, where: Controllers
) -> None:
    config = tmp_path / "given.yaml"
    config.write_text(COMPANIONS)
    bundle = load_bundle(config, (), name="gangs")
    documents = manifests(bundle, ManifestOptions(controllers=where, replicas=2))
    await asyncio.to_thread(_apply, empty_control_plane, documents)
    async with real_world(empty_control_plane.kubeconfig) as world:
        await _prepare(world)
        async with running(*await asyncio.to_thread(_command, empty_control_plane, documents, where, tmp_path)) as said:
            await _follow(world, used="2" if where == "scheduler" else "0")
            await world.until(lambda: _has_event(world), what="the event of a quota")
            lease = await world.api.call("GET", f"{_LEASES}/{'gangs' if where == 'scheduler' else 'gangs-controllers'}")
        assert lease["spec"]["holderIdentity"] is not None
        shown = await asyncio.to_thread(empty_control_plane.kubectl, "get", "podgroups,elasticquotas")

    assert said
    assert not [line for line in said if "forbidden" in line.lower()]
    assert "PHASE" in shown.stdout and "MINMEMBER" in shown.stdout and "USED" in shown.stdout
    assert "Scheduling" in shown.stdout


_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


def _apply(control_plane: ControlPlane, documents: list[Any]) -> None:
    text = yaml.safe_dump_all(documents)
    control_plane.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", stdin=text)


async def _has_event(world: World) -> bool:
    found = await world.api.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events")
    return any(event["reason"] == "Synced" for event in found["items"])


def _command(control_plane: ControlPlane, documents: list[Any], where: Controllers, folder: Path) -> list[str]:
    """The command of the rendered deployment, with the files and the account that its pod would have."""
    name = "gangs" if where == "scheduler" else "gangs-controllers"
    by_name = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    [container] = by_name["Deployment", name]["spec"]["template"]["spec"]["containers"]
    config = folder / "config.yaml"
    config.write_text(by_name["ConfigMap", "gangs"]["data"]["config.yaml"])
    arguments = [each.replace("/etc/bayplan/config.yaml", str(config)) for each in container["args"]]
    account = control_plane.kubeconfig_for(
        f"system:serviceaccount:kube-system:{name}", ["system:serviceaccounts", "system:serviceaccounts:kube-system"]
    )
    # Several tests may run on this machine at once, so nothing listens.
    quiet = [each for each in arguments if not each.startswith(("--secure-port", "--bind-address"))]
    port = ["--secure-port=0"] if where == "scheduler" else []
    return [*container["command"][1:], *quiet, *port, f"--kubeconfig={account}"]
