"""A scheduler without a cluster: objects in, decisions out. Behind `bayplan evaluate`, tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.app.frameworks import Ports, build_framework
from bayplan.cache import Cache
from bayplan.cluster.nominated import Nominator
from bayplan.cluster.pod_info import PodInfo
from bayplan.config.profiles import ResolvedProfile
from bayplan.framework.offline import FixedNominator, NoApi, NoWaitingPods, SilentRecorder, drop_task
from bayplan.framework.registry import Registry
from bayplan.framework.resources import ObjectLister
from bayplan.framework.runtime.call import Complaint
from bayplan.framework.runtime.framework import Framework
from bayplan.loop.decide import Decider, Decision, NodeSearch, decide
from bayplan.loop.select import TieBreak, seeded_tie_break
from bayplan.observe.clock import SystemClock

__all__ = ["OfflineScheduler", "offline_ports"]

_log = structlog.get_logger()


class OfflineScheduler:
    """The real decision path over given objects."""

    def __init__(
        self,
        profiles: Sequence[ResolvedProfile],
        registry: Registry,
        objects: Iterable[KubeObject],
        *,
        tie_break: TieBreak | None = None,
        remember: bool = True,
        always_score: bool = False,
        complain: Complaint | None = None,
    ) -> None:
        self.cache = Cache()
        given = list(objects)
        waiting = [pod for pod in map(self._take, given) if pod is not None]
        self.nominator = FixedNominator(self.cache.info(pod) for pod in waiting)
        ports = offline_ports(self.cache, self.nominator, complain or _complain)
        self.deciders: Mapping[str, Decider] = {
            profile.scheduler_name: Decider(
                framework=build_framework(profile, registry, ports, remember=remember),
                nominator=self.nominator,
                tie_break=tie_break or seeded_tie_break(0),
                search=NodeSearch(),
                percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
                always_score=always_score,
            )
            for profile in profiles
        }
        self.cache.fill_groups(item for item in given if isinstance(item, Pod) and not item.is_finished)

    def _take(self, item: KubeObject) -> Pod | None:
        """Take an object into the cache; a pod that waits for a node is returned instead."""
        if isinstance(item, Node):
            self.cache.add_node(item)
        elif not isinstance(item, Pod):
            self.cache.put_object(item)
        elif item.spec.node_name and not item.is_finished:
            self.cache.add_pod(item)
        return item if isinstance(item, Pod) and not item.spec.node_name else None

    def framework(self, scheduler_name: str) -> Framework:
        return self.deciders[scheduler_name].framework

    def info(self, pod: Pod) -> PodInfo:
        return self.cache.info(pod)

    def decide(self, pod: PodInfo, **changes: object) -> Decision:
        """Decide for one pod; nothing is changed."""
        decider = self.deciders[pod.scheduler_name]
        return decide(replace(decider, **changes) if changes else decider, pod)  # type: ignore[arg-type]

    def assume(self, pod: PodInfo, node_name: str) -> None:
        """Count the pod on the node in the decisions that follow."""
        self.cache.assume(pod, node_name)
        self.nominator.drop(pod.uid)


def offline_ports(cache: Cache, nominator: Nominator, complain: Complaint) -> Ports:
    """What plugins are given where there is no API server: they may look, and nothing they do leaves the process."""
    return Ports(
        cluster=cache.cluster,
        clock=SystemClock(),
        nominator=nominator,
        waiting_pods=NoWaitingPods(),
        recorder=lambda _: SilentRecorder(),
        api=NoApi(),
        activate=lambda _: None,
        start_task=drop_task,
        resources=partial(ObjectLister, cache.cluster.objects),
        complain=complain,
    )


def _complain(plugin: str, point: str, exception: BaseException) -> None:
    _log.error("plugin failed", plugin=plugin, point=point, exc_info=exception)
