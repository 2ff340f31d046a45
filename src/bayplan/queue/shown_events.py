"""Which waiting pods an event need not be shown to, because one like it was shown to them before and helped none.

A user's pods of one template come and go, and with each of them an event that plugins registered. Another user's
thousands of waiting pods would be asked each time whether it helps them. Where all hints that a rejector registered for
the event say that they look at shapes alone (`bayplan.framework.events.by_shapes`), the answer is known already for
those that were there at the last event like it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Any

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.events import ClusterEvent, is_by_shapes
from bayplan.queue.requeue import Interest
from bayplan.queue.unschedulable import Kind, Rejector, Shown, UnschedulablePool

__all__ = ["ShownEvents"]

_MOST_REMEMBERED = 512
_NEVER: dict[Rejector, Shown] = {}


class ShownEvents:
    """For one pool and one set of registrations."""

    def __init__(self, pool: UnschedulablePool) -> None:
        self._pool = pool
        self._shown: OrderedDict[Hashable, dict[Rejector, Shown]] = OrderedDict()

    def likeness(self, event: ClusterEvent, old: Any, new: Any) -> Hashable | None:
        """The same for events that get the same answers; None for one that is like no other."""
        sides = [side for side in (old, new) if side is not None]
        if not sides or not all(isinstance(side, PodInfo) for side in sides):
            return None
        if any(self._pool.get(side.key) is not None for side in sides):
            return None  # a waiting pod may answer otherwise for itself
        return (event.resource, event.action.value, _seen_by_hints(old), _seen_by_hints(new))

    def before(self, likeness: Hashable | None) -> dict[Rejector, Shown]:
        """What events like this one were shown to."""
        if likeness is None or likeness not in self._shown:
            return _NEVER
        self._shown.move_to_end(likeness)
        return self._shown[likeness]

    def note(self, likeness: Hashable | None, interest: Interest, helped: dict[Rejector, list[Kind]]) -> None:
        """The event was shown to the whole pool, and may have helped the pods of some kinds."""
        if likeness is None:
            return
        until = self._pool.newest_file
        shown = {
            (profile, plugin): Shown(until, tuple(helped.get((profile, plugin), ())))
            for profile, hints_by_plugin in interest.by_profile.items()
            for plugin, hints in hints_by_plugin.items()
            if _are_by_shapes(hints)
        }
        if shown:
            self._shown[likeness] = shown
            self._shown.move_to_end(likeness)
            if len(self._shown) > _MOST_REMEMBERED:
                self._shown.popitem(last=False)


def _are_by_shapes(hints: Iterable[Any]) -> bool:
    return all(map(is_by_shapes, hints))


def _seen_by_hints(pod: PodInfo | None) -> Hashable:
    if pod is None:
        return None
    return (pod.shape.number, bool(pod.node_name), bool(pod.nominated_node_name))
