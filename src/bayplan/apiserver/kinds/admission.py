"""What defaulting, admission and validation of a kind may read: the store, the time, and the user.

Passed to the hooks of `kind.Kind`; read-only, so that no hook depends on the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bayplan.apiserver.protocol.encoding import Json, decode_object, timestamp
from bayplan.apiserver.protocol.identity import ApiUser
from bayplan.apiserver.storage.store import Store
from bayplan.observe.clock import Clock


@dataclass(frozen=True, slots=True)
class Admission:
    """The view of the cluster that hooks get."""

    store: Store
    clock: Clock
    user: ApiUser

    def find(self, resource: str, namespace: str, name: str) -> Json | None:
        entry = self.store.get(resource, namespace, name)
        return None if entry is None else decode_object(entry.raw)

    def all(self, resource: str) -> Iterator[Json]:
        for entry in self.store.listing(resource).entries:
            yield decode_object(entry.raw)

    def now(self) -> str:
        return timestamp(self.clock.now())
