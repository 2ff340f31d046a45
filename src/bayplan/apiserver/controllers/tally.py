"""Facts about pods, read from stored bytes, and a tally of them by owner.

A workload of twenty thousand pods changes all the time; decoding all of them for each change would take seconds. So
the few facts a controller counts are read once a change, without decoding where that is possible.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from bayplan.apiserver.controllers.owners import owner_uids
from bayplan.apiserver.controllers.pods import ready_since
from bayplan.apiserver.encoding import decode_object, parse_timestamp
from bayplan.apiserver.store import ADDED, DELETED, Change, Entry, Key, Store

NODE_FIELD, PHASE_FIELD = 0, 4
"""Where a pod entry's selectable fields hold its node and its phase."""
_READY = re.compile(rb'\{"type":"Ready","status":"True"(?:,"lastProbeTime":null)?,"lastTransitionTime":"([^"]+)"')


class PodFacts(NamedTuple):
    """What counts about one pod."""

    is_active: bool
    """Neither finished nor on its way out."""
    is_terminating: bool
    ready_since: float | None
    node: str

    def is_available(self, min_ready_seconds: int, now: float) -> bool:
        return self.ready_since is not None and self.ready_since + min_ready_seconds <= now


def facts_of(entry: Entry) -> PodFacts:
    terminating = b'"deletionTimestamp":' in entry.raw
    phase = entry.fields[PHASE_FIELD]
    active = not terminating and phase not in ("Succeeded", "Failed")
    return PodFacts(active, terminating, _ready_since(entry), entry.fields[NODE_FIELD])


def _ready_since(entry: Entry) -> float | None:
    match = _READY.search(entry.raw)
    if match is not None:
        return parse_timestamp(match[1].decode())
    # Conditions that other clients wrote may be spelled in another order.
    return ready_since(decode_object(entry.raw)) if b'"Ready"' in entry.raw else None


class OwnedPods:
    """The pods of one owner, counted as they come and go."""

    __slots__ = ("active", "by_key", "ready")

    def __init__(self) -> None:
        self.by_key: dict[Key, PodFacts] = {}
        self.active = 0
        self.ready = 0
        """Active and ready."""

    def put(self, key: Key, facts: PodFacts | None) -> None:
        """Replace what is known about a pod; None when it is gone."""
        old = self.by_key.pop(key, None)
        if old is not None:
            self._count(old, -1)
        if facts is not None:
            self.by_key[key] = facts
            self._count(facts, 1)

    def _count(self, facts: PodFacts, by: int) -> None:
        if facts.is_active:
            self.active += by
            self.ready += by if facts.ready_since is not None else 0

    def available(self, min_ready_seconds: int, now: float) -> int:
        if not min_ready_seconds:
            return self.ready
        return sum(f.is_active and f.is_available(min_ready_seconds, now) for f in self.by_key.values())


class PodTally:
    """The facts of all pods, by owner; kept up to date by whoever hears of changes."""

    def __init__(self, store: Store) -> None:
        self._by_owner: dict[str, OwnedPods] = {}
        for entry in store.listing("pods").entries:
            self.take(Change(ADDED, entry, None))

    def take(self, change: Change) -> None:
        owners = owner_uids(change.entry) if change.type != DELETED else ()
        facts = facts_of(change.entry) if owners else None
        for uid in owners:
            self._by_owner.setdefault(uid, OwnedPods()).put(change.entry.key, facts)
        for uid in owner_uids(change.previous) if change.previous is not None else ():
            if uid not in owners and uid in self._by_owner:
                self._by_owner[uid].put(change.entry.key, None)
                if not self._by_owner[uid].by_key:
                    del self._by_owner[uid]

    def of(self, uid: str) -> OwnedPods:
        """The pods of an owner; not to be changed."""
        return self._by_owner.get(uid) or OwnedPods()
