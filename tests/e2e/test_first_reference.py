"""The first write-up's own `values.yaml`, image aside: helm installs our chart with it, and the scheduler runs with
exactly the configuration, the flags and the service account that came out."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

from bayplan.deploy.bundle import load_bundle
from bayplan.deploy.chart import chart_files
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology
from tests.companions.numa import bound_pod, topology
from tests.companions.world import World, real_world
from tests.controlplane import ControlPlane
from tests.e2e.objects import JsonObject, node, pod
from tests.e2e.test_controllers import running

EXAMPLE = Path(__file__).parents[2] / "examples" / "references" / "block-all"
VALUES = [f"--values={EXAMPLE / name}" for name in ("values-images.yaml", "values-plugins.yaml")]
SCHEDULER, CONTROLLER = "scheduler-plugins-scheduler", "scheduler-plugins-controller"
NAMESPACE = "plugins"  # short, because a certificate stands for its service accounts
FOUR = ["Coscheduling", "CapacityScheduling", "NodeResourceTopologyMatch", "NodeResourcesAllocatable"]


def _install(control_plane: ControlPlane, chart: Path, *more: str) -> None:
    for name, content in chart_files(load_bundle(None, ())).items():
        path = chart / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    inside = ("--namespace", NAMESPACE, "--create-namespace")
    control_plane.helm("upgrade", "--install", "scheduler-plugins", str(chart), *inside, *VALUES, *more)
    control_plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")


def _command(control_plane: ControlPlane, name: str, folder: Path) -> list[str]:
    """What the installed deployment runs, with the files and the account that its pod would have."""

    def get(kind: str) -> JsonObject:
        where = ("--namespace", NAMESPACE, "--output=json")
        return dict(json.loads(control_plane.kubectl("get", kind, name, *where).stdout))

    [container] = get("deployment")["spec"]["template"]["spec"]["containers"]
    arguments = [each for each in container["args"] if not each.startswith(("--secure-port", "--bind-address"))]
    if name == SCHEDULER:
        config = folder / "config.yaml"
        config.write_text(get("configmap")["data"]["config.yaml"])
        arguments = [each.replace("/etc/bayplan/config.yaml", str(config)) for each in arguments] + ["--secure-port=0"]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}"]
    account = control_plane.kubeconfig_for(f"system:serviceaccount:{NAMESPACE}:{name}", groups)
    return [*container["command"][1:], *arguments, f"--kubeconfig={account}"]


@contextlib.asynccontextmanager
async def installed(control_plane: ControlPlane, folder: Path, *more: str) -> AsyncIterator[None]:
    """Scheduler and controllers of the chart; neither may be refused anything."""
    await asyncio.to_thread(_install, control_plane, folder / "chart", *more)
    scheduler = await asyncio.to_thread(_command, control_plane, SCHEDULER, folder)
    controllers = await asyncio.to_thread(_command, control_plane, CONTROLLER, folder)
    async with running(*scheduler) as said, running(*controllers) as said_too:
        yield
    assert not [line for line in said + said_too if "forbidden" in line.lower()]


def _ours(made: JsonObject, **labels: str) -> JsonObject:
    made["spec"]["schedulerName"] = SCHEDULER
    made["metadata"]["labels"] = labels
    return made


async def _says(world: World, key: str, text: str) -> bool:
    return text in await world.message(key)


async def test_the_values_as_written_run_all_five_plugins(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    """The fifth refuses every pod, so that is what a pod of this scheduler meets."""
    async with real_world(empty_control_plane.kubeconfig) as world, installed(empty_control_plane, tmp_path):
        await world.install(PodGroup, ElasticQuota, NodeResourceTopology)
        await world.api.create(node("n1"), _ours(pod("blocked")))
        expected = "Pod default/blocked blocked by BlockAllScheduler"
        await world.until(lambda: _says(world, "default/blocked", expected), what="the reason")
        assert await world.bound() == {}


async def test_without_the_plugin_that_blocks_the_other_four_place_pods(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Each of the four shows: a gang waits for its second member, a quota's max holds, cells too small are avoided
    though the node is the smaller one, which NodeResourcesAllocatable prefers otherwise."""
    enabled = f"plugins.enabled={{{','.join(FOUR)}}}"
    release = installed(empty_control_plane, tmp_path, "--set", enabled)
    async with real_world(empty_control_plane.kubeconfig) as world, release:
        await _four_plugins_at_work(world)


async def _four_plugins_at_work(world: World) -> None:
    await world.install(PodGroup, ElasticQuota, NodeResourceTopology)
    await world.put(PodGroup, "pair", {"spec": {"minMember": 2}})
    await world.put(ElasticQuota, "quota", {"spec": {"min": {"cpu": "12"}, "max": {"cpu": "12"}}})
    await world.put(NodeResourceTopology, "split", topology(2, 2, 2, 2))
    await world.put(NodeResourceTopology, "whole", topology(16))
    await world.api.create(node("split", cpu="8"), node("whole", cpu="16"))

    await world.api.create(_ours(bound_pod("aligned", "6")), _ours(pod("plain", cpu="1")))
    await world.until_bound(2)
    await world.api.create(_ours(pod("one", cpu="1"), **{POD_GROUP_LABEL: "pair"}))
    await world.until(lambda: _says(world, "default/one", "cannot find enough sibling pods"), what="the gang waits")
    await world.api.create(_ours(pod("two", cpu="1"), **{POD_GROUP_LABEL: "pair"}))
    await world.until_bound(4)
    await world.api.create(_ours(pod("much", cpu="4")))
    await world.until(lambda: _says(world, "default/much", "ElasticQuota default is more than Max"), what="the max")

    bound = await world.bound()
    assert (bound["default/aligned"], bound["default/plain"]) == ("whole", "split")
    assert "default/much" not in bound
    await world.until(lambda: _has_status(world), what="status of group and quota")


async def _has_status(world: World) -> bool:
    group = await world.api.call("GET", f"{world.path_of(PodGroup)}/pair")
    quota = await world.api.call("GET", f"{world.path_of(ElasticQuota)}/quota")
    return group["status"].get("phase") == "Scheduling" and quota["status"].get("used") == {"cpu": "9"}
