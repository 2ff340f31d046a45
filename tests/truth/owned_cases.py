"""Generated clusters whose nodes are full of pods that controllers make again when they are deleted, or do not."""

from __future__ import annotations

import random
from typing import Any

from tests.truth.device_cases import DEVICE_CAUSES
from tests.truth.documents import Case, JsonObject, pod
from tests.truth.preemption_cases import budget_of

__all__ = ["OWNED_CAUSES", "is_lasting", "is_made_again", "own_some"]

_MIRROR = "kubernetes.io/config.mirror"
_OWNERS = ("ReplicaSet", "ReplicaSet", "ReplicaSet", "DaemonSet", "kubelet", "")


def is_made_again(document: JsonObject) -> bool:
    owners = document["metadata"].get("ownerReferences", ())
    return any(owner["kind"] != "DaemonSet" for owner in owners)


def is_lasting(document: JsonObject) -> bool:
    """Whether the pod comes back to its node, or never leaves it; each node of the kind has one."""
    metadata = document["metadata"]
    owners = metadata.get("ownerReferences", ())
    return _MIRROR in metadata.get("annotations", {}) or any(owner["kind"] == "DaemonSet" for owner in owners)


def _owned(case: Case, made: JsonObject, kind: str = "ReplicaSet") -> JsonObject:
    """With its owner; a pod without any for an empty kind."""
    if kind == "kubelet":
        made["metadata"]["annotations"] = {_MIRROR: "hash"}
    elif kind:
        name = kind.lower()
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-of-{name}", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
        if all(item["kind"] != kind for item in case.objects):
            case.objects.append(_owner(kind, name))
    case.pods.append(made)
    return made


def _owner(kind: str, name: str) -> JsonObject:
    """Its pods are those that refer to it; the experiments do its work."""
    labels = {"made-by": name}
    container = {"name": "main", "image": "app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def own_some(chance: random.Random, case: Case) -> None:
    """Give running pods of any case to controllers; not where some may be preempted, since nobody makes those again."""
    if any(item["kind"] == "PriorityClass" for item in case.objects):
        return
    pods, case.pods[:] = list(case.pods), []
    for each in pods:
        is_running = "nodeName" in each["spec"] and "ownerReferences" not in each["metadata"]
        _owned(case, each, chance.choice(_OWNERS) if is_running and chance.random() < 0.5 else "")


def _cpu_of(node: JsonObject) -> int:
    return int(node["status"]["allocatable"]["cpu"]) * 1000


def _classes(case: Case, **values: int) -> None:
    """That nobody preempts for."""
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "preemptionPolicy": "Never"}
    case.objects += [{**head, "metadata": {"name": name}, "value": value} for name, value in values.items()]


def _important(chance: random.Random, *, most: float = 0.5) -> JsonObject:
    """The priority of a pod, or none."""
    return {"priorityClassName": chance.choice(("middle", "high"))} if chance.random() < most else {}


def _fill(chance: random.Random, case: Case) -> None:
    """A few nodes, each with some pods and some room left, which no pod fills up to the last."""
    _classes(case, middle=100, high=1000)
    del case.nodes[chance.randint(1, 3) :]
    case.pods.clear()
    for place, node in enumerate(case.nodes):
        count = chance.randint(1, 3)
        each = (_cpu_of(node) - chance.choice((130, 430, 930))) // count
        for part in range(count):
            made = pod(f"fills-{place}-{part}", cpu=f"{each}m", node=node["metadata"]["name"], **_important(chance))
            _owned(case, made, chance.choice(_OWNERS))


def _deployment(chance: random.Random, case: Case) -> None:
    """Pods whose places others would take, and who come back for them."""
    _fill(chance, case)
    case.pods.append(pod("subject", cpu=f"{chance.choice((500, 1000, 1500))}m", **_important(chance)))


