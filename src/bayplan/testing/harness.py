"""The harness: schedule pods without a server, on the path that a live scheduler takes.

    harness = Harness(nodes=["n1", node("n2", labels={"score-by-label": "10"})], plugins=[ScoreByLabel])
    expect(harness.schedule(pod("web"))).scheduled_on("n2")

Configuration, registry, cache, cluster, engine and plugins are the real ones. What is missing is what needs a server:
queue, binding and API calls. Reserve and Permit run, because later decisions see what they leave behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.framework.registry import Registry
from bayplan.framework.runtime.call import call_plugin
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.loop.select import seeded_tie_break
from bayplan.plugins.intree import default_registry
from bayplan.testing.build import node as build_node
from bayplan.testing.outcome import Outcome, outcome_of
from bayplan.testing.profile import Config, PluginSource, harness_profiles, register_plugins

__all__ = ["Harness"]


class Harness:
    """A cluster in memory and a scheduler over it.

    `nodes` may be names. `pods` are those that run (they have a node) or wait with a nomination. Without `config` the
    default profile runs. `plugins` (classes, `module:Class` or files) are enabled at the end of every profile that does
    not mention them; one named like an in-tree plugin replaces it. `args` and `weights` go by plugin name.
    `default_plugins=False` leaves kube-scheduler's own plugins out. `always_score` scores also when one node alone
    fits, so that expectations can look at it. `remember=False` turns every cache of the engine off, which must not
    change a decision.
    """

    def __init__(
        self,
        *,
        nodes: Iterable[Node | str] = (),
        pods: Iterable[Pod] = (),
        objects: Iterable[KubeObject] = (),
        config: Config | None = None,
        plugins: Iterable[PluginSource] = (),
        args: Mapping[str, Mapping[str, Any]] | None = None,
        weights: Mapping[str, int] | None = None,
        default_plugins: bool = True,
        seed: int = 0,
        remember: bool = True,
        always_score: bool = True,
    ) -> None:
        self.registry = _checked_registry().copy()
        self.profiles = harness_profiles(
            self.registry,
            config,
            added=register_plugins(self.registry, plugins),
            args=args or {},
            weights=weights or {},
            default_plugins=default_plugins,
        )
        self.complaints: list[tuple[str, str, BaseException]] = []
        """(plugin, method, exception) of everything that plugins raised."""
        cluster = [build_node(each) if isinstance(each, str) else each for each in nodes]
        self.scheduler = OfflineScheduler(
            self.profiles,
            self.registry,
            [*objects, *cluster, *pods],
            tie_break=seeded_tie_break(seed),
            remember=remember,
            always_score=always_score,
            complain=lambda plugin, method, exception: self.complaints.append((plugin, method, exception)),
        )
        self._placed: dict[str, tuple[Decision, Framework]] = {}

    @property
    def cluster(self) -> ClusterState:
        """The cluster as plugins see it."""
        return self.scheduler.cache.cluster

    def framework(self, profile: str | None = None) -> Framework:
        """The engine of a profile; of the first one when none is named."""
        return self.scheduler.framework(profile or self.profiles[0].scheduler_name)

    def plugin(self, name: str, *, profile: str | None = None) -> Any:
        """A plugin as it runs in a profile, to look inside or to call by hand."""
        return self.framework(profile).plugins[name]

    def info(self, pod: Pod) -> PodInfo:
        """The pod in the form in which plugins get it."""
        return self.scheduler.info(pod)

    # Decisions

    def schedule(self, pod: Pod) -> Outcome:
        """Decide for the pod and, if a node is found, count it there from now on."""
        info, framework = self._ready(pod)
        self.scheduler.cache.note_pod(None, pod)
        decision = self.scheduler.decide(info, explains=True)
        outcome = outcome_of(pod, decision, framework)
        if not outcome.is_scheduled:
            return outcome
        self.scheduler.assume(info, decision.node_name)
        self._placed[info.uid] = decision, framework
        refusal = _reserve(framework, decision)
        waits_for: tuple[str, ...] = ()
        if refusal is None:
            refusal, waits_for = _permit(framework, decision)
        if refusal is not None:
            self.forget(pod)
            return _refused(outcome, refusal)
        return replace(outcome, waits_for=waits_for)

    def explain(self, pod: Pod) -> Outcome:
        """Decide for the pod and change nothing."""
        info, framework = self._ready(pod)
        return outcome_of(pod, self.scheduler.decide(info, explains=True, always_score=True), framework)

    def _ready(self, pod: Pod) -> tuple[PodInfo, Framework]:
        known = [profile.scheduler_name for profile in self.profiles]
        if pod.spec.scheduler_name not in known:
            names = ", ".join(f"`{name}`" for name in known)
            raise ValueError(f"pod `{pod.key}` names the scheduler `{pod.spec.scheduler_name}`; there are {names}")
        return self.info(pod), self.framework(pod.spec.scheduler_name)

    # What happens to the cluster between decisions

    def forget(self, pod: Pod) -> None:
        """Undo a scheduled pod: Unreserve, and it no longer counts."""
        info = self.info(pod)
        placed = self._placed.pop(info.uid, None)
        if placed is not None:
            _unreserve(placed[1], placed[0])
        self.scheduler.cache.forget(info.uid)

    def add(self, *items: KubeObject) -> None:
        """Objects that come or change: nodes, running pods, anything else."""
        cache = self.scheduler.cache
        for item in items:
            if isinstance(item, Node):
                cache.add_node(item)
            elif isinstance(item, Pod):
                self._add_pod(item)
            else:
                cache.put_object(item)

    def _add_pod(self, pod: Pod) -> None:
        if pod.is_finished:
            self.remove(pod)
        elif pod.spec.node_name:
            self.scheduler.cache.add_pod(pod)
        else:
            raise ValueError(f"pod `{pod.key}` has no node; use `schedule` for pods that wait for one")

    def remove(self, *items: KubeObject) -> None:
        """Objects that go."""
        cache = self.scheduler.cache
        for item in items:
            if isinstance(item, Node):
                cache.remove_node(item.name)
            elif isinstance(item, Pod):
                self._remove_pod(self.info(item).uid)
            else:
                cache.remove_object(item)

    def _remove_pod(self, uid: str) -> None:
        known = self.scheduler.cache.remove_pod(uid)
        if known is not None:
            for decider in self.scheduler.deciders.values():
                decider.framework.pod_gone(known)


@lru_cache(maxsize=1)
def _checked_registry() -> Registry:
    """The in-tree plugins, checked once; checking them for each harness would be most of its cost."""
    return default_registry()


def _reserve(framework: Framework, decision: Decision) -> Status | None:
    """The first refusal; None when every plugin reserved."""
    for plugin in framework.at(ExtensionPoint.RESERVE):
        if defines(plugin, "reserve"):
            status = call_plugin(
                plugin, "reserve", framework.complain, decision.state, decision.pod, decision.node_name
            )
            if isinstance(status, Status) and not status.is_success:
                return status
    return None


def _unreserve(framework: Framework, decision: Decision) -> None:
    for plugin in reversed(framework.at(ExtensionPoint.RESERVE)):
        if defines(plugin, "unreserve"):
            call_plugin(plugin, "unreserve", framework.complain, decision.state, decision.pod, decision.node_name)


def _permit(framework: Framework, decision: Decision) -> tuple[Status | None, tuple[str, ...]]:
    """The first refusal, and the plugins that ask to wait."""
    waits: list[str] = []
    for plugin in framework.at(ExtensionPoint.PERMIT):
        status = call_plugin(plugin, "permit", framework.complain, decision.state, decision.pod, decision.node_name)
        if isinstance(status, Status) and status.is_wait:
            waits.append(plugin.name)
        elif isinstance(status, Status) and not status.is_success:
            return status, ()
    return None, tuple(waits)


def _refused(outcome: Outcome, refusal: Status) -> Outcome:
    """A node was found, but a plugin would not have the pod there."""
    undone = replace(outcome, node_name="", rejections=outcome.rejections | {outcome.node_name: refusal})
    if not refusal.is_rejected:
        return replace(undone, failure=refusal, message=refusal.message)
    diagnosis = Diagnosis.of_one_node(refusal)
    return replace(undone, message=diagnosis.message, unschedulable_plugins=frozenset(diagnosis.unschedulable_plugins))
