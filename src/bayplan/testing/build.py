"""Builders: pods and nodes, the way they come from an API server, in one line.

    node("n1", cpu=4, memory="8Gi", zone="a", taints=["dedicated=db:NoSchedule"])
    pod("web", cpu="500m", memory="1Gi", labels={"app": "web"}, tolerations=["dedicated=db:NoSchedule"])

What is left out has the value an ordinary cluster gives it: a node has 4 cpus, 32Gi, room for 110 pods and its hostname
label; a pod is pending, asks for nothing and has one container. Other kinds are in `bayplan.testing.build_objects`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bayplan.api.meta import Metadata, OwnerReference
from bayplan.api.node import Node, NodeImage, NodeSpec, NodeStatus, Taint
from bayplan.api.pod import (
    Affinity,
    Container,
    PersistentVolumeClaimVolume,
    Pod,
    PodPort,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    SchedulingGate,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from bayplan.api.pod_defaults import apply_pod_defaults
from bayplan.api.quantity import Quantity, value
from bayplan.testing.parts import HOSTNAME, REGION, ZONE, join_affinity, port, taint, toleration

__all__ = ["LONG_AGO", "container", "node", "pod"]

LONG_AGO = "2020-01-01T00:00:00Z"
"""A deletion or start time for objects of which only "some time ago" matters."""


def container(
    name: str = "main",
    *,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] | None = None,
    limits: Mapping[str, Quantity] | None = None,
    image: str = "app:1",
    host_ports: Iterable[int | PodPort] = (),
    sidecar: bool = False,
) -> Container:
    """A container; as an init container with `sidecar` it keeps running."""
    asked = _amounts(cpu, memory, requests)
    return Container(
        name=name,
        image=image,
        resources=ResourceRequirements(requests=asked, limits=dict(limits) if limits else None)
        if asked or limits
        else None,
        ports=[port(each) if isinstance(each, int) else each for each in host_ports] or None,
        restart_policy="Always" if sidecar else None,
    )


def pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] | None = None,
    limits: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    priority: int | None = None,
    preemption_policy: str | None = None,
    node: str = "",
    nominated: str = "",
    node_selector: Mapping[str, str] | None = None,
    affinity: Affinity | Iterable[Affinity] | None = None,
    tolerations: Iterable[str | Toleration] = (),
    spread: Iterable[TopologySpreadConstraint] = (),
    host_ports: Iterable[int | PodPort] = (),
    image: str = "app:1",
    volumes: Iterable[str | Volume] = (),
    containers: Sequence[Container] | None = None,
    init_containers: Sequence[Container] | None = None,
    pod_requests: Mapping[str, Quantity] | None = None,
    overhead: Mapping[str, Quantity] | None = None,
    gates: Iterable[str] = (),
    owner: OwnerReference | None = None,
    scheduler: str = "default-scheduler",
    started: str | None = None,
    terminating: bool = False,
    phase: str = "",
    uid: str | None = None,
) -> Pod:
    """A pod; with `node` it runs there.

    Volumes given as text are claims. `containers` replaces the one container that `cpu`, `memory`, `requests`,
    `limits`, `host_ports` and `image` describe; `pod_requests` are requests of the pod as a whole.
    """
    main = container(cpu=cpu, memory=memory, requests=requests, limits=limits, image=image, host_ports=host_ports)
    spec = PodSpec(
        node_name=node,
        scheduler_name=scheduler,
        containers=list(containers) if containers is not None else [main],
        init_containers=list(init_containers) if init_containers else None,
        node_selector=dict(node_selector) if node_selector else None,
        affinity=join_affinity(affinity),
        tolerations=[toleration(each) if isinstance(each, str) else each for each in tolerations] or None,
        topology_spread_constraints=list(spread) or None,
        overhead=dict(overhead) if overhead else None,
        resources=ResourceRequirements(requests=dict(pod_requests)) if pod_requests else None,
        volumes=[_volume(each) for each in volumes] or None,
        priority=priority,
        preemption_policy=preemption_policy,
        scheduling_gates=[SchedulingGate(name=each) for each in gates] or None,
    )
    metadata = Metadata(
        name=name,
        namespace=namespace,
        uid=f"uid-{namespace}-{name}" if uid is None else uid,
        labels=dict(labels) if labels else None,
        annotations=dict(annotations) if annotations else None,
        owner_references=[owner] if owner else None,
        deletion_timestamp=LONG_AGO if terminating else None,
    )
    status = PodStatus(phase=phase or ("Running" if node else "Pending"), nominated_node_name=nominated)
    status.start_time = started
    return apply_pod_defaults(Pod(metadata=metadata, spec=spec, status=status))


def node(
    name: str = "node",
    *,
    cpu: Quantity = 4,
    memory: Quantity = "32Gi",
    pods: int = 110,
    allocatable: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    zone: str | None = None,
    region: str | None = None,
    hostname: str | None = None,
    taints: Iterable[str | Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, Quantity] | Iterable[NodeImage] | None = None,
    features: Iterable[str] = (),
) -> Node:
    """A node. `allocatable` adds resources or replaces those of `cpu`, `memory` and `pods`.

    `images` maps names to sizes. The hostname label is the node's name unless `hostname` says otherwise; an empty
    `hostname` leaves the label out.
    """
    places = {HOSTNAME: name if hostname is None else hostname, ZONE: zone, REGION: region}
    known = {key: text for key, text in places.items() if text} | dict(labels or {})
    offered: dict[str, Quantity] = {"cpu": cpu, "memory": memory, "pods": pods, **(allocatable or {})}
    return Node(
        metadata=Metadata(
            name=name, uid=f"uid-{name}", labels=known or None, annotations=dict(annotations) if annotations else None
        ),
        spec=NodeSpec(
            unschedulable=unschedulable,
            taints=[taint(each) if isinstance(each, str) else each for each in taints] or None,
        ),
        status=NodeStatus(
            allocatable=offered,
            capacity=dict(offered),
            images=_images(images),
            declared_features=list(features) or None,
        ),
    )


def _amounts(
    cpu: Quantity | None, memory: Quantity | None, requests: Mapping[str, Quantity] | None
) -> dict[str, Quantity] | None:
    asked: dict[str, Quantity] = {}
    if cpu is not None:
        asked["cpu"] = cpu
    if memory is not None:
        asked["memory"] = memory
    return {**asked, **(requests or {})} or None


def _volume(given: str | Volume) -> Volume:
    if isinstance(given, Volume):
        return given
    return Volume(name=given, persistent_volume_claim=PersistentVolumeClaimVolume(claim_name=given))


def _images(images: Mapping[str, Quantity] | Iterable[NodeImage] | None) -> list[NodeImage] | None:
    if images is None:
        return None
    if isinstance(images, Mapping):
        return [NodeImage(names=[name], size_bytes=value(size)) for name, size in images.items()]
    return list(images)
