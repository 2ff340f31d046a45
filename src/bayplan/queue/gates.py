"""PreEnqueue: may this pod queue at all?

A pod that a plugin holds back is *gated*: parked, without events or conditions, until an event of that plugin. The
plugin that held it last is called first, because it most likely still does. A plugin that keeps a log of the pods that
it released is not called for the others.

A plugin that fails holds the pod as well. That is reported (`on_failure`), since no attempt will say it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from bayplan.cluster.changes import NameLog
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Code, Status
from bayplan.queue.unschedulable import Alike, UnschedulablePool

__all__ = ["GateFailure", "Gates", "PreEnqueue", "Releases"]

_log = logging.getLogger(__name__)

PreEnqueue = Callable[[PodInfo], Status | None]
"""Does not raise: a failure of the plugin is an Error status."""
Releases = Callable[[], NameLog | None]
"""`namespace/name` of each pod that a plugin held and may hold no longer, in the order in which that came about."""
GateFailure = Callable[[QueuedPod, Status], bool]
"""Report that a plugin failed for a pod; False where that has to be tried again, as before this replica leads."""


class Gates:
    def __init__(
        self,
        by_profile: Mapping[str, Mapping[str, PreEnqueue]],
        releases: Mapping[str, Mapping[str, Releases]] | None = None,
        *,
        on_failure: GateFailure | None = None,
    ) -> None:
        self._on_failure = on_failure
        self._by_profile = {profile: dict(plugins) for profile, plugins in by_profile.items()}
        self._released = {
            (profile, plugin): _Released(plugin, log)
            for profile, logs in (releases or {}).items()
            for plugin, log in logs.items()
        }

    def hold(self, queued: QueuedPod) -> bool:
        """Call the PreEnqueue plugins of the profile; True when one holds the pod, which is then its gating plugin.

        A pod of an unknown profile is not held. A plugin that held it stays among its rejectors until its next failure.
        """
        plugins = self._by_profile.get(queued.info.scheduler_name, {})
        last = queued.gating_plugin
        if last in plugins and self._is_held_by(last, plugins[last], queued):
            return True
        for plugin, pre_enqueue in plugins.items():
            if plugin != last and self._is_held_by(plugin, pre_enqueue, queued):
                return True
        queued.gating_plugin = queued.gate_failure = ""
        return False

    def worth_asking(self, first: QueuedPod, alike: Alike, pool: UnschedulablePool) -> list[QueuedPod]:
        """The pods among those that wait alike which their holder may have released: all, unless it keeps a log."""
        released = self._released.get((first.info.scheduler_name, first.gating_plugin))
        # Pods that stayed beyond the time limit of the pool are reconsidered at every event.
        return list(alike.values()) if released is None or pool.flushed else released.among(alike, pool)

    def still_hold(self, queued: QueuedPod) -> bool:
        """Whether the plugin that held the pod last still does; the others are not called."""
        plugin = queued.gating_plugin
        released = self._released.get((queued.info.scheduler_name, plugin))
        if released is not None:
            released.keys.discard(queued.key)
        pre_enqueue = self._by_profile.get(queued.info.scheduler_name, {}).get(plugin)
        return pre_enqueue is not None and self._is_held_by(plugin, pre_enqueue, queued)

    def _is_held_by(self, plugin: str, pre_enqueue: PreEnqueue, queued: QueuedPod) -> bool:
        status = pre_enqueue(queued.info)
        if status is None or status.is_success:
            return False
        if status.code is Code.ERROR:
            _log.error(
                "plugin `%s` failed in PreEnqueue and holds pod `%s` back: %s", plugin, queued.key, status.message
            )
            if self._on_failure is not None and queued.gate_failure != status.message:
                queued.gate_failure = status.message if self._on_failure(queued, status) else ""
        queued.gating_plugin = plugin
        if plugin not in queued.unschedulable_plugins:
            queued.unschedulable_plugins |= {plugin}
        return True


class _Released:
    """Pods that one plugin released since it was last called for them."""

    def __init__(self, plugin: str, log: Releases) -> None:
        self._plugin = plugin
        self._log = log
        self._position = -1
        self.keys: set[str] = set()

    def among(self, alike: Alike, pool: UnschedulablePool) -> list[QueuedPod]:
        log = self._log()
        if log is None:
            return list(alike.values())
        if log.position != self._position:
            self._read(log, pool)
        return [alike[key] for key in self.keys if key in alike]

    def _read(self, log: NameLog, pool: UnschedulablePool) -> None:
        names = log.since(self._position)
        self._position = log.position
        self.keys.update((queued.key for queued in pool) if names is None else names)
        # A pod that is not held by now was checked when it entered, and is logged again if it is held later.
        self.keys = {key for key in self.keys if self._is_held(pool.get(key))}

    def _is_held(self, queued: QueuedPod | None) -> bool:
        return queued is not None and queued.gating_plugin == self._plugin
