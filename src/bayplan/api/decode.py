"""Decodes Kubernetes objects from plain data into typed objects, for offline commands.

Input comes from people, so each problem is one line: the file, the document or the path inside it, what was found, what
to do. Fields that scheduling does not read are skipped, as everywhere in this package; a wrong type, an unknown kind, a
missing name or a bad quantity is an error. `bayplan.cli.documents` reads the files.

No field gets a default but the namespace; see `bayplan.api.pod_defaults`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from bayplan.api.kinds import DEVICE_TAINT_RULES, KINDS, ObjectKind, kind_named
from bayplan.api.meta import KubeObject
from bayplan.api.pod_defaults import apply_pod_defaults
from bayplan.api.quantity import Quantity, QuantityError, milli_value
from bayplan.api.suggest import closest

__all__ = ["InputError", "apply_pod_defaults", "decode_object"]

_TEMPLATES = frozenset(("Deployment", "DaemonSet", "Job", "CronJob", "PodTemplate"))
_NAMES = {kind.name: kind for kind in (*KINDS, DEVICE_TAINT_RULES)}
_MSGSPEC_PATH = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)


class InputError(ValueError):
    """Input that cannot be used, in one line."""

    def __init__(self, message: str, *, source: str = "", where: str = "") -> None:
        super().__init__(": ".join(part for part in (source, where, message) if part))
        self.source, self.where, self.message = source, where, message


def decode_object(
    item: Any,
    *,
    source: str = "",
    where: str = "",
    inherited: Mapping[str, str] | None = None,
    ignore_unread: bool = False,
    more_kinds: Mapping[tuple[str, str], ObjectKind] | None = None,
) -> KubeObject | None:
    """One object from plain data; None for a kind that is not read when `ignore_unread` says so. Raises `InputError`.

    `source` and `where` are its place in messages, `inherited` the `apiVersion` and `kind` of one that names none, and
    `more_kinds` custom resources by `apiVersion` and `kind`.
    """
    if not isinstance(item, dict):
        raise InputError(f"expected a Kubernetes object, found {_shown(item)}", source=source, where=where)
    kind = (more_kinds or {}).get((str(item.get("apiVersion")), str(item.get("kind"))))
    if kind is None:
        kind = _kind_of(item, inherited or {}, source=source, where=where, ignore_unread=ignore_unread)
    if kind is None:
        return None
    decoded = _convert(item, kind, source=source, where=where)
    _complete(decoded, kind, item, source=source, where=where)
    _check_quantities(decoded, kind, source=source, where=where)
    return decoded


def _kind_of(
    item: Mapping[str, Any], inherited: Mapping[str, str], *, source: str, where: str, ignore_unread: bool
) -> ObjectKind | None:
    api_version, name = item.get("apiVersion"), item.get("kind")
    if name is None and inherited:
        api_version, name = inherited["apiVersion"], inherited["kind"]
    if not isinstance(name, str) or not isinstance(api_version, str) or not name:
        raise InputError(
            "`apiVersion` and `kind` are missing; is this a Kubernetes object?", source=source, where=where
        )
    kind = kind_named(api_version, name)
    if kind is not None:
        return kind
    if name in _NAMES:
        needed = _NAMES[name].api_version
        if api_version.split("/")[0] != needed.split("/")[0] and "/" in api_version and ignore_unread:
            return None  # another group's kind of the same name
        raise InputError(f"{name} is read as `{needed}`, found apiVersion `{api_version}`", source=source, where=where)
    like = closest(name, _NAMES, cutoff=0.86)
    if like is not None:
        raise InputError(f"unknown kind `{name}`; did you mean `{like}`?", source=source, where=where)
    if ignore_unread:
        return None
    raise InputError(_unread(api_version, name), source=source, where=where)


def _unread(api_version: str, name: str) -> str:
    if name in _TEMPLATES:
        return f"{name} is not read: scheduling reads pods; add the pods that it creates"
    like = closest(name, _NAMES, cutoff=0.65)
    hint = f"did you mean `{like}`?" if like else "remove it"
    return f"{api_version} {name} is not a kind that scheduling reads; {hint}"


def _convert(item: Any, kind: ObjectKind, *, source: str, where: str) -> KubeObject:
    try:
        return msgspec.convert(item, kind.type)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(_without_nulls(item), kind.type)
    except msgspec.ValidationError as error:
        path, what = _explained(str(error), item)
        raise InputError(what, source=source, where=_join(where, path)) from None
    except RecursionError:
        raise InputError("nested too deeply", source=source, where=where) from None


def _without_nulls(value: Any) -> Any:
    """null counts as absent, as it does for the API server."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _explained(message: str, item: Any) -> tuple[str, str]:
    """Path and message from an error of msgspec."""
    match = _MSGSPEC_PATH.match(message)
    path, what = ((match["path"] or "").lstrip("."), match["what"]) if match else ("", message)
    found = _at(item, path)
    expected = re.search(r"Expected `([^`]+)`", what)
    if expected is None:
        return path, what
    wanted = _wanted(expected[1])
    hint = f'; put it in quotes: "{found}"' if "text" in wanted and isinstance(found, bool | int | float) else ""
    return path, f"expected {wanted}, found {_shown(found)}{hint}"


