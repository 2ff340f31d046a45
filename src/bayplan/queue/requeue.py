"""Whether and how soon a rejected pod is tried again after an event, by the hints of the plugins that rejected it.

Plugins register events with hints; the match of an event with the registrations is computed once per kind of event. A
plugin that answered Pending waits for something outside; when that comes, its pod skips the back-off. A hint that
raises counts as QUEUE: a needless attempt is cheap, a pod that waits for ever is not. Pods that wait alike (see
`bayplan.queue.unschedulable`) get one answer, unless a hint depends on more than their shape.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.events import ActionType, ClusterEvent, EventHint, Hint, HintFunction, Resource, is_by_shape
from bayplan.framework.queued import QueuedPod
from bayplan.queue.in_flight import RecordedEvent
from bayplan.queue.unschedulable import Alike, Rejector

__all__ = ["Appraisal", "HintObserver", "Hints", "Interest", "Registrations", "Requeueing", "Strategy"]

_log = logging.getLogger(__name__)

HintObserver = Callable[[str, str, str, float], None]
"""(plugin, event name, `Queue` or `QueueSkip` or `Error`, seconds): called after every hint."""


Hints = tuple[HintFunction | None, ...]
"""None stands for a registration without a hint: always queue."""

HintsByProfile = dict[str, dict[str, Hints]]
"""Profile to plugin to its hints."""

_TAINT_CHANGE = ClusterEvent(Resource.NODE, ActionType.UPDATE_NODE_TAINT)


class Strategy(Enum):
    SKIP = "skip"
    AFTER_BACKOFF = "after back-off"
    IMMEDIATELY = "immediately"


class Requeueing:
    def __init__(
        self, registrations: Registrations, *, monotonic: Callable[[], float], observer: HintObserver | None = None
    ) -> None:
        self.registrations = registrations
        self.monotonic = monotonic
        self.observer = observer

    def appraise(self, event: ClusterEvent, *, old: Any, new: Any) -> Appraisal:
        """What an event means for one pod, or for pods that wait alike."""
        return Appraisal(self, event, old, new)

    def after_all(self, queued: QueuedPod, events: list[RecordedEvent] | None) -> Strategy:
        """What the events of its time in flight mean for a pod that is requeued; None stands for unknown events."""
        if events is None:
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for recorded in events:
            found = self.appraise(recorded.event, old=recorded.old, new=recorded.new)(queued)
            if found is Strategy.IMMEDIATELY:
                return found
            if found is Strategy.AFTER_BACKOFF:
                strategy = found
                if not queued.pending_plugins:
                    break
        return strategy


class Appraisal:
    """One event, and the hints that were registered for it."""

    __slots__ = ("_event", "_hints", "_new", "_old", "_requeueing")

    def __init__(self, requeueing: Requeueing, event: ClusterEvent, old: Any, new: Any) -> None:
        self._requeueing = requeueing
        self._event = event
        self._old = old
        self._new = new
        self._hints = None if event.is_wildcard else requeueing.registrations.interest_in(event).by_profile

    def __call__(self, queued: QueuedPod) -> Strategy:
        if self._hints is None:
            return self._after_wildcard(queued)
        blamed, pending = queued.unschedulable_plugins, queued.pending_plugins
        profile = queued.info.scheduler_name
        if not (blamed or pending) or profile not in self._requeueing.registrations.profiles:
            # There is no hint to call, so any event counts.
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for plugin, hints in self._hints.get(profile, _NO_HINTS).items():
            if not (plugin in blamed or plugin in pending) or not self._is_queued_by(plugin, hints, queued):
                continue
            if plugin in pending:
                return Strategy.IMMEDIATELY
            strategy = Strategy.AFTER_BACKOFF
            if not pending:
                break
        return strategy

    def of_alike(self, alike: Alike) -> Strategy | None:
        """The answer for pods that wait alike; None when hints have to be called for each of them."""
        if self._hints is None or self._is_about_one_of(alike):
            return None
        queued = next(iter(alike.values()))
        rejectors = queued.rejectors
        hints_by_plugin = self._hints.get(queued.info.scheduler_name, _NO_HINTS)
        for plugin, hints in hints_by_plugin.items():
            if plugin in rejectors and not all(map(is_by_shape, hints)):
                return None
        return self(queued)

    def _is_about_one_of(self, alike: Alike) -> bool:
        return any(isinstance(side, PodInfo) and side.key in alike for side in (self._old, self._new))

    def _after_wildcard(self, queued: QueuedPod) -> Strategy:
        """Requeue every pod, or the one that the event is about. After an error, a pod waits for no event."""
        is_about_another = isinstance(self._new, PodInfo) and self._new.uid != queued.uid
        return Strategy.SKIP if is_about_another and queued.rejectors else Strategy.AFTER_BACKOFF

    def _is_queued_by(self, plugin: str, hints: Hints, queued: QueuedPod) -> bool:
        return any(hint is None or self._call_hint(plugin, hint, queued.info) for hint in hints)

    def _call_hint(self, plugin: str, hint: HintFunction, info: PodInfo) -> bool:
        monotonic, observer = self._requeueing.monotonic, self._requeueing.observer
        started = monotonic() if observer else 0.0
        outcome = "Queue"
        try:
            if hint(info, self._old, self._new) is Hint.SKIP:
                outcome = "QueueSkip"
        except Exception as error:
            outcome = "Error"
            text = "the hint of plugin `%s` for `%s` failed; pod `%s` is tried again: %s"
            _log.error(text, plugin, self._event.name, info.key, error)
        if observer:
            observer(plugin, self._event.name, outcome, monotonic() - started)
        return outcome != "QueueSkip"


_NO_HINTS: dict[str, Hints] = {}


# Registrations


class Interest(NamedTuple):
    """The registrations for an event: the hints by plugin, for each profile that has any."""

    by_profile: HintsByProfile
    rejectors: list[Rejector]
    """The same plugins as a list; empty when none registered."""

    def includes(self, profile: str, plugin: str) -> bool:
        return plugin in self.by_profile.get(profile, {})

    def includes_holder_of(self, queued: QueuedPod) -> bool:
        """Whether the plugin that holds the pod back is among them; true for a pod that none holds."""
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
