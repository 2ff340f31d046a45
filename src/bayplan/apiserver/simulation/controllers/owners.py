"""Owners and dependents: an index over all resources, kept by listening to the store."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.storage.store import ADDED, DELETED, Change, Key, Store

Place = tuple[str, Key]
"""A resource and a key in it."""


class OwnerIndex:
    """Dependents by owner, and places by uid."""

    def __init__(self, store: Store) -> None:
        self._dependents: dict[str, dict[Place, None]] = {}
        self._places: dict[str, Place] = {}
        for resource in store.resources():
            for entry in store.listing(resource).entries:
                self._on_change(resource, Change(ADDED, entry, None))
        store.listen_to_everything(self._on_change)

    def place(self, uid: str) -> Place | None:
        """Where the object with this uid lives, or None when it is gone."""
        return self._places.get(uid)

    def dependents(self, uid: str, resource: str = "") -> list[Key]:
        return [key for found, key in self._dependents.get(uid, ()) if resource in ("", found)]

    def dependent_places(self, uid: str) -> list[Place]:
        return list(self._dependents.get(uid, ()))

    def owners_of(self, change: Change) -> Iterable[str]:
        """The owners before and after a change."""
        before = change.previous.owners if change.previous is not None else ()
        return dict.fromkeys((*change.entry.owners, *before))

    def _on_change(self, resource: str, change: Change) -> None:
        entry, previous = change.entry, change.previous
        before = previous.owners if previous is not None else ()
        after = entry.owners if change.type != DELETED else ()
        if before != after:
            self._move((resource, entry.key), set(before), set(after))
        if change.type == DELETED:
            self._places.pop(entry.uid, None)
        elif previous is None or previous.uid != entry.uid:
            self._places[entry.uid] = (resource, entry.key)

    def _move(self, place: Place, before: set[str], after: set[str]) -> None:
        """Note the owners of an object."""
        for uid in before - after:
            found = self._dependents.get(uid)
            if found is not None:
                found.pop(place, None)
                if not found:
                    del self._dependents[uid]
        for uid in after - before:
            self._dependents.setdefault(uid, {})[place] = None
