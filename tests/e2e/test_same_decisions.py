"""The real kube-scheduler and ours on the same API server, pod by pod: its node is among our best, its words are ours.

Pods come one at a time. Before each, the whole cluster is read back from the API and decided on offline; then
kube-scheduler, which scores every node here, places the pod or says why it cannot. Nothing is remembered between pods,
so each is a decision on a state of its own.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bayplan.api.kinds import KINDS
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.config.loading import default_config
from bayplan.config.profiles import resolve_profiles
from bayplan.plugins.intree import default_registry
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.objects import HOSTNAME, ZONE, JsonObject, node, node_terms, pod, pod_term, priority_class, spread

EVERY_NODE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
parallelism: 1
"""
SHAPES = 12


def random_nodes(dice: random.Random) -> Iterator[JsonObject]:
    for i in range(16):
        labels = {ZONE: f"zone-{i % 3}", "disk": dice.choice(["ssd", "hdd"])}
        effect = dice.choice(["NoSchedule", "PreferNoSchedule"])
        taints = [{"key": "team", "value": "a", "effect": effect}] if i % 4 == 0 else []
        cpu = dice.choice(["1", "2", "3"])
        yield node(f"node-{i:02}", cpu=cpu, memory=f"{dice.choice([2, 4])}Gi", pods=12, labels=labels, taints=taints)


def random_pod(dice: random.Random, i: int) -> JsonObject:
    """A pod of one or two wishes; some can never be met."""
    app = f"app-{dice.randrange(4)}"
    more: JsonObject = {}
    for wish in dice.sample(range(SHAPES), dice.choice([1, 1, 2])):
        _add_wish(more, wish, app, dice)
    cpu, memory = f"{dice.choice([50, 150, 400, 900, 2500])}m", f"{dice.choice([32, 256, 700])}Mi"
    return pod(f"pod-{i:03}", cpu=cpu, memory=memory, labels={"app": app}, **more)


def _add_wish(more: JsonObject, wish: int, app: str, dice: random.Random) -> None:
    affinity = more.setdefault("affinity", {})
    other = f"app-{dice.randrange(4)}"
    if wish == 0:
        more["nodeSelector"] = {"disk": dice.choice(["ssd", "hdd", "tape"])}
    elif wish == 1:
        term = node_terms(ZONE, f"zone-{dice.randrange(3)}")["nodeSelectorTerms"][0]
        affinity["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 30, "preference": term}]
        }
    elif wish == 2:
        more["tolerations"] = [{"key": "team", "operator": "Exists"}]
    elif wish in (3, 4):
        hard = wish == 3
        more["topologySpreadConstraints"] = [spread(dice.choice([ZONE, HOSTNAME]), app, hard=hard, skew=1 + hard)]
    elif wish == 5:
        affinity["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [pod_term(dice.choice([ZONE, HOSTNAME]), other)]
        }
    elif wish == 6:
        affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term(ZONE, other)]}
    elif wish == 7:
        term = {"weight": 50, "podAffinityTerm": pod_term(HOSTNAME, other)}
        affinity["podAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    elif wish == 8:
        more["ports"] = [dice.choice([8080, 9090])]
    elif wish == 9:
        more["priorityClassName"] = "patient"


def decided_offline(objects: list[KubeObject], waiting: Pod) -> tuple[set[str], str]:
    """The nodes that tie for the best, or why there is none."""
    registry = default_registry()
    profiles = resolve_profiles(default_config(), registry)
    scheduler = OfflineScheduler(profiles, registry, objects, always_score=True)
    decision = scheduler.decide(scheduler.info(waiting), explains=True)
    if decision.scores is None:
        return set(), decision.message
    _, ties = decision.scores.best()
    return {scheduler.cache.cluster.nodes.at(int(row)).name for row in ties}, ""


async def read_cluster(api: ApiSession) -> list[KubeObject]:
    lists = await asyncio.gather(*(api.items(kind.path) for kind in KINDS))
    return [msgspec.convert(item, kind.type) for kind, items in zip(KINDS, lists, strict=True) for item in items]


async def outcome(api: ApiSession, name: str) -> tuple[str, str]:
    """(node, "") or ("", why not), once kube-scheduler has said one or the other."""
    for _ in range(3600):
        found = await api.pod(name)
        if found["spec"].get("nodeName"):
            return found["spec"]["nodeName"], ""
        for condition in found["status"].get("conditions") or ():
            if condition["type"] == "PodScheduled":
                return "", condition["message"]
        await asyncio.sleep(0.025)
    raise AssertionError(f"kube-scheduler said nothing about {name}")


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("seed", [1, 2])
async def test_its_node_is_among_our_best_and_its_reasons_are_ours(cluster: Cluster, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    settings = tmp_path / "config.yaml"
    settings.write_text(EVERY_NODE)
    differences, placed = [], 0
    async with api_session(cluster.kubeconfig) as api:
        patient = {**priority_class("patient", 5), "preemptionPolicy": "Never"}
        await api.create(*random_nodes(dice), patient)
        theirs = await asyncio.to_thread(cluster.start_kube_scheduler, settings)
        try:
            for i in range(90):
                body = random_pod(dice, i)
                before = await read_cluster(api)
                await api.create(body)
                where, why = await outcome(api, body["metadata"]["name"])
                waiting = msgspec.convert(await api.pod(body["metadata"]["name"]), Pod)
                waiting.spec.node_name = ""
                best, reason = decided_offline(before, waiting)
                if where not in best and (where or why != reason):
                    differences.append(f"{body['spec']}\n  theirs {where}{why}\n  ours {sorted(best)}{reason}")
                placed += bool(where)
                if not where:
                    await api.delete_pods(waiting.name)
        finally:
            await asyncio.to_thread(theirs.stop)

    assert not differences, "\n".join(differences)
    assert 45 <= placed <= 80
