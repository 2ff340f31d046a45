"""From a resolved profile to a framework with its plugins built, and from all frameworks to the policy of the queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bayplan.cluster.nominated import Nominator
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.config.profiles import ResolvedProfile
from bayplan.framework.args import PluginArgs
from bayplan.framework.errors import PluginError
from bayplan.framework.events import WILDCARD, EventHint
from bayplan.framework.handle import ApiPort, Clock, Handle, LastingState, Recorder, ResourceLister, WaitingPods
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.framework.registry import Registry
from bayplan.framework.runtime.call import Complaint, call_plugin, call_promise, hint_call, sort_key_call, tear_down
from bayplan.framework.runtime.framework import Framework
from bayplan.loop.decide_with_extenders import EXTENDER
from bayplan.observe.failures import described
from bayplan.queue import QueuePolicy

if TYPE_CHECKING:
    from bayplan.app.extenders import CandidateReview

__all__ = ["Ports", "build_framework", "build_frameworks", "queue_policy", "registrations_of", "watched_resources"]

_REJECTING = (
    ExtensionPoint.PRE_ENQUEUE,
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PERMIT,
)
"""Only plugins at these points can reject a pod in a way that an event undoes."""


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What the plugins of every profile share."""

    cluster: ClusterState
    clock: Clock
    nominator: Nominator
    waiting_pods: WaitingPods
    recorder: Callable[[str], Recorder]
    """Profile name to the recorder that signs with it."""
    api: ApiPort
    activate: Callable[[Iterable[PodInfo]], None]
    start_task: Callable[[str, Awaitable[None]], None]
    resources: Callable[[type[Any]], ResourceLister]
    complain: Complaint
    lasting: LastingState = field(default_factory=LastingState)
    call_later: Callable[[float, Callable[[], None]], None] = lambda _seconds, _callback: None


def build_frameworks(
    profiles: Iterable[ResolvedProfile],
    registry: Registry,
    ports: Ports,
    review_candidates: CandidateReview | None = None,
    *,
    has_extenders: bool = False,
) -> tuple[dict[str, Framework], QueuePolicy]:
    """The plugins of all profiles, and what they declare about queueing. Where one cannot be built, those that were are
    torn down again."""
    frameworks: dict[str, Framework] = {}
    try:
        for profile in profiles:
            frameworks[profile.scheduler_name] = build_framework(profile, registry, ports, review_candidates)
        return frameworks, queue_policy(frameworks, has_extenders=has_extenders)
    except BaseException:
        for framework in frameworks.values():
            framework.teardown()
        raise


def build_framework(
    profile: ResolvedProfile,
    registry: Registry,
    ports: Ports,
    review_candidates: CandidateReview | None = None,
    *,
    remember: bool = True,
) -> Framework:
    names = dict.fromkeys(name for names in profile.points.values() for name in names)
    classes = {name: registry.get(name) for name in names}
    framework: Framework
    handle = Handle(
        cluster=ports.cluster,
        clock=ports.clock,
        nominator=ports.nominator,
        waiting_pods=ports.waiting_pods,
        recorder=ports.recorder(profile.scheduler_name),
        api=ports.api,
        get_dry_run=lambda: framework.dry_runs,
        activate=ports.activate,
        invalidate=lambda plugin: framework.forget(plugin),
        start_task=ports.start_task,
        resources=_declared(ports.resources, {kind for cls in classes.values() for kind in cls.watches}),
        profile_name=profile.scheduler_name,
        lasting=ports.lasting,
        call_later=ports.call_later,
        review_candidates=review_candidates,
    )
    plugins: dict[str, Plugin] = {}
    try:
        for name, cls in classes.items():
            plugins[name] = _built(cls, profile.args.get(name), handle)
    except BaseException:
        tear_down(plugins.values(), ports.complain)
        raise
    framework = Framework(
        profile_name=profile.scheduler_name,
        cluster=ports.cluster,
        plugins=plugins,
        points=profile.points,
        weights=profile.weights,
        complain=ports.complain,
        remember=remember,
    )
    return framework


def _built(cls: type[Plugin], args: PluginArgs | None, handle: Handle) -> Plugin:
    try:
        return cls(args, handle)
    except (Exception, SystemExit) as exception:
        raise _raised(cls.name, "setup", exception) from exception


def _raised(plugin: str, method: str, exception: BaseException) -> PluginError:
    """The error of a method without which there is no profile; it names the plugin."""
    return PluginError(f"plugin `{plugin}`", (f"`{method}` raised {described(exception)}",))


def watched_resources(frameworks: Iterable[Framework]) -> list[type[Any]]:
    """The custom resource types that some plugin of these profiles watches."""
    plugins = (plugin for framework in frameworks for plugin in framework.plugins.values())
    return list(dict.fromkeys(kind for plugin in plugins for kind in plugin.watches))


def _declared(
    resources: Callable[[type[Any]], ResourceLister], watched: Set[type[Any]]
) -> Callable[[type[Any]], ResourceLister]:
    """Listers of the custom resources that some plugin watches; reading another is an error of the author."""

    def lister(kind: type[Any]) -> ResourceLister:
        if kind not in watched:
            name = kind.__name__
            raise LookupError(f"no plugin watches `{name}`; write `watches = ({name},)` in the plugin")
        return resources(kind)

    return lister


def queue_policy(frameworks: Mapping[str, Framework], *, has_extenders: bool = False) -> QueuePolicy:
    """The policy of all profiles. Extenders register no events, so any event requeues the pods that one rejected."""
    first = next(iter(frameworks.values()))
    extra = [(EXTENDER, EventHint(WILDCARD))] if has_extenders else []
    return QueuePolicy(
        sort_key=sort_key_call(first.at(ExtensionPoint.QUEUE_SORT)[0], first.complain),
        pre_enqueue={
            name: {
                plugin.name: partial(call_plugin, plugin, "pre_enqueue", framework.complain)
                for plugin in framework.at(ExtensionPoint.PRE_ENQUEUE)
            }
            for name, framework in frameworks.items()
        },
        releases={
            name: {
                plugin.name: partial(call_promise, plugin, "releases", framework.complain)
                for plugin in framework.at(ExtensionPoint.PRE_ENQUEUE)
                if defines(plugin, "releases")
            }
            for name, framework in frameworks.items()
        },
        registrations={name: registrations_of(framework) + extra for name, framework in frameworks.items()},
    )


def registrations_of(framework: Framework) -> list[tuple[str, EventHint]]:
    """The events that each plugin which may reject a pod wants it to be tried again for."""
    plugins: dict[str, Plugin] = {plugin.name: plugin for point in _REJECTING for plugin in framework.at(point)}
    return [(name, hint) for name, plugin in plugins.items() for hint in _events_of(plugin, framework.complain)]


def _events_of(plugin: Plugin, complain: Complaint) -> list[EventHint]:
    try:
        events = plugin.events_to_register()
    except (Exception, SystemExit) as exception:
        raise _raised(plugin.name, "events_to_register", exception) from exception
    if events is None:
        return [EventHint(WILDCARD)]
    if not isinstance(events, list) or not all(isinstance(event, EventHint) for event in events):
        raise PluginError(
            f"plugin `{plugin.name}`",
            (f"`events_to_register` returned {events!r:.60}, expected a list of `EventHint`, or None",),
        )
    return [
        event if event.hint is None else event._replace(hint=hint_call(plugin, event.hint, complain))
        for event in events
    ]
