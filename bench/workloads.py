"""What the decision benchmark decides: each workload is a stream of pods and the rate that it must reach.

The shapes follow the scheduler_perf suite of Kubernetes. Targets are decisions a second at 5,000 nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from bayplan.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.api.workload import Service
from bayplan.framework import Depends, Plugin, normalize_highest
from bench.clusters import make_pod

__all__ = ["WORKLOADS", "Workload", "find_workloads"]

PodStream = Callable[[str, int, int], Iterator[Pod]]
"""(prefix of names and labels, pods, nodes) -> pods. A new prefix means pods that nobody has seen."""


class ScoreByZoneLabel(Plugin):
    """The plugin of a beginner: ten lines, one node at a time, no word about what it depends on."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(node.labels.get("node.kubernetes.io/instance-type", ""))

    normalize = normalize_highest


class ScoreByFreeCpu(Plugin):
    """Another one, of what is left on the node."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return node.free("cpu") * 100 // max(node.allocatable_of("cpu"), 1)


class ScoreByNeighbours(Plugin):
    """Another one, of which pods are on the node."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        alike = sum(1 for other in node.pods.values() if other.labels.get("app") == pod.labels.get("app"))
        return max(0, 100 - alike)


class ScoreByPodName(Plugin):
    """Reads what pods of one template do not share, so it is called for every node in every decision."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(pod.name) + len(node.labels.get("node.kubernetes.io/instance-type", ""))


class ScoreByZoneLabelDeclared(ScoreByZoneLabel):
    """The same, with the line that states what is otherwise derived."""

    depends = Depends.NODE


@dataclass(frozen=True, kw_only=True)
class Workload:
    name: str
    title: str
    target: int
    pods: PodStream
    most_pods: Callable[[int], int] = lambda nodes: 1_000_000
    """How many pods of one stream a cluster of that many nodes can take."""
    is_full: bool = False
    """On the full cluster, where each decision ends in a nomination."""
    plugin: type[Plugin] | None = None
    """Enabled besides the default profile."""
    objects: Callable[[str, int, int], list[KubeObject]] = lambda prefix, count, nodes: []
    """For the same arguments as the pods."""
    is_reserved: bool = False
    """The Reserve plugins run for each pod, because the next decision depends on what they took."""
    decisions: int = 2_000
    """In one round."""


def find_workloads(names: list[str]) -> list[Workload]:
    """All workloads, or those named. Raises KeyError with the known names."""
    known = {workload.name: workload for workload in WORKLOADS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise KeyError(f"unknown workload {', '.join(unknown)}; known are {', '.join(known)}")
    return [known[name] for name in names] if names else list(WORKLOADS)


def _one_template(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    for number in range(count):
        yield make_pod(f"{prefix}-{number}", labels={"app": prefix})


def _templates(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    for number in range(count):
        template = number % 100
        yield make_pod(
            f"{prefix}-{number}",
            labels={"app": f"{prefix}-{template}"},
            cpu=f"{50 + 5 * template}m",
            memory=f"{100 + 7 * template}Mi",
            image=f"app-{template % 12}:v1",
        )


def _different(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    for number in range(count):
        yield make_pod(
            f"{prefix}-{number}",
            labels={"app": f"{prefix}-{number}", "build": str(number)},
            cpu=f"{51 + number % 397}m",
            memory=f"{100 * 1024 + 13 * number}Ki",
        )


def _selector(prefix: str) -> dict[str, Any]:
    return {"matchLabels": {"app": prefix}}


def _spread(when_unsatisfiable: str) -> PodStream:
    def pods(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
        constraint = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": when_unsatisfiable,
            "labelSelector": _selector(prefix),
        }
        for number in range(count):
            yield make_pod(f"{prefix}-{number}", labels={"app": prefix}, topologySpreadConstraints=[constraint])

    return pods


def _affinity(kind: str, topology_key: str, *, is_required: bool) -> PodStream:
    def pods(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
        term: dict[str, Any] = {"labelSelector": _selector(prefix), "topologyKey": topology_key}
        rule = "required" if is_required else "preferred"
        terms = [term] if is_required else [{"weight": 50, "podAffinityTerm": term}]
        affinity = {kind: {f"{rule}DuringSchedulingIgnoredDuringExecution": terms}}
        for number in range(count):
            yield make_pod(f"{prefix}-{number}", labels={"app": prefix}, affinity=affinity)

    return pods


def _pinned(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    """As the DaemonSet controller makes them: one a node, by name."""
    for number in range(count):
        name = f"node-{number * 7919 % nodes:05d}"
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        yield make_pod(f"{prefix}-{number}", labels={"app": prefix}, affinity=affinity)


def _important(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    for number in range(count):
        yield make_pod(f"{prefix}-{number}", labels={"app": prefix}, cpu="900m", memory="200Mi", priority=1000)


def _service(prefix: str, count: int, nodes: int) -> list[KubeObject]:
    metadata = {"name": prefix, "namespace": "default"}
    return [msgspec.convert({"metadata": metadata, "spec": {"selector": {"app": prefix}}}, Service)]


def _claiming(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    for number in range(count):
        name = f"{prefix}-{number}"
        yield make_pod(
            name,
            labels={"app": prefix},
            resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]},
        )


def _asking(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    for number in range(count):
        yield make_pod(f"{prefix}-{number}", labels={"app": prefix}, extended={_EXTENDED: "1"})


def _published(prefix: str, nodes: int) -> list[KubeObject]:
    """Eight devices a node, and a class for them that stands for an extended resource too."""
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"model": {"string": "a100"}, "index": {"int": number}},
            "capacity": {"memory": {"value": "40Gi"}},
        }
        for number in range(8)
    ]
    made: list[KubeObject] = []
    for number in range(nodes):
        name = f"node-{number:05d}"
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices}
        made.append(msgspec.convert({"metadata": {"name": f"{prefix}-{name}"}, "spec": spec}, ResourceSlice))
    by_driver = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    spec = {"selectors": [by_driver], "extendedResourceName": _EXTENDED}
    made.append(msgspec.convert({"metadata": {"name": "gpu"}, "spec": spec}, DeviceClass))
    return made


def _backed(prefix: str, count: int, nodes: int) -> list[KubeObject]:
    return _published(prefix, nodes)


def _devices(prefix: str, count: int, nodes: int) -> list[KubeObject]:
    """The devices, and the claim that was made from the template for each pod."""
    made = _published(prefix, nodes)
    model = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "a100"'}}
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, "selectors": [model]}
    asked = {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}}
    for pod in _claiming(prefix, count, nodes):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
        metadata = {"name": pod.name, "namespace": "default", "uid": f"{pod.uid}-claim", "resourceVersion": "1"}
        metadata["ownerReferences"] = [owner]
        made.append(msgspec.convert({"metadata": metadata, "spec": asked}, ResourceClaim))
    return made


def _four_fifths(nodes: int) -> int:
    return nodes * 4 // 5


_EXTENDED = "example.com/gpu"
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

WORKLOADS = (
    Workload(name="template", title="one template", target=15_000, pods=_one_template, decisions=4_000),
    Workload(name="templates", title="100 templates interleaved", target=8_000, pods=_templates, decisions=3_000),
    Workload(name="different", title="every pod of its own shape", target=2_000, pods=_different, decisions=800),
    Workload(name="spread-required", title="required zone spread", target=4_000, pods=_spread("DoNotSchedule")),
    Workload(name="spread-preferred", title="preferred zone spread", target=4_000, pods=_spread("ScheduleAnyway")),
    Workload(
        name="spread-default",
        title="default spread (a service selects)",
        target=4_000,
        pods=_one_template,
        objects=_service,
    ),
    Workload(
        name="affinity-preferred",
        title="preferred pod affinity (zone)",
        target=4_000,
        pods=_affinity("podAffinity", _ZONE, is_required=False),
    ),
    Workload(
        name="affinity-preferred-host",
        title="preferred pod affinity (hostname)",
        target=4_000,
        pods=_affinity("podAffinity", _HOST, is_required=False),
    ),
    Workload(
        name="affinity-required",
        title="required pod affinity (zone)",
        target=4_000,
        pods=_affinity("podAffinity", _ZONE, is_required=True),
    ),
    Workload(
        name="anti-affinity",
        title="required anti-affinity (hostname)",
        target=4_000,
        pods=_affinity("podAntiAffinity", _HOST, is_required=True),
        most_pods=_four_fifths,
    ),
    Workload(
        name="daemonset",
        title="DaemonSet (pinned by node name)",
        target=4_000,
        pods=_pinned,
        most_pods=lambda nodes: nodes,
    ),
    Workload(
        name="devices",
        title="one device a pod, by claim template",
        target=4_000,
        pods=_claiming,
        objects=_devices,
        is_reserved=True,
        most_pods=_four_fifths,
    ),
    Workload(
        name="devices-extended",
        title="one device a pod, by extended resource",
        target=4_000,
        pods=_asking,
        objects=_backed,
        is_reserved=True,
        most_pods=_four_fifths,
    ),
    Workload(
        name="preemption",
        title="preemption (all nodes full)",
        target=1_000,
        pods=_important,
        is_full=True,
        most_pods=_four_fifths,
        decisions=800,
    ),
    Workload(
        name="plugin-cold",
        title="ten-line plugin, as written",
        target=10_000,
        pods=_one_template,
        plugin=ScoreByZoneLabel,
    ),
    Workload(
        name="plugin-cold-use",
        title="the same, reads what is requested",
        target=3_000,
        pods=_one_template,
        plugin=ScoreByFreeCpu,
    ),
    Workload(
        name="plugin-cold-pods",
        title="the same, reads pods on the node",
        target=3_000,
        pods=_one_template,
        plugin=ScoreByNeighbours,
    ),
    Workload(
        name="plugin-opaque",
        title="the same, not understood",
        target=300,
        pods=_one_template,
        plugin=ScoreByPodName,
        decisions=150,
    ),
    Workload(
        name="plugin-declared",
        title="ten-line plugin, depends = NODE",
        target=4_000,
        pods=_one_template,
        plugin=ScoreByZoneLabelDeclared,
    ),
)
