"""Generated clusters in which the subject may make others leave, or may not."""

from __future__ import annotations

import random
from typing import Any

from tests.truth.documents import Case, JsonObject, budget_status, pod

__all__ = ["PREEMPTION_CAUSES", "budget_of"]


def _priority(name: str, value: int, **more: Any) -> JsonObject:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**head, "value": value, **more}


def _low(case: Case, name: str, node: str, cpu: int, **spec: Any) -> None:
    labels = {"app": spec.pop("app", name)}
    case.pods.append(pod(name, cpu=f"{cpu}m", node=node, labels=labels, terminationGracePeriodSeconds=0, **spec))


def _cpu_of(node: JsonObject) -> int:
    return int(node["status"]["allocatable"]["cpu"]) * 1000


def _full(case: Case, most: int) -> None:
    """So many nodes, each with one pod that leaves little room."""
    del case.nodes[most:]
    case.pods.clear()
    for place, node in enumerate(case.nodes):
        _low(case, f"low-{place}", node["metadata"]["name"], _cpu_of(node) - 100)


def _preemption(chance: random.Random, case: Case) -> None:
    case.objects.append(_priority("high", 1000))
    _full(case, 2)
    if chance.random() < 0.5:
        case.objects.append(budget_of(case, "low-0", 0))
    case.pods.append(pod("subject", cpu="1500m", priorityClassName="high"))


def _costly(chance: random.Random, case: Case) -> None:
    """Several victims on each of several nodes, of several priorities, some under a budget."""
    case.objects += [_priority("middle", 100), _priority("high", 1000)]
    del case.nodes[3:]
    case.pods.clear()
    for node in case.nodes:
        cpu, home = _cpu_of(node), node["metadata"]["name"]
        count = chance.randint(1, 3)
        for place in range(count):
            spec = {"priorityClassName": "middle"} if chance.random() < 0.4 else {}
            _low(case, f"low-{home}-{place}", home, cpu // count - 50, app=home, **spec)
    if chance.random() < 0.6:
        case.objects.append(budget_of(case, chance.choice(case.nodes)["metadata"]["name"], chance.randint(0, 1)))
    case.pods.append(pod("subject", cpu=f"{chance.choice((900, 1500))}m", priorityClassName="high"))


def _never(chance: random.Random, case: Case) -> None:
    """The subject has a high priority, and makes nobody leave."""
    case.objects.append(_priority("polite", 1000, preemptionPolicy="Never"))
    _full(case, chance.randint(1, 3))
    case.pods.append(pod("subject", cpu="1500m", priorityClassName="polite"))
    if chance.random() < 0.5:
        # More important ones wait as well, and what becomes free is theirs first.
        case.objects.append(_priority("first", 2000, preemptionPolicy="Never"))
        for place in range(chance.randint(1, 2)):
            case.pods.append(pod(f"first-{place}", cpu=f"{chance.choice((900, 1500))}m", priorityClassName="first"))


def _equals(chance: random.Random, case: Case) -> None:
    """Those who run are as important."""
    case.objects.append(_priority("high", 1000))
    del case.nodes[2:]
    case.pods.clear()
    for place, node in enumerate(case.nodes):
        _low(case, f"low-{place}", node["metadata"]["name"], _cpu_of(node) - 100, priorityClassName="high")
    case.pods.append(pod("subject", cpu="1500m", priorityClassName="high"))


def _ports(chance: random.Random, case: Case) -> None:
    """A host port, or a rule about neighbours, that less important pods stand in the way of."""
    case.objects.append(_priority("high", 1000))
    del case.nodes[3:]
    case.pods.clear()
    term = {"labelSelector": {"matchLabels": {"app": "low"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    has_port = chance.random() < 0.5
    container = {"ports": [{"containerPort": 80, "hostPort": 8080}]} if has_port else {}
    for place, node in enumerate(case.nodes):
        _low(case, f"low-{place}", node["metadata"]["name"], 100 * (place + 1), app="low", container=container)
    more: JsonObject = {} if has_port else {"affinity": apart}
    case.pods.append(pod("subject", cpu="100m", priorityClassName="high", container=container, **more))


def _several(chance: random.Random, case: Case) -> None:
    """More pods of high priority than there is room for if all others left."""
    case.objects.append(_priority("high", 1000))
    _full(case, 2)
    case.pods.append(pod("subject", cpu="1500m", priorityClassName="high"))
    for place in range(chance.randint(1, 2)):
        case.pods.append(pod(f"rival-{place}", cpu="1500m", priorityClassName="high"))


def _nominated(chance: random.Random, case: Case) -> None:
    """A more important pod waits for its victim to end, which takes for ever; the subject must leave it the room."""
    case.objects += [_priority("middle", 100), _priority("high", 1000)]
    case.is_asked_early = False
    del case.nodes[2:]
    case.pods.clear()
    first, second = (node["metadata"]["name"] for node in case.nodes)
    _low(case, "ends", first, _cpu_of(case.nodes[0]) - 100)
    case.pods[-1]["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["example.com/hold"],
    }
    left = chance.choice((200, 500))
    case.pods.append(pod("stays", cpu=f"{_cpu_of(case.nodes[1]) - left}m", node=second, priorityClassName="high"))
    pinned = {"kubernetes.io/hostname": first}
    rival = pod("rival", cpu=f"{_cpu_of(case.nodes[0]) - 300}m", priorityClassName="high", nodeSelector=pinned)
    rival["status"] = {"nominatedNodeName": first}
    case.pods.append(rival)
    case.pods.append(pod("subject", cpu=f"{chance.choice((400, 600))}m", priorityClassName="middle"))


def budget_of(case: Case, app: str, allowed: int, name: str = "keep") -> JsonObject:
    """With the status that a controller gives it."""
    healthy = sum(each["metadata"]["labels"].get("app") == app for each in case.pods)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": max(healthy - allowed, 0), "selector": {"matchLabels": {"app": app}}},
    }
    return {**budget, "status": budget_status(budget, case.pods)}


def _awaited(chance: random.Random, case: Case) -> None:
    """The victims end, which takes for ever."""
    case.objects.append(_priority("high", 1000))
    case.is_asked_early = False
    _full(case, chance.randint(1, 2))
    for each in case.pods:
        each["metadata"]["finalizers"] = ["example.com/hold"]
    case.pods.append(pod("subject", cpu="1500m", priorityClassName="high"))


PREEMPTION_CAUSES = {
    "preemption": _preemption,
    "costly": _costly,
    "preemption never": _never,
    "as important": _equals,
    "preemption of neighbours": _ports,
    "rivals": _several,
    "nominated": _nominated,
    "victims that stay": _awaited,
}
