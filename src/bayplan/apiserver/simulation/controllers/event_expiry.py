"""Expiry of events: each is kept for an hour, and a limited number in all."""

from __future__ import annotations

from bayplan.apiserver.protocol.encoding import parse_timestamp
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.storage.store import Key

EVENTS = "events"
LIFETIME_SECONDS = 3600.0
MAX_EVENTS = 20_000


class EventExpiry(Controller):
    """Removes events that are old, or too many."""

    name = "event-expiry"
    primary = EVENTS

    def reconcile(self, key: Key) -> float | None:
        self._drop_surplus()
        event = self.client.get(EVENTS, key)
        if event is None:
            return None
        born = parse_timestamp(event["metadata"].get("creationTimestamp", ""))
        last = parse_timestamp(event.get("lastTimestamp") or (event.get("series") or {}).get("lastObservedTime") or "")
        left = max(born, last) + LIFETIME_SECONDS - self.client.clock.now()
        if left > 0:
            return left
        self.client.delete(EVENTS, key)
        return None

    def _drop_surplus(self) -> None:
        entries = self.client.store.collection(EVENTS).entries
        while len(entries) > MAX_EVENTS:
            self.client.delete(EVENTS, next(iter(entries)))
