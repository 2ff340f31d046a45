"""`plan`, `simulate` and `sweep` on a running cluster: it is only read, and printed commands do what the plan says."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.programs import program
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.objects import JsonObject, node
from tests.e2e.replica_controller import ReplicaController, budget, keeping_replicas, place, replica_set
from tests.e2e.running import scheduling

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.usefixtures("programs")


def priced(name: str, cpu: str, price: str) -> JsonObject:
    made = node(name, cpu=cpu)
    made["metadata"]["annotations"] = {"bayplan.dev/price-per-hour": price}
    return made


def reader_of(cluster: Cluster) -> Path:
    """The kubeconfig of a user who may read everything and change nothing."""
    rights = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "plan-reader"}}
    binding = {**role, "kind": "ClusterRoleBinding"}
    binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "plan-reader"}  # type: ignore[assignment]
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "plan-reader"}
    path = "/apis/rbac.authorization.k8s.io/v1"
    cluster.admin.request("POST", f"{path}/clusterroles", {**role, "rules": [rights]})
    cluster.admin.request("POST", f"{path}/clusterrolebindings", {**binding, "subjects": [subject]})
    return cluster.kubeconfig_for("plan-reader")


async def bayplan(*arguments: str, folder: Path) -> Any:
    """Run a command that prints JSON."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "bayplan.cli", *arguments, "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=90,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return json.loads(done.stdout)


async def run_in_order(commands: list[str], kubeconfig: Path, api: ApiSession) -> None:
    """The lines of a plan, as somebody runs them in a shell who looks after each whether the replacement has a node."""
    count = len(await api.pods())
    path = f"{program('kubectl').parent}{os.pathsep}{os.environ['PATH']}"
    for line in commands:
        done = await asyncio.to_thread(
            subprocess.run,
            ["sh", "-c", line],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"KUBECONFIG": str(kubeconfig), "PATH": path},
            timeout=90,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        await all_placed(api, count)


async def all_placed(api: ApiSession, count: int) -> None:
    for _ in range(1000):
        found = (await places(api)).values()
        if len(found) == count and all(found):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{count} pods do not come to have nodes")


async def places(api: ApiSession) -> dict[str, str]:
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in await api.pods()}


async def arrived(api: ApiSession, controller: ReplicaController) -> list[str]:
    """The nodes of the pods that replaced others, in the order in which those left."""
    found = await places(api)
    return [found[name] for name in controller.created]


async def budget_allows(api: ApiSession, name: str, count: int) -> None:
    """Wait until the controller has counted."""
    path = f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}"
    for _ in range(1000):
        if (await api.call("GET", path)).get("status", {}).get("disruptionsAllowed") == count:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"budget {name} does not come to allow {count}")


async def test_the_commands_of_a_drain_run_as_printed_and_every_pod_lands_where_the_plan_says(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with api_session(cluster.kubeconfig) as api:
        await api.create(node("a", cpu="8"), node("b", cpu="16"), node("c", cpu="24"))
        await api.create(budget("web", max_unavailable=1))
        await place(api, replica_set("web", replicas=3, cpu="2"), "a", "a", "a")
        await place(api, replica_set("db", replicas=1, cpu="1"), "a")
        async with keeping_replicas(cluster.kubeconfig) as controller:
            await budget_allows(api, "web", 1)
            plan = await bayplan("plan", "drain", "a", "--kubeconfig", str(reader_of(cluster)), folder=tmp_path)
            async with scheduling(cluster.kubeconfig):
                await run_in_order(plan["commands"], cluster.kubeconfig, api)
                landed = await arrived(api, controller)
        unschedulable = (await api.call("GET", "/api/v1/nodes/a"))["spec"].get("unschedulable")

        assert [move["source"] for move in plan["moves"]] == ["a"] * 4
        assert landed == [move["target"] for move in plan["moves"]]
        assert unschedulable is True
        assert sum(line.startswith("kubectl wait pdb web") for line in plan["commands"]) == 2
        assert "a" not in (await places(api)).values()


async def test_the_commands_of_a_defragmentation_empty_the_nodes_that_they_are_for(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with api_session(cluster.kubeconfig) as api:
        await api.create(priced("a", "8", "0.40"), priced("b", "16", "0.60"), priced("c", "24", "0.80"))
        await place(api, replica_set("web", replicas=2, cpu="2"), "a", "b")
        await place(api, replica_set("db", replicas=1, cpu="6"), "c")
        async with keeping_replicas(cluster.kubeconfig) as controller:
            plan = await bayplan("plan", "defrag", "--kubeconfig", str(reader_of(cluster)), folder=tmp_path)
            async with scheduling(cluster.kubeconfig):
                await run_in_order(plan["commands"], cluster.kubeconfig, api)
                landed = await arrived(api, controller)

        assert len(plan["moves"]) == 2
        assert landed == [move["target"] for move in plan["moves"]]
        assert {move["source"] for move in plan["moves"]}.isdisjoint((await places(api)).values())


async def test_simulate_sweep_and_plan_start_from_a_cluster_that_they_only_read(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with api_session(cluster.kubeconfig) as api:
        await api.create(*(node(f"n{number}", cpu="8", memory="32Gi") for number in range(6)))
        await place(api, replica_set("web", replicas=2, cpu="2"), "n0", "n1")
        before = await api.call("GET", "/api/v1/nodes")
        workload, pools = EXAMPLES / "plan" / "workload.yaml", EXAMPLES / "plan" / "pools.yaml"
        source = ["--kubeconfig", str(reader_of(cluster)), "--until", "10m"]
        simulated = await bayplan("simulate", str(workload), *source, folder=tmp_path)
        swept = await bayplan("sweep", str(workload), *source, "--seeds", "1", "--processes", "1", folder=tmp_path)
        planned = await bayplan("plan", "capacity", str(workload), "--pools", str(pools), *source, folder=tmp_path)
        after = await api.call("GET", "/api/v1/nodes")

    run = simulated["runs"][0]
    assert run["measures"]["pods.bound"] > 0
    assert run["samples"][0]["nodes"] == 6
    assert swept["results"][0]["digest"] == run["digest"]
    assert planned["best"] is not None
    assert [each["metadata"]["resourceVersion"] for each in before["items"]] == [
        each["metadata"]["resourceVersion"] for each in after["items"]
    ]
