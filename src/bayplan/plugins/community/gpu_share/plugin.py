"""The plugins of GPU sharing: one base that filters, reserves and writes devices, and a class for each policy.

A profile enables one of them. Amounts are read from the columns of devices (`devices`); scores are in `policies` and
`fragmentation`.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache

import msgspec
import numpy as np

from bayplan.framework import (
    ActionType,
    ClusterEvent,
    CycleState,
    Depends,
    EventHint,
    GaugeMetric,
    Hint,
    NodeColumns,
    NodeInfo,
    Normalizer,
    Permission,
    Plugin,
    PluginArgs,
    PodInfo,
    Remedy,
    Resource,
    Skip,
    Status,
    Unschedulable,
    Verdicts,
    by_shape,
)
from bayplan.framework.columns import Int64N, OverlayColumns
from bayplan.plugins.community.gpu_share.devices import (
    WHOLE,
    DeviceColumns,
    Devices,
    GpuRequest,
    NodeGpus,
    best_fitting,
    first_free,
)
from bayplan.plugins.community.gpu_share.fragmentation import (
    Fragmentation,
    KeptTallies,
    NodeTally,
    TypicalPod,
    typical_pods,
)
from bayplan.plugins.community.gpu_share.policies import best_fit, clustering, dot_product, packing

__all__ = [
    "GpuShareBestFit",
    "GpuShareClustering",
    "GpuShareDotProd",
    "GpuShareFGD",
    "GpuSharePacking",
    "GpuShareRandom",
]

_NO_DEVICE = Unschedulable("node(s) had no GPU with enough room")
_ODD_REQUEST = "requests {} thousandths of a GPU; more than 1000 must be a multiple of 1000"
_NUMBER = re.compile(r"(\d+)\D*$")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,6}")
_FEW_PODS = 4096
_MEASURE_EVERY_SECONDS = 5.0
_KEY_BITS = 20
_LARGEST_KEY = (1 << _KEY_BITS) - 1


class SecondKey(Enum):
    """What decides between nodes of one score."""

    NONE = "None"
    NODE_NUMBER = "NodeNumber"
    BEST_FIT = "BestFit"


class _BestByBothKeys(Normalizer):
    """The best node by score and second key gets 100, the others their score, 99 at most."""

    takes_negative = True

    def apply(self, scores: Int64N, bounds: tuple[int, int]) -> Int64N:
        return np.where(scores == bounds[1], 100, np.minimum(scores >> _KEY_BITS, 99))


class GpuShareArgs(PluginArgs):
    resource: str = "alibabacloud.com/gpu-milli"
    count_resource: str = "alibabacloud.com/gpu-count"
    model_label: str = "alibabacloud.com/gpu-card-model"
    index_annotation: str = "alibabacloud.com/gpu-index"
    second_key: SecondKey = SecondKey.NONE


class GpuShareFGDArgs(GpuShareArgs):
    second_key: SecondKey = SecondKey.BEST_FIT
    typical_pods: list[TypicalPod] = msgspec.field(default_factory=list)


@dataclass
class HeldDevices:
    """Indexes of the devices of pods, by uid, whose annotation may not be seen yet. All profiles share them, and they
    outlive reloads."""

    by_uid: dict[str, tuple[int, ...]] = field(default_factory=dict)
    forget_at: int = _FEW_PODS


class _GpuShare(Plugin[GpuShareArgs]):
    """What all policies share: requests, devices, the filter, and the device that is reserved and written."""

    depends = Depends.USE
    reasons = _NO_DEVICE.reasons
    remedies = (Remedy.REQUESTS,)
    permissions = (Permission("", "pods", ("patch",)),)

    def setup(self) -> None:
        self._columns: DeviceColumns | None = None
        self._kinds: dict[GpuRequest, int] = {}

    @cached_property
    def _held(self) -> HeldDevices:
        return self.handle.lasting.get(HeldDevices)

    def request(self, pod: PodInfo) -> GpuRequest:
        """The devices that a pod asks for."""
        return pod.shape.note((self.name, "gpu"), lambda: self._read_request(pod))

    def _read_request(self, pod: PodInfo) -> GpuRequest:
        amounts = pod.shape.amounts
        milli, count = amounts.get(self.args.resource, 0), amounts.get(self.args.count_resource, 0)
        if milli > WHOLE:
            return GpuRequest(WHOLE, -(-milli // WHOLE))
        return GpuRequest(milli, 1) if milli else GpuRequest(WHOLE if count else 0, count)

    def kind_of(self, request: GpuRequest) -> int:
        """A bit for shares of a device and for each count of whole ones."""
        key = GpuRequest(0, 1) if request.is_share else request
        return self._kinds.setdefault(key, 1 << min(len(self._kinds), 62))

    def sign(self, pod: PodInfo) -> Hashable:
        return (*self.request(pod), pod.shape.amounts.get("cpu", 0))

    # Devices

    def columns(self) -> DeviceColumns:
        if self._columns is None:
            self._columns = DeviceColumns(self.handle.cluster.nodes, self.devices_of, self._traits_of)
        return self._columns

    def devices_of(self, node: NodeInfo, without: str = "") -> NodeGpus:
        """The devices of a node as its pods leave them."""
        free, kinds = [WHOLE] * self._device_count(node), 0
        for uid, pod in node.pods.items():
            request = self.request(pod)
            if request.devices and uid != without:
                kinds |= self.kind_of(request)
                for index in self._devices_held(pod, request, free):
                    free[index] = max(free[index] - request.milli, 0)
        return NodeGpus(free, kinds)

    def _traits_of(self, node: NodeInfo) -> tuple[int, int, str]:
        number = min(_number(node.name), _LARGEST_KEY)
        return number, self._device_count(node), node.labels.get(self.args.model_label, "")

    def _device_count(self, node: NodeInfo) -> int:
        milli = node.allocatable_of(self.args.resource)
        if milli:
            return milli // WHOLE
        name = self.args.count_resource
        stated = node.allocatable_of(name) or node.labels.get(name) or node.annotations.get(name) or 0
        return int(stated) if _WHOLE_NUMBER.fullmatch(str(stated)) else 0

    def _devices_held(self, pod: PodInfo, request: GpuRequest, free: list[int]) -> tuple[int, ...]:
        held = self._held.by_uid.get(pod.uid) or _indexes(pod.annotations.get(self.args.index_annotation, ""))
        # An annotation that names more devices than the pod asks for is not trusted: other pods would lack them.
        if held and max(held) < len(free) and len(set(held)) == len(held) == request.devices:
            return held
        return best_fitting(free, request)

    # Extension points

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        request = self.request(pod)
        if not request.devices:
            return Verdicts.accept(len(nodes))
        free, _ = self.columns().of(nodes)
        return Verdicts.reject((free >= request.milli).sum(axis=0) < request.devices, _NO_DEVICE)

    def is_relevant(self, pod: PodInfo) -> bool:
        return True

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        milli = pod.shape.amounts.get(self.args.resource, 0)
        if milli > WHOLE and milli % WHOLE:
            return Unschedulable(f"pod {_ODD_REQUEST.format(milli)}")
        return None

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        request, node = self.request(pod), self.handle.cluster.node(node_name)
        if not request.devices or node is None:
            return None
        chosen = self.choose(pod, node, self.devices_of(node, without=pod.uid).free, request)
        if len(chosen) < request.devices:
            return _NO_DEVICE
        self._held.by_uid[pod.uid] = chosen
        return None

    def choose(self, pod: PodInfo, node: NodeInfo, free: list[int], request: GpuRequest) -> tuple[int, ...]:
        """The devices for a pod: of shares the one with the least room that is enough, else the first free ones."""
        return best_fitting(free, request) if request.is_share else first_free(free, request)

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._held.by_uid.pop(pod.uid, None)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None if pod.uid in self._held.by_uid else Skip()

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        index = "-".join(map(str, self._held.by_uid[pod.uid]))
        await self.handle.api.patch_pod(pod, {"metadata": {"annotations": {self.args.index_annotation: index}}})
        return None

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Forget pods that are gone, once half of what is known may be about them."""
        held = self._held
        if len(held.by_uid) > held.forget_at:
            present = {uid for info in self.handle.nodes() for uid in info.pods}
            held.by_uid = {uid: devices for uid, devices in held.by_uid.items() if uid in present}
            held.forget_at = 2 * len(held.by_uid) + _FEW_PODS

    def events_to_register(self) -> list[EventHint]:
        return [
            EventHint(ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE), self._after_pod_deleted),
            EventHint(ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE)),
        ]

    @by_shape
    def _after_pod_deleted(self, pod: PodInfo, old: PodInfo, new: PodInfo | None) -> Hint:
        return Hint.QUEUE if self.request(old).devices else Hint.SKIP