def _room_elsewhere(chance: random.Random, case: Case) -> None:
    """A node that takes the pods that are made again, and not the subject."""
    _fill(chance, case)
    labels = {"kubernetes.io/hostname": "node-9"}
    amounts = {"cpu": chance.choice(("1", "2", "4")), "memory": "16Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    head = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-9", "labels": labels}}
    case.nodes.append({**head, "spec": {"taints": taints}, "status": status})
    for each in case.pods:
        if is_made_again(each) and chance.random() < 0.7:
            each["spec"]["tolerations"] = [{"key": "team", "operator": "Exists"}]
    case.pods.append(pod("subject", cpu=f"{chance.choice((500, 1000, 1500))}m", **_important(chance)))


def _deployments_in_line(chance: random.Random, case: Case) -> None:
    """Others wait as well, before the subject and after it, some for the room that pods who are made again need."""
    _room_elsewhere(chance, case)
    case.is_asked_early = False
    tolerations: Any = [{"key": "team", "operator": "Exists"}]
    subject = case.pods.pop()
    for place in range(chance.randint(0, 2)):
        spec = {"tolerations": tolerations} if chance.random() < 0.5 else {}
        cpu = f"{chance.choice((950, 1200, 5000))}m"
        case.pods.append(pod(f"before-{place}", cpu=cpu, **_important(chance, most=0.3), **spec))
    case.pods.append(subject)
    for place in range(chance.randint(0, 2)):
        spec = {"tolerations": tolerations} if chance.random() < 0.5 else {}
        cpu = f"{chance.choice((950, 1200, 5000))}m"
        case.pods.append(pod(f"later-{place}", cpu=cpu, **_important(chance, most=0.3), **spec))


def _owned_neighbours(chance: random.Random, case: Case) -> None:
    """A host port, or a rule about neighbours, that pods stand in the way of who come back."""
    _classes(case, middle=100, high=1000)
    del case.nodes[3:]
    case.pods.clear()
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    has_port = chance.random() < 0.5
    container = {"ports": [{"containerPort": 80, "hostPort": 8080}]} if has_port else {}
    more: JsonObject = {} if has_port else {"affinity": apart}
    taken = case.nodes[: max(len(case.nodes) - chance.choice((0, 0, 1)), 1)]
    for place, node in enumerate(taken):
        home, spec = node["metadata"]["name"], {**more, **_important(chance)}
        made = pod(f"web-{place}", cpu="100m", node=home, labels={"app": "web"}, container=container, **spec)
        _owned(case, made, chance.choice(_OWNERS))
    for node in case.nodes[len(taken) :]:
        # Room for what is made again, and for nobody else.
        node["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
        for each in case.pods:
            each["spec"]["tolerations"] = [{"key": "team", "operator": "Exists"}]
    spec = {**more, **_important(chance)}
    case.pods.append(pod("subject", cpu="100m", labels={"app": "web"}, container=container, **spec))


def _owned_devices(chance: random.Random, case: Case) -> None:
    """Those who have the devices come back for them, or for others."""
    DEVICE_CAUSES["devices taken"](chance, case)
    _classes(case, middle=100, high=1000)
    users, case.pods[:] = list(case.pods), []
    for each in users:
        each["spec"] |= _important(chance)
        is_subject = each["metadata"]["name"] == "subject"
        _owned(case, each, "" if is_subject else chance.choice(_OWNERS))


def _protected(chance: random.Random, case: Case) -> None:
    """Budgets that cover some of the pods which would have to leave, and allow none of them to, or a few."""
    _room_elsewhere(chance, case)
    for each in case.pods[:-1]:
        each["metadata"]["labels"] = {"app": chance.choice(("a", "a", "b", "c"))}
    for app in chance.sample(("a", "b", "c"), chance.randint(1, 3)):
        case.objects.append(budget_of(case, app, chance.choice((0, 0, 1, 2)), name=f"keep-{app}"))


OWNED_CAUSES = {
    "deployment": _deployment,
    "room elsewhere": _room_elsewhere,
    "deployments in line": _deployments_in_line,
    "owned neighbours": _owned_neighbours,
    "devices of owned pods": _owned_devices,
    "protected": _protected,
}
