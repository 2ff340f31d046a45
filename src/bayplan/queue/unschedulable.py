"""The pool of pods that wait for the cluster to change: rejected by plugins, or held back before they ever queued.

An event concerns the plugins that registered it, so the pool is indexed by the plugins that rejected a pod: five
thousand waiting pods cost an event nothing unless one of their rejectors registered it. Under a rejector, pods that
wait alike (of one shape, with the same rejectors and the same holder) are grouped, so that most hints are called once
for all of them. A pod is indexed when it enters; to change its rejectors, take it out first.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.queued import QueuedPod

__all__ = ["Alike", "Kind", "Rejector", "Shown", "UnschedulablePool"]

Rejector = tuple[str, str]
"""(profile, plugin)."""

Alike = dict[str, QueuedPod]
"""Pods that wait alike, by `namespace/name`; never empty."""

Kind = tuple[int, frozenset[str], frozenset[str], str]
"""How pods wait: (number of the shape, blamed plugins, pending plugins, gating plugin)."""


class _File(NamedTuple):
    number: int
    """Larger than those of all kinds that were there before."""
    kind: Kind
    rejectors: list[Rejector]
    pods: Alike


class Shown(NamedTuple):
    """What an event like the present one need not be shown to again: all kinds up to a number, but for some."""

    until: int
    but: tuple[Kind, ...]


_NO_PROFILE: Rejector = ("", "")
"""The rejector of pods of unknown profiles: they have no hints, so every event counts."""


class UnschedulablePool:
    """Keyed by `namespace/name`; holds gated pods too."""

    def __init__(self, profiles: Collection[str]) -> None:
        self._profiles = profiles
        self._pods: dict[str, QueuedPod] = {}
        self._gated: set[str] = set()
        self.flushed: set[str] = set()
        """Pods that stayed although their time limit has passed; maintained by the queue."""
        self._arrivals: dict[str, int] = {}
        self._numbers = itertools.count()
        self._kinds: dict[str, Kind] = {}
        self._files: dict[Kind, _File] = {}
        self._file_numbers = itertools.count(1)
        self.newest_file = 0
        self._by_rejector: dict[Rejector, dict[Kind, Alike]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    @property
    def gated(self) -> int:
        return len(self._gated)

    def get(self, key: str) -> QueuedPod | None:
        return self._pods.get(key)

    def arrival(self, queued: QueuedPod) -> int:
        """Smaller for the pod that entered first; 0 for one that left."""
        return self._arrivals.get(queued.key, 0)

    def add(self, queued: QueuedPod) -> None:
        key = queued.key
        self.remove(key)
        self._pods[key] = queued
        self._arrivals[key] = next(self._numbers)
        if queued.gating_plugin:
            self._gated.add(key)
        self._file(key, queued)

    def remove(self, key: str) -> QueuedPod | None:
        queued = self._pods.pop(key, None)
        if queued is None:
            return None
        self._gated.discard(key)
        self.flushed.discard(key)
        del self._arrivals[key]
        self._unfile(key)
        return queued

    def update(self, queued: QueuedPod, info: PodInfo) -> None:
        """Replace a waiting pod by its new version; it keeps its place."""
        self._unfile(queued.key)
        queued.info = info
        self._file(queued.key, queued)

    def rejected_by(
        self, rejectors: Iterable[Rejector], shown: Mapping[Rejector, Shown] | None = None
    ) -> list[tuple[Rejector, dict[Kind, Alike]]]:
        """Pods that at least one of these rejected, under the first that did, and pods of unknown profiles; without
        those that the event was shown to already."""
        seen: set[Kind] = set()
        found = []
        for rejector in (_NO_PROFILE, *rejectors):
            kinds = self._by_rejector.get(rejector)
            if kinds and shown and rejector in shown:
                kinds = self._not_shown(kinds, shown[rejector])
            if kinds:
                found.append((rejector, {kind: alike for kind, alike in kinds.items() if kind not in seen}))
                seen.update(kinds)
        return found

    def has(self, rejector: Rejector) -> bool:
        """Whether any pod waits because of it."""
        return rejector in self._by_rejector

    def filed_since(self, rejector: Rejector, number: int) -> Iterator[QueuedPod]:
        """One pod of each kind under a rejector that came after a number."""
        for kind in reversed(self._by_rejector.get(rejector, {})):
            file = self._files[kind]
            if file.number <= number:
                return
            yield next(iter(file.pods.values()))

    def _not_shown(self, kinds: dict[Kind, Alike], shown: Shown) -> dict[Kind, Alike]:
        newer = list(itertools.takewhile(lambda kind: self._files[kind].number > shown.until, reversed(kinds)))
        again = (kind for kind in shown.but if kind in kinds)
        return {kind: kinds[kind] for kind in (*again, *reversed(newer))}

    def _file(self, key: str, queued: QueuedPod) -> None:
        blamed, pending = queued.unschedulable_plugins, queued.pending_plugins
        kind = (queued.info.shape.number, blamed, pending, queued.gating_plugin)
        known = self._files.get(kind)
        if known is None:
            self.newest_file = next(self._file_numbers)
            known = self._files[kind] = _File(self.newest_file, kind, self._rejectors_of(queued), {})
            for rejector in known.rejectors:
                self._by_rejector.setdefault(rejector, {})[kind] = known.pods
        known.pods[key] = queued
        self._kinds[key] = known.kind

    def _unfile(self, key: str) -> None:
        kind = self._kinds.pop(key)
        file = self._files[kind]
        del file.pods[key]
        if file.pods:
            return
        del self._files[kind]
        for rejector in file.rejectors:
            kinds = self._by_rejector[rejector]
            del kinds[kind]
            if not kinds:
                del self._by_rejector[rejector]

    def _rejectors_of(self, queued: QueuedPod) -> list[Rejector]:
        profile = queued.info.scheduler_name
        if profile not in self._profiles:
            return [_NO_PROFILE]
        return [(profile, plugin) for plugin in sorted(queued.rejectors)]
