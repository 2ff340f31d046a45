"""Adoption and release: which objects a workload controls, by its selector.

An object without a controller that a selector matches gets a reference to the workload; one that the selector no longer
matches loses it. Looks only at objects whose labels or owners changed, and at all orphans of a namespace when a
workload is new or its spec changed, so that thousands of pods without a workload cost the others nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.protocol.selectors import matches_label_selector
from bayplan.apiserver.simulation.controllers.pods import key_of, owner_reference
from bayplan.apiserver.storage.store import DELETED, Change, Entry, Key

if TYPE_CHECKING:
    from bayplan.apiserver.simulation.controllers.base import ControllerClient


class Claims:
    """What the workloads of one resource adopt and release."""

    def __init__(self, client: ControllerClient, primary: str, dependents: str) -> None:
        self._client = client
        self._primary = primary
        self._dependents = dependents
        self._candidates: dict[Key, dict[Key, None]] = {}
        """Objects to look at, by workload."""
        self._selectors: dict[str, tuple[int, Json | None]] = {}
        """Revision and selector, by uid of a workload."""
        self._seen: dict[str, int] = {}
        """The generation of each workload for which all orphans were looked at, by uid."""

    def note(self, change: Change) -> list[Key]:
        """Take in a change of a dependent; returns the workloads that may have to adopt or release it."""
        entry, previous = change.entry, change.previous
        if previous is not None and change.type != DELETED and not _is_news(previous, entry):
            return []
        if change.type == DELETED:
            return []
        owner = entry.controller
        found: list[Key] = []
        for workload in self._workloads(entry.namespace):
            is_mine = workload.uid == owner
            if is_mine or (not owner and matches_label_selector(self._selector(workload), entry.labels)):
                self._candidates.setdefault(workload.key, {})[entry.key] = None
                found.append(workload.key)
        return found

    def settle(self, workload: Json) -> None:
        """Adopt and release what is due for a workload."""
        key, uid = key_of(workload), workload["metadata"]["uid"]
        candidates = self._candidates.pop(key, {})
        if "deletionTimestamp" in workload["metadata"]:
            return
        generation = workload["metadata"].get("generation", 1)
        if self._seen.get(uid) != generation:
            candidates = {**self._orphans(key[0]), **candidates}
            candidates |= dict.fromkeys(self._client.owners.dependents(uid, self._dependents))
            self._seen[uid] = generation
        selector = selector_of(workload)
        for candidate in candidates:
            entry = self._client.store.get(self._dependents, *candidate)
            if entry is not None and b'"deletionTimestamp"' not in entry.raw:
                self._settle_one(workload, selector, entry)

    def _settle_one(self, workload: Json, selector: Json | None, entry: Entry) -> None:
        uid, owner = workload["metadata"]["uid"], entry.controller
        matches = matches_label_selector(selector, entry.labels) and self.is_member(workload, entry)
        if owner == uid and not matches:
            self._client.update(self._dependents, entry.key, lambda document: without_owner(document, uid))
        elif not owner and matches and not _is_finished(entry):
            self._client.update(self._dependents, entry.key, lambda document: _with_owner(document, workload))

    @staticmethod
    def is_member(workload: Json, entry: Entry) -> bool:
        """Whether the name of an object fits the workload; only StatefulSets have rules for that."""
        if workload["kind"] != "StatefulSet":
            return True
        parent, _, ordinal = entry.name.rpartition("-")
        return parent == workload["metadata"]["name"] and ordinal.isdigit()

    def _orphans(self, namespace: str) -> dict[Key, None]:
        """The objects of a namespace without a controller."""
        if self._dependents == "pods":
            return self._client.pods.orphans(namespace)
        found = self._client.entries(self._dependents, namespace)
        return {entry.key: None for entry in found if not entry.controller}

    def _workloads(self, namespace: str) -> list[Entry]:
        return list(self._client.entries(self._primary, namespace))

    def _selector(self, workload: Entry) -> Json | None:
        known = self._selectors.get(workload.uid)
        if known is None or known[0] != workload.revision:
            known = self._selectors[workload.uid] = (workload.revision, selector_of(decode_object(workload.raw)))
        return known[1]


def selector_of(workload: Json) -> Json | None:
    """The label selector of a workload; ReplicationControllers have a plain map of labels."""
    selector: Json | None = workload["spec"].get("selector")
    if workload["kind"] == "ReplicationController":
        return {"matchLabels": selector} if selector else None
    return selector


def without_owner(document: Json, uid: str) -> Json:
    references = document["metadata"].get("ownerReferences") or []
    document["metadata"]["ownerReferences"] = [one for one in references if one.get("uid") != uid]
    return document


def _with_owner(document: Json, owner: Json) -> Json:
    kept = without_owner(document, owner["metadata"]["uid"])["metadata"]["ownerReferences"]
    document["metadata"]["ownerReferences"] = [*kept, owner_reference(owner)]
    return document


def _is_news(previous: Entry, entry: Entry) -> bool:
    return previous.labels != entry.labels or previous.controller != entry.controller


def _is_finished(entry: Entry) -> bool:
    return b'"phase":"Succeeded"' in entry.raw or b'"phase":"Failed"' in entry.raw
