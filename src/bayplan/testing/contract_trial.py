"""One plugin, alone in its profile, in one made-up cluster: what the promises of the contract are tried on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from random import Random
from typing import Any

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import defines
from bayplan.framework.status import Status
from bayplan.testing.generate import Cluster, random_pod
from bayplan.testing.harness import Harness

__all__ = ["PluginTrial"]


class PluginTrial:
    """The plugin and a cluster; `problem` words what goes wrong."""

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
        self._asked = pods

    def harness(self, *, remember: bool = True) -> Harness:
        """A new scheduler over a new copy of the cluster."""
        return Harness(
            nodes=[_copied(each) for each in self._nodes],
            pods=[_copied(each) for each in self._running],
            objects=[_copied(each) for each in self._objects],
            plugins=[self._class],
            args={self._class.name: self._args} if self._args else None,
            default_plugins=False,
            remember=remember,
        )

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


def _copied(item: Any) -> Any:
    """A deep copy, because the cache lets pods of one template share their parts."""
    return msgspec.convert(msgspec.to_builtins(item), type(item))
