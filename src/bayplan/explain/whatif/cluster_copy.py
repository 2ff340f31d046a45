"""A copy of a cluster to try things on: changed, decided on, and thrown away. Nothing reaches the original or an API.

The objects are shared (they are never changed in place), the columns and the plugins are new. Taking the copy is quick,
as it is a list of references; building it up takes a while on a large cluster, so `build` is work in slices of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import structlog
from msgspec.structs import replace as replace_fields

from bayplan.api.devices import ResourceClaim, ResourceClaimStatus
from bayplan.api.kinds import DEVICE_TAINT_RULES, KINDS
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.app.frameworks import build_framework
from bayplan.app.offline import offline_ports
from bayplan.cache import Cache
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.shapes import PodShape
from bayplan.cluster.state import ClusterState
from bayplan.config.profiles import ResolvedProfile
from bayplan.framework.handle import WaitingPod
from bayplan.framework.offline import FixedNominator
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.registry import Registry
from bayplan.framework.runtime.framework import Framework
from bayplan.loop.decide import Decider, Decision, NodeSearch, decide
from bayplan.observe.time_slices import Work

__all__ = ["ClusterCopy", "ClusterObjects", "objects_of_cluster"]

_log = structlog.get_logger()
_AT_ONCE = 20


class ClusterObjects:
    """What a cluster consists of, at one moment."""

    def __init__(
        self,
        *,
        nodes: Sequence[Node],
        placed: Sequence[tuple[Pod, str]],
        shapes: Sequence[int] = (),
        others: Sequence[KubeObject],
        waiting: Sequence[Pod] = (),
        nominations: Mapping[str, str] | None = None,
        entered: Mapping[str, float] | None = None,
        generation: int = 0,
    ) -> None:
        self.nodes = nodes
        self.placed = placed
        """(pod, node name); the pod object itself may not know its node yet."""
        self.shapes = shapes
        """Of each placed pod, the number that it shares with others of its shape; empty where that is not known."""
        self.others = others
        self.waiting = waiting
        self.nominations = nominations or {}
        """Key of a waiting pod to the node it is nominated to."""
        self.entered = entered or {}
        """Key of a waiting pod to when it entered the queue, where that is known."""
        self.generation = generation


def objects_of_cluster(
    cache: Cache,
    waiting: Sequence[Pod],
    nominations: Mapping[str, str],
    *,
    entered: Mapping[str, float] | None = None,
    more_kinds: Sequence[type[KubeObject]] = (),
) -> ClusterObjects:
    """`more_kinds` are the custom resources that plugins watch."""
    cluster: ClusterState = cache.cluster
    known = (kind.type for kind in (*KINDS, DEVICE_TAINT_RULES) if kind.type not in (Node, Pod))
    kinds = [*known, *more_kinds]
    return ClusterObjects(
        nodes=[info.node for info in cluster.nodes.infos if info is not None],
        placed=[(info.pod, info.node_name) for info in cache.pods()],
        shapes=[info.shape.number for info in cache.pods()],
        others=[item for kind in kinds for item in cluster.objects.list(kind)],
        waiting=waiting,
        nominations=nominations,
        entered=entered,
        generation=cluster.generation,
    )


class HeldOnCopy:
    """Pods that are held at Permit on a copy. Fulfils `framework.handle.WaitingPods`."""

    def __init__(self) -> None:
        self.pods: dict[str, Any] = {}
        """By uid; `bayplan.explain.whatif.placing` writes it."""

    def get(self, uid: str) -> WaitingPod | None:
        found: WaitingPod | None = self.pods.get(uid)
        return found

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self.pods.values()))


class ClusterCopy:
    """Fulfils `ClusterView`. Complete once `build` has run."""

    def __init__(self, profiles: Sequence[ResolvedProfile], registry: Registry) -> None:
        self.profiles = profiles
        self.registry = registry
        self.cache = Cache()
        self.nominator = FixedNominator()
        self.held = HeldOnCopy()
        self.waiting: dict[str, Pod] = {}
        """Pending pods by `namespace/name`."""
        self.remade: dict[str, None] = {}
        """Those of them that controllers make again because they were deleted on the copy, in that order."""
        self.lost: dict[str, None] = {}
        """Pods that were deleted on the copy and that nobody makes again."""
        self.entered: Mapping[str, float] = {}
        """By the same name, when they entered the queue, as far as that is known."""
        self.generation = 0
        """Of the original when the copy was taken."""
        self.deciders: Mapping[str, Decider] = self.deciders_with(profiles)

    @cached_property
    def trial_deciders(self) -> Mapping[str, Decider]:
        """Those that find a node or do not, and look no further."""
        return self.deciders_with(map(_without_post_filters, self.profiles))

    @classmethod
    def build(
        cls, objects: ClusterObjects, profiles: Sequence[ResolvedProfile], registry: Registry
    ) -> Work[ClusterCopy]:
        copy = cls(profiles, registry)
        cache = copy.cache
        yield
        copy.trial_deciders  # noqa: B018 - made here, in a step of its own
        yield
        steps: list[tuple[Callable[..., object], Iterable[tuple[object, ...]]]] = [
            (cache.add_node, ((node,) for node in objects.nodes)),
            (cache.put_object, ((item,) for item in objects.others)),
            # Assumed rather than added: adding would make the original's pods share our shapes.
            (cache.assume, _infos_of(cache, objects)),
            (copy.add_waiting, ((pod, objects.nominations.get(pod.key, "")) for pod in objects.waiting)),
        ]
        for act, arguments in steps:
            for number, given in enumerate(arguments):
                act(*given)
                if not number % _AT_ONCE:
                    yield
        cache.fill_groups([*(pod for pod, _ in objects.placed), *objects.waiting])
        copy.entered = objects.entered
        copy.generation = objects.generation
        return copy

    def add_waiting(self, pod: Pod, nominated: str = "") -> None:
        self.waiting[pod.key] = pod
        self.cache.note_pod(None, pod)
        info = self.cache.info(pod)
        info.nominated_node_name = nominated or info.nominated_node_name
        self.nominator.put(info)

    def nominated_before(self, pod: Pod, node_name: str) -> tuple[PodInfo, ...]:
        """Waiting pods that are nominated to the node and as important as this one: it has to leave them the room."""
        nominated = self.nominator.nominated_pods(node_name)
        if not nominated:
            return ()
        info = self.info(pod)
        return tuple(each for each in nominated if each.uid != info.uid and each.priority >= info.priority)

    def release_claims(self, pod: Pod) -> Callable[[], None]:
        """Drop the reservations of resource claims for a pod that leaves, and free the devices of those that no pod
        uses then, as the resource claim controller does. The answer takes it back."""
        before = [
            claim
            for claim in self.cache.cluster.objects.list(ResourceClaim, pod.namespace)
            if any(user.uid == pod.uid for user in claim.status.reserved_for or ())
        ]
        for claim in before:
            left = [user for user in claim.status.reserved_for or () if user.uid != pod.uid]
            status = replace_fields(claim.status, reserved_for=left) if left else ResourceClaimStatus()
            self.cache.put_object(replace_fields(claim, status=status))

        def undo() -> None:
            for claim in before:
                self.cache.put_object(claim)

        return undo

    def deciders_with(self, profiles: Iterable[ResolvedProfile]) -> dict[str, Decider]:
        """Profiles at work on this copy, perhaps other ones than its own."""
        table = self.cache.cluster.nodes
        ports = replace(offline_ports(self.cache, self.nominator, _complain), waiting_pods=self.held)
        return {
            profile.scheduler_name: Decider(
                framework=build_framework(profile, self.registry, ports),
                nominator=self.nominator,
                tie_break=lambda ties: min(ties.tolist(), key=lambda row: table.at(row).name),
                search=NodeSearch(),
            )
            for profile in profiles
        }

    # ClusterView

    def framework(self, scheduler_name: str) -> Framework:
        return self.deciders[scheduler_name].framework

    def info(self, pod: Pod) -> PodInfo:
        return self.cache.info(pod)

    def decide(self, pod: PodInfo, **changes: object) -> Decision:
        decider = self.deciders[pod.scheduler_name]
        return decide(replace(decider, **changes) if changes else decider, pod)  # type: ignore[arg-type]


def _infos_of(cache: Cache, objects: ClusterObjects) -> Iterator[tuple[PodInfo, str]]:
    """The placed pods for this cache, with their nodes. Those of one shape there are of one shape here."""
    if not objects.shapes:
        yield from ((cache.info(pod), node) for pod, node in objects.placed)
        return
    shapes: dict[int, PodShape] = {}
    for (pod, node), number in zip(objects.placed, objects.shapes, strict=True):
        shape = shapes.get(number)
        if shape is None:
            shape = shapes[number] = cache.cluster.shapes.shape_of(pod)
        yield PodInfo(pod, shape), node


def _without_post_filters(profile: ResolvedProfile) -> ResolvedProfile:
    return replace(profile, points={**profile.points, ExtensionPoint.POST_FILTER: ()})


def _complain(plugin: str, point: str, exception: BaseException) -> None:
    _log.warning("plugin failed while something was tried out", plugin=plugin, point=point, error=str(exception))
