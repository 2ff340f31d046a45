"""Generated clusters: one subject pod, one cause that keeps it from running or lets it run, and company around it.

A case is plain documents, so that an experiment can start the same cluster again with a change made to it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.truth.device_cases import DEVICE_CAUSES
from tests.truth.documents import Case, JsonObject, pod

__all__ = ["CAUSES", "generate"]

_ZONES = ("zone-a", "zone-b", "zone-c")


def generate(seed: int, number: int) -> Case:
    """The same case for the same seed and number."""
    chance = random.Random(seed * 1_000_003 + number)
    cause = list(CAUSES)[number % len(CAUSES)]
    case = Case(number, cause, [_node(chance, place) for place in range(chance.randint(2, 6))])
    for place in range(chance.randint(0, 4)):
        home = chance.choice(case.nodes)["metadata"]["name"]
        case.pods.append(pod(f"runs-{place}", cpu=f"{chance.choice((100, 250, 500))}m", node=home))
    CAUSES[cause](chance, case)
    return case


def _node(chance: random.Random, place: int) -> JsonObject:
    name = f"node-{place}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": _ZONES[place % 3]}
    amounts = {"cpu": str(chance.choice((2, 4, 8))), "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _subject(case: Case, **spec: Any) -> None:
    case.pods.append(pod("subject", **spec))


def _fits(chance: random.Random, case: Case) -> None:
    _subject(case, cpu="100m")


def _only_node(chance: random.Random, case: Case) -> None:
    chosen = chance.choice(case.nodes)
    chosen["metadata"]["labels"]["disk"] = "ssd"
    _subject(case, cpu="50m", nodeSelector={"disk": "ssd"})


def _room(chance: random.Random, case: Case) -> None:
    for place, node in enumerate(case.nodes):
        free = int(node["status"]["allocatable"]["cpu"]) * 1000 - 1900
        case.pods.append(pod(f"fills-{place}", cpu=f"{max(free, 100)}m", node=node["metadata"]["name"]))
    _subject(case, cpu=f"{chance.choice((1950, 2000))}m")


def _too_large(chance: random.Random, case: Case) -> None:
    _subject(case, cpu=str(chance.choice((12, 64, 500))))


def _no_gpu(chance: random.Random, case: Case) -> None:
    _subject(case, more_requests={"nvidia.com/gpu": "1"}, container={"resources": {}})
    container = case.pods[-1]["spec"]["containers"][0]
    container["resources"] = {
        "requests": {"cpu": "100m", "memory": "64Mi", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }


def _taint(chance: random.Random, case: Case) -> None:
    value = chance.choice(("a", "b"))
    for node in case.nodes:
        node["spec"]["taints"] = [{"key": "team", "value": value, "effect": "NoSchedule"}]
    _subject(case)


def _cordon(chance: random.Random, case: Case) -> None:
    for node in case.nodes:
        node["spec"]["unschedulable"] = True
    _subject(case)


def _selector(chance: random.Random, case: Case) -> None:
    selector = {"disk": "ssd"} if chance.random() < 0.5 else {"disk": "ssd", "topology.kubernetes.io/zone": "zone-a"}
    _subject(case, nodeSelector=selector)


def _node_affinity(chance: random.Random, case: Case) -> None:
    term = {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    _subject(case, affinity={"nodeAffinity": required})


def _two_causes(chance: random.Random, case: Case) -> None:
    _taint(chance, case)
    case.pods[-1]["spec"]["nodeSelector"] = {"disk": "ssd"}


def _anti_affinity(chance: random.Random, case: Case) -> None:
    for place, node in enumerate(case.nodes):
        name = node["metadata"]["name"]
        case.pods.append(pod(f"keeps-{place}", cpu="50m", node=name, labels={"app": "alone"}))
    term = {"labelSelector": {"matchLabels": {"app": "alone"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    _subject(case, labels={"app": "alone"}, affinity=apart)


def _affinity(chance: random.Random, case: Case) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "absent"}}, "topologyKey": "topology.kubernetes.io/zone"}
    _subject(case, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def _spread(chance: random.Random, case: Case) -> None:
    """One zone has all of them, and the others are cordoned."""
    case.nodes[:] = case.nodes[:2]
    home = case.nodes[0]["metadata"]["name"]
    case.pods[:] = [each for each in case.pods if each["spec"].get("nodeName") == home]
    case.pods.append(pod("first", cpu="50m", node=home, labels={"app": "even"}))
    case.nodes[1]["spec"]["taints"] = [{"key": "only", "value": "others", "effect": "NoSchedule"}]
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
    _subject(case, cpu="50m", labels={"app": "even"}, topologySpreadConstraints=[constraint])


def _port(chance: random.Random, case: Case) -> None:
    ports = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    for place, node in enumerate(case.nodes):
        case.pods.append(pod(f"listens-{place}", cpu="50m", node=node["metadata"]["name"], container=ports))
    _subject(case, cpu="50m", container=ports)


def _volume(chance: random.Random, case: Case) -> None:
    if chance.random() < 0.6:
        case.objects.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "standard"},
                "provisioner": "example.com/disk",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        )
    _subject(case, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])


def _gate(chance: random.Random, case: Case) -> None:
    _subject(case, schedulingGates=[{"name": name} for name in ("quota", "review")[: chance.randint(1, 2)]])


def _other_scheduler(chance: random.Random, case: Case) -> None:
    _subject(case, schedulerName="nobody")


def _preemption(chance: random.Random, case: Case) -> None:
    case.objects.append(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    )
    del case.nodes[2:]
    case.pods.clear()
    for place, node in enumerate(case.nodes):
        cpu = int(node["status"]["allocatable"]["cpu"]) * 1000 - 100
        labels = {"app": f"low-{place}"}
        name = node["metadata"]["name"]
        low = pod(f"low-{place}", cpu=f"{cpu}m", node=name, labels=labels, terminationGracePeriodSeconds=0)
        case.pods.append(low)
    if chance.random() < 0.5:
        case.objects.append(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "keep", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "low-0"}}},
                "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
            }
        )
    _subject(case, cpu="1500m", priorityClassName="high")


def _many(chance: random.Random, case: Case) -> None:
    _subject(case, cpu="50m", nodeSelector={"disk": "ssd"})
    for place in range(chance.randint(1, 8)):
        case.pods.append(pod(f"like-{place}", cpu="50m", nodeSelector={"disk": "ssd"}))


def _gang(chance: random.Random, case: Case) -> None:
    case.plugin = "Coscheduling"
    members = chance.randint(2, 4)
    case.objects.append(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "gang", "namespace": "default"},
            "spec": {"minMember": members},
        }
    )
    labels = {"scheduling.x-k8s.io/pod-group": "gang"}
    _subject(case, cpu="50m", labels=labels)
    for place in range(chance.randint(0, members - 1)):
        case.pods.append(pod(f"member-{place}", cpu="50m", labels=labels))


def _quota(chance: random.Random, case: Case) -> None:
    case.plugin = "CapacityScheduling"
    case.objects.append(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "quota", "namespace": "default"},
            "spec": {"min": {"cpu": "1", "memory": "4Gi"}, "max": {"cpu": "1", "memory": "4Gi"}},
        }
    )
    case.pods.clear()
    _subject(case, cpu=chance.choice(("500m", "1500m")))


def _numa(chance: random.Random, case: Case) -> None:
    case.plugin = "NodeResourceTopologyMatch"
    for node in case.nodes:
        zones = [
            {
                "name": f"node-{cell}",
                "type": "Node",
                "resources": [
                    {"name": "cpu", "capacity": "1", "allocatable": "1", "available": "1"},
                    {"name": "memory", "capacity": "8Gi", "allocatable": "8Gi", "available": "8Gi"},
                ],
            }
            for cell in range(2)
        ]
        case.objects.append(
            {
                "apiVersion": "topology.node.k8s.io/v1alpha2",
                "kind": "NodeResourceTopology",
                "metadata": {"name": node["metadata"]["name"]},
                "attributes": [
                    {"name": "topologyManagerPolicy", "value": "single-numa-node"},
                    {"name": "topologyManagerScope", "value": "container"},
                ],
                "zones": zones,
            }
        )
    cpu = chance.choice(("1", "2"))
    amounts = {"cpu": cpu, "memory": "128Mi"}
    case.pods.clear()
    _subject(case, container={"resources": {"requests": amounts, "limits": dict(amounts)}})


CAUSES: dict[str, Callable[[random.Random, Case], None]] = {
    "fits": _fits,
    "only node": _only_node,
    "room": _room,
    "too large": _too_large,
    "no gpu": _no_gpu,
    "taint": _taint,
    "cordon": _cordon,
    "selector": _selector,
    "node affinity": _node_affinity,
    "two causes": _two_causes,
    "anti-affinity": _anti_affinity,
    "affinity": _affinity,
    "spread": _spread,
    "port": _port,
    "volume": _volume,
    "gate": _gate,
    "other scheduler": _other_scheduler,
    "preemption": _preemption,
    "many": _many,
    "gang": _gang,
    "quota": _quota,
    "numa": _numa,
    **DEVICE_CAUSES,
}
