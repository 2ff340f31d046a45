"""Which plugins want to hear of which event.

Plugins register events with hints; this answers, for an event that happened, which plugins of which profiles
registered for it. Matching is done once per kind of event and remembered.

A plugin that registered the arrival of nodes without changes of their taints also hears of taint changes, and every one
queues: a node often arrives with a taint that is lifted a moment later, and kube-scheduler behaves so too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bayplan.framework.events import ActionType, ClusterEvent, EventHint, HintFunction, Resource
from bayplan.framework.queued import QueuedPod
from bayplan.queue.unschedulable import Rejector

__all__ = ["Hints", "HintsByProfile", "Interest", "Registrations"]

Hints = tuple[HintFunction | None, ...]
"""None stands for a registration without a hint: always queue."""

HintsByProfile = dict[str, dict[str, Hints]]
"""Profile to plugin to its hints."""

_TAINT_CHANGE = ClusterEvent(Resource.NODE, ActionType.UPDATE_NODE_TAINT)


class Interest(NamedTuple):
    """Who registered for an event: the hints by plugin, for each profile that has any."""

    by_profile: HintsByProfile
    rejectors: list[Rejector]
    """The same plugins as a list; empty when nobody cares."""

    def includes(self, profile: str, plugin: str) -> bool:
        return plugin in self.by_profile.get(profile, {})

    def includes_holder_of(self, queued: QueuedPod) -> bool:
        """Whether the plugin that holds the pod back is among them; nobody has to be if nobody does."""
        holder = queued.gating_plugin
        return not holder or self.includes(queued.info.scheduler_name, holder)


class Registrations:
    def __init__(self, by_profile: Mapping[str, Iterable[tuple[str, EventHint]]]) -> None:
        self._by_profile = {profile: _completed(list(entries)) for profile, entries in by_profile.items()}
        self.profiles = frozenset(self._by_profile)
        self._known: dict[tuple[str, int], Interest] = {}

    def interest_in(self, event: ClusterEvent) -> Interest:
        kind = (event.resource, event.action.value)
        interest = self._known.get(kind)
        if interest is None:
            interest = self._known[kind] = self._match(event)
        return interest

    def _match(self, event: ClusterEvent) -> Interest:
        by_profile: HintsByProfile = {}
        for profile, entries in self._by_profile.items():
            for plugin, registered in entries:
                if registered.event.matches(event):
                    hints = by_profile.setdefault(profile, {})
                    hints[plugin] = (*hints.get(plugin, ()), registered.hint)
        return Interest(by_profile, [(profile, plugin) for profile, hints in by_profile.items() for plugin in hints])


def _completed(entries: Sequence[tuple[str, EventHint]]) -> list[tuple[str, EventHint]]:
    """The registrations and, per plugin, the taint changes that the arrival of nodes implies."""
    actions: dict[str, int] = {}
    for plugin, registered in entries:
        if registered.event.resource == Resource.NODE:
            actions[plugin] = actions.get(plugin, 0) | registered.event.action.value
    implied = [
        (plugin, EventHint(_TAINT_CHANGE))
        for plugin, action in actions.items()
        if action & ActionType.ADD and not action & ActionType.UPDATE_NODE_TAINT
    ]
    return [*entries, *implied]
