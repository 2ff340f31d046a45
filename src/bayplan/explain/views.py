"""Where explanations look: a cluster that can be decided on without changing it.

`OfflineScheduler` is one. `LiveView` is the other: the cluster, plugins and remembered columns of a running scheduler,
with the two things taken away that would have effects, the writing half of preemption and the position of node
samples. Everything happens between two decisions of the scheduler, in its own thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.handle import Handle
from bayplan.framework.offline import NoApi, SilentRecorder, drop_task
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.runtime.call import call_plugin
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.times import Sampling
from bayplan.loop.decide import Decider, Decision, NodeSearch, decide

if TYPE_CHECKING:
    from bayplan.app.live import LiveScheduler

__all__ = ["ClusterView", "LiveView"]


class ClusterView(Protocol):
    cache: Cache

    @property
    def deciders(self) -> Mapping[str, Decider]: ...

    def framework(self, scheduler_name: str) -> Framework: ...

    def info(self, pod: Pod) -> PodInfo: ...

    def decide(self, pod: PodInfo, **changes: object) -> Decision: ...


class LiveView:
    """Made anew after a reload; see `is_current`."""

    def __init__(self, live: LiveScheduler) -> None:
        self.cache = live.cache
        self._live = live
        self._frameworks = {name: profile.framework for name, profile in live.profiles.items()}
        self.deciders: Mapping[str, Decider] = {
            name: _quiet_decider(profile.decider) for name, profile in live.profiles.items()
        }

    @property
    def is_current(self) -> bool:
        """Whether the scheduler still has the plugins that this was made from."""
        return self._frameworks == {name: profile.framework for name, profile in self._live.profiles.items()}

    def framework(self, scheduler_name: str) -> Framework:
        return self.deciders[scheduler_name].framework

    def info(self, pod: Pod) -> PodInfo:
        return self.cache.info(pod)

    def decide(self, pod: PodInfo, **changes: object) -> Decision:
        decider = self.deciders[pod.scheduler_name]
        return decide(replace(decider, **changes), pod)  # type: ignore[arg-type]


def _quiet_decider(decider: Decider) -> Decider:
    table = decider.framework.cluster.nodes
    return replace(
        decider,
        framework=_Quiet(decider.framework),
        search=NodeSearch(),
        percentage_of_nodes_to_score=100,
        extenders=(),
        # Every cycle is timed, and the scheduler's own sample is left alone.
        sampling=Sampling(draw=lambda: 0.0, monotonic=decider.monotonic, share=1.0) if decider.monotonic else None,
        # The scheduler's own tie-break moves on with each answer.
        tie_break=lambda ties: min(ties.tolist(), key=lambda row: table.at(row).name),
    )


class _Quiet(Framework):
    """A framework whose PostFilters compute a result without side effects. Shares all else with the original."""

    def __init__(self, original: Framework) -> None:
        self.__dict__.update(original.__dict__)
        self.plugins = dict(original.plugins)
        self._harmless: list[Plugin] = []
        for plugin in original.at(ExtensionPoint.POST_FILTER):
            twin = call_plugin(plugin, "dry_copy", original.complain, _quiet_handle(plugin))
            if isinstance(twin, Plugin):
                self.plugins[plugin.name] = twin
                self._harmless.append(twin)

    def at(self, point: ExtensionPoint) -> list[Plugin]:
        """What PostFilters of other plugins would do cannot be tried without doing it: they are left out."""
        return self._harmless if point is ExtensionPoint.POST_FILTER else super().at(point)


def _quiet_handle(plugin: Plugin) -> Handle:
    """One without a way to the API server and to the queue."""
    handle = replace(plugin.handle, api=NoApi(), recorder=SilentRecorder(), start_task=drop_task)
    return replace(handle, activate=lambda _: None, invalidate=lambda _: None)
