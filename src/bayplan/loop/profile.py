"""One profile as the loop sees it, and what all profiles of a scheduler share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.cluster.lazy import lazy
from bayplan.framework.handle import ApiPort, Recorder
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.framework.runtime.framework import Framework
from bayplan.loop.decide import Decider
from bayplan.loop.decide_with_extenders import Extenders
from bayplan.loop.observer import Observer
from bayplan.loop.permit import HeldPods
from bayplan.loop.tasks import BriefWork
from bayplan.observe.clock import Clock
from bayplan.queue import SchedulingQueue

__all__ = ["Profile", "Shared", "StatusPort"]


@dataclass(frozen=True, kw_only=True)
class Profile:
    name: str
    decider: Decider
    recorder: Recorder
    extenders: Extenders | None = None
    """None when the configuration names none."""

    @lazy
    def framework(self) -> Framework:
        return self.decider.framework

    @lazy
    def reserving(self) -> list[Plugin]:
        """The plugins that define `reserve`; one may define `unreserve` alone."""
        return [p for p in self.framework.at(ExtensionPoint.RESERVE) if defines(p, "reserve")]

    @lazy
    def unreserving(self) -> list[Plugin]:
        """The plugins that define `unreserve`, in reverse order."""
        return [p for p in self.framework.at(ExtensionPoint.RESERVE)[::-1] if defines(p, "unreserve")]

    @lazy
    def permitting(self) -> list[Plugin]:
        return self.framework.at(ExtensionPoint.PERMIT)

    @lazy
    def pre_binding(self) -> list[Plugin]:
        return self.framework.at(ExtensionPoint.PRE_BIND)

    @lazy
    def with_pre_flight(self) -> frozenset[Plugin]:
        """The PreBind plugins that define `pre_bind_pre_flight`."""
        return frozenset(plugin for plugin in self.pre_binding if defines(plugin, "pre_bind_pre_flight"))

    @lazy
    def binding(self) -> list[Plugin]:
        return self.framework.at(ExtensionPoint.BIND)

    @lazy
    def post_binding(self) -> list[Plugin]:
        return self.framework.at(ExtensionPoint.POST_BIND)

    @lazy
    def binds_at_once(self) -> bool:
        """Whether a binding is a single request, whichever plugin makes it."""
        return self.extenders is None and all(plugin.binds_at_once for plugin in self.binding)


class StatusPort:
    """Where the outcome of failed attempts is written; never blocks the caller."""

    def report(self, pod: Pod, *, reason: str, message: str, nominated_node_name: str | None) -> None:
        """Set PodScheduled to False with this reason, and the nomination unless it is None."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What the parts of the loop work on together."""

    cache: Cache
    queue: SchedulingQueue
    profiles: Mapping[str, Profile]
    held_pods: HeldPods
    api: ApiPort
    status: StatusPort
    clock: Clock
    observer: Observer
    get_pod: Callable[[str, str], Pod | None]
    """(namespace, name) -> the pod as the API server last sent it."""
    start_task: Callable[[str, Awaitable[None]], None]
    start_brief: Callable[[BriefWork], None]
    """The same for work that the shared tasks may run."""
    may_write: Callable[[], bool] = lambda: True
    """False once the lease is lost: no binding, event or condition is written from then on."""
