"""Generated clusters with the shipped plugins that are none of the default ones, groups, quotas and NUMA apart."""

from __future__ import annotations

import random

from tests.truth.configurations import POLICIES
from tests.truth.documents import Case, JsonObject, pod

__all__ = ["COMMUNITY_CAUSES"]

_GPU = "alibabacloud.com/gpu-milli"
_POLICIES = ("BestFit", "Packing", "FGD", "Clustering", "DotProd")


def _expressions(chance: random.Random, case: Case) -> None:
    """Policies over labels, over what runs on a node, and over the pod."""
    case.plugin = f"ExpressionPolicy:{chance.choice(list(POLICIES))}"
    for node in case.nodes:
        if chance.random() < 0.3:
            node["metadata"]["labels"] |= {"tier": "gold", "large": "yes"}
    case.pods.append(pod("subject", cpu=chance.choice(("100m", "900m"))))


def _shares(chance: random.Random, case: Case) -> None:
    """Parts of devices: a node may have enough of them in all and on no device."""
    case.plugin = f"GpuShare{chance.choice(_POLICIES)}"
    for place, node in enumerate(case.nodes):
        devices = chance.randint(0, 2)
        if not devices:
            continue
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts[_GPU] = str(1000 * devices)
        for number in range(chance.randint(0, devices)):
            case.pods.append(_using(f"renders-{place}-{number}", 600, node["metadata"]["name"]))
    case.pods.append(_using("subject", chance.choice((300, 600, 1000, 1500, 2000, 8000))))


def _using(name: str, milli: int, node: str = "") -> JsonObject:
    made = pod(name, cpu="50m", node=node)
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"][_GPU] = str(milli)
    resources["limits"] = {_GPU: str(milli)}
    return made


def _node_objects(chance: random.Random, case: Case) -> None:
    """Objects that say which resources a node has for pods; some are missing, or say too little."""
    case.plugin = "NodeCRDResourceFit"
    for node in case.nodes:
        names = chance.choice((None, ("cpu",), ("cpu",), ("cpu", "memory")))
        if names is not None:
            head = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ClusterScopedResources"}
            spec = {"resourcesFilter": dict.fromkeys(names, True), "resourcesScore": {"cpu": chance.randint(0, 100)}}
            case.objects.append({**head, "metadata": {"name": node["metadata"]["name"]}, "spec": spec})
    case.pods.append(pod("subject", cpu="100m"))


def _blocked(chance: random.Random, case: Case) -> None:
    case.plugin = "BlockAllScheduler"
    case.pods.append(pod("subject", cpu="100m"))


def _network(chance: random.Random, case: Case) -> None:
    """A job of two workloads: the second wants a good network to the first."""
    case.plugin = chance.choice(("NetworkScheduling", "TopologyScheduling"))
    first = case.nodes[0]["metadata"]["name"]
    if chance.random() < 0.9:
        wanted = {"bandwidth": {"limits": 100, "requests": 200}, "latency": {"limits": 10, "requests": 2}}
        before = [{"podName": "before", "nodeName": first}] if chance.random() < 0.8 else []
        case.objects.append(
            {
                "apiVersion": "batch.ddl.com/v1",
                "kind": "DistributedJob",
                "metadata": {"name": "job", "namespace": "default"},
                "spec": {
                    "workloads": [
                        {"resource": "before"},
                        {"resource": "after", "dependencies": [{"resource": "before", **wanted}]},
                    ]
                },
                "status": {
                    "workloadStatuses": [
                        {"resource": "before", "order": 1, "schedulingInfo": before},
                        {"resource": "after", "order": 2},
                    ]
                },
            }
        )
    if chance.random() < 0.9:
        case.objects.append(_metrics(chance, [node["metadata"]["name"] for node in case.nodes]))
    case.pods.append(pod("subject", cpu="100m", labels={"resource": "after"}))


def _metrics(chance: random.Random, names: list[str]) -> JsonObject:
    def table(*values: int) -> JsonObject:
        return {one: {two: chance.choice(values) for two in names if two != one} for one in names}

    return {
        "apiVersion": "network.example.com/v1",
        "kind": "NetworkMetrics",
        "metadata": {"name": "cluster-metrics", "namespace": "kube-system"},
        "spec": {"metrics": {"bandwidth": table(50, 150, 300), "latency": table(1, 5, 50)}},
    }


def _features(chance: random.Random, case: Case) -> None:
    """A default plugin: the host's network without the host's users needs kubelets that can do that."""
    for node in case.nodes:
        if chance.random() < 0.3:
            node["status"]["declaredFeatures"] = ["UserNamespacesHostNetworkSupport"]
    case.pods.append(pod("subject", cpu="100m", hostNetwork=True, hostUsers=False))


COMMUNITY_CAUSES = {
    "expressions": _expressions,
    "shares of devices": _shares,
    "objects of nodes": _node_objects,
    "blocked": _blocked,
    "network": _network,
    "features": _features,
}
