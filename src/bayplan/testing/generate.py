"""Random clusters out of a `random.Random`: few names and values, so that things meet.

The same generators serve seeded tests (`Random(7)`) and Hypothesis, whose `randoms()` strategy shrinks what they draw;
see `bayplan.testing.strategies`. Everything made here is something an API server would accept, except `odd_pod`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from bayplan.api.meta import KubeObject, LabelSelector
from bayplan.api.node import Node, NodeSelectorTerm
from bayplan.api.pod import (
    Affinity,
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodPort,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from bayplan.api.quantity import Quantity
from bayplan.testing.build import container, node, pod
from bayplan.testing.build_objects import namespace, owned_by, pdb, replica_set, service
from bayplan.testing.parts import (
    HOSTNAME,
    ZONE,
    apart,
    near,
    node_term,
    port,
    prefer_nodes,
    require_nodes,
    selector,
    spread,
)

__all__ = ["APPS", "NAMESPACES", "Cluster", "random_cluster", "random_node", "random_objects", "random_pod"]

T = TypeVar("T")
APPS = ("web", "db", "cache")
TIERS = ("x", "y")
NAMESPACES = ("default", "other", "third")
ZONES = ("a", "b", "c")
RACK = "rack"
TOPOLOGIES = (HOSTNAME, ZONE, RACK)
TAINTS = ("spot=yes:NoSchedule", "spot=no:PreferNoSchedule", "gpu:NoExecute", "old:PreferNoSchedule")
TOLERATIONS = ("spot=yes:NoSchedule", "spot", "gpu:NoExecute", "old:PreferNoSchedule", "*")
IMAGES: dict[str, Quantity] = {"app:1": "300Mi", "db:1": "700Mi", "big/one:2": "2Gi", "small:latest": "10Mi"}
CPUS: tuple[Quantity, ...] = ("100m", "250m", "500m", 1, "1500m", 2)
MEMORIES: tuple[Quantity, ...] = ("64Mi", "200Mi", "512Mi", "1Gi", "1500M", "2Gi")
GPU = "example.com/gpu"


@dataclass
class Cluster:
    """A generated cluster. `waiting` pods are nominated to nodes; `pods` run (some on nodes that are not there)."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    waiting: list[Pod] = field(default_factory=list)
    objects: list[KubeObject] = field(default_factory=list)

    @property
    def everything(self) -> list[KubeObject]:
        return [*self.objects, *self.nodes, *self.pods, *self.waiting]


def random_cluster(rng: Random, *, most_nodes: int = 8, most_pods: int = 16) -> Cluster:
    """Nodes, running pods, a few nominated ones, services, replica sets, budgets and namespaces."""
    cluster = Cluster(objects=random_objects(rng))
    cluster.nodes = [random_node(rng, f"n{number}") for number in range(rng.randint(1, most_nodes))]
    names = [each.name for each in cluster.nodes]
    for number in range(rng.randint(0, most_pods)):
        where = "ghost" if _chance(rng, 30) else rng.choice(names)
        running = random_pod(rng, f"p{number}", node=where)
        if not _shares_a_port(running, cluster.pods):
            cluster.pods.append(running)
    for number in range(rng.randint(1, 2) if _chance(rng, 4) else 0):
        cluster.waiting.append(random_pod(rng, f"w{number}", nominated=rng.choice(names)))
    return cluster


def random_objects(rng: Random) -> list[KubeObject]:
    """Namespaces, and things that select pods."""
    found: list[KubeObject] = [namespace(each, labels=_some_team(rng)) for each in NAMESPACES[: rng.randint(1, 3)]]
    found += [service(f"s{i}", _labels(rng), namespace=_namespace(rng)) for i in range(rng.randint(0, 2))]
    found += [replica_set(app, {"app": app}) for app in APPS if _chance(rng, 3)]
    budgets = range(rng.randint(0, 2))
    found += [pdb(f"b{i}", _labels(rng), allowed=rng.randint(0, 2), namespace=_namespace(rng)) for i in budgets]
    return found


