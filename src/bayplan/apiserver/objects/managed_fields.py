"""Who owns which field: `metadata.managedFields`, kept on every write, and server-side apply on top of it.

A manager that creates, updates or patches owns what it changed; a manager that applies owns exactly what it applied,
conflicts with owners of what it would change unless forced, and removes what it no longer applies and no other manager
owns. Works on documents the caller owns; never on stored bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from bayplan.apiserver.kinds.content_cache import ContentCache
from bayplan.apiserver.kinds.type_table import FieldType
from bayplan.apiserver.objects.field_sets import (
    FieldSet,
    compare,
    difference,
    fields_of,
    intersection,
    is_member,
    keyed_items,
    member_paths,
    member_type,
    union,
    with_parents,
)
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue

APPLY, UPDATE = "Apply", "Update"
BEFORE_FIRST_APPLY = "before-first-apply"
_UNOWNED_METADATA = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "selfLink",
        "generation",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    }
)
_UNOWNED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {f"f:{name}": {} for name in _UNOWNED_METADATA},
}
# The parts that objects of one template have in common.
_RECURRING = ("metadata", "spec", "status")
_owned: ContentCache[FieldSet] = ContentCache()


@dataclass(frozen=True, slots=True)
class FieldWriter:
    """The manager on whose behalf a write is made."""

    manager: str
    operation: str
    api_version: str
    time: str
    subresource: str = ""

    def key(self) -> tuple[str, str, str]:
        return (self.manager, self.operation, self.subresource)


def owned_fields(document: Json, declared: FieldType) -> FieldSet:
    """The fields of an object that can have an owner."""
    fields: FieldSet = {}
    for name, value in document.items():
        if name in ("apiVersion", "kind"):
            continue
        if name == "metadata":
            value = {key: inner for key, inner in value.items() if key not in _UNOWNED_METADATA}
            if not value:
                continue
        inner_type = member_type(declared, name)
        if name in _RECURRING:
            found = _owned.get(value, inner_type, functools.partial(fields_of, value, inner_type))
        else:
            found = fields_of(value, inner_type)
        fields[f"f:{name}"] = found
    return fields


def _without_managed_fields(document: Json) -> Json:
    metadata = document.get("metadata", {})
    return document | {"metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _entry(writer: FieldWriter, fields: FieldSet) -> Json:
    entry = {
        "manager": writer.manager,
        "operation": writer.operation,
        "apiVersion": writer.api_version,
        "time": writer.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | {"subresource": writer.subresource} if writer.subresource else entry


def _key_of(entry: Json) -> tuple[str, str, str]:
    return (entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", ""))


def record_create(document: Json, declared: FieldType, writer: FieldWriter) -> None:
    """Make the writer the owner of everything in a new object."""
    document["metadata"]["managedFields"] = [_entry(writer, owned_fields(document, declared))]


def record_update(old: Json, new: Json, declared: FieldType, writer: FieldWriter) -> None:
    """Transfer the ownership of changed fields to the writer."""
    entries = _entries_of_update(old["metadata"], new["metadata"], writer)
    changed, removed = compare(_without_managed_fields(old), _without_managed_fields(new), declared)
    changed, removed = difference(changed, _UNOWNED), difference(removed, _UNOWNED)
    if changed or removed:
        entries = _updated_entries(entries, changed, removed, writer)
    new["metadata"]["managedFields"] = entries
    if not entries:
        del new["metadata"]["managedFields"]


def _entries_of_update(old: Json, new: Json, writer: FieldWriter) -> list[Json]:
    """The entries that an update starts from: those it brings, if they are sound; one empty entry forgets all."""
    kept: list[Json] = old.get("managedFields", [])
    given = new.get("managedFields")
    if writer.subresource or not isinstance(given, list) or not given:
        return kept
    if given == [{}]:
        return []
    return given if all(_is_sound(entry) for entry in given) else kept


def _is_sound(entry: JsonValue) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in (APPLY, UPDATE)
        and bool(entry.get("apiVersion"))
        and entry.get("fieldsType") == "FieldsV1"
        and isinstance(entry.get("fieldsV1"), dict)
    )


def _updated_entries(entries: list[Json], changed: FieldSet, removed: FieldSet, writer: FieldWriter) -> list[Json]:
    kept: list[Json] = []
    mine: FieldSet = {}
    for entry in entries:
        fields = difference(entry.get("fieldsV1", {}), removed)
        if _key_of(entry) == writer.key():
            mine = fields
            continue
        fields = difference(fields, changed)
        if fields:
            kept.append(entry | {"fieldsV1": fields})
    mine = union(mine, changed)
    if mine:
        kept.append(_entry(writer, mine))
    return kept


# ---- server-side apply


def apply(live: Json | None, applied: Json, declared: FieldType, writer: FieldWriter, *, force: bool) -> Json:
    """The object after `applied` was applied on `live`. Raises a 409 that lists every conflict."""
    wanted = owned_fields(applied, declared)
    if live is None:
        created = _without_managed_fields(applied)
        created["metadata"]["managedFields"] = [_entry(writer, wanted)]
        return created
    entries = _entries_before_apply(live, declared, writer)
    current = _without_managed_fields(live)
    merged: Json = merge(current, _without_managed_fields(applied), declared)
    changed = difference(compare(current, merged, declared)[0], _UNOWNED)
    others = [entry for entry in entries if _key_of(entry) != writer.key()]
    conflicts = {index: intersection(entry.get("fieldsV1", {}), changed) for index, entry in enumerate(others)}
    if any(conflicts.values()) and not force:
        raise _conflict(others, conflicts)
    last = next((entry for entry in entries if _key_of(entry) == writer.key()), None)
    if last is not None:
        prune(merged, _no_longer_applied(last, wanted, others), declared)
    merged["metadata"]["managedFields"] = _entries_after_apply(others, conflicts, wanted, writer, last)
    return merged


def _entries_before_apply(live: Json, declared: FieldType, writer: FieldWriter) -> list[Json]:
    entries: list[Json] = live["metadata"].get("managedFields", [])
    if entries:
        return entries
    earlier = _entry(FieldWriter(BEFORE_FIRST_APPLY, UPDATE, writer.api_version, ""), owned_fields(live, declared))
    del earlier["time"]  # nobody knows it
    return [earlier]


def _no_longer_applied(last: Json, wanted: FieldSet, others: list[Json]) -> FieldSet:
    dropped = difference(last.get("fieldsV1", {}), wanted)
    for entry in others:
        dropped = difference(dropped, with_parents(entry.get("fieldsV1", {})))
    return dropped


def _entries_after_apply(
    others: list[Json], conflicts: Mapping[int, FieldSet], wanted: FieldSet, writer: FieldWriter, last: Json | None
) -> list[Json]:
    kept = []
    for index, entry in enumerate(others):
        fields = difference(entry.get("fieldsV1", {}), conflicts[index])
        if fields:
            kept.append(entry | {"fieldsV1": fields})
    mine = _entry(writer, wanted)
    if last is not None and last.get("fieldsV1") == wanted:
        mine["time"] = last.get("time", writer.time)
    return [mine, *kept]


def _conflict(others: list[Json], conflicts: Mapping[int, FieldSet]) -> errors.RequestRefused:
    causes: list[Json] = []
    lines: list[str] = []
    for index, entry in enumerate(others):
        paths = sorted(member_paths(conflicts[index]))
        if not paths:
            continue
        owner = _owner_text(entry)
        lines += [f"conflicts with {owner}:" if len(paths) > 1 else f"conflict with {owner}: {paths[0]}"]
        lines += [f"- {path}" for path in paths] if len(paths) > 1 else []
        causes += [_conflict_cause(owner, path) for path in paths]
    count = len(causes)
    word = "conflict" if count == 1 else "conflicts"
    return errors.apply_conflict(f"Apply failed with {count} {word}: " + "\n".join(lines), causes)


def _conflict_cause(owner: str, path: str) -> Json:
    return {"reason": "FieldManagerConflict", "message": f"conflict with {owner}", "field": path}


def _owner_text(entry: Json) -> str:
    text = f'"{entry.get("manager")}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    if entry.get("operation") == UPDATE:
        text += f" using {entry.get('apiVersion')}"
        text += f" at {entry['time']}" if entry.get("time") else ""
    return text


def merge(live: JsonValue, applied: JsonValue, declared: FieldType) -> JsonValue:
    """The union of two values, in which `applied` wins."""
    if isinstance(live, dict) and isinstance(applied, dict) and not declared.atomic:
        result = dict(live)
        for name, value in applied.items():
            result[name] = merge(live[name], value, member_type(declared, name)) if name in live else value
        return result
    live_items, applied_items = keyed_items(live, declared), keyed_items(applied, declared)
    if live_items is None or applied_items is None or declared.element is None:
        return applied
    result_items = dict(live_items)
    for key, item in applied_items.items():
        result_items[key] = merge(live_items[key], item, declared.element) if key in live_items else item
    return list(result_items.values())


def prune(value: JsonValue, removed: FieldSet, declared: FieldType) -> None:
    """Remove the members of a set from a document, in place, and composites that became empty by it."""
    if isinstance(value, dict):
        for key, below in removed.items():
            if key.startswith("f:") and key[2:] in value:
                _prune_field(value, key[2:], below, member_type(declared, key[2:]))
    elif isinstance(value, list):
        _prune_list(value, removed, declared)


def _prune_field(value: Json, name: str, below: FieldSet, declared: FieldType) -> None:
    if is_member(below) and not any(key != "." for key in below):
        del value[name]
        return
    prune(value[name], below, declared)
    if value[name] in ({}, []):
        del value[name]


def _prune_list(items: list[JsonValue], removed: FieldSet, declared: FieldType) -> None:
    named = keyed_items(items, declared)
    if named is None:
        return
    for key, below in removed.items():
        if key in named and is_member(below):
            items.remove(named[key])
        elif key in named:
            prune(named[key], below, declared.element or declared)
