"""A cluster that has something for every page: placed, refused, gated, preempted and unserved pods of several teams,
three hundred pods of one template, a gang that waits for its last members, and claims for devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bayplan.apiserver.simulation.devices import DeviceModel
from bayplan.deploy.crds import crd_documents
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup
from tests.browser.conftest import Stage, pod

HOSTNAME = "kubernetes.io/hostname"
DRIVER = "gpu.example.com"
TEAMS = ("batch", "ml", "shop")
DEVICES = [DeviceModel(driver=DRIVER, count=4, node_selector={"accelerator": "gpu"}, device={})]
CONFIG = Path(__file__).with_name("scene.yaml")
"""The default profile with Coscheduling."""
LICENCES = Path(__file__).with_name("licences.py")
"""A plugin that stops pods after the choice."""


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
    labels |= {"accelerator": "gpu"} if number % 20 == 0 else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | {"disk": "ssd" if number % 4 else "hdd"}},
        "spec": {"taints": taints, "unschedulable": number % 61 == 3},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def running(nodes: int, pods: int) -> list[dict[str, Any]]:
    """Pods that have their nodes already, and three caches that others want to be near."""
    sizes = (("1", "4Gi"), ("2", "4Gi"), ("4", "20Gi"), ("6", "12Gi"))
    loads = [
        pod(f"load-{k}", cpu=cpu, memory=memory, nodeName=name_of((k * 37 + k // 9) % nodes))
        for k in range(pods)
        for cpu, memory in [sizes[k * 7919 % 4]]
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


def definitions() -> list[dict[str, Any]]:
    """Namespaces of the teams and the definition of groups; to be there before the scheduler starts."""
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in TEAMS]
    return [*map(dict, crd_documents([PodGroup])), *spaces]


def web_shop(count: int = 300) -> list[dict[str, Any]]:
    """The pods of one deployment."""
    letters = "bcdfghjklm"
    ends = (f"{letters[i // 100]}{letters[i // 10 % 10]}x{letters[i % 10]}{'2456789'[i % 7]}" for i in range(count))
    names = (f"checkout-7d4f8b6c95-{end}" for end in ends)
    return [pod(name, cpu="250m", memory="512Mi", namespace="shop", labels={"app": "checkout"}) for name in names]


def gang() -> list[dict[str, Any]]:
    """A group of eight of which six are there, so that all of them wait."""
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": 8}}
    members = (pod(f"allreduce-{i}", cpu="1", namespace="ml", labels={POD_GROUP_LABEL: "allreduce"}) for i in range(6))
    return [{**group, "metadata": {"name": "allreduce", "namespace": "ml"}}, *members]


def claiming() -> list[dict[str, Any]]:
    """A pod that gets two devices, and one that asks more than any node has."""
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    found: list[dict[str, Any]] = []
    for name, count in (("finetune-0", 2), ("pretrain-0", 6)):
        request = {"name": "gpus", "exactly": {"deviceClassName": DRIVER, "count": count}}
        found.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": "ml"},
                "spec": {"devices": {"requests": [request]}},
            }
        )
        claims = [{"name": "gpus", "resourceClaimName": name}]
        found.append(pod(name, cpu="4", namespace="ml", tolerations=tolerations, resourceClaims=claims))
    return found


def licensed() -> list[dict[str, Any]]:
    """Pods that got a node and are held at Permit, refused at Reserve, or failed there."""
    return [
        pod(f"solver-{word}-0", cpu="1", namespace="batch", labels={"licence": word})
        for word in ("manual", "none", "broken")
    ]


async def preempt(stage: Stage, count: int = 1) -> None:
    """Pods of high priority take the places of two others each, on nodes that have room for nobody else."""
    small = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    hosts = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"edge-{n}", "labels": {HOSTNAME: f"edge-{n}", "site": "edge"}},
            "status": {"allocatable": small, "capacity": small},
        }
        for n in range(count)
    ]
    batch = [pod(f"batch-{i}", cpu="2", memory="2Gi", nodeName=f"edge-{i // 2}") for i in range(2 * count)]
    await stage.create(urgent, *hosts, *batch)
    await stage.until(lambda: stage.has_pods(*(f"batch-{i}" for i in range(2 * count))))
    for n in range(count):
        await stage.create(pod(f"vip-{n}", cpu="4", nodeSelector={"site": "edge"}, priorityClassName="urgent"))
        placed = f"default/vip-{n}"
        await stage.until(lambda key=placed: any(record.node for record in stage.recorder.of_pod(key)), 60)
