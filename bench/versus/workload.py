"""Workloads are data: YAML files that say which nodes, which pods to begin with, and which pods to measure.

Strings in templates may hold the number of the object, `{i}` (five digits), or something made of it: `{i % 100}`,
`{i // 10}`, `{i % 400 + 50}`, `{zone}` and `{node}`. A list of templates is interleaved object by object. Where fewer
pods are measured than a workload was written for, because nodes are few or somebody asked, the pods that it begins with
are fewer in the same proportion, except those counted by node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "workloads"
Json = dict[str, Any]
_ARITHMETIC = re.compile(r"\{i (%|//) (\d+)(?: \+ (\d+))?\}")


@dataclass(frozen=True, kw_only=True)
class Initial:
    """Pods that are there before the scheduler starts."""

    templates: list[Json]
    count: int
    per_node: bool
    placed: bool
    """Created on their nodes; otherwise they wait, and no scheduler ever finds a node for them."""

    def pods(self, place: Place, number: int, share: float) -> Iterator[Json]:
        for i in range(self.count * place.nodes if self.per_node else max(1, int(self.count * share))):
            pod = filled(self.templates[i % len(self.templates)], i, place)
            if self.placed:
                pod["spec"]["nodeName"] = place.node(i)
            yield _pod(pod, f"init-{number}-{i:06}")


@dataclass(frozen=True, kw_only=True)
class Churn:
    """What comes, or comes and goes, while pods are measured."""

    templates: list[Json]
    every_seconds: float
    recreate: bool
    """Each object is deleted one interval after it came."""

    def objects(self, i: int, place: Place) -> list[Json]:
        made = [filled(template, i, place) for template in self.templates]
        return [_pod(each, f"churn-{i:06}") if each["kind"] == "Pod" else each for each in made]


@dataclass(frozen=True)
class Place:
    """How large the cluster is."""

    nodes: int
    zones: int = 3

    def node(self, i: int) -> str:
        return f"node-{i % self.nodes:05}"


@dataclass(frozen=True, kw_only=True)
class Workload:
    name: str
    about: str
    group: str
    """`target` for those the targets were written for, `more` for the others."""
    sizes: list[int]
    kube_scheduler_up_to: int
    """The largest size at which kube-scheduler is measured as well."""
    zones: int
    node: list[Json]
    objects: list[Json]
    node_objects: list[Json]
    """Objects made for each node."""
    initial: list[Initial]
    measured: list[Json]
    count: int
    most_per_node: float
    companions: list[Json]
    """Objects made for each measured pod, before it."""
    churn: Churn | None
    makes_claims: bool
    """Resource claims of measured pods are made from their templates, once the pods are there."""
    provisions: bool
    """Claims of measured pods get their volumes from a provisioner in the bench, once a scheduler chose the node."""
    evicts: int
    """So many of the pods on its node that each measured pod must evict."""
    asked: bool
    """Whether Bayplan is also measured while a client asks questions."""
    counts_whole: bool
    """Whether pods/s count from the start of the scheduler or the first creation, not from the first binding: of pods
    that have to wait for something, one scheduler may bind some early and another all of them at the end."""
    config: Json
    arrival: float
    """Pods a second at which it is also measured with pods arriving; 0: not."""
    targets: dict[str, float] = field(default_factory=dict)

    def place(self, nodes: int) -> Place:
        return Place(nodes, self.zones)

    def nodes(self, count: int) -> Iterator[Json]:
        place = self.place(count)
        for i in range(count):
            yield filled(self.node[i % len(self.node)], i, place) | {"apiVersion": "v1", "kind": "Node"}

    def objects_of_nodes(self, count: int) -> Iterator[Json]:
        place = self.place(count)
        for i in range(count):
            yield from (filled(template, i, place) for template in self.node_objects)

    def initial_pods(self, nodes: int, measured: int) -> Iterator[Json]:
        """Those that go with so many measured pods."""
        for number, each in enumerate(self.initial):
            yield from each.pods(self.place(nodes), number, measured / self.count)

    def pod_count(self, nodes: int, most: int = 0) -> int:
        """How many pods are measured on so many nodes; `most` is a limit from outside, 0 for none."""
        room = int(self.most_per_node * nodes) if self.most_per_node else self.count
        return max(1, min(self.count, room, most or self.count))

    def pods(self, nodes: int, count: int, *, prefix: str = "pod", start: int = 0) -> Iterator[Json]:
        place = self.place(nodes)
        for i in range(start, start + count):
            yield _pod(filled(self.measured[i % len(self.measured)], i, place), f"{prefix}-{i:06}")

    def companion_objects(self, nodes: int, count: int, *, start: int = 0) -> Iterator[Json]:
        place = self.place(nodes)
        for i in range(start, start + count):
            yield from (filled(template, i, place) for template in self.companions)


def _pod(pod: Json, name: str) -> Json:
    metadata = {"name": name, "namespace": "default"} | pod.get("metadata", {})
    return {"apiVersion": "v1", "kind": "Pod"} | pod | {"metadata": metadata}


def filled(template: Any, i: int, place: Place) -> Any:
    """A copy of a template with the number of the object put in."""
    if isinstance(template, dict):
        return {filled(key, i, place): filled(value, i, place) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, i, place) for value in template]
    if isinstance(template, str) and "{" in template:
        text = _ARITHMETIC.sub(lambda found: str(_number(found, i)), template)
        return (
            text.replace("{i}", f"{i:05}").replace("{zone}", f"zone-{i % place.zones}").replace("{node}", place.node(i))
        )
    return template


def _number(found: re.Match[str], i: int) -> int:
    sign, by, plus = found.groups()
    return (i % int(by) if sign == "%" else i // int(by)) + int(plus or 0)


def load_workloads(names: list[str] | None = None, group: str = "") -> list[Workload]:
    """Those named, or those of a group, or all, in the order of importance that shared.yaml gives."""
    shared = yaml.safe_load((FOLDER / "shared.yaml").read_text())
    found: dict[str, Workload] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        if path.name != "shared.yaml":
            for document in yaml.safe_load_all(path.read_text()):
                found[document["name"]] = read_workload(document, shared)
    unknown = set(names or []) - set(found)
    if unknown:
        raise SystemExit(f"unknown workloads: {', '.join(sorted(unknown))}; `--list` shows them")
    order = [*shared["order"], *sorted(set(found) - set(shared["order"]))]
    chosen = [found[name] for name in order if name in found and (not names or name in names)]
    return [workload for workload in chosen if group in ("", workload.group)]


def read_workload(document: Json, shared: Json) -> Workload:
    measure, churn = document["measure"], document.get("churn")
    node = document.get("node") or shared["node"]
    return Workload(
        name=document["name"],
        about=document["about"],
        group="target" if document["name"] in shared["targetGroup"] else "more",
        sizes=document.get("sizes") or shared["sizes"],
        kube_scheduler_up_to=int(document.get("kubeSchedulerUpTo") or shared["kubeSchedulerUpTo"]),
        zones=document.get("zones", 3),
        node=node if isinstance(node, list) else [node],
        objects=document.get("objects") or [],
        node_objects=document.get("nodeObjects") or [],
        initial=[_initial(each, shared) for each in document.get("initial") or []],
        measured=_templates(measure["templates"], shared),
        count=measure["count"],
        most_per_node=measure.get("mostPerNode", 0.0),
        companions=measure.get("companions") or [],
        churn=_churn(churn, shared) if churn else None,
        makes_claims=measure.get("makesClaims", False),
        provisions=measure.get("provisions", False),
        evicts=measure.get("evicts", 0),
        asked=document.get("asked", False),
        counts_whole=measure.get("countsWhole", False),
        config=document.get("config") or {},
        arrival=document.get("arrival", 0.0),
        targets=shared["targets"] | (document.get("targets") or {}),
    )


def _initial(document: Json, shared: Json) -> Initial:
    return Initial(
        templates=_templates(document.get("templates", ["plain"]), shared),
        count=document["count"],
        per_node=document.get("perNode", False),
        placed=document.get("placed", True),
    )


def _churn(document: Json, shared: Json) -> Churn:
    return Churn(
        templates=_templates(document["templates"], shared),
        every_seconds=document["everySeconds"],
        recreate=document.get("recreate", False),
    )


def _templates(templates: list[Any], shared: Json) -> list[Json]:
    return [shared["pods"][template] if isinstance(template, str) else template for template in templates]
