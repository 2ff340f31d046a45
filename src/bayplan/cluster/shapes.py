"""Pod shapes: what pods of one template have in common, kept once.

A shape is everything about a pod that a decision can depend on, save its identity (name, uid, node). Pods of one
template share one shape object, so whatever is derived from it (parsed selectors, request vectors, a plugin's own
notes) is computed once per template. Shapes are found by the bytes of the relevant fields, which costs a few
microseconds a pod.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable
from typing import Any, NamedTuple, TypeVar
from weakref import WeakMethod, WeakValueDictionary

import msgspec

from bayplan.api.node import normalized_image_name
from bayplan.api.node_selectors import NodeTerm, RequiredNodes, compile_node_selector, compile_term
from bayplan.api.pod import (
    Affinity,
    Container,
    Pod,
    PodPort,
    PodResourceClaim,
    PodSpec,
    SchedulingGate,
    Toleration,
    Volume,
)
from bayplan.api.requests import Amounts, has_pod_level_requests, pod_requests
from bayplan.cluster.affinity_terms import PodTerms, compile_pod_terms, compile_readable_terms
from bayplan.cluster.lazy import lazy
from bayplan.cluster.resources import NATIVE, ResourceAxis, Vector, is_counted

__all__ = ["PodShape", "ShapeTable", "Usage", "usage_of"]

T = TypeVar("T")
_LATEST = 256
_LATEST_BYTES = 1 << 20
"""Of keys."""
_MOST_KEPT_BYTES = 1 << 14
"""A shape with a larger key is kept no longer than the pods that have it, and has bulk."""
_BULK_PER_BYTE = 24
"""Measured: bytes of objects for each byte of the key of a pod with a thousand resources."""
_SAME_FOR_ALL_PINS = (
    "kind",
    "counted",
    "tolerations",
    "readable_terms",
    "host_ports",
    "claim_names",
    "requires_pin_alone",
)
_NAMELESS_GATES = [SchedulingGate()]
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class Usage(NamedTuple):
    """What a pod counts for on its node. The non-zero pair is what scoring assumes when nothing is requested."""

    vector: Vector
    nonzero_cpu: int
    nonzero_memory: int


class PodShape:
    """See the module. Attributes that cost something are computed when first read."""

    bulk = 0
    """How many bytes it takes, roughly, if that is much: what is kept for pods to come is limited by it."""

    def __init__(self, number: int, pod: Pod, resources: ResourceAxis) -> None:
        self.number = number
        self.template_number = number
        """The same for shapes that differ in the node that they are pinned to and in nothing else."""
        self.namespace = pod.namespace
        self.labels: dict[str, str] = pod.labels
        self.spec: PodSpec = _without_identity(pod)
        self.priority = pod.priority
        requested, nonzero = _counted(pod)
        vector = resources.vector(requested)
        self.usage = Usage(_without_zeros(vector), nonzero.get("cpu", 0), nonzero.get("memory", 0))
        if not _is_actuated(pod) and not has_pod_level_requests(pod):
            # The amounts that count are then the requests: nothing to compute twice.
            self.__dict__.update(
                amounts=requested, status_requests=requested, scoring_requests=nonzero, requests=vector
            )
            if len(self.usage.vector) == len(requested):
                self.__dict__["counted"] = requested
        self.controller = pod.controller
        # Without its metadata: annotations may be large, and a shape outlives its pods.
        self._sample = Pod(spec=self.spec, status=pod.status)
        self._resources = resources
        self._notes: dict[Hashable, Any] = {}
        self._notes_on_amounts: dict[Hashable, Any] = {}

    def prepare(self) -> None:
        """Compute what a decision will read, while the pod is in the processor's caches: seconds later, reading it
        again takes ten times as long as the computation."""
        self.kind, self.pinned_to  # noqa: B018 - both are kept once read

    def relabelled(self, number: int, labels: dict[str, str]) -> PodShape:
        """The same with other labels. All that was computed from the rest is taken over, notes are not."""
        twin = self._twin(number)
        twin.template_number, twin.labels = number, labels
        return twin

    def repinned(self, number: int, name: str, affinity: Affinity | None) -> PodShape:
        """The same pinned to another node, by an affinity that differs from this one's in the name alone.

        What every pod needs sooner or later is computed now, once for all of them.
        """
        for attribute in _SAME_FOR_ALL_PINS:
            getattr(self, attribute)
        twin = self._twin(number)
        attributes = twin.__dict__
        attributes["pinned_to"] = name
        if self.requires_pin_alone:
            # Rebuilt lazily; rarely read.
            attributes.pop("required_nodes", None)
        else:
            attributes["required_nodes"] = self.required_nodes.repinned(name)
        twin.spec = msgspec.structs.replace(self.spec, affinity=affinity)
        return twin

    def _twin(self, number: int) -> PodShape:
        twin = PodShape.__new__(PodShape)
        twin.__dict__.update(self.__dict__)
        twin.number, twin._notes = number, {}
        return twin

    def note(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Something derived from this shape alone, computed once and kept with it."""
        found: T | None = self._notes.get(key)
        if found is None:
            found = self._notes[key] = compute()
        return found

    def note_on_amounts(self, key: Hashable, compute: Callable[[PodShape], T]) -> T:
        """The same for what follows from the requested amounts of the shape, which many shapes share."""
        found: T | None = self._notes_on_amounts.get(key)
        if found is None:
            found = self._notes_on_amounts[key] = compute(self)
        return found

    @lazy
    def pinned_to(self) -> str:
        """The node that the pod must go to by name, as the DaemonSet controller writes it; empty if there is no such
        one."""
        return _pinned_to(self.spec.affinity) if self.spec.affinity else ""

    @lazy
    def requires_pin_alone(self) -> bool:
        """Whether the pod requires nothing of a node but the name that it is pinned to."""
        if not self.pinned_to or self.spec.node_selector:
            return False
        (term,) = self.required_nodes.terms or ()
        return term.is_valid and not term.expressions

    @lazy
    def kind(self) -> Hashable:
        """What is left of the shape without namespace, labels, owner, names of containers, of claims and of the node
        that it is pinned to, and amounts of resources.

        Deployments, and the pods of a DaemonSet or a StatefulSet, mostly differ in these alone. A shape with more to it
        than that is a kind of its own.
        """
        spec = self.spec
        if spec.resource_claims or spec.resources or spec.overhead or _is_actuated(self._sample):
            return self.number
        return _encode(
            (
                [(name, amount > 0) for name, amount in self.amounts.items()],
                [_without_amounts(container) for container in spec.containers or ()],
                [_without_amounts(container) for container in spec.init_containers or ()],
                spec.node_selector,
                _unpinned(spec.affinity) if spec.affinity and self.pinned_to else spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.priority,
                spec.preemption_policy,
                spec.scheduler_name,
                spec.scheduling_gates,
                spec.host_network,
                spec.host_users,
                [None if volume.persistent_volume_claim else volume for volume in spec.volumes or ()],
            )
        )

    @lazy
    def tolerations(self) -> tuple[Toleration, ...]:
        return tuple(self.spec.tolerations or ())

    @lazy
    def requests(self) -> Vector:
        """What filtering compares with the room on a node."""
        return self._resources.vector(self.amounts)

    @lazy
    def unplaced(self) -> tuple[str, ...]:
        """What the pod requests and no node offers: it has no place on the resource axis."""
        return self._resources.unplaced(self.amounts)

    @lazy
    def counted(self) -> Amounts:
        """`usage` by name, with what no node offers."""
        amounts = self.status_requests.items()
        return {name: amount for name, amount in amounts if amount and (name in NATIVE or is_counted(name))}

    def names_any(self, resources: Collection[str]) -> bool:
        """Whether the pod requests one of these resources, or was granted one."""
        return any(name in resources for name in (*self.amounts, *self.status_requests))

    def place_again(self) -> None:
        """Follow a resource axis on which resources of this pod have other places than before, or first have one."""
        self.usage = self.usage._replace(vector=_without_zeros(self._resources.vector(self.status_requests)))
        for attribute in ("requests", "unplaced"):
            self.__dict__.pop(attribute, None)
        self._notes.clear()
        self._notes_on_amounts.clear()

    @lazy
    def amounts(self) -> Amounts:
        return pod_requests(self._sample)

    @lazy
    def scoring_requests(self) -> Amounts:
        """The containers' requests with defaults and without pod-level requests: the input of resource scoring."""
        return pod_requests(self._sample, nonzero=True, pod_level=False)

    @lazy
    def status_requests(self) -> Amounts:
        return pod_requests(self._sample, status=True)

    @lazy
    def required_nodes(self) -> RequiredNodes:
        affinity = self.spec.affinity.node_affinity if self.spec.affinity else None
        required = affinity.required if affinity else None
        terms = None if required is None else compile_node_selector(required)
        return RequiredNodes(tuple(sorted((self.spec.node_selector or {}).items())), terms)

    @lazy
    def preferred_nodes(self) -> tuple[tuple[int, NodeTerm], ...] | None:
        """Weighted terms; None when the pod states no list at all."""
        affinity = self.spec.affinity.node_affinity if self.spec.affinity else None
        if affinity is None or affinity.preferred is None:
            return None
        return tuple((term.weight, compile_term(term.preference)) for term in affinity.preferred)

    @lazy
    def pod_terms(self) -> PodTerms:
        """The pod's affinity terms. Raises SelectorError when one does not parse."""
        return compile_pod_terms(self.spec.affinity, self.namespace)

    @lazy
    def readable_terms(self) -> PodTerms:
        """The same without the lists that do not parse: what counts of a pod that already runs."""
        return compile_readable_terms(self.spec.affinity, self.namespace)

    @lazy
    def host_ports(self) -> tuple[PodPort, ...]:
        """Wanted host ports of containers and sidecars."""
        containers = self.spec.containers or []
        if self.spec.init_containers:
            containers = [*containers, *(c for c in self.spec.init_containers if c.restart_policy == "Always")]
        return tuple([port for c in containers if c.ports for port in c.ports if port.host_port > 0])

    @lazy
    def images(self) -> tuple[str, ...]:
        containers = [*(self.spec.init_containers or ()), *(self.spec.containers or ())]
        names = [c.image for c in containers] + [v.image.reference for v in self.volumes if v.image]
        return tuple(normalized_image_name(name) for name in names)

    @property
    def volumes(self) -> list[Volume]:
        return self.spec.volumes or []

    @lazy
    def claim_names(self) -> tuple[str, ...]:
        """Claims named by persistentVolumeClaim volumes."""
        return tuple(v.persistent_volume_claim.claim_name for v in self.volumes if v.persistent_volume_claim)


