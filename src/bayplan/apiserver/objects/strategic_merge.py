"""Strategic merge patch: a merge patch that knows which lists are merged by key.

The rules come from the type table. Directives understood: `$patch` (merge, replace, delete), `$retainKeys`,
`$setElementOrder/<field>` and `$deleteFromPrimitiveList/<field>`. The patch and the document belong to the caller.
"""

from __future__ import annotations

from bayplan.api.patches import BadPatch
from bayplan.apiserver.kinds.type_table import ANY, Field, FieldType
from bayplan.apiserver.protocol.encoding import Json, JsonValue

_ORDER = "$setElementOrder/"
_DELETE_PRIMITIVE = "$deleteFromPrimitiveList/"


def strategic_merge(document: Json, patch: JsonValue, declared: FieldType) -> Json:
    """Lay a strategic merge patch over a document of the given type."""
    if not isinstance(patch, dict):
        raise BadPatch("a strategic merge patch is an object")
    return _merge_object(document, patch, declared)


def _merge_object(document: Json, patch: Json, declared: FieldType) -> Json:
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise BadPatch(f"Unknown patch type found: {directive}")
    _retain_keys(document, patch)
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(document, name, value, patch, declared)
    for name in patch:
        if name.startswith(_DELETE_PRIMITIVE):
            _delete_primitives(document, name[len(_DELETE_PRIMITIVE) :], patch[name])
    for name in patch:
        if name.startswith(_ORDER) and name[len(_ORDER) :] not in patch:
            _reorder_field(document, name[len(_ORDER) :], patch[name], declared)
    return document


def _retain_keys(document: Json, patch: Json) -> None:
    retained = patch.get("$retainKeys")
    if retained is None:
        return
    if not isinstance(retained, list):
        raise BadPatch("$retainKeys is a list of field names")
    for name in [name for name in document if name not in retained]:
        del document[name]


def _field(declared: FieldType, name: str) -> Field:
    if declared.kind == "map" and declared.element is not None:
        return Field(name, declared.element)
    return declared.fields.get(name) or Field(name, ANY)


def _merge_field(document: Json, name: str, value: JsonValue, patch: Json, declared: FieldType) -> None:
    field = _field(declared, name)
    current = document.get(name)
    if value is None:
        document.pop(name, None)
    elif isinstance(value, dict):
        _merge_object_field(document, name, value, current, field)
    elif isinstance(value, list) and "merge" in field.patch_strategies:
        original = list(current) if isinstance(current, list) else []
        merged = _merge_list(list(original), value, field)
        order = patch.get(_ORDER + name)
        document[name] = _in_order(merged, order if isinstance(order, list) else value, original, field)
    else:
        document[name] = value


def _merge_object_field(document: Json, name: str, value: Json, current: JsonValue, field: Field) -> None:
    if value.get("$patch") == "delete":
        document.pop(name, None)
        return
    replaces = "replace" in field.patch_strategies
    base = current if isinstance(current, dict) and not replaces else {}
    document[name] = _merge_object(base, value, field.type)


def _merge_list(items: list[JsonValue], patch: list[JsonValue], field: Field) -> list[JsonValue]:
    if any(isinstance(item, dict) and item == {"$patch": "replace"} for item in patch):
        return [item for item in patch if item != {"$patch": "replace"}]
    if not field.patch_key:
        return items + [item for item in patch if item not in items]
    for change in patch:
        items = _merge_item(items, change, field)
    return items


def _merge_item(items: list[JsonValue], change: JsonValue, field: Field) -> list[JsonValue]:
    key = field.patch_key
    if not isinstance(change, dict):
        raise BadPatch(f"each item of `{field.name}` in the patch is an object with a `{key}`")
    if key not in change:
        raise BadPatch(f"map: {change} does not contain declared merge key: {key}")
    same = [index for index, item in enumerate(items) if isinstance(item, dict) and item.get(key) == change[key]]
    if change.get("$patch") == "delete":
        return [item for index, item in enumerate(items) if index not in same]
    element = field.type.element or ANY
    if same:
        items[same[0]] = _merge_object(items[same[0]], change, element)
    else:
        items.append(_merge_object({}, change, element))
    return items


def _delete_primitives(document: Json, name: str, values: JsonValue) -> None:
    if not isinstance(values, list):
        raise BadPatch(f"{_DELETE_PRIMITIVE}{name} is a list")
    if isinstance(document.get(name), list):
        document[name] = [item for item in document[name] if item not in values]


def _reorder_field(document: Json, name: str, order: JsonValue, declared: FieldType) -> None:
    if isinstance(order, list) and isinstance(document.get(name), list):
        document[name] = _in_order(document[name], order, document[name], _field(declared, name))


def _in_order(
    items: list[JsonValue], order: list[JsonValue], original: list[JsonValue], field: Field
) -> list[JsonValue]:
    """Items named by `order` (that of the patch) in that order, before all others that did not precede them."""

    def name_of(item: JsonValue) -> JsonValue:
        name = item.get(field.patch_key) if isinstance(item, dict) else item
        return name if isinstance(name, (str, int, bool, float)) else None

    ranks = {name_of(item): rank for rank, item in reversed(list(enumerate(order)))}
    places = {name_of(item): place for place, item in reversed(list(enumerate(original)))}
    named = sorted((item for item in items if name_of(item) in ranks), key=lambda item: ranks[name_of(item)])
    others = [item for item in items if name_of(item) not in ranks]
    result: list[JsonValue] = []
    while named and others:
        first, other = places.get(name_of(named[0])), places.get(name_of(others[0]))
        precedes = first is not None and other is not None and other < first
        result.append(others.pop(0) if precedes else named.pop(0))
    return result + named + others
