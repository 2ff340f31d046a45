"""Kinds of objects that nobody should have to pay for but their owner, as an API server accepts and sends them.

Each function makes the objects of one kind, all in the namespace `hostile` where there are namespaces. An object of a
name that came before replaces that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

Json = dict[str, Any]
Objects = Iterator[tuple[str, Json]]
"""(path of the collection, object)."""

PODS, NODES, NAMESPACES = "/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces"
CLAIMS = "/api/v1/persistentvolumeclaims"
DEVICE_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
QUOTAS = "/apis/scheduling.x-k8s.io/v1alpha1/elasticquotas"
TOPOLOGIES = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
_HUGE = str(2**63 - 1)
_TERMS = 1000
_ANNOTATION_BYTES = (256 << 10) - 64
"""All that an API server allows, key included."""


def pod(name: str, *, node: str = "", **spec: Any) -> Json:
    requests = spec.pop("requests", {"cpu": "1m"})
    metadata = {"name": name, "namespace": spec.pop("namespace", "hostile"), "uid": f"uid-{name}"}
    metadata |= spec.pop("metadata", {})
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    resources = {"requests": requests, "limits": limits} if limits else {"requests": requests}
    containers = spec.pop("containers", [{"name": "main", "resources": resources}])
    containers = [{"image": "registry.example/none"} | container for container in containers]
    placed = {"nodeName": node} if node else {}
    whole = {"schedulerName": "default-scheduler", "priority": 0, "containers": containers, **placed, **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": whole,
        "status": {"phase": "Running" if node else "Pending"},
    }


def made_up_resources() -> Objects:
    for number in range(20):
        requests = {f"evil.example/p{number}-{i}": "1" for i in range(1000)}
        yield PODS, pod(f"resources-{number}", requests=requests)


def _terms(is_weighted: bool) -> list[Json]:
    expression = {"key": "app", "operator": "NotIn", "values": ["x"]}
    terms = [
        {
            "topologyKey": "kubernetes.io/hostname" if i % 2 else "topology.kubernetes.io/zone",
            "labelSelector": {"matchExpressions": [expression | {"values": [f"x{i}"]}]},
            "namespaceSelector": {},
        }
        for i in range(_TERMS)
    ]
    return [{"weight": 1, "podAffinityTerm": term} for term in terms] if is_weighted else terms


def _with_terms(field: str, is_weighted: bool, *, is_running: bool) -> Callable[[], Objects]:
    """Anti-affinity that is required keeps others out by right; those terms select nobody."""
    when = (
        "preferredDuringSchedulingIgnoredDuringExecution"
        if is_weighted
        else "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = _terms(is_weighted)
    if field == "podAntiAffinity" and not is_weighted:
        terms = [term | {"labelSelector": {"matchLabels": {"nobody": str(i)}}} for i, term in enumerate(terms)]

    def make() -> Objects:
        for number in range(10):
            node = f"node-{number:04}" if is_running else ""
            yield PODS, pod(f"terms-{field.lower()}-{number}", node=node, affinity={field: {when: terms}})

    return make


def _with_node_terms(is_weighted: bool) -> Callable[[], Objects]:
    """Pods that wait, because no node has the labels, or that would rather be on nodes that there are not."""

    def make() -> Objects:
        for number in range(10):
            found = [
                {"matchExpressions": [{"key": f"wanted-{number}-{i}", "operator": "Exists"}]} for i in range(_TERMS)
            ]
            required = {"nodeSelectorTerms": found}
            affinity: Json = {"requiredDuringSchedulingIgnoredDuringExecution": required}
            if is_weighted:
                weighted = [{"weight": 1, "preference": term} for term in found]
                affinity = {
                    "preferredDuringSchedulingIgnoredDuringExecution": weighted,
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found[:1]},
                }
            yield PODS, pod(f"node-terms-{number}", affinity={"nodeAffinity": affinity})

    return make


def _affinity(name: str, side: str, terms: list[Json], **spec: Any) -> tuple[str, Json]:
    """A pod that would rather be near, or must not be near, the pods of many terms."""
    if side == "podAffinity":
        weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
        stated = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
    else:
        stated = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return PODS, pod(name, affinity={side: stated}, **spec)


def terms_of_their_own() -> Objects:
    """Ten thousand different terms of running pods, all of which mean every pod that is plain."""
    for number in range(10):
        terms = _terms(is_weighted=False)
        for i, term in enumerate(terms):
            term["labelSelector"]["matchExpressions"][0]["values"] = [f"x{number}-{i}"]
        yield _affinity(f"draws-{number}", "podAffinity", terms, node=f"node-{number:04}")


def terms_without_topology() -> Objects:
    """Required anti-affinity that means every pod, by a label that no node has."""
    for number in range(10):
        terms = [term | {"topologyKey": f"no.example/{number}-{i}"} for i, term in enumerate(_terms(is_weighted=False))]
        yield _affinity(f"keeps-{number}", "podAntiAffinity", terms, node=f"node-{number:04}")


def terms_in_many_namespaces() -> Objects:
    for number in range(5):
        terms = _terms(is_weighted=False)
        for i, term in enumerate(terms):
            others = {"key": "team", "operator": "NotIn", "values": [f"t{i}"]}
            term["namespaceSelector"] = {"matchExpressions": [{"key": "team", "operator": "Exists"}, others]}
        yield _affinity(f"everywhere-{number}", "podAffinity", terms)
    yield from islice(namespaces(), 1500)


def partners_that_never_come() -> Objects:
    """Pods of different templates that wait for partners: each event of a pod might be about one of them."""
    for number in range(1500):
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"partner": str(number)}}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term | {"namespaceSelector": {}}]}
        yield PODS, pod(f"alone-{number}", affinity={"podAffinity": required})


def spread_constraints() -> Objects:
    for number in range(5):
        constraints = [
            {
                "topologyKey": f"spread-{number}-{i}",
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule" if i % 2 else "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": f"x{i}"}},
            }
            for i in range(5000)
        ]
        yield PODS, pod(f"spread-{number}", topologySpreadConstraints=constraints)


def tolerations() -> Objects:
    many = [{"key": f"k{i}", "operator": "Exists"} for i in range(5000)]
    yield from ((PODS, pod(f"tolerant-{n}", node=f"node-{n:04}", tolerations=many)) for n in range(10))


def labels() -> Objects:
    for number in range(10):
        many = {"labels": {f"l{number}-{i}": f"v{i}" for i in range(10_000)}}
        yield PODS, pod(f"labelled-{number}", node=f"node-{number:04}", metadata=many)


def host_ports() -> Objects:
    for number in range(10):
        ports = [{"containerPort": i, "hostPort": i} for i in range(1, 5000)]
        containers = [{"name": "main", "ports": ports, "resources": {}}]
        yield PODS, pod(f"ports-{number}", node=f"node-{number:04}", containers=containers)


def volumes() -> Objects:
    for number in range(10):
        names = [f"claim-{number}-{i}" for i in range(500)]
        for name in names:
            resources = {"requests": {"storage": "1Gi"}}
            spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": resources}
            metadata = {"name": name, "namespace": "hostile", "uid": f"uid-{name}"}
            yield CLAIMS, {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": {}}
        mounted = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        yield PODS, pod(f"volumes-{number}", volumes=mounted)


def device_claims() -> Objects:
    costly = "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a + b + c > 0)))"
    for number in range(20):
        selectors = [{"cel": {"expression": f"{costly} && {number} > 0"}} for _ in range(20)]
        request = {"name": "r", "exactly": {"deviceClassName": "none", "count": 16, "selectors": selectors}}
        name = f"devices-{number}"
        metadata = {"name": name, "namespace": "hostile", "uid": f"uid-claim-{name}"}
        yield (
            DEVICE_CLAIMS,
            {"kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": {"requests": [request]}}},
        )
        yield PODS, pod(name, resourceClaims=[{"name": "d", "resourceClaimName": name}])


def gates() -> Objects:
    yield from ((PODS, pod(f"gated-{n}", schedulingGates=[{"name": f"gate-{n}"}])) for n in range(5000))


def giants() -> Objects:
    containers = [{"name": f"c{i}", "resources": {"requests": {"cpu": _HUGE, "memory": _HUGE}}} for i in range(50)]
    yield from ((PODS, pod(f"giant-{n}", containers=containers)) for n in range(50))


def of_other_schedulers() -> Objects:
    for number in range(3000):
        requests = {f"other.example/{number}-{i}": "1" for i in range(10)}
        yield PODS, pod(f"foreign-{number}", schedulerName="somebody-else", requests=requests)


def long_annotations() -> Objects:
    for number in range(100):
        many = {"annotations": {"text": f"{number:03}" + "x" * (_ANNOTATION_BYTES - 3)}}
        yield PODS, pod(f"annotated-{number}", node=f"node-{number:04}", metadata=many)


def namespaces() -> Objects:
    for number in range(10_000):
        metadata = {"name": f"namespace-{number}", "uid": f"uid-ns-{number}", "labels": {"team": f"t{number}"}}
        yield NAMESPACES, {"kind": "Namespace", "metadata": metadata}


def node(name: str, **fields: Any) -> Json:
    room = {"cpu": "64", "memory": "256Gi", "pods": "2000", "ephemeral-storage": "100Gi"}
    zone = f"zone-{sum(name.encode()) % 3}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    labels |= fields.pop("labels", {})
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, **fields.pop("metadata", {})},
        "spec": fields,
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def node_churn() -> Objects:
    """Closed nodes with labels and taints of their own, which change again and again."""
    for version in range(3):
        for number in range(300):
            labels = {f"made-up-{version}-{number}-{i}": str(i) for i in range(50)}
            taints = [{"key": f"t{version}-{number}-{i}", "effect": "NoSchedule"} for i in range(20)]
            yield NODES, node(f"churn-{number}", labels=labels, taints=taints, unschedulable=True)


def pod_groups() -> Objects:
    for number in range(2000):
        metadata = {"name": f"group-{number}", "namespace": "hostile", "uid": f"uid-g{number}"}
        yield GROUPS, {"metadata": metadata, "spec": {"minMember": 2**31 - 1, "minResources": {"cpu": _HUGE}}}
        labels = {"labels": {"scheduling.x-k8s.io/pod-group": f"group-{number}"}}
        yield PODS, pod(f"member-{number}", metadata=labels)


def elastic_quotas() -> Objects:
    for number in range(500):
        metadata = {"name": "quota", "namespace": f"quota-{number}", "uid": f"uid-q{number}"}
        amounts = {f"made-up.example/{i}": _HUGE for i in range(200)}
        yield QUOTAS, {"metadata": metadata, "spec": {"min": amounts, "max": amounts}}


def topologies() -> Objects:
    for number in range(20):
        resources = [
            {"name": f"r{number}-{i}", "capacity": "1", "allocatable": "1", "available": "1"} for i in range(500)
        ]
        zones = [{"name": f"node-{z}", "type": "Node", "resources": resources} for z in range(20)]
        name = f"node-{number:04}"
        yield TOPOLOGIES, {"metadata": {"name": name, "uid": f"uid-t{number}"}, "zones": zones}


KINDS: dict[str, Callable[[], Objects]] = {
    "made-up resources": made_up_resources,
    "running, preferred affinity": _with_terms("podAffinity", True, is_running=True),
    "running, required affinity": _with_terms("podAffinity", False, is_running=True),
    "running, preferred anti-affinity": _with_terms("podAntiAffinity", True, is_running=True),
    "running, required anti-affinity": _with_terms("podAntiAffinity", False, is_running=True),
    "waiting, preferred affinity": _with_terms("podAffinity", True, is_running=False),
    "waiting, required affinity": _with_terms("podAffinity", False, is_running=False),
    "waiting, preferred anti-affinity": _with_terms("podAntiAffinity", True, is_running=False),
    "waiting, required anti-affinity": _with_terms("podAntiAffinity", False, is_running=False),
    "waiting, preferred node affinity": _with_node_terms(is_weighted=True),
    "waiting, required node affinity": _with_node_terms(is_weighted=False),
    "terms of their own": terms_of_their_own,
    "terms without topology": terms_without_topology,
    "terms in many namespaces": terms_in_many_namespaces,
    "partners that never come": partners_that_never_come,
    "spread constraints": spread_constraints,
    "tolerations": tolerations,
    "labels": labels,
    "host ports": host_ports,
    "volumes": volumes,
    "device claims": device_claims,
    "gates": gates,
    "giant pods": giants,
    "pods of other schedulers": of_other_schedulers,
    "annotations of 256 KiB": long_annotations,
    "10,000 namespaces": namespaces,
    "node churn": node_churn,
    "PodGroups": pod_groups,
    "ElasticQuotas": elastic_quotas,
    "NodeResourceTopologies": topologies,
}
