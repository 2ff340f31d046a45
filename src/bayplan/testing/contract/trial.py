"""One plugin, alone in its profile, in one generated cluster: what the promises of the contract are tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from random import Random
from typing import Any

import msgspec
import numpy as np

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import defines
from bayplan.framework.status import SUCCESS, Status
from bayplan.testing.generate import Cluster, random_pod
from bayplan.testing.harness import Harness
from bayplan.testing.outcome import Outcome

__all__ = ["PluginTrial", "answers_in"]


class PluginTrial:
    """The plugin and a cluster."""

    def __init__(
        self,
        plugin: type[Plugin],
        args: Mapping[str, Any],
        cluster: Cluster,
        *,
        nodes: tuple[Node, ...],
        pods: tuple[Pod, ...],
        objects: tuple[KubeObject, ...],
        seed: int,
    ) -> None:
        self._class, self._args, self._seed = plugin, args, seed
        self._nodes = [*cluster.nodes, *nodes]
        self._running = cluster.pods
        self._objects = [*cluster.objects, *objects]
        self._own_objects = objects
        self._asked = pods

    def harness(
        self, *, remember: bool = True, with_defaults: bool = False, change: Callable[[Pod], Pod] = lambda pod: pod
    ) -> Harness:
        """A new scheduler over a new copy of the cluster, in which each running pod may be changed."""
        return Harness(
            nodes=self.copied_nodes(),
            pods=[change(each) for each in self.running_pods()],
            objects=[_copied(each) for each in self._objects],
            plugins=[self._class],
            args={self._class.name: self._args} if self._args else None,
            default_plugins=with_defaults,
            remember=remember,
        )

    def copied_nodes(self) -> list[Node]:
        return [_copied(each) for each in self._nodes]

    def running_pods(self) -> list[Pod]:
        return [_copied(each) for each in self._running]

    @property
    def own_objects(self) -> tuple[KubeObject, ...]:
        """What the author added to the generated cluster."""
        return self._own_objects

    @cached_property
    def one(self) -> Harness:
        """The scheduler that questions are put to, when one is enough."""
        return self.harness()

    @property
    def plugin(self) -> Any:
        return self.one.plugin(self._class.name)

    def has(self, *methods: str) -> bool:
        return any(defines(self._class, method) for method in methods)

    def pods(self) -> list[Pod]:
        """Pods to ask about, the same each time."""
        rng = Random(self._seed)
        return [*(_copied(each) for each in self._asked), *(random_pod(rng, f"new{number}") for number in range(4))]

    @property
    def nodes(self) -> NodeColumns:
        return self.one.cluster.columns()

    def prepared(self, info: PodInfo) -> CycleState | None:
        """A state in which Filter may be called; None when PreFilter says that it will not be."""
        state = CycleState()
        if not self.plugin.is_relevant(info):
            return None
        if self.has("pre_filter"):
            answer = self.plugin.pre_filter(state, info, self.nodes)
            if isinstance(answer, Status) and not answer.is_success:
                return None
        return state

    def scored(self, info: PodInfo) -> CycleState | None:
        """A state in which Score may be called; None when PreScore says that it will not be."""
        state = self.prepared(info)
        if state is None or not self.has("pre_score"):
            return state
        rows = self.nodes.rows[self.nodes.valid]
        answer = self.plugin.pre_score(state, info, NodeColumns(self.nodes.table, rows))
        return None if isinstance(answer, Status) and not answer.is_success else state

    def raw_scores(self, info: PodInfo) -> dict[str, int]:
        """By node; empty when the plugin is not called."""
        state, nodes = self.scored(info), self.nodes
        if state is None or not self.has("score", "score_nodes"):
            return {}
        if not self.has("score_nodes"):
            return {node.name: self.plugin.score(state, info, node) for node in nodes}
        scores = self.plugin.score_nodes(state, info, nodes)
        return {nodes.info(p).name: int(scores[p]) for p in np.flatnonzero(nodes.valid).tolist()}

    def verdicts(self, state: CycleState, info: PodInfo) -> dict[str, Status]:
        """By node."""
        nodes = self.nodes
        if not self.has("filter_nodes"):
            return {node.name: self.plugin.filter(state, info, node) or SUCCESS for node in nodes}
        verdicts = self.plugin.filter_nodes(state, info, nodes)
        ids = verdicts.ids.tolist()
        valid = np.flatnonzero(nodes.valid).tolist()
        return {nodes.info(p).name: verdicts.status(ids[p]) if ids[p] else SUCCESS for p in valid}


def answers_in(outcome: Outcome) -> tuple[Any, ...]:
    """What the plugin answered, in a form that can be compared."""
    return outcome.rejections, outcome.scores, outcome.totals, outcome.failure is None


def _copied(item: Any) -> Any:
    """A deep copy, because the cache lets pods of one template share their parts."""
    return msgspec.convert(msgspec.to_builtins(item), type(item))