def random_node(rng: Random, name: str) -> Node:
    """A node of middling size; now and then without a zone or hostname, tainted, cordoned or nearly out of slots."""
    labels = {RACK: rng.choice(("r1", "r2", ""))} if _chance(rng, 2) else {}
    if _chance(rng, 3):
        labels["gen"] = str(rng.randint(1, 4))
    if _chance(rng, 15):
        labels[ZONE] = ""
    return node(
        name,
        cpu=rng.choice((1, 2, 4, "3500m")),
        memory=rng.choice(("1Gi", "4Gi", "6000Mi")),
        pods=rng.choice((2, 4, 110, 110)),
        allocatable={GPU: rng.randint(1, 2)} if _chance(rng, 4) else None,
        labels=labels,
        zone=None if _chance(rng, 6) else rng.choice(ZONES),
        hostname="" if _chance(rng, 10) else None,
        taints=rng.sample(TAINTS, rng.randint(1, 2)) if _chance(rng, 3) else (),
        unschedulable=_chance(rng, 10),
        images={each: IMAGES[each] for each in rng.sample(sorted(IMAGES), rng.randint(0, 3))},
    )


def random_pod(rng: Random, name: str, *, node: str = "", nominated: str = "") -> Pod:
    """A pod with any mixture of requests, constraints and preferences."""
    app = rng.choice(APPS)
    labels = {"app": app, **({"tier": rng.choice(TIERS)} if _chance(rng, 2) else {})}
    made = pod(
        name,
        namespace=_namespace(rng),
        labels={} if _chance(rng, 12) else labels,
        containers=[_container(rng, f"c{number}") for number in range(1 if _chance(rng, 2) else rng.randint(1, 3))],
        init_containers=_init_containers(rng) if _chance(rng, 5) else None,
        pod_requests=_pod_requests(rng) if _chance(rng, 8) else None,
        overhead={"cpu": "50m"} if _chance(rng, 8) else None,
        priority=rng.choice((None, 0, 1, 2, 10)),
        node=node,
        nominated=nominated,
        node_selector={ZONE: rng.choice(ZONES)} if _chance(rng, 8) else None,
        tolerations=rng.sample(TOLERATIONS, 1) if _chance(rng, 3) else (),
        spread=[_spread(rng) for _ in range(rng.randint(1, 2))] if _chance(rng, 3) else (),
        affinity=[_affinity(rng) for _ in range(rng.randint(1, 3))] if _chance(rng, 2) else None,
        started=f"2026-01-0{rng.randint(1, 9)}T00:00:0{rng.randint(0, 9)}Z" if node and not _chance(rng, 8) else None,
        terminating=bool(node) and _chance(rng, 8),
        owner=owned_by(replica_set(app, {"app": app})) if _chance(rng, 3) else None,
    )
    if node and _chance(rng, 6):
        _resize(rng, made)
    return made


def _container(rng: Random, name: str) -> Container:
    asked: dict[str, Quantity] = {GPU: 1} if _chance(rng, 12) else {}
    return container(
        name,
        cpu=None if _chance(rng, 4) else rng.choice(CPUS),
        memory=None if _chance(rng, 4) else rng.choice(MEMORIES),
        requests=asked or None,
        image=rng.choice((*IMAGES, "small", "unknown:3")),
        host_ports=[_port(rng)] if _chance(rng, 8) else (),
    )


def _init_containers(rng: Random) -> list[Container]:
    return [
        container(f"i{number}", cpu=rng.choice(CPUS), memory=rng.choice(MEMORIES), sidecar=_chance(rng, 2))
        for number in range(rng.randint(1, 2))
    ]


def _pod_requests(rng: Random) -> dict[str, Quantity]:
    both: dict[str, Quantity] = {"cpu": 2, "memory": "2Gi"}
    return {name: both[name] for name in rng.sample(sorted(both), rng.randint(1, 2))}


def _port(rng: Random) -> PodPort:
    return port(rng.choice((80, 443)), protocol=rng.choice(("TCP", "UDP")), address=rng.choice(("", "10.0.0.1")))


def _spread(rng: Random) -> TopologySpreadConstraint:
    soft = _chance(rng, 2)
    return spread(
        rng.choice(TOPOLOGIES),
        _selector(rng),
        max_skew=rng.randint(1, 3),
        soft=soft,
        min_domains=None if soft or _chance(rng, 2) else rng.randint(1, 4),
        node_affinity_policy=rng.choice((None, "Honor", "Ignore")),
        node_taints_policy=rng.choice((None, "Honor", "Ignore")),
        match_label_keys=["tier"] if _chance(rng, 6) else None,
    )


