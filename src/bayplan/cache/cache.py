"""The cache: turns object changes into rows, and remembers which pods are only assumed to be where they are.

A pod is known by its uid and is in one of these states:

    (unknown) --assume--> assumed --forget--> (unknown)
        |                    |
        +------add_pod-------+--add_pod--> confirmed --remove_pod--> (unknown)

The state of the API server wins: a confirmed pod on another node than assumed moves there. Pods may arrive before their
node and may outlive it; they are then kept as orphans and count for nothing until the node exists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.resources import NATIVE
from bayplan.cluster.shapes import PodShape
from bayplan.cluster.state import ClusterState

__all__ = ["Cache"]

_INT64_MAX = 2**63 - 1
_FEW_RESOURCES = 16
"""So many unused columns are not worth the work of freeing them."""


class Cache:
    """Complete after construction; every method leaves the cluster consistent."""

    def __init__(self, cluster: ClusterState | None = None) -> None:
        self.cluster = ClusterState() if cluster is None else cluster
        self._pods: dict[str, PodInfo] = {}
        self._assumed: set[str] = set()
        self._orphans: dict[str, dict[str, PodInfo]] = {}

    def __len__(self) -> int:
        """How many pods are assigned, assumed ones included."""
        return len(self._pods)

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    def pods(self) -> Iterator[PodInfo]:
        return iter(self._pods.values())

    def pod(self, uid: str) -> PodInfo | None:
        return self._pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def assumed(self) -> frozenset[str]:
        """uids of the pods that the API server has not confirmed."""
        return frozenset(self._assumed)

    def orphans(self) -> dict[str, list[PodInfo]]:
        """By node name, the pods that wait for a node that is not there."""
        return {name: list(pods.values()) for name, pods in self._orphans.items()}

    def info(self, pod: Pod) -> PodInfo:
        """The pod with its shape, as the queue and plugins handle it."""
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))

    # Nodes

    def add_node(self, node: Node) -> NodeInfo:
        """Take over a node, new or changed."""
        table = self.cluster.nodes
        new = self.cluster.resources.new_in(node.status.allocatable)
        if new:
            self._place_resources(new)
        info = table.info(node.name)
        if info is None:
            info = table.add(node)
            self._follow_layout()
            self._adopt(info)
        else:
            table.update(info, node)
            self._free_resources()
        self.cluster.images.set_row(info.row, node)
        self.cluster.generation += 1
        return info

    def remove_node(self, name: str) -> None:
        info = self.cluster.nodes.info(name)
        if info is None:
            return
        leftover = dict(info.pods)
        for pod in leftover.values():
            self._count_out(pod, info)
        if leftover:
            self._orphans[name] = leftover
        self.cluster.images.set_row(info.row, None)
        self.cluster.nodes.remove(info)
        self._free_resources()
        self.cluster.generation += 1

    def _place_resources(self, names: Collection[str]) -> None:
        """Give places to resources that a node is the first to offer, also in what is known of pods that ask for
        them."""
        asking = self._take_out_all(names)
        self.cluster.resources.add(names)
        if self.cluster.shapes.place_again(names):
            # What plugins said about these pods was about requests without a place.
            self.cluster.nodes.layout += 1
        self._put_in_all(asking)

    def _free_resources(self) -> None:
        """Free the columns of resources that no node offers any more, once they are as many as the others."""
        table, resources = self.cluster.nodes, self.cluster.resources
        if table.unoffered() <= max(_FEW_RESOURCES, len(resources) // 2):
            return
        names = frozenset(resources.names[len(NATIVE) :])
        asking = self._take_out_all(names)
        table.place_again()
        self.cluster.shapes.place_again(names)
        self._put_in_all(asking)

    def _take_out_all(self, names: Collection[str]) -> list[PodInfo]:
        """Count the pods that name one of these resources nowhere, for as long as places change."""
        asking = [pod for pod in self._pods.values() if pod.shape.names_any(names)]
        for pod in asking:
            self._take_out(pod)
        return asking

    def _put_in_all(self, pods: Iterable[PodInfo]) -> None:
        for pod in pods:
            self._put_in(pod)

    def _adopt(self, node: NodeInfo) -> None:
        for pod in self._orphans.pop(node.name, {}).values():
            self._count_in(pod, node)

    # Assigned pods of the API server

    def add_pod(self, pod: Pod | PodInfo) -> PodInfo:
        """Take over an assigned pod, new, changed, or confirming an assumption."""
        info = pod if isinstance(pod, PodInfo) else self.info(pod)
        _share_with_shape(info.pod, info.shape)
        before = self._pods.get(info.uid)
        self._assumed.discard(info.uid)
        if before is not None and before.node_name == info.node_name and _counts_alike(before, info):
            self._replace(before, info)
        elif before is not None and before.node_name == info.node_name and _differs_in_labels_only(before, info):
            self._relabel(before, info)
        else:
            if before is not None:
                self._take_out(before)
            self._put_in(info)
        return info

    def note_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Note any pod, waiting or assigned, of any scheduler: groups are counted over all of them."""
        labelled = self.cluster.labelled_pods
        if not labelled.is_used:
            return
        if old is not None and (new is None or old.uid != new.uid):
            labelled.drop(old.uid or old.key)
        if new is not None:
            labelled.put(self.info(new))

    def fill_groups(self, pods: Iterable[Pod]) -> None:
        """Count all pods, after a plugin named a label that groups them."""
        labelled = self.cluster.labelled_pods
        if labelled.needs_filling:
            labelled.fill(map(self.info, pods), self._pods.values())

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Remove a deleted pod; the pod as it was known."""
        info = self._pods.get(uid)
        if info is not None:
            self._assumed.discard(uid)
            self._take_out(info)
        return info

    # Assumed pods, which the API server does not know to be assigned yet

    def assume(self, pod: PodInfo, node_name: str) -> PodInfo:
        """Count the pod on the node from now on."""
        if pod.uid in self._pods:
            raise ValueError(f"pod `{pod.key}` is already on node `{self._pods[pod.uid].node_name}`")
        info = pod.placed(node_name)
        self._put_in(info)
        self._assumed.add(info.uid)
        return info

    def forget(self, uid: str) -> PodInfo | None:
        """Undo an assumption; a pod that was confirmed in the meantime stays."""
        if uid not in self._assumed:
            return None
        self._assumed.discard(uid)
        info = self._pods[uid]
        self._take_out(info)
        return info

    # Everything else

    def put_object(self, item: KubeObject) -> None:
        self.cluster.objects.put(item)
        self.cluster.generation += 1

    def remove_object(self, item: KubeObject) -> None:
        self.cluster.objects.remove(item)
        self.cluster.generation += 1

    # The one place where counts move

    def _put_in(self, pod: PodInfo) -> None:
        self._pods[pod.uid] = pod
        self.cluster.namespace_usage.add(pod)
        if self.cluster.labelled_pods.is_used:
            self.cluster.labelled_pods.place(pod)
        node = self.cluster.nodes.info(pod.node_name)
        if node is None:
            self._orphans.setdefault(pod.node_name, {})[pod.uid] = pod
        else:
            self._count_in(pod, node)
        self.cluster.generation += 1

    def _take_out(self, pod: PodInfo) -> None:
        del self._pods[pod.uid]
        self.cluster.namespace_usage.remove(pod)
        if self.cluster.labelled_pods.is_used:
            self.cluster.labelled_pods.displace(pod)
        node = self.cluster.nodes.info(pod.node_name)
        if node is None:
            orphans = self._orphans[pod.node_name]
            del orphans[pod.uid]
            if not orphans:
                del self._orphans[pod.node_name]
        else:
            self._count_out(pod, node)
        self.cluster.generation += 1

    def _replace(self, before: PodInfo, after: PodInfo) -> None:
        """A new version of a pod that counts as before: columns of what is used stay valid."""
        self._pods[after.uid] = after
        if self.cluster.labelled_pods.is_used:
            self.cluster.labelled_pods.place(after)
        node = self.cluster.nodes.info(after.node_name)
        if node is None:
            self._orphans[after.node_name][after.uid] = after
            return
        node.pods[after.uid] = after
        # Preemption reads the start, and plugins that depend on a node's pods may read their annotations.
        if before.start_time != after.start_time or before.annotations != after.annotations:
            self.cluster.nodes.row_changes.append(node.row)

    def _relabel(self, before: PodInfo, after: PodInfo) -> None:
        """Replace a pod whose labels alone changed, as binding does to every pod."""
        if self.cluster.labelled_pods.is_used:
            self.cluster.labelled_pods.displace(before)
        self._replace(before, after)
        node = self.cluster.nodes.info(after.node_name)
        if node is None:
            return
        self.cluster.pods.relabel(before, after, node.row)
        # The use of the node stays as it is, so most columns stay valid.
        self.cluster.nodes.row_changes.append(node.row)
        self.cluster.generation += 1

    def _count_in(self, pod: PodInfo, node: NodeInfo) -> None:
        cluster, shape, row = self.cluster, pod.shape, node.row
        node.add_pod(pod)
        self._write_counts(pod, node, 1)
        cluster.pods.add(pod, row)
        if shape.readable_terms.has_any:
            cluster.terms.add(pod, row)
        for port in shape.host_ports:
            cluster.port_rows.setdefault((port.protocol or "TCP", port.host_port), set()).add(row)
        for claim in shape.claim_names:
            key = f"{pod.namespace}/{claim}"
            cluster.claims_in_use[key] = cluster.claims_in_use.get(key, 0) + 1

    def _count_out(self, pod: PodInfo, node: NodeInfo) -> None:
        cluster, shape, row = self.cluster, pod.shape, node.row
        node.remove_pod(pod)
        self._write_counts(pod, node, -1)
        cluster.pods.remove(pod, row)
        if shape.readable_terms.has_any:
            cluster.terms.remove(pod, row)
        for port in shape.host_ports:
            self._release_port((port.protocol or "TCP", port.host_port), node)
        for claim in shape.claim_names:
            key = f"{pod.namespace}/{claim}"
            left = cluster.claims_in_use[key] - 1
            if left:
                cluster.claims_in_use[key] = left
            else:
                del cluster.claims_in_use[key]

    def _release_port(self, key: tuple[str, int], node: NodeInfo) -> None:
        rows = self.cluster.port_rows.get(key)
        if rows is not None and key not in node.ports.keys():  # noqa: SIM118 - HostPorts is not a mapping
            rows.discard(node.row)
            if not rows:
                del self.cluster.port_rows[key]

    def _write_counts(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        table, row, usage = self.cluster.nodes, node.row, pod.shape.usage
        if len(table.resources) > table.allocatable.shape[0]:
            table.ensure_resources()
        try:
            for place, _ in usage.vector:
                table.requested[place, row] = node.requested[place]
            table.nonzero[0, row] = node.nonzero_cpu
            table.nonzero[1, row] = node.nonzero_memory
        except OverflowError:
            _write_clamped(table, node)
        table.pod_count[row] += sign
        table.note_use(row)

    def _follow_layout(self) -> None:
        pods, capacity = self.cluster.pods, self.cluster.nodes.capacity
        if pods.capacity != capacity:
            pods.grow(capacity)


def _write_clamped(table: NodeTable, node: NodeInfo) -> None:
    """Sums beyond 64 bits, which a handful of pods that request exbibytes can reach, count as the maximum."""
    requested = [min(amount, _INT64_MAX) for amount in node.requested]
    table.requested[: len(requested), node.row] = requested
    table.nonzero[:, node.row] = (min(node.nonzero_cpu, _INT64_MAX), min(node.nonzero_memory, _INT64_MAX))


def _counts_alike(before: PodInfo, after: PodInfo) -> bool:
    return before.shape is after.shape and before.is_terminating == after.is_terminating


def _differs_in_labels_only(before: PodInfo, after: PodInfo) -> bool:
    """Whether labels are the only difference: then requests and terms about other pods are the same as before."""
    if before.is_terminating != after.is_terminating:
        return False
    last: _LastCompared = after.shape.note(_LastCompared, _LastCompared)
    if last.number != before.shape.number:
        last.number = before.shape.number
        last.is_alike = _is_alike_but_for_labels(before.shape, after.shape)
    return last.is_alike


def _is_alike_but_for_labels(one: PodShape, other: PodShape) -> bool:
    if one.spec is other.spec:
        return one.usage == other.usage and one.counted == other.counted
    is_alike = one.usage == other.usage and one.counted == other.counted
    return is_alike and one.namespace == other.namespace and one.spec == other.spec


class _LastCompared:
    """A note on a shape: the shape that its pods had before, which is nearly always the same one."""

    __slots__ = ("is_alike", "number")

    def __init__(self) -> None:
        self.number = 0
        self.is_alike = False


def _share_with_shape(pod: Pod, shape: PodShape) -> None:
    """Replace the pod's own copy of its spec by the shape's: a hundred thousand pods share a few thousand specs."""
    if pod.spec.containers is not shape.spec.containers:
        pod.spec = msgspec.structs.replace(
            shape.spec, node_name=pod.spec.node_name, resource_claims=pod.spec.resource_claims
        )
        pod.metadata.labels = shape.labels
