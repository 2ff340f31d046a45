"""NodeResourceTopologyMatch: keep pods off nodes whose NUMA cells are too fragmented for them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from bayplan.framework import (
    MAX_NODE_SCORE,
    SUCCESS,
    ActionType,
    ClusterEvent,
    CycleState,
    EventHint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PluginArgs,
    PodInfo,
    Remedy,
    Resource,
    StateKey,
    Status,
    Unschedulable,
    Verdicts,
)
from bayplan.framework.columns import BoolN, Int32N, Int64N
from bayplan.plugins.community.node_resource_topology_match.caches import (
    DiscardReservedCache,
    OverReserveCache,
    PassthroughCache,
)
from bayplan.plugins.community.node_resource_topology_match.columns import CellView, NumaColumns, mean_scores, names_of
from bayplan.plugins.community.node_resource_topology_match.eviction import (
    EXCEEDS,
    Victims,
    exclusive_containers,
    held_by_cell,
    released,
)
from bayplan.plugins.community.node_resource_topology_match.fingerprint import fingerprint
from bayplan.plugins.community.node_resource_topology_match.fit import alignment_failure, strategy_score
from bayplan.plugins.community.node_resource_topology_match.least_numa import least_numa_score
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology
from bayplan.plugins.community.node_resource_topology_match.placement import ContainerName, placement
from bayplan.plugins.community.node_resource_topology_match.requests import NumaRequests, has_exclusive, requests_of
from bayplan.plugins.community.node_resource_topology_match.topology import NumaTopology

__all__ = ["NodeResourceTopologyMatch"]

_STRATEGIES = ("MostAllocated", "BalancedAllocation", "LeastAllocated", "LeastNUMANodes")
_FAILURES = (
    "invalid node topology data",
    "cannot align pod",
    "cannot align init container",
    "cannot align sidecar container",
    "cannot align container",
)
_STATUSES = (SUCCESS, *(Unschedulable(reason) for reason in _FAILURES))
_STALE = 1
_NOT_POSSIBLE = Unschedulable(f"eviction simulation in NRT is not possible:{EXCEEDS}")
VICTIMS = StateKey[Victims]("stateVictimPods")
_BY_REASON = {reason: _STATUSES[number + 1] for number, reason in enumerate(_FAILURES)}
_NUMBERS = {reason: number + 1 for number, reason in enumerate(_FAILURES)}
_FEW_NODES = 8
"""Up to this number, nodes are faster one at a time."""
_EXCLUSIVE_METHOD = "with-exclusive-resources"

_PROFILES: set[str] = set()
"""Names of the profiles of this process that run the plugin; pods of other schedulers are foreign."""


class ResourceWeight(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A resource and its share of the score; weights below 1 count as 1."""

    name: str
    weight: int = 1


def _default_resources() -> list[ResourceWeight]:
    return [ResourceWeight("cpu", 1), ResourceWeight("memory", 1)]