def _affinity(rng: Random) -> Affinity:
    kind = rng.randint(0, 5)
    if kind == 0:
        return require_nodes(*[_node_term(rng) for _ in range(rng.randint(1, 2))])
    if kind == 1:
        return prefer_nodes(_node_term(rng), weight=rng.randint(1, 100))
    side = near if kind in (2, 3) else apart
    return side(
        rng.choice(TOPOLOGIES),
        _selector(rng),
        weight=rng.randint(1, 100) if _chance(rng, 2) else None,
        namespaces=rng.sample(NAMESPACES, rng.randint(1, 2)) if _chance(rng, 5) else None,
        namespace_selector=_namespace_selector(rng) if _chance(rng, 4) else None,
    )


def _node_term(rng: Random) -> NodeSelectorTerm:
    kind = rng.randint(0, 6)
    if kind == 0:
        return node_term(greater={"gen": rng.randint(1, 3)})
    if kind == 1:
        return node_term(absent=[RACK])
    if kind == 2:
        return node_term(exists=[RACK], not_in={ZONE: [rng.choice(ZONES)]})
    if kind == 3:
        return node_term(name=f"n{rng.randint(0, 5)}")
    return node_term(is_in={ZONE: rng.sample(ZONES, rng.randint(1, 2))})


def _selector(rng: Random) -> LabelSelector | None:
    kind = rng.randint(0, 9)
    if kind == 0:
        return selector()
    if kind == 1:
        return None
    if kind == 2:
        return selector(not_in={"app": [rng.choice(APPS)]})
    if kind == 3:
        return selector(is_in={"app": rng.sample(APPS, 2)}, exists=["tier"])
    if kind == 4:
        return selector(absent=["tier"])
    return selector({"app": rng.choice(APPS)})


def _namespace_selector(rng: Random) -> LabelSelector:
    kind = rng.randint(0, 3)
    if kind == 0:
        return selector()
    return selector({"team": "one"}) if kind == 1 else selector(not_in={"team": ["two"]})


def _resize(rng: Random, made: Pod) -> None:
    """Let the kubelet have granted other amounts than the spec asks for."""
    statuses = [
        ContainerStatus(
            name=each.name,
            resources=ResourceRequirements(requests={"cpu": rng.choice(CPUS), "memory": rng.choice(MEMORIES)}),
            allocated_resources={"cpu": rng.choice(CPUS)} if _chance(rng, 2) else None,
        )
        for each in [*(made.spec.containers or ()), *(made.spec.init_containers or ())]
        if _chance(rng, 2)
    ]
    names = {each.name for each in made.spec.init_containers or ()}
    made.status.container_statuses = [each for each in statuses if each.name not in names] or None
    made.status.init_container_statuses = [each for each in statuses if each.name in names] or None
    if _chance(rng, 3):
        made.status.conditions = [PodCondition(type="PodResizePending", status="True", reason="Infeasible")]


def _shares_a_port(new: Pod, pods: Sequence[Pod]) -> bool:
    """Two pods of one node with one port: the first to leave frees it for both, so generated clusters have none."""
    taken = {number for other in pods if other.spec.node_name == new.spec.node_name for number in _ports(other)}
    wanted = _ports(new)
    return len(wanted) != len(set(wanted)) or bool(taken & set(wanted))


def _ports(made: Pod) -> list[int]:
    containers = [*(made.spec.containers or ()), *(made.spec.init_containers or ())]
    return [each.host_port for one in containers for each in one.ports or ()]


def _labels(rng: Random) -> dict[str, str]:
    return {"app": rng.choice(APPS)} if _chance(rng, 2) else {"tier": rng.choice(TIERS)}


def _some_team(rng: Random) -> dict[str, str]:
    return {"team": rng.choice(("one", "two"))} if _chance(rng, 2) else {}


def _namespace(rng: Random) -> str:
    return "default" if not _chance(rng, 4) else rng.choice(NAMESPACES)


def _chance(rng: Random, one_in: int) -> bool:
    return rng.randrange(one_in) == 0
