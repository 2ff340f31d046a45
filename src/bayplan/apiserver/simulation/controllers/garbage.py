"""Garbage collection: dependents of deleted owners are deleted, in the order that the propagation policy asks for."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.apiserver.objects.deletion import FOREGROUND, ORPHAN, DeleteOptions
from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.simulation.controllers.base import ControllerClient
from bayplan.apiserver.simulation.controllers.claims import without_owner
from bayplan.apiserver.simulation.controllers.owners import Place
from bayplan.apiserver.storage.store import DELETED, Change, Entry

_BLOCKS = b'"blockOwnerDeletion":true'
_FINALIZERS = (FOREGROUND.encode(), b'"' + ORPHAN.encode() + b'"')


class GarbageCollector:
    """Collects objects suspected of having lost their owners; `collect` returns whether there were any."""

    name = "garbage-collector"

    def __init__(self, client: ControllerClient, wake: Callable[[], None]) -> None:
        self._client = client
        self._wake = wake
        self._suspects: dict[Place, None] = {}
        self._unlisten: Callable[[], None] | None = None

    def start(self) -> None:
        if self._unlisten is not None:
            return
        self._unlisten = self._client.store.listen_to_everything(self._on_change)
        for resource in self._client.store.resources():
            for entry in self._client.store.listing(resource).entries:
                self._suspect(resource, entry)

    def stop(self) -> None:
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        self._suspects.clear()

    def _on_change(self, resource: str, change: Change) -> None:
        if change.type != DELETED:
            if _may_matter(change):
                self._suspect(resource, change.entry)
                for state in filter(None, (change.entry, change.previous)):
                    self._suspect_waiting_owners(state)
            return
        for place in self._client.owners.dependent_places(change.entry.uid):
            self._add(place)
        for uid in change.entry.owners:
            owner = self._client.owners.place(uid)
            if owner is not None:
                self._add(owner)

    def _suspect_waiting_owners(self, entry: Entry) -> None:
        for uid in entry.owners:
            owner = self._client.owners.place(uid)
            if owner is not None and self._is_going(uid):
                self._add(owner)

    def _suspect(self, resource: str, entry: Entry) -> None:
        is_going = b'"deletionTimestamp"' in entry.raw and any(mark in entry.raw for mark in _FINALIZERS)
        owners = entry.owners
        if is_going or (owners and any(self._is_doubtful(uid, entry) for uid in owners)):
            self._add((resource, entry.key))

    def _is_doubtful(self, uid: str, entry: Entry) -> bool:
        """Whether an owner is missing, in another namespace, or waits for the deletion of its dependents."""
        place = self._client.owners.place(uid)
        return place is None or place[1][0] not in ("", entry.namespace) or self._is_going(uid)

    def _add(self, place: Place) -> None:
        self._suspects[place] = None
        self._wake()

    def collect(self) -> bool:
        """Examine everything suspected so far."""
        suspects, self._suspects = list(self._suspects), {}
        for place in suspects:
            try:
                self._examine(place)
            except (RequestRefused, KeyError):
                continue  # it changed or its kind was removed meanwhile; the next change queues it again
        return bool(suspects)

    def _examine(self, place: Place) -> None:
        resource, key = place
        document = self._client.get(resource, key)
        if document is None:
            return
        metadata = document["metadata"]
        finalizers = metadata.get("finalizers") or []
        if "deletionTimestamp" in metadata and FOREGROUND in finalizers:
            self._finish_foreground(place, document)
        elif "deletionTimestamp" in metadata and ORPHAN in finalizers:
            self._orphan(place, document)
        elif "deletionTimestamp" not in metadata and metadata.get("ownerReferences"):
            self._delete_if_unowned(place, metadata["ownerReferences"])

    def _delete_if_unowned(self, place: Place, references: list[Json]) -> None:
        resource, key = place
        known = [reference for reference in references if self._exists(reference, key[0])]
        if not known:
            self._client.delete(resource, key, DeleteOptions(propagation="Background"))
            return
        solid = [reference["uid"] for reference in known if not self._awaits_dependents(reference)]
        if solid and len(solid) < len(references):
            # Owners that are gone, or wait for their dependents to go, leave this one to the others.
            self._client.update(resource, key, lambda dependent: _owned_by(dependent, solid))
        elif not solid:
            self._unblock_owners_in_a_circle(place)
            self._client.delete(resource, key, DeleteOptions(propagation="Foreground"))

    def _unblock_owners_in_a_circle(self, place: Place) -> None:
        """Let the owners of an object go before it, if one of its own dependents waits for its deletion as well."""
        entry = self._client.store.get(place[0], *place[1])
        if entry is None:
            return
        dependents = self._client.owners.dependent_places(entry.uid)
        if any(self._is_going(one.uid) for d in dependents if (one := self._client.store.get(d[0], *d[1]))):
            self._client.update(place[0], place[1], _without_blocking)

    def _exists(self, reference: Json, namespace: str) -> bool:
        place = self._client.owners.place(reference.get("uid", ""))
        # An owner in another namespace is no owner.
        return place is not None and place[1][0] in ("", namespace)

    def _awaits_dependents(self, reference: Json) -> bool:
        return self._is_going(reference.get("uid", ""))

    def _is_going(self, uid: str) -> bool:
        """Whether an owner is being deleted in the foreground."""
        place = self._client.owners.place(uid)
        entry = None if place is None else self._client.store.get(place[0], *place[1])
        return entry is not None and b'"deletionTimestamp"' in entry.raw and _FINALIZERS[0] in entry.raw

    def _finish_foreground(self, place: Place, document: Json) -> None:
        uid = document["metadata"]["uid"]
        is_blocked = False
        for resource, key in self._client.owners.dependent_places(uid):
            entry = self._client.store.get(resource, *key)
            if entry is None:
                continue
            references = decode_object(entry.raw)["metadata"]["ownerReferences"]
            is_blocked |= any(one.get("uid") == uid and one.get("blockOwnerDeletion") is True for one in references)
            if b'"deletionTimestamp"' not in entry.raw:
                self._delete_if_unowned((resource, key), references)
        if not is_blocked:
            self._drop_finalizer(place, FOREGROUND)

    def _orphan(self, place: Place, document: Json) -> None:
        uid = document["metadata"]["uid"]
        for resource, key in self._client.owners.dependent_places(uid):
            self._client.update(resource, key, lambda dependent: without_owner(dependent, uid))
        self._drop_finalizer(place, ORPHAN)

    def _drop_finalizer(self, place: Place, finalizer: str) -> None:
        def drop(document: Json) -> Json:
            kept = [name for name in document["metadata"].get("finalizers", []) if name != finalizer]
            document["metadata"]["finalizers"] = kept
            return document

        self._client.update(place[0], place[1], drop)


def _owned_by(document: Json, uids: list[str]) -> Json:
    references = document["metadata"].get("ownerReferences") or []
    document["metadata"]["ownerReferences"] = [one for one in references if one.get("uid") in uids]
    return document


def _without_blocking(document: Json) -> Json:
    for reference in document["metadata"]["ownerReferences"]:
        reference.pop("blockOwnerDeletion", None)
    return document


def _may_matter(change: Change) -> bool:
    """Whether a change concerns ownership or deletion; most do not."""
    entry, previous = change.entry, change.previous
    if previous is None:  # it is not being deleted
        return bool(entry.owners)
    if previous.owners != entry.owners or b'"deletionTimestamp"' in entry.raw:
        return True
    return bool(entry.owners) and previous.raw.count(_BLOCKS) != entry.raw.count(_BLOCKS)
