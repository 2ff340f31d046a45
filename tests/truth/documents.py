"""What a generated case consists of: plain documents, as their author would have written them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bayplan.explain.claims.base import Edit

__all__ = ["SUBJECT", "Case", "JsonObject", "budget_status", "new_case", "pod"]

JsonObject = dict[str, Any]
SUBJECT = "default/subject"
_ZONES = ("zone-a", "zone-b", "zone-c")


@dataclass
class Case:
    number: int
    cause: str
    nodes: list[JsonObject]
    pods: list[JsonObject] = field(default_factory=list)
    """Running ones have a node."""
    objects: list[JsonObject] = field(default_factory=list)
    """Claims, classes, budgets, groups, quotas, priority classes."""
    plugin: str = ""
    """A plugin that takes part and is none of the default ones; with an argument after a colon."""
    is_asked_early: bool = True
    """Whether what is said before anything was tried holds later: not if others come first, or have to be asked."""
    later: list[Edit] = field(default_factory=list)
    """What somebody does once the cluster has settled."""


def new_case(number: int, cause: str, chance: random.Random) -> Case:
    """Some nodes, and pods that run on them."""
    case = Case(number, cause, [_node(chance, place) for place in range(chance.randint(2, 6))])
    for place in range(chance.randint(0, 4)):
        home = chance.choice(case.nodes)["metadata"]["name"]
        case.pods.append(pod(f"runs-{place}", cpu=f"{chance.choice((100, 250, 500))}m", node=home))
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


def budget_status(budget: JsonObject, pods: Iterable[JsonObject]) -> JsonObject:
    """As a controller gives it, with these pods on nodes."""
    wanted = budget["spec"]["selector"]["matchLabels"].items()
    healthy = sum(1 for each in pods if wanted <= (each["metadata"]["labels"] or {}).items())
    desired = budget["spec"]["minAvailable"]
    counts = {"currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": healthy}
    return {"disruptionsAllowed": max(healthy - desired, 0), **counts}


def pod(name: str, *, cpu: str = "200m", node: str = "", labels: JsonObject | None = None, **spec: Any) -> JsonObject:
    requests = {"cpu": cpu, "memory": "128Mi", **spec.pop("more_requests", {})}
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}, **spec.pop("container", {})}
    made: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }
    if node:
        made["spec"]["nodeName"] = node
        made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return made
