"""Owners and dependents: an index over all resources, kept by listening to the store.

Owner references are read from the stored bytes without decoding objects that have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bayplan.apiserver.protocol.encoding import decode_object
from bayplan.apiserver.storage.store import ADDED, DELETED, Change, Entry, Key, Store

Place = tuple[str, Key]
"""A resource and a key in it."""
_MARK = b'"ownerReferences":['
_CONTROLLER = b'"controller":true'
_UID = re.compile(rb'"uid":"([^"]+)"')


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
        found = dict.fromkeys(owner_uids(change.entry))
        if change.previous is not None:
            found |= dict.fromkeys(owner_uids(change.previous))
        return found

    def _on_change(self, resource: str, change: Change) -> None:
        place = (resource, change.entry.key)
        before = set(owner_uids(change.previous)) if change.previous is not None else set()
        after = set(owner_uids(change.entry)) if change.type != DELETED else set()
        for uid in before - after:
            found = self._dependents.get(uid)
            if found is not None:
                found.pop(place, None)
                if not found:
                    del self._dependents[uid]
        for uid in after - before:
            self._dependents.setdefault(uid, {})[place] = None
        if change.type == DELETED:
            self._places.pop(change.entry.uid, None)
        elif change.previous is None or change.previous.uid != change.entry.uid:
            self._places[change.entry.uid] = place


def owner_uids(entry: Entry) -> tuple[str, ...]:
    """The owners of an object; worked out once an entry, since an entry never changes."""
    if entry.owners is None:
        entry.owners = _read_owners(entry.raw)
    return entry.owners


def controller_uid(entry: Entry) -> str:
    """The owner that controls an object: the one whose reference has `controller: true`; empty when there is none."""
    if entry.controller is None:
        owners = owner_uids(entry)
        if not owners or _CONTROLLER not in entry.raw:
            entry.controller = ""
        elif len(owners) == 1:
            entry.controller = owners[0]
        else:
            references = decode_object(entry.raw)["metadata"]["ownerReferences"]
            entry.controller = next((one.get("uid", "") for one in references if one.get("controller")), "")
    return entry.controller


def _read_owners(raw: bytes) -> tuple[str, ...]:
    start = raw.find(_MARK)
    if start < 0:
        return ()
    # Only between `metadata` and `spec` is such a list surely the object's own: templates and custom resources may
    # hold others. Everything else is decoded.
    if raw.find(b'"metadata":') < start < raw.find(b'"spec":'):
        section = raw[start + len(_MARK) : raw.find(b"]", start)]
        return tuple(uid.decode() for uid in _UID.findall(section))
    references = decode_object(raw)["metadata"].get("ownerReferences") or []
    return tuple(reference.get("uid", "") for reference in references)
