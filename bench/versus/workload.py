"""Workloads are data: YAML files that say which nodes, which pods to begin with, and which pods to measure.

Strings in templates may hold `{i}` (the number of the object), `{i % N}` style zones are written as `{zone}` and
`{rack}`. A list of measured templates is interleaved pod by pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "workloads"
Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Workload:
    name: str
    about: str
    node: Json
    zones: int
    objects: list[Json]
    initial: list[Json]
    initial_count: int
    initial_per_node: bool
    measured: list[Json]
    count: int
    config: Json
    ratio: float
    """What kube-scheduler's pods per second are to be exceeded by; 0 when nothing is asked."""
    of_raw: float
    """The share of the raw binding rate to reach; 0 when nothing is asked."""

    def nodes(self, count: int) -> Iterator[Json]:
        for i in range(count):
            yield filled(self.node, i, self.zones) | {"apiVersion": "v1", "kind": "Node"}

    def initial_pods(self, nodes: int) -> Iterator[Json]:
        """Pods that run before the measurement; they are created on their node."""
        count = nodes * self.initial_count if self.initial_per_node else self.initial_count
        for i in range(count if self.initial else 0):
            pod = filled(self.initial[i % len(self.initial)], i, self.zones)
            pod["spec"]["nodeName"] = f"node-{i % nodes:05}"
            yield _pod(pod, f"init-{i:06}")

    def pods(self) -> Iterator[Json]:
        for i in range(self.count):
            yield _pod(filled(self.measured[i % len(self.measured)], i, self.zones), f"pod-{i:06}")


def _pod(pod: Json, name: str) -> Json:
    metadata = {"name": name, "namespace": "default"} | pod.get("metadata", {})
    return {"apiVersion": "v1", "kind": "Pod"} | pod | {"metadata": metadata}


def filled(template: Any, i: int, zones: int) -> Any:
    """A copy of a template with the number of the object put in."""
    if isinstance(template, dict):
        return {filled(key, i, zones): filled(value, i, zones) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, i, zones) for value in template]
    if isinstance(template, str) and "{" in template:
        return (
            template.replace("{i}", f"{i:05}")
            .replace("{zone}", f"zone-{i % zones}")
            .replace("{shape}", str(i % 100))
            .replace("{cpu}", f"{50 + i % 400}m")
            .replace("{memory}", f"{64 + i % 977}Mi")
        )
    return template


def load_workloads(names: list[str]) -> list[Workload]:
    shared = yaml.safe_load((FOLDER / "shared.yaml").read_text())
    found: list[Workload] = []
    for path in sorted(FOLDER.glob("*.yaml")):
        if path.name == "shared.yaml":
            continue
        documents = yaml.safe_load_all(path.read_text())
        found += [_workload(document, shared) for document in documents if not names or document["name"] in names]
    unknown = set(names) - {workload.name for workload in found}
    if unknown:
        raise SystemExit(f"unknown workloads: {', '.join(sorted(unknown))}; `--list` shows them")
    return sorted(found, key=lambda workload: workload.name)


def _workload(document: Json, shared: Json) -> Workload:
    initial = document.get("initial") or {}
    return Workload(
        name=document["name"],
        about=document["about"],
        node=document.get("node") or shared["node"],
        zones=document.get("zones", 3),
        objects=document.get("objects") or [],
        initial=[_template(t, shared) for t in initial.get("templates", ["plain"])] if initial else [],
        initial_count=initial.get("count", 0),
        initial_per_node=initial.get("perNode", False),
        measured=[_template(t, shared) for t in document["measure"]["templates"]],
        count=document["measure"]["count"],
        config=document.get("config") or {},
        ratio=document.get("target", {}).get("ratio", 0),
        of_raw=document.get("target", {}).get("ofRaw", 0),
    )


def _template(template: Any, shared: Json) -> Json:
    found: Json = shared["pods"][template] if isinstance(template, str) else template
    return found