def _wanted(types: str) -> str:
    words = {"object": "a mapping", "array": "a list", "str": "text", "int": "a whole number", "float": "a number"}
    words["bool"] = "true or false"
    parts = [words.get(part.strip(), part.strip()) for part in types.split("|") if part.strip() != "null"]
    return " or ".join(dict.fromkeys(parts))


def _at(value: Any, path: str) -> Any:
    """The value at a path in msgspec's notation (`spec.containers[0].ports`); a map's value is `[...]`."""
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]", path):
        if name:
            value = value.get(name) if isinstance(value, dict) else None
        elif index == "...":
            odd = [inner for inner in value.values() if not isinstance(inner, str)] if isinstance(value, dict) else []
            value = odd[0] if odd else None
        else:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
    return value


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return f"`{text[:60]}...`" if len(text) > 60 else f"`{text}`"


def _complete(decoded: KubeObject, kind: ObjectKind, item: Mapping[str, Any], *, source: str, where: str) -> None:
    """Complete name, namespace and uid."""
    metadata = decoded.metadata
    if not metadata.name:
        has_prefix = isinstance(item.get("metadata"), dict) and item["metadata"].get("generateName")
        hint = "; `generateName` needs an API server, give a name here" if has_prefix else ""
        raise InputError(f"{kind.name} has no `metadata.name`{hint}", source=source, where=where)
    if kind.is_namespaced and not metadata.namespace:
        metadata.namespace = "default"
    if not kind.is_namespaced:
        metadata.namespace = ""
    if not metadata.uid:
        metadata.uid = f"{kind.name}/{decoded.key}"


def _check_quantities(decoded: KubeObject, kind: ObjectKind, *, source: str, where: str) -> None:
    for path, quantity in _quantities(decoded, kind.type):
        problem = _quantity_problem(quantity)
        if problem:
            raise InputError(problem, source=source, where=_join(where, path))


def _quantity_problem(quantity: Quantity) -> str:
    try:
        return "" if milli_value(quantity) >= 0 else f"`{quantity}` is negative; a quantity here is 0 or more"
    except (QuantityError, OverflowError) as error:
        return str(error)


Walker = Callable[[Any, str], Iterable[tuple[str, Quantity]]]
_WALKERS: dict[type[Any], Walker | None] = {}
"""Accessors of the quantities of each kind, built when the kind is first decoded."""


def _quantities(value: Any, type_: type[Any]) -> Iterable[tuple[str, Quantity]]:
    if type_ not in _WALKERS:
        _WALKERS[type_] = _struct_walker(type_)
    walk = _WALKERS[type_]
    return walk(value, "") if walk else ()


def _struct_walker(type_: type[Any]) -> Walker | None:
    info = msgspec.inspect.type_info(type_)
    if not isinstance(info, msgspec.inspect.StructType):
        return None
    found = [(field.name, field.encode_name, _walker(field.type)) for field in info.fields]
    steps = [(name, wire, walk) for name, wire, walk in found if walk is not None]
    if not steps:
        return None

    def walk_struct(value: Any, path: str) -> Iterator[tuple[str, Quantity]]:
        for name, wire, walk in steps:
            inner = getattr(value, name)
            if inner is not None:
                yield from walk(inner, _dotted(path, wire))

    return walk_struct


def _walker(info: msgspec.inspect.Type) -> Walker | None:
    """An accessor of the quantities in a value of this type; None when there can be none."""
    if isinstance(info, msgspec.inspect.StructType):
        return _struct_walker(info.cls)
    if isinstance(info, msgspec.inspect.ListType):
        return _list_walker(_walker(info.item_type))
    if isinstance(info, msgspec.inspect.DictType):
        return _map_walker(_walker(info.value_type))
    if isinstance(info, msgspec.inspect.UnionType):
        kinds = {type(part) for part in info.types}
        if {msgspec.inspect.StrType, msgspec.inspect.IntType, msgspec.inspect.FloatType} <= kinds:
            return lambda value, path: ((path, value),)
        return next((walk for walk in map(_walker, info.types) if walk is not None), None)
    return None


def _list_walker(inner: Walker | None) -> Walker | None:
    if inner is None:
        return None
    return lambda value, path: (pair for i, item in enumerate(value) for pair in inner(item, f"{path}[{i}]"))


def _map_walker(inner: Walker | None) -> Walker | None:
    if inner is None:
        return None
    return lambda value, path: (pair for key, item in value.items() for pair in inner(item, f"{path}[{key}]"))


def _dotted(path: str, inner: str) -> str:
    if not path or not inner:
        return path or inner
    return f"{path}{inner}" if inner.startswith("[") else f"{path}.{inner}"


def _join(where: str, path: str) -> str:
    return ": ".join(part for part in (where, path) if part)