def _without_amounts(container: Container) -> tuple[object, ...]:
    return container.image, container.ports, container.restart_policy, container.restart_policy_rules


def _pinned_to(affinity: Affinity) -> str:
    rules = affinity.node_affinity
    terms = rules.required.node_selector_terms if rules is not None and rules.required is not None else None
    fields = terms[0].match_fields if terms is not None and len(terms) == 1 else None
    if fields is None or len(fields) != 1:
        return ""
    (field,) = fields
    is_pin = field.key == "metadata.name" and field.operator == "In" and len(field.values or ()) == 1
    return field.values[0] if is_pin and field.values else ""


def _unpinned(affinity: Affinity) -> object:
    """The affinity of a pinned pod without the name of its node."""
    rules = affinity.node_affinity
    terms = rules.required.node_selector_terms if rules is not None and rules.required is not None else None
    expressions = terms[0].match_expressions if terms else None
    preferred = rules.preferred if rules is not None else None
    return "pinned", expressions, preferred, affinity.pod_affinity, affinity.pod_anti_affinity


def usage_of(pod: Pod, resources: ResourceAxis) -> Usage:
    """What the pod counts for once it is on a node."""
    requested, nonzero = _counted(pod)
    vector = _without_zeros(resources.vector(requested))
    return Usage(vector, nonzero.get("cpu", 0), nonzero.get("memory", 0))


