"""Random histories: hundreds of changes to a cluster, told to several schedulers at once.

A history keeps the objects themselves; every scheduler gets the same changes in the same order. What they then decide
for one pod must be the same, whatever each remembers, and the oracle can be asked about the same objects.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import ContainerStatus, Pod, ResourceRequirements
from bayplan.app.offline import OfflineScheduler
from bayplan.loop.decide import Decision
from bayplan.testing import Harness, namespace, pdb, replica_set, service
from bayplan.testing.generate import APPS, CPUS, NAMESPACES, TAINTS, ZONES, random_node, random_pod
from bayplan.testing.oracle import OracleCluster
from bayplan.testing.parts import ZONE, taint

Facts = dict[str, Any]


def facts_of(scheduler: OfflineScheduler, decision: Decision) -> Facts:
    """Everything about a decision that must not depend on what is remembered."""
    table = scheduler.cache.cluster.nodes
    rejected = {
        table.at(row).name: (status.plugin, status.code.label, tuple(sorted(status.reasons)))
        for status, rows in decision.rejected_groups()
        for row in rows.tolist()
    }
    nomination = decision.nomination
    return {
        "node": decision.node_name,
        "total": decision.total,
        "ties": decision.ties,
        "feasible": decision.feasible_nodes,
        "message": decision.message,
        "rejected": rejected,
        "blamed": sorted(decision.diagnosis.unschedulable_plugins) if decision.diagnosis else [],
        "nominated": nomination.nominated_node_name if nomination else None,
        "victims": [victim.key for victim in nomination.victims] if nomination else [],
    }


class History:
    """One cluster, its objects, and the schedulers that follow it."""

    def __init__(self, seed: int, *schedulers: OfflineScheduler, most_nodes: int = 10) -> None:
        self.rng = Random(seed)
        self.schedulers = schedulers
        self.nodes: dict[str, Node] = {}
        self.running: dict[str, Pod] = {}
        self.assumed: set[str] = set()
        self.nominated: dict[str, Pod] = {}
        self.objects: dict[tuple[str, str], KubeObject] = {}
        self._most_nodes = most_nodes
        self._made = 0
        self._templates = [random_pod(self.rng, "template") for _ in range(6)]
        for _ in range(most_nodes // 2):
            self.add_node()

    @property
    def everything(self) -> list[KubeObject]:
        return [*self.objects.values(), *self.nodes.values(), *self.running.values(), *self.nominated.values()]

    def oracle(self) -> OracleCluster:
        return OracleCluster.of(self.everything)

    # Pods to decide on

    def next_pod(self) -> Pod:
        """Mostly another pod of one of a few templates, which take turns; now and then a template nobody saw before."""
        rng = self.rng
        if rng.randrange(12) == 0:
            self._templates[rng.randrange(len(self._templates))] = random_pod(rng, "template")
        return self._named(rng.choice(self._templates))

    def _named(self, template: Pod, *, node: str = "", nominated: str = "") -> Pod:
        self._made += 1
        name = f"p{self._made}"
        metadata = msgspec.structs.replace(template.metadata, name=name, uid=f"uid-{name}")
        status = msgspec.structs.replace(template.status, nominated_node_name=nominated)
        return Pod(metadata=metadata, spec=msgspec.structs.replace(template.spec, node_name=node), status=status)

    def decide(self, pod: Pod, **changes: Any) -> list[Facts]:
        """What each scheduler decides."""
        facts = []
        for scheduler in self.schedulers:
            decision = scheduler.decide(scheduler.info(pod), always_score=True, **changes)
            facts.append(facts_of(scheduler, decision))
        return facts

    def assume(self, pod: Pod, node_name: str) -> None:
        for scheduler in self.schedulers:
            scheduler.assume(scheduler.info(pod), node_name)
        self.running[pod.uid] = _placed(pod, node_name)
        self.assumed.add(pod.uid)

    # Changes

    def change(self) -> str:
        """Something happens; its name."""
        rng = self.rng
        kinds = {
            self.confirm: 4,
            self.forget: 2,
            self.add_pod: 3,
            self.delete_pod: 4,
            self.relabel_pod: 2,
            self.resize_pod: 2,
            self.terminate_pod: 2,
            self.restart_pod: 1,
            self.add_node: 2,
            self.delete_node: 1,
            self.change_node: 5,
            self.change_object: 3,
            self.nominate: 1,
            self.withdraw: 2,
        }
        chosen = rng.choices(list(kinds), weights=list(kinds.values()))[0]
        chosen()
        return chosen.__name__

    def _pod(self, uids: set[str] | dict[str, Pod]) -> str | None:
        return self.rng.choice(sorted(uids)) if uids else None

    def _put(self, pod: Pod) -> None:
        self.running[pod.uid] = pod
        self.assumed.discard(pod.uid)
        for scheduler in self.schedulers:
            scheduler.cache.add_pod(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata)))

    def confirm(self) -> None:
        uid = self._pod(self.assumed)
        if uid is not None:
            pod = self.running[uid]
            elsewhere = self.nodes and self.rng.randrange(6) == 0
            self._put(_placed(pod, self.rng.choice(sorted(self.nodes))) if elsewhere else pod)

    def forget(self) -> None:
        uid = self._pod(self.assumed)
        if uid is not None:
            self.assumed.discard(uid)
            del self.running[uid]
            for scheduler in self.schedulers:
                scheduler.cache.forget(uid)

    def add_pod(self) -> None:
        where = self.rng.choice([*sorted(self.nodes), "ghost"])
        template = random_pod(self.rng, "template", node=where)
        ports = any(c.ports for c in [*(template.spec.containers or ()), *(template.spec.init_containers or ())])
        if not ports:
            self._put(self._named(template, node=where))

    def delete_pod(self) -> None:
        uid = self._pod(self.running)
        if uid is not None:
            del self.running[uid]
            self.assumed.discard(uid)
            for scheduler in self.schedulers:
                scheduler.cache.remove_pod(uid)

    def relabel_pod(self) -> None:
        uid = self._pod(self.running)
        if uid is not None:
            pod = self.running[uid]
            labels = {"app": self.rng.choice(APPS), "seen": "yes"}
            self._put(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels)))

    def resize_pod(self) -> None:
        """The kubelet grants a container, or a sidecar, another amount."""
        uid = self._pod(self.running)
        if uid is None:
            return
        pod = self.running[uid]
        granted = ResourceRequirements(requests={"cpu": self.rng.choice(CPUS)})
        inits = [ContainerStatus(name=c.name, resources=granted) for c in pod.spec.init_containers or ()]
        mains = [ContainerStatus(name=c.name, resources=granted) for c in pod.spec.containers or ()]
        changed = {"init_container_statuses": inits} if inits else {"container_statuses": mains}
        self._put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, **changed)))

    def terminate_pod(self) -> None:
        uid = self._pod(self.running)
        if uid is not None:
            pod = self.running[uid]
            metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            self._put(msgspec.structs.replace(pod, metadata=metadata))

    def restart_pod(self) -> None:
        """A pod reports another start time, which only preemption looks at."""
        uid = self._pod(self.running)
        if uid is not None:
            pod = self.running[uid]
            started = f"2026-02-0{self.rng.randint(1, 9)}T00:00:00Z"
            self._put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, start_time=started)))

    def add_node(self) -> None:
        names = [f"n{number}" for number in range(self._most_nodes) if f"n{number}" not in self.nodes]
        if self.rng.randrange(8) == 0 and "ghost" not in self.nodes:
            names = ["ghost"]
        if names:
            self._put_node(random_node(self.rng, self.rng.choice(names)))

    def _put_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        for scheduler in self.schedulers:
            scheduler.cache.add_node(node)

    def delete_node(self) -> None:
        if len(self.nodes) > 2:
            name = self.rng.choice(sorted(self.nodes))
            del self.nodes[name]
            for scheduler in self.schedulers:
                scheduler.cache.remove_node(name)

    def change_node(self) -> None:
        if not self.nodes:
            return
        rng, node = self.rng, self.nodes[self.rng.choice(sorted(self.nodes))]
        kind = rng.randrange(5)
        if kind == 0:
            labels = {**node.labels, ZONE: rng.choice(ZONES)} if rng.randrange(3) else {}
            changed = msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))
        elif kind == 1:
            taints = [taint(each) for each in rng.sample(TAINTS, rng.randint(0, 2))]
            changed = msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))
        elif kind == 2:
            offered = {**(node.status.allocatable or {}), "cpu": rng.choice((1, 2, 6)), "pods": rng.choice((1, 5, 110))}
            changed = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable=offered))
        elif kind == 3:
            spec = msgspec.structs.replace(node.spec, unschedulable=not node.spec.unschedulable)
            changed = msgspec.structs.replace(node, spec=spec)
        else:
            changed = random_node(rng, node.name)
        self._put_node(changed)

    def change_object(self) -> None:
        rng = self.rng
        name = rng.choice(("one", "two"))
        item: KubeObject = rng.choice(
            (
                service(name, {"app": rng.choice(APPS)}),
                replica_set(rng.choice(APPS), {"app": rng.choice(APPS)}),
                namespace(rng.choice(NAMESPACES), labels={"team": name}),
                pdb(name, {"app": rng.choice(APPS)}, allowed=rng.randint(0, 2)),
            )
        )
        key = (type(item).__name__, item.key)
        if key in self.objects and rng.randrange(3) == 0:
            gone = self.objects.pop(key)
            for scheduler in self.schedulers:
                scheduler.cache.remove_object(gone)
            return
        self.objects[key] = item
        for scheduler in self.schedulers:
            scheduler.cache.put_object(item)

    def nominate(self) -> None:
        if self.nodes:
            pod = self._named(self.rng.choice(self._templates), nominated=self.rng.choice(sorted(self.nodes)))
            self.nominated[pod.uid] = pod
            for scheduler in self.schedulers:
                scheduler.nominator.put(scheduler.info(pod))

    def withdraw(self) -> None:
        uid = self._pod(self.nominated)
        if uid is not None:
            del self.nominated[uid]
            for scheduler in self.schedulers:
                scheduler.nominator.drop(uid)


def _placed(pod: Pod, node_name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))


def scheduler(*, remember: bool = True, seed: int = 0) -> OfflineScheduler:
    """An empty cluster with the default profile."""
    return Harness(remember=remember, seed=seed).scheduler
