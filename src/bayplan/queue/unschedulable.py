"""The pool of pods that wait for the cluster to change: rejected by plugins, or held back before they ever queued.

An event concerns the plugins that registered for it, so the pool is indexed by who rejected a pod: five thousand
waiting pods cost an event nothing unless one of their rejectors cares. The index is read off a pod when it enters;
whoever changes a pod's rejectors takes it out first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from bayplan.framework.queued import QueuedPod

__all__ = ["Rejector", "UnschedulablePool"]

Rejector = tuple[str, str]
"""(profile, plugin)."""

_STRANGER: Rejector = ("", "")
"""Where pods of unknown profiles are found: nobody speaks for them, so every event counts."""


class UnschedulablePool:
    """Keyed by `namespace/name`; holds gated pods too."""

    def __init__(self, profiles: Collection[str]) -> None:
        self._profiles = profiles
        self._pods: dict[str, QueuedPod] = {}
        self._gated: set[str] = set()
        self._rejectors: dict[str, list[Rejector]] = {}
        self._by_rejector: dict[Rejector, dict[str, QueuedPod]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    @property
    def gated(self) -> int:
        return len(self._gated)

    def get(self, key: str) -> QueuedPod | None:
        return self._pods.get(key)

    def add(self, queued: QueuedPod) -> None:
        key = queued.key
        self._pods[key] = queued
        if queued.gating_plugin:
            self._gated.add(key)
        rejectors = self._rejectors[key] = self._rejectors_of(queued)
        for rejector in rejectors:
            self._by_rejector.setdefault(rejector, {})[key] = queued

    def remove(self, key: str) -> QueuedPod | None:
        queued = self._pods.pop(key, None)
        if queued is None:
            return None
        self._gated.discard(key)
        for rejector in self._rejectors.pop(key):
            rejected = self._by_rejector[rejector]
            del rejected[key]
            if not rejected:
                del self._by_rejector[rejector]
        return queued

    def rejected_by(self, rejectors: Iterable[Rejector]) -> list[QueuedPod]:
        """Pods that at least one of these rejected, and pods that nobody speaks for; each once."""
        found: dict[str, QueuedPod] = dict(self._by_rejector.get(_STRANGER, {}))
        for rejector in rejectors:
            rejected = self._by_rejector.get(rejector)
            if rejected:
                found.update(rejected)
        return list(found.values())

    def _rejectors_of(self, queued: QueuedPod) -> list[Rejector]:
        profile = queued.info.scheduler_name
        if profile not in self._profiles:
            return [_STRANGER]
        return [(profile, plugin) for plugin in sorted(queued.rejectors)]
