"""`make demo`: five schedulers from five write-ups, and devices, each on a cluster that lives in this process, decision
by decision.

    python -m examples.demo

For each scenario of examples/references the embedded cluster comes up with the scheduler and its plugin, the objects
are applied through the API, and the decision is shown as a table: the score of each node by plugin, or the reason why a
node was refused. The last one gives a pod two GPUs, with the default scheduler. Nothing is needed but Python; nothing
leaves this machine.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bayplan.app.settings import load_settings
from bayplan.client.transport import Transport
from bayplan.deploy.crds import crd_document
from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import Decider, Decision, decide
from bayplan.loop.observer import Observer
from bayplan.observe.logs import LogSettings, configure_logging
from bayplan.plugins.community.node_crd_resource_fit import ClusterScopedResource
from bayplan.sim.local import LocalCluster, LocalOptions
from bayplan.sim.sources import read_documents

EXAMPLES = Path(__file__).parent
FOLDER = EXAMPLES / "references"
_PATIENCE_SECONDS = 10.0
Json = dict[str, Any]


def node(name: str, **labels: str) -> Json:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110", "company.net/memory": "1Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | labels},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def resource(name: str, score: int) -> Json:
    spec = {"resourcesFilter": {"company.net/memory": True}, "resourcesScore": {"company.net/memory": score}}
    header = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ClusterScopedResources"}
    return header | {"metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True)
class Scenario:
    folder: str
    """Of examples/references; empty for the default scheduler."""
    title: str
    nodes: list[Json]
    objects: list[Json] = field(default_factory=list)
    pod: Json | None = None


THREE = [node("node-1"), node("node-2"), node("node-3")]
SCENARIOS = [
    Scenario(
        "score-by-label",
        "ScoreByLabel: the label says 1, 5 and 10, so the scores are 10, 50 and 100",
        [node(f"node-{n}", **{"score-by-label": str(n)}) for n in (1, 5, 10)],
    ),
    Scenario(
        "node-crd",
        "NodeCRDResourceFit: two nodes have a custom resource that scores them 55; the third has none",
        THREE,
        [crd_document(ClusterScopedResource), resource("node-1", 55), resource("node-2", 55)],
    ),
    Scenario(
        "name-score",
        "ScoreByNameLength: the length of a node's name decides",
        [node("a"), node("node-with-a-long-name"), node("medium-name")],
    ),
    Scenario("block-all", "BlockAllScheduler: every pod waits, and says why", THREE),
    Scenario(
        "timestamp",
        "SchedulingTimestamp: each pod carries the nanosecond at which it was scored",
        THREE,
        pod={
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "stamped"},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        },
    ),
]


def devices() -> Scenario:
    """The cluster of examples/devices.yaml."""
    documents = read_documents(EXAMPLES / "devices.yaml")
    return Scenario(
        "",
        "DynamicResources: two GPUs of one PCIe root, with more than 40Gi each",
        [each for each in documents if each["kind"] == "Node"],
        [each for each in documents if each["kind"] != "Node"],
        read_documents(EXAMPLES / "training.yaml")[0],
    )


class Showing(Observer):
    """Draws every decision while the state that it was made on is still there."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.deciders: dict[str, Decider] = {}
        self.seen = asyncio.Event()

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        if decision.is_scheduled:
            decider = self.deciders[queued.info.scheduler_name]
            full = decide(replace(decider, explains=True, always_score=True), queued.info)
            self.console.print(_scores(full, decider, decision.node_name))
            if full.rejected_groups():
                self.console.print(_refusals(full, decider))
            self.console.print(f"  {queued.key} -> [bold green]{decision.node_name}[/] in {seconds * 1e3:.1f} ms\n")
        elif not self.seen.is_set():
            self.console.print(_refusals(decision, self.deciders[queued.info.scheduler_name]))
            self.console.print(f"  {queued.key} [bold yellow]waits[/]: {decision.message}\n")
        self.seen.set()


def _scores(decision: Decision, decider: Decider, chosen: str) -> Table:
    table = Table("node", box=None, padding=(0, 3, 0, 2))
    nodes = decider.framework.cluster.nodes
    scores = decision.scores
    if scores is None:
        table.add_row(chosen)
        return table
    for plugin in scores.shares:
        table.add_column(plugin, justify="right")
    table.add_column("total", justify="right", style="bold")
    for position in scores.totals.argsort()[::-1].tolist():
        name = nodes.at(int(scores.rows[position])).name
        shares = [str(share[position]) for share in scores.shares.values()]
        table.add_row(name, *shares, str(scores.totals[position]), style="green" if name == chosen else "")
    return table


def _refusals(decision: Decision, decider: Decider) -> Table:
    table = Table("node", "refused by", "because", box=None, padding=(0, 3, 0, 2))
    nodes = decider.framework.cluster.nodes
    for status, rows in decision.rejected_groups():
        for row in rows.tolist():
            table.add_row(nodes.at(row).name, status.plugin, status.message)
    absent = decision.diagnosis.absent if decision.diagnosis is not None else None
    if absent is not None and not table.rows:
        table.add_row("every node", absent.plugin, absent.message)
    return table


async def play(scenario: Scenario, console: Console) -> None:
    console.rule(f"[bold]{scenario.title}", align="left")
    showing = Showing(console)
    settings = load_settings(FOLDER / scenario.folder / "scheduler.yaml" if scenario.folder else None, [])
    pod = scenario.pod or read_documents(FOLDER / scenario.folder / "pod.yaml")[0]
    options = LocalOptions(nodes=scenario.nodes, objects=scenario.objects, listen=False, observers=[showing])
    async with LocalCluster(settings, options) as local:
        showing.deciders = {name: profile.decider for name, profile in local.live.profiles.items()}
        await _create(local.transport(), pod)
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await showing.seen.wait()
        if scenario.folder == "timestamp":
            console.print(f"  annotations: {await _annotations(local.transport(), pod)}\n")
        if not scenario.folder:
            console.print(f"  claim two-gpus: {await _given(local.transport(), 'two-gpus')}\n")


async def _create(transport: Transport, pod: Json) -> None:
    answer = await transport.request("POST", "/api/v1/namespaces/default/pods", body=msgspec.json.encode(pod))
    if answer.status != 201:
        raise SystemExit(f"the embedded cluster refused the pod: {answer.body.decode()}")


async def _annotations(transport: Transport, pod: Json) -> Json:
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
    for _ in range(100):
        found: Json = msgspec.json.decode((await transport.request("GET", path)).body)
        if found["metadata"].get("annotations") and found["spec"].get("nodeName"):
            return dict(found["metadata"]["annotations"])
        await asyncio.sleep(0.05)
    return {}


async def _given(transport: Transport, claim: str) -> str:
    """The devices that were written to a claim."""
    path = f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{claim}"
    for _ in range(100):
        found: Json = msgspec.json.decode((await transport.request("GET", path)).body)
        allocation = found.get("status", {}).get("allocation")
        if allocation:
            return ", ".join(f"{each['pool']}/{each['device']}" for each in allocation["devices"]["results"])
        await asyncio.sleep(0.05)
    return "nothing yet"


async def main() -> int:
    configure_logging(LogSettings(verbosity=0))
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    began = time.perf_counter()
    for scenario in [*SCENARIOS, devices()]:
        await play(scenario, console)
    console.print(f"six schedulers on six clusters in {time.perf_counter() - began:.1f} s.", style="bold")
    console.print("next: `.venv/bin/bayplan up --nodes 20` keeps a cluster up for kubectl and your own plugin")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