class ScoringStrategy(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    type: str = "LeastAllocated"
    resources: list[ResourceWeight] = msgspec.field(default_factory=_default_resources)


class CacheArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """How the over-reserving cache decides that a node's object is up to date."""

    foreign_pods_detect: str = "All"
    resync_method: str = "Autodetect"
    informer_mode: str = "Dedicated"
    resync_scope: str = "All"


_CACHE_CHOICES = {
    "foreignPodsDetect": ("foreign_pods_detect", ("None", "All", "OnlyExclusiveResources")),
    "resyncMethod": ("resync_method", ("Autodetect", "All", "OnlyExclusiveResources")),
    "informerMode": ("informer_mode", ("Shared", "Dedicated")),
    "resyncScope": ("resync_scope", ("All", "OnlyResources")),
}


class _Placement(NamedTuple):
    believed: NumaTopology
    """The topology that it was decoded from."""
    where: Mapping[ContainerName, int]
    pods: Mapping[str, PodInfo]
    """The pods that it covers, by uid."""


class NodeResourceTopologyMatch(Plugin):
    """Filter and score nodes by the free amounts of their NUMA cells, from NodeResourceTopology objects.

    *What it does*: predicts what a kubelet with the policy `single-numa-node` would do with the pod, by container or
    for the pod as a whole, as the kubelet is configured. Nodes without an object, and other policies, pass.
    *Rejects when*: no cell has room for the pod, a container, an init container or a sidecar; what is known of the
    node is not reliable at present.
    *Scores by*: MostAllocated, LeastAllocated, BalancedAllocation (the worst cell that has a score) or LeastNUMANodes
    (the fewer and nearer cells, the better). Pods that are not Guaranteed score 100 everywhere.
    *Retries on*: pods deleted, nodes added or changed in size, changes of NodeResourceTopology objects.
    *Arguments*: scoringStrategy (type, resources), cacheResyncPeriodSeconds, discardReservedNodes, cache
    (foreignPodsDetect, resyncMethod, informerMode, resyncScope), preemptionMode (`Enabled` frees what victims hold on
    their cells in dry runs, where cacheResyncPeriodSeconds is set and the object states the cells of containers).
    *Differs from the original*: cells may have any number and need not be listed in order; a single requested resource
    is balanced (the original's variance of one number is none); objects that are created later are used; what was
    assumed for a pod that the node's agent has not seen yet stays when the node is updated, and is freed when a dry run
    removes that pod; changed settings of a node apply at once, not at the next period.
    """

    remedies = (Remedy.REQUESTS,)
    watches = (NodeResourceTopology,)
    reasons = (*_FAILURES, *_NOT_POSSIBLE.reasons)

    class Args(PluginArgs):
        scoring_strategy: ScoringStrategy = msgspec.field(default_factory=ScoringStrategy)
        cache_resync_period_seconds: int = 0
        discard_reserved_nodes: bool = False
        cache: CacheArgs = msgspec.field(default_factory=CacheArgs)
        preemption_mode: str = "Disabled"

        def validate(self) -> list[str]:
            problems = []
            if self.scoring_strategy.type not in _STRATEGIES:
                problems.append(f"scoringStrategy.type: invalid ScoringStrategyType `{self.scoring_strategy.type}`")
            if self.cache_resync_period_seconds < 0:
                problems.append("cacheResyncPeriodSeconds: must not be negative")
            for name, (attribute, choices) in _CACHE_CHOICES.items():
                value = getattr(self.cache, attribute)
                if value not in choices:
                    problems.append(f"cache.{name}: must be one of {', '.join(choices)}, found `{value}`")
            if self.preemption_mode not in ("Disabled", "Enabled"):
                problems.append(f"preemptionMode: invalid PreemptionMode `{self.preemption_mode}`")
            return problems

    def setup(self) -> None:
        strategy = self.args.scoring_strategy
        self._strategy: str = strategy.type
        self._weights = {each.name: max(each.weight, 1) for each in strategy.resources or _default_resources()}
        self._columns = NumaColumns()
        self._node_position = self._row_position = -1
        self._foreign_seen: dict[str, set[str]] = {}
        _PROFILES.add(self.handle.profile_name)
        self._cache = self._make_cache()
        self._evicts = self.args.preemption_mode == "Enabled" and isinstance(self._cache, OverReserveCache)
        self._placements: dict[str, _Placement] = {}
        """By node, decoded from its object at first use."""
        lister = self.handle.resources(NodeResourceTopology)
        for topology in lister.list():
            self._cache.put(topology.name, NumaTopology.of(topology))
        lister.on_change(self._topology_changed)

    def _make_cache(self) -> PassthroughCache:
        if self.args.discard_reserved_nodes:
            return DiscardReservedCache()
        if self.args.cache_resync_period_seconds:
            self._schedule_resync()
            return OverReserveCache(follows_settings=self.args.cache.resync_scope == "All")
        return PassthroughCache()

    def _topology_changed(self, old: NodeResourceTopology | None, new: NodeResourceTopology | None) -> None:
        if new is not None:
            self._cache.put(new.name, NumaTopology.of(new))
        elif old is not None:
            self._cache.put(old.name, None)
            self._placements.pop(old.name, None)

    # Filter

    def is_relevant(self, pod: PodInfo) -> bool:
        return not requests_of(pod).is_indifferent

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        asked = requests_of(pod)
        ids = np.zeros(len(nodes), dtype=np.int32)
        if asked.is_indifferent:
            return Verdicts.of(ids, _STATUSES)
        columns = self._refreshed()
        if self._victims(state):
            return self._filter_one_by_one(state, pod, nodes)
        rows, valid = nodes.rows, nodes.valid
        is_fresh = columns.is_fresh[rows]
        ids[~is_fresh & valid] = _STALE
        concerned = columns.is_single[rows] & is_fresh & valid
        by_pod = columns.is_pod_scope[rows]
        self._filter_by_pod(columns.view(nodes, concerned & by_pod, names_of(asked)), asked, ids)
        self._filter_by_container(columns.view(nodes, concerned & ~by_pod, names_of(asked)), asked, ids)
        if isinstance(self._cache, OverReserveCache) and (ids > _STALE).any():
            self._cache.mark_over_reserved(nodes.info(p).name for p in np.flatnonzero(ids > _STALE).tolist())
        return Verdicts.of(ids, _STATUSES)

    def _filter_by_pod(self, view: CellView, asked: NumaRequests, ids: Int32N) -> None:
        if len(view.positions):
            fits, _ = view.fit(asked.whole, is_guaranteed=asked.is_guaranteed)
            ids[view.positions[~fits]] = _NUMBERS["cannot align pod"]

    def _filter_by_container(self, view: CellView, asked: NumaRequests, ids: Int32N) -> None:
        if not len(view.positions):
            return
        left: BoolN = np.ones(len(view.positions), dtype=np.bool_)
        for container in asked.containers:
            fits, chosen = view.fit(container.requests, is_guaranteed=asked.is_guaranteed)
            ids[view.positions[left & ~fits]] = _NUMBERS[container.failure]
            left &= fits
            if not container.is_init:
                view.take(container.requests, chosen, left, is_guaranteed=asked.is_guaranteed)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        asked = requests_of(pod)
        if asked.is_indifferent:
            return None
        self._refreshed()
        topology, is_fresh = self._cache.get(node.name)
        if not is_fresh:
            return _STATUSES[_STALE]
        if topology is None or not topology.is_single_numa:
            return None
        if self._victims(state):
            return self._filter_without_victims(state, asked, node)
        failure = alignment_failure(topology, asked, node)
        if failure:
            self._cache.mark_over_reserved([node.name])
            return _BY_REASON[failure]
        return None

    # Preemption: dry runs without some pods

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> None:
        if self._evicts:
            state.put(VICTIMS, Victims())

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        if VICTIMS in state:
            state[VICTIMS].pods[removed.uid] = removed

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        if VICTIMS in state:
            state[VICTIMS].pods.pop(added.uid, None)

    @staticmethod
    def _victims(state: CycleState) -> dict[str, PodInfo]:
        gone = state.get(VICTIMS)
        return gone.pods if gone is not None else {}

    def _filter_one_by_one(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        statuses = [self.filter(state, pod, info) if info is not None else None for info in nodes.infos()]
        table = [SUCCESS, *dict.fromkeys(status for status in statuses if status is not None)]
        ids = np.array([0 if status is None else table.index(status) for status in statuses], dtype=np.int32)
        return Verdicts.of(ids, tuple(table))

    def _filter_without_victims(self, state: CycleState, asked: NumaRequests, node: NodeInfo) -> Status | None:
        """A node that fails here is not marked as over-reserved: the pod was only tried."""
        assert isinstance(self._cache, OverReserveCache)
        victims = {uid: pod for uid, pod in self._victims(state).items() if pod.node_name == node.name}
        topology, where = self._cache.get_without(node.name, victims), self._placement(node.name)
        assert topology is not None
        if where is not None:
            known = released(topology, victims.values(), where, self._listed(node.name))
            if known is None:
                return _NOT_POSSIBLE
            topology = known
        failure = alignment_failure(topology, asked, node)
        return _BY_REASON[failure] if failure else None

    def _placement(self, node: str) -> Mapping[ContainerName, int] | None:
        """The cells of the node's containers, for the pods that were there when its object was written."""
        assert isinstance(self._cache, OverReserveCache)
        believed, info = self._cache.believed(node), self.handle.cluster.node(node)
        if believed is None or info is None or not believed.placement.metadata:
            return None
        kept = self._placements.get(node)
        if kept is not None and kept.believed is believed:
            return kept.where
        listed = self._listed(node)
        pods = {uid: pod for uid, pod in info.pods.items() if not self._cache.is_assumed(node, uid)}
        where = placement(
            believed.placement, [name for pod in pods.values() for name in exclusive_containers(pod, listed)]
        )
        if where is not None:
            self._placements[node] = _Placement(believed, where, pods)
        return where

    def _note_gone(self, node: NodeInfo) -> None:
        """Free what removed pods of the placement held, so that no further victim is needed for it."""
        kept = self._placements.get(node.name)
        if kept is None or not isinstance(self._cache, OverReserveCache):
            return
        if kept.believed is not self._cache.believed(node.name):
            del self._placements[node.name]
            return
        for uid in kept.pods.keys() - node.pods.keys():
            held = held_by_cell(kept.pods[uid], kept.where, self._listed(node.name))
            self._cache.give_back(node.name, uid, held)

    # Score

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        asked = requests_of(pod)
        if not asked.is_guaranteed:
            return np.full(len(nodes), MAX_NODE_SCORE, dtype=np.int64)
        if self._strategy == "LeastNUMANodes":
            return self._least_numa_scores(asked, nodes)
        columns = self._refreshed()
        rows = nodes.rows
        concerned = columns.is_single[rows] & columns.is_fresh[rows] & nodes.valid
        by_pod = columns.is_pod_scope[rows]
        scores = np.zeros(len(nodes), dtype=np.int64)
        view = columns.view(nodes, concerned & by_pod, names_of(asked))
        scores[view.positions] = view.strategy_scores(asked.whole, self._strategy, self._weights)
        view = columns.view(nodes, concerned & ~by_pod, names_of(asked))
        parts = [view.strategy_scores(each.requests, self._strategy, self._weights) for each in asked.containers]
        scores[view.positions] = mean_scores(parts)
        return scores

    def _least_numa_scores(self, asked: NumaRequests, nodes: NodeColumns) -> Int64N:
        """LeastNUMANodes for any policy: nodes of one layout together, the few of a rare layout one at a time."""
        columns, rows = self._refreshed(), nodes.rows
        scores = np.zeros(len(nodes), dtype=np.int64)
        known = nodes.valid & columns.is_fresh[rows] & (columns.layout[rows] != 0)
        by_pod, parts = columns.is_pod_scope[rows], [each.requests for each in asked.containers]
        for number in np.unique(columns.layout[rows[known]]).tolist():
            layout, here = columns.layouts.numbered(number), known & (columns.layout[rows] == number)
            if not layout.is_small or np.count_nonzero(here) < _FEW_NODES:
                for place in np.flatnonzero(here).tolist():
                    topology, _ = self._cache.get(nodes.info(place).name)
                    scores[place] = least_numa_score(topology, asked) if topology is not None else 0
                continue
            for where, requests in ((here & by_pod, [asked.whole]), (here & ~by_pod, parts)):
                view = columns.view(nodes, where, names_of(asked))
                most_cells = columns.most_cells[rows[view.positions]]
                scores[view.positions] = view.least_numa_scores(layout, requests, most_cells)
        return scores

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        asked = requests_of(pod)
        if not asked.is_guaranteed:
            return MAX_NODE_SCORE
        self._refreshed()
        topology, is_fresh = self._cache.get(node.name)
        if topology is None or not is_fresh:
            return 0
        if self._strategy == "LeastNUMANodes":
            return least_numa_score(topology, asked)
        return strategy_score(topology, asked, self._strategy, self._weights) if topology.is_single_numa else 0

    # Reserve and PostBind: what the object does not contain yet

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._cache.reserve(node_name, pod.uid, requests_of(pod).whole)

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._cache.unreserve(node_name, pod.uid)

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._cache.post_bind(node_name, pod.uid)

    # Updates

    def _refreshed(self) -> NumaColumns:
        """The columns, with changes of nodes, objects and reservations applied."""
        table = self.handle.cluster.nodes
        self._look_for_foreign_pods()
        changed = self._cache.changed
        if self._node_position != table.node_changes.position:
            rows = table.node_changes.since(self._node_position)
            touched = range(table.size) if rows is None or self._node_position < 0 else np.unique(rows).tolist()
            changed.update(info.name for row in touched if (info := table.infos[row]) is not None)
            self._node_position = table.node_changes.position
            self._columns.reserve(table.capacity)
        for name in changed:
            row = table.row_of.get(name)
            if row is not None:
                topology, is_fresh = self._cache.get(name)
                self._columns.write(row, topology, is_fresh=is_fresh)
        changed.clear()
        return self._columns

    def _look_for_foreign_pods(self) -> None:
        """Pods of other schedulers make the known topology unreliable until the node's agent has reported them."""
        detect, table = self.args.cache.foreign_pods_detect, self.handle.cluster.nodes
        if (detect == "None" and not self._evicts) or not isinstance(self._cache, OverReserveCache):
            return
        if self._row_position == table.row_changes.position:
            return
        rows = table.row_changes.since(self._row_position) if self._row_position >= 0 else None
        self._row_position = table.row_changes.position
        for row in range(table.size) if rows is None else np.unique(rows).tolist():
            info = table.infos[row]
            if info is not None and detect != "None":
                self._note_foreign(info, only_exclusive=detect == "OnlyExclusiveResources")
            if info is not None and self._evicts:
                self._note_gone(info)

    def _note_foreign(self, node: NodeInfo, *, only_exclusive: bool) -> None:
        listed = self._listed(node.name)
        foreign = {
            uid
            for uid, pod in node.pods.items()
            if pod.scheduler_name not in _PROFILES
            and self._is_seen(pod)
            and (not only_exclusive or has_exclusive(pod, listed))
        }
        if foreign - self._foreign_seen.get(node.name, set()):
            self._cache.mark_foreign(node.name)
        if foreign:
            self._foreign_seen[node.name] = foreign
        else:
            self._foreign_seen.pop(node.name, None)

    def _listed(self, node: str) -> frozenset[str]:
        topology = self._cache.topologies.get(node)
        return frozenset(name for cell in topology.cells for name in cell.available) if topology else frozenset()

    def _is_seen(self, pod: PodInfo) -> bool:
        """Whether the pod has progressed far enough for an agent on its node to know of it."""
        phase = pod.pod.status.phase
        return phase == "Running" if self.args.cache.informer_mode == "Shared" else phase != "Pending"

    # Resync

    def _schedule_resync(self) -> None:
        mine = weakref.ref(self)

        def resync() -> None:
            plugin = mine()
            if plugin is not None:
                plugin._resync()
                plugin._schedule_resync()

        self.handle.call_later(float(self.args.cache_resync_period_seconds), resync)

    def _resync(self) -> None:
        if isinstance(self._cache, OverReserveCache):
            self._look_for_foreign_pods()
            if self._cache.resync(self._pods_on):
                self.version += 1

    def _pods_on(self, node: str, topology: NumaTopology) -> tuple[str, set[str]]:
        info = self.handle.cluster.node(node)
        method = self.args.cache.resync_method
        is_exclusive = topology.fingerprint_method == _EXCLUSIVE_METHOD if method == "Autodetect" else method != "All"
        listed = self._listed(node)
        pods = [
            pod
            for pod in (info.pods.values() if info is not None else ())
            if self._is_seen(pod) and pod.node_name and (not is_exclusive or has_exclusive(pod, listed))
        ]
        return fingerprint((pod.namespace, pod.name) for pod in pods), {pod.uid for pod in pods}

    def events_to_register(self) -> list[EventHint]:
        node_changed = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            EventHint(ClusterEvent(Resource.POD, ActionType.DELETE)),
            EventHint(ClusterEvent(Resource.NODE, node_changed)),
            EventHint(NodeResourceTopology.changes(ActionType.ADD | ActionType.UPDATE)),
        ]
