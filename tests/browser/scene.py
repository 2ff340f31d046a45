"""A cluster that has something for every page: placed, refused, gated, preempted and unserved pods of several teams."""

from __future__ import annotations

from typing import Any

from tests.browser.conftest import Stage, pod

HOSTNAME = "kubernetes.io/hostname"


def name_of(number: int) -> str:
    return f"{'gpu' if number % 20 == 0 else 'big' if number % 3 == 0 else 'std'}-{number:04}"


def node(number: int) -> dict[str, Any]:
    """Large and small ones, some with GPUs, some for one team, some cordoned, in three zones."""
    name = name_of(number)
    amounts = {"cpu": "32", "memory": "128Gi"} if number % 3 == 0 else {"cpu": "16", "memory": "64Gi"}
    amounts |= {"pods": "110"} | ({"nvidia.com/gpu": "8"} if number % 20 == 0 else {})
    taints = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}] if number % 20 == 0 else []
    taints += [{"key": "team", "value": "payments", "effect": "NoSchedule"}] if number % 25 == 7 else []
    labels = {HOSTNAME: name, "topology.kubernetes.io/zone": f"eu-1{'abc'[number * 7 % 11 % 3]}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | {"disk": "ssd" if number % 4 else "hdd"}},
        "spec": {"taints": taints, "unschedulable": number % 61 == 3},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def running(nodes: int, pods: int) -> list[dict[str, Any]]:
    """Pods that have their nodes already, and three caches that others want to be near."""
    loads = [
        pod(f"load-{k}", cpu=("1", "2", "4", "6")[k * 7919 % 4], nodeName=name_of((k * 37 + k // 9) % nodes))
        for k in range(pods)
    ]
    homes = ((1, "2"), (13, "3"), (25, "5"))
    caches = [pod(f"cache-{n}", cpu=cpu, labels={"app": "cache"}, nodeName=name_of(n)) for n, cpu in homes]
    return [*loads, *caches]


def near_the_cache(name: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": HOSTNAME}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return pod(name, cpu="500m", labels={"app": "web"}, nodeSelector={"disk": "ssd"}, affinity=affinity)


def waiting() -> list[dict[str, Any]]:
    """Eighteen that no node takes, for three reasons, and one that no scheduler serves."""
    return [
        *(pod(f"train-{i}", cpu="64") for i in range(12)),
        *(pod(f"render-{i}", cpu="2", nodeSelector={"disk": "nvme"}) for i in range(5)),
        pod("deploy-0", schedulingGates=[{"name": "example.com/approval"}]),
        pod("legacy-0", schedulerName="old-scheduler"),
    ]


async def preempt(stage: Stage) -> None:
    """A pod of high priority takes the place of two others on a node that has room for nobody else."""
    small = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    host = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "edge-0", "labels": {HOSTNAME: "edge-0", "site": "edge"}},
        "status": {"allocatable": small, "capacity": small},
    }
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    await stage.create(urgent, host, *(pod(f"batch-{i}", cpu="2", nodeName="edge-0") for i in range(2)))
    await stage.until(lambda: stage.has_pods("batch-0", "batch-1"))
    await stage.create(pod("vip-0", cpu="4", nodeSelector={"site": "edge"}, priorityClassName="urgent"))
    await stage.until(lambda: any(record.node for record in stage.recorder.of_pod("default/vip-0")), 60)
