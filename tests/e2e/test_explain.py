"""`bayplan explain`, `pending` and `whatif` as commands, against a scheduler process on a control plane, over HTTPS.

Who may ask is the API server's business: a service account with the viewer's role gets answers, another does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bayplan.deploy.role_documents import viewer_rules
from tests.controlplane.ports import free_loopback_port
from tests.controlplane.process import Guard
from tests.e2e.api_session import PODS, ApiSession, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import Ledger, keeping_ledger
from tests.e2e.objects import node, pod
from tests.e2e.scheduler_process import SchedulerProcess, write_config
from tests.patching import merged
from tests.waiting import until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
_BAYPLAN = (sys.executable, "-c", "from bayplan.cli.main import run; run()")


@pytest.fixture
def guard() -> Iterator[Guard]:
    made = Guard()
    yield made
    made.close()


@pytest.fixture
def tokens(cluster: Cluster, programs: None, tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Token files of two service accounts, of which the first has the viewer's role."""
    made: list[tuple[str, str]] = []

    def create(collection: str, body: dict[str, Any]) -> None:
        status, answer = cluster.admin.request("POST", collection, body)
        assert status == 201, answer
        made.append((collection, body["metadata"]["name"]))

    files = {}
    for name in ("e2e-viewer", "e2e-nobody"):
        create(ACCOUNTS, {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": name}})
        files[name] = tmp_path / name
        files[name].write_text(cluster.kubectl("create", "token", name).stdout.strip())
    shared = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "e2e-viewer"}}
    create(f"{RBAC}/clusterroles", {**shared, "kind": "ClusterRole", "rules": viewer_rules()})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "e2e-viewer"}
    subjects = [{"kind": "ServiceAccount", "name": "e2e-viewer", "namespace": "default"}]
    binding = {**shared, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects}
    create(f"{RBAC}/clusterrolebindings", binding)
    yield files
    for collection, name in reversed(made):
        cluster.admin.request("DELETE", f"{collection}/{name}")


@dataclass
class Asked:
    """A scheduler that can be asked on the command line."""

    server: str
    token: Path
    api: ApiSession
    ledger: Ledger
    decisions: Path

    async def bayplan(self, *words: str, token: Path | None = None, status: int = 0) -> str:
        """What a command says; on its error output when it is to fail."""
        reach = ("--server", self.server, "--token-file", str(token or self.token), "--insecure-skip-tls-verify")
        done = await asyncio.to_thread(_run, *words, *reach)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    async def json(self, *words: str) -> Any:
        return json.loads(await self.bayplan(*words, "-o", "json"))


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "COLUMNS": "140", "KUBECONFIG": "/dev/null"}
    return subprocess.run([*_BAYPLAN, *words], capture_output=True, text=True, timeout=60, check=False, env=environment)


@contextlib.asynccontextmanager
async def asked(cluster: Cluster, tokens: dict[str, Path], folder: Path, guard: Guard) -> AsyncIterator[Asked]:
    port, decisions = free_loopback_port(), folder / "decisions.jsonl"
    arguments = [f"--config={write_config(folder)}", f"--kubeconfig={cluster.kubeconfig}"]
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(*(node(f"node-{i}") for i in range(3)))
        process = SchedulerProcess(folder, guard, *arguments, f"--decision-file={decisions}", secure_port=port)
        try:
            summary = {"bayplan.dev/explain": "summary"}
            first = pod("pod-0")
            first["metadata"]["annotations"] = summary
            await api.create(first, *(pod(f"pod-{i}") for i in range(1, 6)), pod("huge", cpu="64"))
            await until(lambda: ledger.bound == 6, what="all bound", instead=lambda: process.log)
            yield Asked(f"https://127.0.0.1:{port}", tokens["e2e-viewer"], api, ledger, decisions)
        finally:
            await asyncio.to_thread(process.stop)


async def test_people_with_the_viewers_role_get_every_answer(
    cluster: Cluster, tokens: dict[str, Path], tmp_path: Path, guard: Guard
) -> None:
    async with asked(cluster, tokens, tmp_path, guard) as scheduler:
        placed = await scheduler.json("explain", "pod", "pod-0")
        node_name = placed["node"]
        waiting = await scheduler.bayplan("explain", "pod", "huge")
        home = await scheduler.bayplan("explain", "node", node_name)
        board = await scheduler.json("pending")
        drained = await scheduler.json("whatif", "--drain", node_name, "--without-pending")
        nobody = await scheduler.bayplan("pending", token=tokens["e2e-nobody"], status=1)
        live = {p["metadata"]["name"]: p for p in await scheduler.api.pods()}

    assert placed["state"] == "placed" and placed["attempts"][0]["outcome"] == "bound"
    assert placed["decision"]["node"] == node_name == live["pod-0"]["spec"]["nodeName"]
    assert "it asks 64 CPU; the largest node has" in waiting and "Insufficient cpu" in waiting
    assert "what would let it run" in waiting and "in the queue:" in waiting
    assert home.startswith(f"{node_name} runs ")
    assert (board["total"], board["causes"][0]["plugin"]) == (1, "NodeResourcesFit")
    assert {entry["origin"] for entry in drained["placed"]} == {node_name}
    assert all(live[name]["spec"].get("nodeName") for name in live if name != "huge")
    assert "refused (403)" in nobody and "e2e-nobody" in nobody
    summary = live["pod-0"]["metadata"]["annotations"]["bayplan.dev/explanation"]
    assert summary.startswith(f"{node_name}: 3 of 3 nodes fit")


