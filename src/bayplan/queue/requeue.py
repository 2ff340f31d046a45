"""Is a rejected pod worth another try after an event, and how soon?

Only plugins that rejected the pod are asked, through the hints they registered. A plugin that said "pending" waits for
something outside; when that comes, its pod skips the back-off. A hint that fails counts as "queue": a needless try is
cheap, a pod that sleeps forever is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from bayplan.framework.events import ClusterEvent, Hint, HintFunction
from bayplan.framework.queued import QueuedPod
from bayplan.queue.in_flight import RecordedEvent
from bayplan.queue.registrations import Hints, HintsByProfile, Registrations
from bayplan.snapshot.pod_info import PodInfo

__all__ = ["HintObserver", "Requeueing", "Strategy"]

_log = logging.getLogger(__name__)

HintObserver = Callable[[str, str, str, float], None]
"""(plugin, event name, `Queue` or `QueueSkip` or `Error`, seconds): told of every hint that was asked."""


class Strategy(Enum):
    SKIP = "skip"
    AFTER_BACKOFF = "after back-off"
    IMMEDIATELY = "immediately"


Appraisal = Callable[[QueuedPod], Strategy]


class Requeueing:
    def __init__(
        self, registrations: Registrations, *, monotonic: Callable[[], float], observer: HintObserver | None = None
    ) -> None:
        self._registrations = registrations
        self._monotonic = monotonic
        self._observer = observer

    def appraise(self, event: ClusterEvent, *, old: Any, new: Any) -> Appraisal:
        """What an event means, pod by pod: work that is the same for all pods is done here, once."""
        if event.is_wildcard:
            return partial(_after_wildcard, only=new.uid if isinstance(new, PodInfo) else None)
        hints = self._registrations.interest_in(event).by_profile
        return partial(self._after, hints_by_profile=hints, change=_Change(event, old, new))

    def after_all(self, queued: QueuedPod, events: list[RecordedEvent] | None) -> Strategy:
        """What the events of its time in flight mean for a pod that comes back; None stands for "unknown"."""
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

    def _after(self, queued: QueuedPod, *, hints_by_profile: HintsByProfile, change: _Change) -> Strategy:
        blamed, pending = queued.unschedulable_plugins, queued.pending_plugins
        profile = queued.info.scheduler_name
        if not (blamed or pending) or profile not in self._registrations.profiles:
            # Nobody can be asked, so any event counts.
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for plugin, hints in hints_by_profile.get(profile, _NO_HINTS).items():
            if not (plugin in blamed or plugin in pending) or not self._is_queued_by(plugin, hints, queued, change):
                continue
            if plugin in pending:
                return Strategy.IMMEDIATELY
            strategy = Strategy.AFTER_BACKOFF
            if not pending:
                break
        return strategy

    def _is_queued_by(self, plugin: str, hints: Hints, queued: QueuedPod, change: _Change) -> bool:
        return any(hint is None or self._ask(plugin, hint, queued.info, change) for hint in hints)

    def _ask(self, plugin: str, hint: HintFunction, info: PodInfo, change: _Change) -> bool:
        started = self._monotonic() if self._observer else 0.0
        outcome = "Queue"
        try:
            if hint(info, change.old, change.new) is Hint.SKIP:
                outcome = "QueueSkip"
        except Exception:
            outcome = "Error"
            _log.exception(
                "the hint of plugin `%s` for `%s` failed; pod `%s` is tried again", plugin, change.event.name, info.key
            )
        if self._observer:
            self._observer(plugin, change.event.name, outcome, self._monotonic() - started)
        return outcome != "QueueSkip"


class _Change(NamedTuple):
    event: ClusterEvent
    old: Any
    new: Any


_NO_HINTS: dict[str, Hints] = {}


def _after_wildcard(queued: QueuedPod, *, only: str | None) -> Strategy:
    """Every pod, or the one that the event is about; but an error never waits for an event."""
    is_about_another = only is not None and only != queued.uid
    return Strategy.SKIP if is_about_another and queued.rejectors else Strategy.AFTER_BACKOFF
