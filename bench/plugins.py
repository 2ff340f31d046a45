"""What each shipped plugin costs a decision: as it is, and as a beginner would have written it.

    python -m bench.plugins [--nodes 5000] [--plugin NAME ...] [--json FILE]

Each plugin that filters or scores is enabled beside queue order and binding alone, on a cluster that runs ten pods a
node, with pods that give it something to do. "As shipped" is its form in columns with its speed promises, if it has
them; "node by node" is the same class without either: `filter` and `score` are called for one node at a time, and what
may be kept is derived from their code. A plugin without a form for one node, or without columns, has a dash there.
Figures are decisions a second by CPU time, every node looked at. Plugins that place nothing (`BlockAllScheduler`), or
act only before and after the choice of a node, are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.config.loading import load_config
from bayplan.config.profiles import resolve_profile
from bayplan.framework import Plugin
from bayplan.framework.points import ExtensionPoint, defines, extends
from bayplan.framework.promises import SpeedPromises
from bayplan.plugins.community.node_crd_resource_fit import ClusterScopedResource
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology
from bayplan.plugins.intree import default_registry
from bench.clusters import ZONES, make_pod, running_cluster
from bench.measuring import Bench
from bench.workloads import Workload, find_workloads

_LEFT_OUT = frozenset(("BlockAllScheduler",))
_ARGS: dict[str, dict[str, Any]] = {
    "ExpressionPolicy": {
        "filters": [{"expression": "node.labels['kubernetes.io/arch'] == 'amd64'", "reason": "needs amd64"}],
        "scores": [{"expression": "size(node.labels['node.kubernetes.io/instance-type'])"}],
    },
}


def main() -> int:
    options = _options()
    registry = default_registry()
    names = options.plugin or [name for name in registry.names() if _decides(registry.get(name))]
    print(f"{options.nodes:,} nodes, decisions a second by CPU time\n")
    print(f"{'plugin':<34}{'as shipped':>12}{'node by node':>14}")
    found = {}
    for name in names:
        plugin = registry.get(name)
        shipped = _rate(plugin, options.nodes)
        plain = node_by_node(plugin)
        found[name] = {"shipped": shipped, "nodeByNode": _rate(plain, options.nodes) if plain else None}
        slow = found[name]["nodeByNode"]
        print(f"{name:<34}{shipped:>12,.0f}{f'{slow:,.0f}' if slow else '-':>14}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"nodes": options.nodes, "plugins": found}, indent=2) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--plugin", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser.parse_args()


def _decides(plugin: type[Plugin]) -> bool:
    return plugin.name not in _LEFT_OUT and any(
        extends(plugin, point) for point in (ExtensionPoint.FILTER, ExtensionPoint.SCORE)
    )


def node_by_node(plugin: type[Plugin]) -> type[Plugin] | None:
    """The class without columns and promises, or None where a point has no form for one node."""
    for many, one in (("filter_nodes", "filter"), ("score_nodes", "score")):
        if defines(plugin, many) and not defines(plugin, one):
            return None
    hidden = {name: getattr(Plugin, name) for name in ("filter_nodes", "score_nodes") if defines(plugin, name)}
    if not hidden:
        return None
    promises = {name: value for name, value in vars(SpeedPromises).items() if name[0] != "_" and name[:7] != "version"}
    return type(plugin.__name__, (plugin,), {"name": plugin.name, **promises, **hidden})


def _rate(plugin: type[Plugin], nodes: int) -> float:
    """Medians of rounds; a plugin that is called for every node decides on fewer pods."""
    registry = default_registry()
    registry.add(plugin, replace=True)
    order = [] if extends(plugin, ExtensionPoint.QUEUE_SORT) else ["PrioritySort"]
    enabled = [{"name": name} for name in (*order, plugin.name, "DefaultBinder")]
    profile: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}},
    }
    if plugin.name in _ARGS:
        profile["pluginConfig"] = [{"name": plugin.name, "args": _ARGS[plugin.name]}]
    config = load_config(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    )
    objects = _cluster(plugin.name, nodes)
    scheduler = OfflineScheduler([resolve_profile(p, registry) for p in config.profiles], registry, objects)
    bench = Bench(nodes, rounds=3, share=1.0, tell=lambda text: None)
    bench.use(scheduler)
    return bench.measure(_workload(plugin, nodes)).per_second


def _cluster(name: str, nodes: int) -> Iterator[Any]:
    """Running nodes, with the GPUs and the custom resources that a plugin reads."""
    for item in running_cluster(nodes):
        if not isinstance(item, Node):
            yield item
            continue
        yield _with_gpus(item, name)
        if name in _RESOURCES:
            kind, body = _RESOURCES[name]
            yield msgspec.convert({"metadata": {"name": item.metadata.name}, **body}, kind)


def _with_gpus(node: Node, plugin: str) -> Node:
    replace = msgspec.structs.replace
    if plugin.startswith("GpuShare"):
        offered = {**node.status.allocatable, "alibabacloud.com/gpu-milli": "8000", "alibabacloud.com/gpu-count": "8"}
        return replace(node, status=replace(node.status, allocatable=offered))
    if plugin.startswith("alnair"):
        counts = {f"ai.centaurus.io/{kind}-gpu-count": "8" for kind in ("physical", "virtual")}
        return replace(node, metadata=replace(node.metadata, annotations=counts))
    return node


def _workload(plugin: type[Plugin], nodes: int) -> Workload:
    named = _NAMED.get(plugin.name)
    if named is not None:
        [found] = find_workloads([named])
        pods, objects, most_pods, is_reserved = found.pods, found.objects, found.most_pods, found.is_reserved
    else:
        pods, objects, is_reserved = _PODS.get(plugin.name, _plain), _no_objects, False
        most_pods = lambda nodes: nodes // 2  # noqa: E731 - as `Workload` declares it
    return Workload(
        name=plugin.name,
        title=plugin.name,
        target=0,
        pods=pods,
        objects=objects,
        most_pods=most_pods,
        is_reserved=is_reserved,
        decisions=200,
    )


def _no_objects(prefix: str, count: int, nodes: int) -> list[KubeObject]:
    return []


def _pods(prefix: str, count: int, **spec: Any) -> Iterator[Pod]:
    for number in range(count):
        yield make_pod(f"{prefix}-{number}", labels={"app": prefix}, **spec)


def _plain(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    return _pods(prefix, count)


def _tolerating(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    return _pods(prefix, count, tolerations=[{"key": "dedicated", "operator": "Exists"}])


def _with_port(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    port = {"name": "app", "image": "app:v1", "ports": [{"containerPort": 80, "hostPort": 80}]}
    return _pods(prefix, count, containers=[port])


def _selecting(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(ZONES[:2])}
    kind = {"key": "node.kubernetes.io/instance-type", "operator": "Exists"}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": {"matchExpressions": [kind]}}],
    }
    return _pods(prefix, count, affinity={"nodeAffinity": affinity})


def _sharing(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    amounts = {"cpu": "100m", "memory": "200Mi", "alibabacloud.com/gpu-milli": "300"}
    return _pods(prefix, count, containers=[_container(amounts, limits=amounts)])


def _exact(prefix: str, count: int, nodes: int) -> Iterator[Pod]:
    amounts = {"cpu": "1", "memory": "1Gi"}
    return _pods(prefix, count, containers=[_container(amounts, limits=amounts)])


def _container(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return {"name": "app", "image": "app:v1", "resources": {"requests": requests, "limits": limits}}


_CELL = [
    {"name": name, "capacity": size, "allocatable": size, "available": size}
    for name, size in (("cpu", "16"), ("memory", "32Gi"))
]
_RESOURCES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "NodeCRDResourceFit": (
        ClusterScopedResource,
        {"spec": {"resourcesFilter": {"cpu": True, "memory": True}, "resourcesScore": {"cpu": 60, "memory": 40}}},
    ),
    "NodeResourceTopologyMatch": (
        NodeResourceTopology,
        {
            "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
            "zones": [{"name": f"node-{cell}", "type": "Node", "resources": _CELL} for cell in range(2)],
        },
    ),
}
"""One for each node."""

_NAMED: dict[str, str] = {
    "InterPodAffinity": "affinity-preferred",
    "PodTopologySpread": "spread-required",
    "DynamicResources": "devices",
}
"""Plugins whose pods are those of a workload of `bench.decide`."""

_PODS: dict[str, Callable[[str, int, int], Iterator[Pod]]] = {
    "TaintToleration": _tolerating,
    "NodePorts": _with_port,
    "NodeAffinity": _selecting,
    "NodeResourceTopologyMatch": _exact,
    **{f"GpuShare{policy}": _sharing for policy in ("BestFit", "Clustering", "DotProd", "FGD", "Packing", "Random")},
}

if __name__ == "__main__":
    sys.exit(main())