async def test_kubectl_takes_the_patches_of_suggestions_and_they_change_nothing_else(
    cluster: Cluster, tokens: dict[str, Path], tmp_path: Path, guard: Guard
) -> None:
    picky = pod("picky", nodeSelector={"disk": "ssd", "kubernetes.io/os": "linux"})
    picky["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]
    async with asked(cluster, tokens, tmp_path, guard) as scheduler:
        await scheduler.api.create(picky)
        await _until_failed(scheduler, "picky")
        found = [await scheduler.json("explain", "pod", name) for name in ("picky", "huge")]
        edits = [edit for each in found for suggestion in each["suggestions"] for edit in suggestion["edits"]]
        edits = [edit for edit in edits if "patch" in edit]
        patched = [await asyncio.to_thread(_patched, cluster, tmp_path, edit) for edit in edits]

    assert {edit["kind"] for edit in edits} == {"patchPod", "patchNode"}
    for edit, (before, after) in zip(edits, patched, strict=True):
        expected = merged(before, edit["patch"])
        assert after["spec"] == expected["spec"]
        assert after["metadata"].get("labels", {}) == expected["metadata"].get("labels", {})
        assert expected != before


async def _until_failed(scheduler: Asked, name: str) -> None:
    async with asyncio.timeout(90):
        while "Unschedulable" not in json.dumps(await scheduler.api.call("GET", f"{PODS}/{name}")):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def _patched(cluster: Cluster, folder: Path, edit: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """An object before and after its patch, as kubectl applies it."""
    kind, (namespace, _, name) = ("pod" if edit["kind"] == "patchPod" else "node"), edit["name"].rpartition("/")
    where = ["-n", namespace] if namespace else []
    before = json.loads(cluster.kubectl("get", kind, name, *where, "-o", "json").stdout)
    path = folder / f"{kind}-{name}.json"
    path.write_text(json.dumps(before))
    given = ("--type", "strategic", "-p", json.dumps(edit["patch"]))
    after = json.loads(cluster.kubectl("patch", "--local", "-f", str(path), *given, "-o", "json").stdout)
    return before, after


async def test_the_dashboard_is_brought_to_this_machine(
    cluster: Cluster, tokens: dict[str, Path], tmp_path: Path, guard: Guard
) -> None:
    """`bayplan dashboard` carries the credentials that a browser does not have."""
    async with asked(cluster, tokens, tmp_path, guard) as scheduler:
        words = ("dashboard", "--server", scheduler.server, "--token-file", str(scheduler.token))
        process = await asyncio.create_subprocess_exec(
            *_BAYPLAN, *words, "--insecure-skip-tls-verify", stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        said = (await asyncio.wait_for(process.stderr.readline(), 90)).decode()
        url, _, after = said.removeprefix("note: ").partition("/dashboard/")
        jar = aiohttp.CookieJar(unsafe=True)  # also of addresses without a name
        async with aiohttp.ClientSession(url, cookie_jar=jar) as session:
            refused = (await session.get("/bayplan/v1/overview")).status
            await session.get(f"/dashboard/{after.partition(' ')[0]}")
            page = await (await session.get("/dashboard/")).text()
            overview = await (await session.get("/bayplan/v1/overview")).json()
            played = await (await session.post("/bayplan/v1/whatif", json={"pending": True})).json()
            async with session.get("/bayplan/v1/events") as events:
                first = [await events.content.readline() for _ in range(3)]
        process.terminate()
        await process.wait()

    assert scheduler.server in said
    assert refused == 401
    assert "<title>" in page
    assert (overview["nodes"], overview["pods"]) == (3, 6)
    assert played["pendingCount"] == 1
    assert b"event: overview\n" in first


async def test_the_decision_file_answers_when_the_scheduler_is_gone(
    cluster: Cluster, tokens: dict[str, Path], tmp_path: Path, guard: Guard
) -> None:
    async with asked(cluster, tokens, tmp_path, guard) as scheduler:
        decisions = scheduler.decisions
    placed = json.loads(_run("explain", "pod", "pod-3", "--file", str(decisions), "-o", "json").stdout)
    text = _run("explain", "pod", "huge", "--file", str(decisions)).stdout
    status, _ = cluster.admin.request("GET", f"{PODS}/pod-3")

    assert placed["attempts"][0]["outcome"] == "bound" and placed["decision"]["feasible"] == 3
    assert "Insufficient cpu" in text
    assert status == 200
