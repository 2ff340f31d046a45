"""What the plugins of all profiles say about queueing, gathered for the queue."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.framework.events import WILDCARD, EventHint
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.runtime.framework import Framework
from bayplan.loop.extending import EXTENDER
from bayplan.queue import QueuePolicy, sort_key_of

__all__ = ["queue_policy"]

_REJECTING = (
    ExtensionPoint.PRE_ENQUEUE,
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PERMIT,
)
"""Only plugins at these points can reject a pod in a way that an event undoes."""


def queue_policy(frameworks: Mapping[str, Framework], *, has_extenders: bool = False) -> QueuePolicy:
    """Nobody knows what changes an extender's mind, so pods that one rejected are tried again at every event."""
    first = next(iter(frameworks.values()))
    extra = [(EXTENDER, EventHint(WILDCARD))] if has_extenders else []
    return QueuePolicy(
        sort_key=sort_key_of(first.at(ExtensionPoint.QUEUE_SORT)[0]),
        pre_enqueue={
            name: {plugin.name: plugin.pre_enqueue for plugin in framework.at(ExtensionPoint.PRE_ENQUEUE)}  # type: ignore[attr-defined]
            for name, framework in frameworks.items()
        },
        releases={
            name: {p.name: p.releases for p in framework.at(ExtensionPoint.PRE_ENQUEUE) if hasattr(p, "releases")}
            for name, framework in frameworks.items()
        },
        registrations={name: _registrations(framework) + extra for name, framework in frameworks.items()},
    )


def _registrations(framework: Framework) -> list[tuple[str, EventHint]]:
    plugins: dict[str, Plugin] = {plugin.name: plugin for point in _REJECTING for plugin in framework.at(point)}
    return [(name, hint) for name, plugin in plugins.items() for hint in _events_of(plugin)]


def _events_of(plugin: Plugin) -> list[EventHint]:
    events = plugin.events_to_register()
    return [EventHint(WILDCARD)] if events is None else events
