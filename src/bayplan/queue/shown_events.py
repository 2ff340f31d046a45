"""Which waiting pods an event need not be shown to, because one like it was shown to them before and helped none.

A user's pods of one template come and go, and with each of them an event that plugins registered. Another user's
thousands of waiting pods would be asked each time whether it helps them. Where all hints that a rejector registered for
the event say that they look at shapes alone (`bayplan.framework.events.by_shapes`), the answer is known already for
those that were there at the last event like it. Where they say what they read of a changed pod (`by_view`), pods of
different templates that differ in nothing that the waiting ones look for are alike as well.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.events import ClusterEvent, HintView, is_by_shapes, view_of
from bayplan.queue.requeue import Hints, Interest
from bayplan.queue.unschedulable import Kind, Rejector, Shown, UnschedulablePool

__all__ = ["Likeness", "ShownEvents"]

_MOST_REMEMBERED = 1024
_MOST_NAMED = 65_536
"""Values of labels that waiting pods look for; beyond it pods are told apart by their shapes."""


class Likeness(NamedTuple):
    """What an event has in common with those that get the same answers, by rejector, as of a moment of the pool."""

    keys: Mapping[Rejector, Hashable]
    until: int


_LIKE_NO_OTHER = Likeness({}, 0)


class _Named:
    """The labels that the pods of one rejector look for. They only grow, until none of these pods waits any more: what
    was alike before is then alike still, since a value that is new here was nothing that any of them looked for."""

    __slots__ = ("count", "until", "values")

    def __init__(self) -> None:
        self.until = 0
        self.count = 0
        self.values: dict[str, set[str]] = {}

    def add(self, pod: PodInfo, views: Iterable[HintView]) -> None:
        for view in views:
            for key, values in view.names(pod):
                known = self.values.setdefault(key, set())
                before = len(known)
                known.update(values)
                self.count += len(known) - before + 1

    def seen_of(self, labels: Mapping[str, str]) -> frozenset[tuple[str, str | None]]:
        """The labels as these pods see them; None stands for every value that none of them looks for."""
        named = self.values
        return frozenset((k, v if v in named[k] else None) for k, v in labels.items() if k in named)


class ShownEvents:
    """For one pool and one set of registrations."""

    def __init__(self, pool: UnschedulablePool) -> None:
        self._pool = pool
        self._shown: OrderedDict[Hashable, Shown] = OrderedDict()
        self._named: dict[Rejector, _Named] = {}

    def likeness(self, interest: Interest, event: ClusterEvent, old: Any, new: Any) -> Likeness:
        sides = [side for side in (old, new) if side is not None]
        if not sides or not all(isinstance(side, PodInfo) for side in sides):
            return _LIKE_NO_OTHER
        if any(self._pool.get(side.key) is not None for side in sides):
            return _LIKE_NO_OTHER  # a waiting pod may answer otherwise for itself
        keys: dict[Rejector, Hashable] = {}
        for rejector in interest.rejectors:
            if not self._pool.has(rejector):
                self._named.pop(rejector, None)
                continue
            hints = interest.by_profile[rejector[0]][rejector[1]]
            if all(map(is_by_shapes, hints)):
                seen = self._seen(rejector, hints, old, new)
                keys[rejector] = (rejector, event.resource, event.action.value, *seen)
        return Likeness(keys, self._pool.newest_file)

    def before(self, likeness: Likeness) -> dict[Rejector, Shown]:
        """What events like this one were shown to."""
        found = {}
        for rejector, key in likeness.keys.items():
            shown = self._shown.get(key)
            if shown is not None:
                self._shown.move_to_end(key)
                found[rejector] = shown
        return found

    def note(self, likeness: Likeness, helped: Mapping[Rejector, list[Kind]]) -> None:
        """The event was shown to the whole pool, and may have helped the pods of some kinds."""
        for rejector, key in likeness.keys.items():
            self._shown[key] = Shown(likeness.until, tuple(helped.get(rejector, ())))
            self._shown.move_to_end(key)
        while len(self._shown) > _MOST_REMEMBERED:
            self._shown.popitem(last=False)

    def _seen(self, rejector: Rejector, hints: Hints, old: PodInfo | None, new: PodInfo | None) -> list[Hashable]:
        """What the hints of a rejector read of both sides."""
        views = [view for hint in hints if (view := view_of(hint)) is not None]
        named = self._named_by(rejector, views) if len(views) == len(hints) else None
        seen: list[Hashable] = []
        for pod in (old, new):
            if pod is None:
                seen.append(None)
                continue
            what: Hashable = pod.shape.number
            if named is not None:
                try:
                    read = tuple(view.sees(pod) for view in views)
                    what = (pod.namespace, named.seen_of(pod.labels), read)
                except Exception:  # the hint fails in the same way, and is then reported
                    what = pod.shape.number
            seen.append((what, bool(pod.node_name), bool(pod.nominated_node_name)))
        return seen

    def _named_by(self, rejector: Rejector, views: list[HintView]) -> _Named | None:
        """The labels that the pods of the rejector look for; None if that is not known, or too much."""
        named = self._named.setdefault(rejector, _Named())
        if named.count <= _MOST_NAMED:
            try:
                for queued in self._pool.filed_since(rejector, named.until):
                    named.add(queued.info, views)
            except Exception:
                named.count = _MOST_NAMED + 1
            named.until = self._pool.newest_file
        return named if named.count <= _MOST_NAMED else None