def _counted(pod: Pod) -> tuple[Amounts, Amounts]:
    requested = pod_requests(pod, status=True)
    if _names_all(pod):
        return requested, requested
    # With pod-level requests, defaults apply only to what neither the pod nor a container names.
    lacking = {"cpu", "memory"} - requested.keys() if has_pod_level_requests(pod) else True
    return requested, pod_requests(pod, status=True, nonzero=lacking)


def _names_all(pod: Pod) -> bool:
    """Whether every container requests cpu and memory, so that no defaults apply."""
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        requests = container.resources.requests if container.resources is not None else None
        if requests is None or "cpu" not in requests or "memory" not in requests:
            return False
    return not has_pod_level_requests(pod) and not _is_actuated(pod)


def _without_zeros(vector: Vector) -> Vector:
    return vector if all(amount for _, amount in vector) else tuple(pair for pair in vector if pair[1])


def _is_actuated(pod: Pod) -> bool:
    """Whether the kubelet reported what it granted, which may differ from the requests."""
    status = pod.status
    return bool(status.container_statuses or status.init_container_statuses or status.resources)


class ShapeTable:
    """Finds the shape of a pod, making it when the template is new.

    A shape is kept as long as a pod has it; the latest ones are also kept for pods to come, unless they are large or
    gated. Every pod gets other labels when it is bound, and every pod of a DaemonSet is pinned to another node; so a
    shape that differs from a known one in its labels alone, or in its pin alone, is made from that one.
    """

    def __init__(self, resources: ResourceAxis) -> None:
        self._resources = resources
        self._shapes: WeakValueDictionary[tuple[bytes, bytes, str], PodShape] = WeakValueDictionary()
        """By labels, the rest, and the node that it is pinned to."""
        self._by_rest: WeakValueDictionary[bytes, PodShape] = WeakValueDictionary()
        """By all that is not labels, one of the shapes that have it and are not pinned."""
        self._by_template: WeakValueDictionary[tuple[bytes, bytes], PodShape] = WeakValueDictionary()
        """By labels and the rest, one of the pinned shapes that have them."""
        self._latest: deque[tuple[PodShape, int]] = deque()
        """With the sizes of their keys."""
        self._latest_bytes = 0
        self._made = 0
        self._prepare: list[WeakMethod[Callable[[PodShape], None]]] = []

    def __len__(self) -> int:
        return len(self._shapes)

    def on_new(self, prepare: Callable[[PodShape], None]) -> None:
        """Have a method called with every shape that a pod still to be placed is the first to have, so that it computes
        what decisions will read (see `PodShape.prepare`). Its owner is not kept alive by it."""
        self._prepare.append(WeakMethod(prepare))

    def shape_of(self, pod: Pod) -> PodShape:
        affinity = pod.spec.affinity
        pinned_to = _pinned_to(affinity) if affinity is not None else ""
        labels, rest = _encode(pod.metadata.labels), _rest_key(pod, pinned_to)
        key = (labels, rest, pinned_to)
        shape = self._shapes.get(key)
        if shape is None:
            self._made += 1
            shape = self._pinned(pod, labels, rest, pinned_to) if pinned_to else self._unpinned(pod, rest)
            self._shapes[key] = shape
            size = len(labels) + len(rest)
            # One that is made from another has that one's bulk.
            shape.bulk = 0 if size <= _MOST_KEPT_BYTES else size * _BULK_PER_BYTE
            if not shape.bulk and not pod.spec.scheduling_gates:
                self._keep(shape, size)
        return shape

    def _keep(self, shape: PodShape, size: int) -> None:
        """For pods to come. Pods whose gates are gone have another shape."""
        self._latest.append((shape, size))
        self._latest_bytes += size
        while len(self._latest) > _LATEST or self._latest_bytes > _LATEST_BYTES:
            self._latest_bytes -= self._latest.popleft()[1]

    def place_again(self, resources: Collection[str]) -> Collection[PodShape]:
        """Have the shapes that name one of these resources follow the resource axis; the shapes."""
        found = [shape for shape in list(self._shapes.values()) if shape.names_any(resources)]
        for shape in found:
            shape.place_again()
        return found

    def _unpinned(self, pod: Pod, rest: bytes) -> PodShape:
        like = self._by_rest.get(rest)
        if like is not None:
            return like.relabelled(self._made, pod.labels)
        shape = self._by_rest[rest] = PodShape(self._made, pod, self._resources)
        if not pod.spec.node_name and not pod.spec.scheduling_gates:
            self._prepare_new(shape)
        return shape

    def _prepare_new(self, shape: PodShape) -> None:
        shape.prepare()
        for method in self._prepare:
            prepare = method()
            if prepare is None:
                self._prepare = [each for each in self._prepare if each() is not None]
                continue
            try:
                prepare(shape)
            except Exception:
                # A decision will compute it then, and report what is wrong as the plugin's.
                continue

    def _pinned(self, pod: Pod, labels: bytes, rest: bytes, name: str) -> PodShape:
        like = self._by_template.get((labels, rest))
        if like is not None:
            return like.repinned(self._made, name, pod.spec.affinity)
        shape = self._by_template[labels, rest] = PodShape(self._made, pod, self._resources)
        return shape


