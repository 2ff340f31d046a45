"""PreEnqueue: may this pod queue at all?

A pod that a plugin holds back is *gated*: parked, without events or conditions, until an event of that plugin. The
plugin that held it last is asked first, because it most likely still does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Code, Error, Status
from bayplan.snapshot.pod_info import PodInfo

__all__ = ["Gates", "PreEnqueue"]

_log = logging.getLogger(__name__)

PreEnqueue = Callable[[PodInfo], Status | None]


class Gates:
    def __init__(self, by_profile: Mapping[str, Mapping[str, PreEnqueue]]) -> None:
        self._by_profile = {profile: dict(plugins) for profile, plugins in by_profile.items()}

    def hold(self, queued: QueuedPod) -> bool:
        """Ask the plugins of the pod's profile; True when one holds it, which is then its gating plugin.

        A pod of an unknown profile is held by nobody. Whoever held it stays among its rejectors until its next failure.
        """
        plugins = self._by_profile.get(queued.info.scheduler_name, {})
        last = queued.gating_plugin
        if last in plugins and self._is_held_by(last, plugins[last], queued):
            return True
        for plugin, pre_enqueue in plugins.items():
            if plugin != last and self._is_held_by(plugin, pre_enqueue, queued):
                return True
        queued.gating_plugin = ""
        return False

    def still_hold(self, queued: QueuedPod) -> bool:
        """Whether the plugin that held the pod last still does; the others are not asked."""
        plugin = queued.gating_plugin
        pre_enqueue = self._by_profile.get(queued.info.scheduler_name, {}).get(plugin)
        return pre_enqueue is not None and self._is_held_by(plugin, pre_enqueue, queued)

    @staticmethod
    def _is_held_by(plugin: str, pre_enqueue: PreEnqueue, queued: QueuedPod) -> bool:
        try:
            status = pre_enqueue(queued.info)
        except Exception as error:
            status = Error(str(error), exception=error)
        if status is None or status.is_success:
            return False
        if status.code is Code.ERROR:
            _log.error(
                "plugin `%s` failed in PreEnqueue and holds pod `%s` back: %s",
                plugin,
                queued.key,
                status.message,
                exc_info=status.exception,
            )
        queued.gating_plugin = plugin
        queued.unschedulable_plugins.add(plugin)
        return True
