"""What a generated case consists of: plain documents, as their author would have written them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["SUBJECT", "Case", "JsonObject", "pod"]

JsonObject = dict[str, Any]
SUBJECT = "default/subject"


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
    """A community plugin that takes part."""

    @property
    def documents(self) -> list[JsonObject]:
        return [*self.objects, *self.pods]


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
        made["status"] = {"phase": "Running"}
    return made
