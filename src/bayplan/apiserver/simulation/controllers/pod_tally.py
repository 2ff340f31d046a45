"""Facts about pods, read from stored bytes, and a tally of them by owner.

A workload of twenty thousand pods changes all the time; decoding all of them for each change would take seconds. So
the few facts a controller counts are read once a change, without decoding where that is possible. One tally serves all
controllers; it listens before they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bayplan.apiserver.protocol.encoding import decode_object, parse_timestamp
from bayplan.apiserver.simulation.controllers.pods import ready_since
from bayplan.apiserver.simulation.placement import REQUIRED
from bayplan.apiserver.storage.store import ADDED, DELETED, Change, Entry, Key, Store

NODE_FIELD, PHASE_FIELD, ADDRESS_FIELD = 0, 4, 5
"""Where a pod entry's selectable fields hold its node, its phase and its address."""
_READY = re.compile(rb'\{"type":"Ready","status":"True"(?:,"lastProbeTime":null)?,"lastTransitionTime":"([^"]+)"')


class PodFacts(NamedTuple):
    """Facts about one pod."""

    is_active: bool
    """Neither finished nor being deleted."""
    is_terminating: bool
    ready_since: float | None
    node: str
    """The node it is bound to, or that its affinity requires by name."""
    phase: str
    labels: Mapping[str, str]

    @property
    def is_ready(self) -> bool:
        return self.ready_since is not None

    def is_available(self, min_ready_seconds: int, now: float) -> bool:
        return self.ready_since is not None and self.ready_since + min_ready_seconds <= now


def facts_of(entry: Entry) -> PodFacts:
    terminating = b'"deletionTimestamp":' in entry.raw
    phase = entry.fields[PHASE_FIELD]
    active = not terminating and phase not in ("Succeeded", "Failed")
    node = entry.fields[NODE_FIELD] or _required_node(entry)
    return PodFacts(active, terminating, _ready_since(entry), node, phase, entry.labels or {})


def _required_node(entry: Entry) -> str:
    """The node that the affinity of a DaemonSet pod requires."""
    if b'"matchFields":' not in entry.raw:
        return ""
    spec = decode_object(entry.raw)["spec"]
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for requirement in term.get("matchFields") or ():
            return str(requirement["values"][0])
    return ""


def _ready_since(entry: Entry) -> float | None:
    match = _READY.search(entry.raw)
    if match is not None:
        return parse_timestamp(match[1].decode())
    # Conditions that other clients wrote may be spelled in another order.
    return ready_since(decode_object(entry.raw)) if b'"Ready"' in entry.raw else None


class OwnedPods:
    """The pods of one owner, with running counts."""

    __slots__ = ("_phases", "active", "by_key", "ready")

    def __init__(self) -> None:
        self.by_key: dict[Key, PodFacts] = {}
        self.active = 0
        self.ready = 0
        """Active and ready."""
        self._phases: dict[str, int] = {}

    def put(self, key: Key, facts: PodFacts | None) -> None:
        """Replace what is known about a pod; None when it is gone."""
        old = self.by_key.pop(key, None)
        if old is not None:
            self._count(old, -1)
        if facts is not None:
            self.by_key[key] = facts
            self._count(facts, 1)

    def in_phase(self, phase: str) -> int:
        return self._phases.get(phase, 0)

    def _count(self, facts: PodFacts, by: int) -> None:
        self._phases[facts.phase] = self._phases.get(facts.phase, 0) + by
        if facts.is_active:
            self.active += by
            self.ready += by if facts.ready_since is not None else 0

    def in_order(self) -> list[tuple[Key, PodFacts]]:
        """A copy by name, so that pods may be created and deleted while it is gone through."""
        return sorted(self.by_key.items(), key=lambda item: item[0])

    def actives(self) -> Iterator[PodFacts]:
        return (facts for facts in self.by_key.values() if facts.is_active)

    def available(self, min_ready_seconds: int, now: float) -> int:
        if not min_ready_seconds:
            return self.ready
        return sum(f.is_active and f.is_available(min_ready_seconds, now) for f in self.by_key.values())

    def seconds_until_available(self, min_ready_seconds: int, now: float) -> float | None:
        """When the next pod that is ready will have been ready for long enough; None if there is none."""
        if not min_ready_seconds:
            return None
        left = [f.ready_since + min_ready_seconds - now for f in self.actives() if f.ready_since is not None]
        return min((seconds for seconds in left if seconds > 0), default=None)


class PodTally:
    """The facts of all pods, by the owner that controls them."""

    def __init__(self, store: Store) -> None:
        self._by_owner: dict[str, OwnedPods] = {}
        self._orphans: dict[str, dict[Key, None]] = {}
        """Pods without a controller, by namespace."""
        for entry in store.listing("pods").entries:
            self._take("pods", Change(ADDED, entry, None))
        store.listen("pods", self._take)

    def _take(self, resource: str, change: Change) -> None:
        owner = change.entry.controller if change.type != DELETED else ""
        if owner:
            self._by_owner.setdefault(owner, OwnedPods()).put(change.entry.key, facts_of(change.entry))
            self._orphans.get(change.entry.namespace, {}).pop(change.entry.key, None)
        elif change.type == DELETED:
            self._orphans.get(change.entry.namespace, {}).pop(change.entry.key, None)
        elif change.previous is None or change.previous.controller:
            self._orphans.setdefault(change.entry.namespace, {})[change.entry.key] = None
        before = change.previous.controller if change.previous is not None else ""
        if before != owner and before in self._by_owner:
            self._by_owner[before].put(change.entry.key, None)
            if not self._by_owner[before].by_key:
                del self._by_owner[before]

    def orphans(self, namespace: str) -> dict[Key, None]:
        """The keys of pods without a controller; not to be changed."""
        return self._orphans.get(namespace, {})

    def of(self, uid: str) -> OwnedPods:
        """The pods of an owner; not to be changed."""
        return self._by_owner.get(uid) or OwnedPods()