class GpuShareRandom(_GpuShare):
    """Choose a node, and the device for a share, at random.

    *What it does*: counts GPUs in thousandths; leaves the node to the tie-break of the scheduler, which is seeded.
    *Rejects when*: no device of a node has the room that the pod asks for, or fewer than it asks for.
    *Scores by*: nothing.
    *Retries on*: the deletion of a pod that held a GPU; a node being added or changed.
    *Arguments*: resource (thousandths), countResource (whole GPUs), modelLabel, indexAnnotation.
    *Differs from the original*: pods ask by requests of extended resources instead of annotations.
    """

    def choose(self, pod: PodInfo, node: NodeInfo, free: list[int], request: GpuRequest) -> tuple[int, ...]:
        fitting = [index for index, room in enumerate(free) if room >= request.milli]
        if not request.is_share or not fitting:
            return first_free(free, request)
        return (fitting[zlib.crc32(pod.uid.encode()) % len(fitting)],)


class _ScoredGpuShare(_GpuShare):
    """A policy with a score: `policy_scores` of a subclass, and the second key."""

    normalize = _BestByBothKeys()

    def policy_scores(self, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        """0 to 100 by the policy."""
        raise TypeError(f"{type(self).__name__} does not say how it scores")

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        scores = self.policy_scores(pod, nodes) << _KEY_BITS
        if self.args.second_key is SecondKey.NODE_NUMBER:
            scores += _LARGEST_KEY - self.columns().traits(nodes).number
        elif self.args.second_key is SecondKey.BEST_FIT:
            scores += best_fit(*self.demand(pod, nodes))
        return scores

    def demand(self, pod: PodInfo, nodes: NodeColumns) -> tuple[Int64N, Devices, int, GpuRequest]:
        """Free milli-cpu and devices of the nodes, and what the pod asks of both."""
        free, _ = self.columns().of(nodes)
        free_cpu = nodes.allocatable("cpu") - nodes.requested("cpu")
        return free_cpu, free, pod.shape.amounts.get("cpu", 0), self.request(pod)


class GpuShareBestFit(_ScoredGpuShare):
    """Prefer the node with the least room left.

    *What it does*: counts GPUs in thousandths.
    *Rejects when*: no device of a node has the room that the pod asks for, or fewer than it asks for.
    *Scores by*: 100 less half the share of cpu and half the share of GPUs that are left free.
    *Retries on*: the deletion of a pod that held a GPU; a node being added or changed.
    *Arguments*: resource, countResource, modelLabel, indexAnnotation, secondKey (`None`, `NodeNumber`, `BestFit`).
    *Differs from the original*: pods ask by requests of extended resources instead of annotations.
    """

    def policy_scores(self, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        return best_fit(*self.demand(pod, nodes))


class GpuShareDotProd(_ScoredGpuShare):
    """Prefer the node whose free amounts are least like the request.

    *What it does*: counts GPUs in thousandths.
    *Rejects when*: no device of a node has the room that the pod asks for, or fewer than it asks for.
    *Scores by*: 100 less the scalar product of request and free amounts (cpu, GPUs), each as shares of a large node.
    *Retries on*: the deletion of a pod that held a GPU; a node being added or changed.
    *Arguments*: resource, countResource, modelLabel, indexAnnotation, secondKey (`None`, `NodeNumber`, `BestFit`).
    *Differs from the original*: pods ask by requests of extended resources instead of annotations.
    """

    def policy_scores(self, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        return dot_product(*self.demand(pod, nodes))


class GpuSharePacking(_ScoredGpuShare):
    """Prefer devices in use, then idle devices of nodes in use, then idle nodes.

    *What it does*: counts GPUs in thousandths.
    *Rejects when*: no device of a node has the room that the pod asks for, or fewer than it asks for.
    *Scores by*: 50 to 100 for room on devices in use, the less the better; 33 to 50 for idle devices of a node in use;
    below that for idle nodes. 0 for pods without GPUs.
    *Retries on*: the deletion of a pod that held a GPU; a node being added or changed.
    *Arguments*: resource, countResource, modelLabel, indexAnnotation, secondKey (`None`, `NodeNumber`, `BestFit`).
    *Differs from the original*: pods ask by requests of extended resources instead of annotations.
    """

    def policy_scores(self, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        free, _ = self.columns().of(nodes)
        return packing(free, self.columns().traits(nodes).devices, self.request(pod))


class GpuShareClustering(_ScoredGpuShare):
    """Prefer nodes that hold the same kind of request: shares, or as many whole devices.

    *What it does*: counts GPUs in thousandths.
    *Rejects when*: no device of a node has the room that the pod asks for, or fewer than it asks for.
    *Scores by*: 75 for nodes that hold this kind alone, 50 among others, 25 for nodes without GPU pods, 0 otherwise;
    and up to 25 for how full the node is. 0 for pods without GPUs.
    *Retries on*: the deletion of a pod that held a GPU; a node being added or changed.
    *Arguments*: resource, countResource, modelLabel, indexAnnotation, secondKey (`None`, `NodeNumber`, `BestFit`).
    *Differs from the original*: pods ask by requests of extended resources instead of annotations.
    """

    def policy_scores(self, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        free, kinds = self.columns().of(nodes)
        request = self.request(pod)
        return clustering(free, kinds, self.kind_of(request), request)


class GpuShareFGD(_ScoredGpuShare):
    """Prefer the node and device whose fragmentation grows least: Fragmentation Gradient Descent.

    *What it does*: counts GPUs in thousandths. Fragmentation is what typical pods could not use of what is idle.
    *Rejects when*: no device of a node has the room that the pod asks for, or fewer than it asks for.
    *Scores by*: 50 where fragmentation stays the same, more where it falls, less where it grows. Many nodes tie, so the
    second key matters; see the table of tie rules in the documentation of simulations.
    *Retries on*: the deletion of a pod that held a GPU; a node being added or changed.
    *Arguments*: resource, countResource, modelLabel, indexAnnotation, secondKey (`BestFit`; `None`, `NodeNumber`),
    typicalPods (requests with numbers of pods; learnt from the pods that were bound where none are given).
    *Differs from the original*: pods ask by requests of extended resources instead of annotations; the second key is
    an argument, where the original's is the order of the scheduler that it was built into.
    """

    Args = GpuShareFGDArgs
    args: GpuShareFGDArgs
    idle = GaugeMetric("Thousandths of GPUs that no pod holds.")
    fragmented = GaugeMetric("Of these, what typical pods can be expected not to use, by cause.", labels=("cause",))

    def setup(self) -> None:
        super().setup()
        self.fragmentation = Fragmentation(self.args.typical_pods)
        self._tallies = KeptTallies(self.handle.cluster.nodes, self._tally)
        self._seen: Counter[tuple[int, int, int, tuple[str, ...]]] = Counter()
        self._learn_at = 1
        self._measure_at = 0.0

    def policy_scores(self, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        cpu, free, cpu_wanted, request = self.demand(pod, nodes)
        tally = self._tallies.of(nodes) if self._follows(nodes) else self._tally(nodes)
        return self.fragmentation.scores(tally, cpu, free, cpu_wanted, request)[0]

    def _follows(self, nodes: NodeColumns) -> bool:
        """Whether these are nodes of the cluster, and not those of a dry run."""
        return not isinstance(nodes, OverlayColumns) and nodes.table is self.handle.cluster.nodes

    def _tally(self, nodes: NodeColumns) -> NodeTally:
        free, _ = self.columns().of(nodes)
        models = self.columns().traits(nodes).models if self.fragmentation.names_models else ()
        return self.fragmentation.tally(nodes.allocatable("cpu") - nodes.requested("cpu"), free, models)

    def choose(self, pod: PodInfo, node: NodeInfo, free: list[int], request: GpuRequest) -> tuple[int, ...]:
        if not request.is_share or not self.fragmentation.total:
            # Without typical pods, one device is as good as another.
            return super().choose(pod, node, free, request)
        wanted = pod.shape.amounts.get("cpu", 0)
        cpu = np.array([node.free("cpu") + wanted], dtype=np.int64)
        models = (node.labels.get(self.args.model_label, ""),)
        column = np.array(free, dtype=np.int64)[:, None]
        tally = self.fragmentation.tally(cpu, column, models)
        index = int(self.fragmentation.scores(tally, cpu, column, wanted, request)[1][0])
        return (index,) if free[index] >= request.milli else ()

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        super().post_bind(state, pod, node_name)
        if not self.args.typical_pods:
            self._learn(pod)
        now = self.handle.clock.monotonic()
        if now >= self._measure_at:
            self._measure_at = now + _MEASURE_EVERY_SECONDS
            self._measure()

    def _measure(self) -> None:
        """Bring the metrics up to date."""
        nodes = self.handle.nodes()
        free, _ = self.columns().of(nodes)
        cpu = nodes.allocatable("cpu") - nodes.requested("cpu")
        use = self.fragmentation.use(cpu, free, self.columns().traits(nodes).models)
        self.idle.set(float(free.sum()))
        for cause, milli in use.unsatisfied.items():
            self.fragmented.labels(cause).set(milli)

    def _learn(self, pod: PodInfo) -> None:
        """Count a request; whenever the number of pods has doubled, their most frequent requests become the typical
        ones."""
        request = self.request(pod)
        self._seen[pod.shape.amounts.get("cpu", 0), request.milli, request.devices, ()] += 1
        if self._seen.total() >= self._learn_at:
            self._learn_at *= 2
            self.fragmentation = Fragmentation(typical_pods(self._seen.elements()))
            self._tallies = KeptTallies(self.handle.cluster.nodes, self._tally)
            self.version += 1


@lru_cache(maxsize=65536)
def _number(name: str) -> int:
    """The last number in a node's name, the largest key for one without."""
    found = _NUMBER.search(name)
    return int(found[1]) if found else _LARGEST_KEY


def _indexes(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split("-") if _WHOLE_NUMBER.fullmatch(word))