def _rest_key(pod: Pod, pinned_to: str) -> bytes:
    """Everything that a shape holds save its labels and the name of the node that it is pinned to."""
    spec, metadata = pod.spec, pod.metadata
    volumes = spec.volumes
    if volumes is not None:
        volumes = [v for v in volumes if _matters(v)]
    owner = pod.controller
    return _encode(
        (
            metadata.namespace,
            spec.containers,
            spec.init_containers,
            spec.node_selector,
            _unpinned(spec.affinity) if pinned_to and spec.affinity else spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.overhead,
            spec.resources,
            spec.priority,
            spec.preemption_policy,
            spec.scheduler_name,
            bool(spec.scheduling_gates),
            [entry.name for entry in spec.resource_claims or ()],
            spec.host_network,
            spec.host_users,
            (owner.kind, owner.name, owner.api_version) if owner else None,
            volumes,
            metadata.name if volumes and any(v.ephemeral for v in volumes) else None,
            _resized(pod) if _is_actuated(pod) else None,
        )
    )


def _matters(volume: Volume) -> bool:
    """Volumes that no plugin reads (secrets, tokens, empty dirs) decode to a bare name."""
    return volume != Volume(name=volume.name)


def _resized(pod: Pod) -> Any:
    """The actuated resources, which change what a running pod counts for."""
    status = pod.status
    statuses = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    actuated = [s for s in statuses if s.resources is not None or s.allocated_resources is not None]
    if not actuated and status.resources is None:
        return None
    pending = pod.condition("PodResizePending")
    return actuated, status.resources, status.allocated_resources, pending.reason if pending else None


def _without_identity(pod: Pod) -> PodSpec:
    """Without what is a pod's own: where it runs, volumes that no plugin reads, the names of its claims, which
    DynamicResources reads from the pod itself, and the names of its gates, which no decision comes to."""
    spec = pod.spec
    if not spec.node_name and spec.volumes is None and not spec.resource_claims and not spec.scheduling_gates:
        return spec
    kept = [v for v in spec.volumes or () if _matters(v)]
    claims = [PodResourceClaim(name=entry.name) for entry in spec.resource_claims or ()]
    gates = _NAMELESS_GATES if spec.scheduling_gates else None
    return msgspec.structs.replace(
        spec, node_name="", volumes=kept or None, resource_claims=claims or None, scheduling_gates=gates
    )
