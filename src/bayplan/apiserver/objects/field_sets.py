"""Sets of field paths, in the JSON form of FieldsV1, and how objects differ in terms of them.

A set is a nested dict: `{"f:spec": {"f:replicas": {}}}`. An empty dict is a member; a member that has members below
it carries a `"."`. List items are named by their keys (`k:{"name":"web"}`) or their value (`v:"x"`). All functions
return new sets and leave their arguments alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.apiserver.kinds.type_table import ANY, FieldType
from bayplan.apiserver.protocol.encoding import Json, JsonValue, decode, encode

FieldSet = dict[str, JsonValue]
_KEY_DEFAULTS = {"protocol": "TCP"}


def is_member(node: FieldSet) -> bool:
    return not node or "." in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    result = dict(left)
    for key, child in right.items():
        mine = left.get(key)
        if key == "." or mine is None:
            result[key] = child
            continue
        joined = union(mine, child)
        joined.pop(".", None)
        if joined and (is_member(mine) or is_member(child)):
            joined["."] = {}
        result[key] = joined
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for key, child in left.items():
        if key == ".":
            continue
        other = right.get(key)
        if other is None:
            result[key] = child
            continue
        kept = difference(child, other)
        stays = is_member(child) and not is_member(other)
        if kept and stays:
            kept["."] = {}
        if kept or stays:
            result[key] = kept
    return result


def with_parents(fields: FieldSet) -> FieldSet:
    """The set with every field that has members below it as a member."""
    return {key: with_parents(child) | ({".": {}} if child else {}) for key, child in fields.items() if key != "."}


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for key, child in left.items():
        other = right.get(key)
        if key == "." or other is None:
            continue
        below = intersection(child, other)
        both = is_member(child) and is_member(other)
        if below and both:
            below["."] = {}
        if below or both:
            result[key] = below
    return result


def member_paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Every member as text: `.spec.containers[name="web"].image`."""
    for key, child in fields.items():
        if key == ".":
            continue
        path = prefix + _path_element(key)
        if is_member(child):
            yield path
        yield from member_paths(child, path)


def _path_element(key: str) -> str:
    form, text = key[0], key[2:]
    if form == "f":
        return f".{text}"
    if form == "v":
        return f"[={text}]"
    pairs = decode(text.encode()).items()
    return "[" + ",".join(f"{name}={encode(value).decode()}" for name, value in pairs) + "]"


# ---- from values


def item_key(item: JsonValue, keys: tuple[str, ...]) -> str | None:
    """How an item of a keyed list is named in a set, or None when it lacks a key."""
    if not isinstance(item, dict):
        return None
    found = {}
    for key in sorted(keys):
        value = item.get(key, _KEY_DEFAULTS.get(key))
        if value is None:
            return None
        found[key] = value
    return "k:" + encode(found).decode()


def value_key(item: JsonValue) -> str:
    return "v:" + encode(item).decode()


def member_type(declared: FieldType, name: str) -> FieldType:
    """The type of a field of a struct, or of a map's values."""
    if declared.kind == "struct":
        member = declared.fields.get(name)
        return member.type if member is not None else ANY
    return declared.element or ANY if declared.kind == "map" else ANY


def fields_of(value: JsonValue, declared: FieldType) -> FieldSet:
    """All fields that a value sets; empty when it is owned as a whole."""
    if isinstance(value, dict):
        if declared.atomic:
            return {}
        return {f"f:{name}": fields_of(inner, member_type(declared, name)) for name, inner in value.items()}
    if isinstance(value, list) and declared.kind == "list" and declared.list_type != "atomic":
        return _fields_of_list(value, declared)
    return {}


def _fields_of_list(items: list[JsonValue], declared: FieldType) -> FieldSet:
    result: FieldSet = {}
    for item in items:
        if declared.list_type == "set":
            result[value_key(item)] = {}
            continue
        key = item_key(item, declared.list_keys)
        if key is not None:
            result[key] = fields_of(item, declared.element or ANY) | {".": {}}
    return result


def keyed_items(items: JsonValue, declared: FieldType) -> dict[str, JsonValue] | None:
    """The items of a list by name, or None when the list is owned as a whole or cannot be keyed."""
    if declared.kind != "list" or declared.list_type == "atomic" or not isinstance(items, list):
        return None
    found: dict[str, JsonValue] = {}
    for item in items:
        key = value_key(item) if declared.list_type == "set" else item_key(item, declared.list_keys)
        if key is None:
            return None
        found[key] = item
    return found


def compare(old: JsonValue, new: JsonValue, declared: FieldType) -> tuple[FieldSet, FieldSet]:
    """What was set or changed, and what was removed, on the way from `old` to `new` (two composites)."""
    if isinstance(old, dict) and isinstance(new, dict):
        return _compare_fields(old, new, declared)
    keyed_old, keyed_new = keyed_items(old, declared), keyed_items(new, declared)
    if keyed_old is None or keyed_new is None:
        return {}, {}
    return _compare_items(keyed_old, keyed_new, declared.element or ANY)


def _compare_fields(old: Json, new: Json, declared: FieldType) -> tuple[FieldSet, FieldSet]:
    changed: FieldSet = {}
    removed: FieldSet = {}
    for name, value in new.items():
        if name not in old:
            changed[f"f:{name}"] = fields_of(value, member_type(declared, name))
        elif old[name] != value:
            _compare_child(f"f:{name}", old[name], value, member_type(declared, name), changed, removed)
    for name, value in old.items():
        if name not in new:
            removed[f"f:{name}"] = fields_of(value, member_type(declared, name))
    return changed, removed


def _compare_items(old: Json, new: Json, element: FieldType) -> tuple[FieldSet, FieldSet]:
    changed: FieldSet = {}
    removed: FieldSet = {}
    for key, value in new.items():
        if key not in old:
            changed[key] = _with_item_mark(key, fields_of(value, element))
        elif old[key] != value:
            _compare_child(key, old[key], value, element, changed, removed)
    for key, value in old.items():
        if key not in new:
            removed[key] = _with_item_mark(key, fields_of(value, element))
    return changed, removed


def _with_item_mark(key: str, fields: FieldSet) -> FieldSet:
    return fields | {".": {}} if key.startswith("k:") else fields


def _compare_child(
    key: str, old: JsonValue, new: JsonValue, declared: FieldType, changed: FieldSet, removed: FieldSet
) -> None:
    if _is_whole(old, new, declared):
        changed[key] = {}
        return
    inner_changed, inner_removed = compare(old, new, declared)
    if inner_changed:
        changed[key] = inner_changed
    if inner_removed:
        removed[key] = inner_removed


def _is_whole(old: JsonValue, new: JsonValue, declared: FieldType) -> bool:
    """Whether a change of this value is a change of the value as a whole."""
    if isinstance(old, dict) and isinstance(new, dict):
        return declared.atomic
    return keyed_items(old, declared) is None or keyed_items(new, declared) is None
