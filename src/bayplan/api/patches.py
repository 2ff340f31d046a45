"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386) on plain documents.

Both return the patched document; a JSON patch changes the one it was given, a merge patch copies what it changes. A
patch that cannot be applied is a `BadPatch`. Kinds do not matter here.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""What `copy` operations may add to a document, as JSON, in one patch; the limit of kube-apiserver."""


_LONGEST_INDEX = 20


class BadPatch(Exception):
    """The patch is malformed (`is_malformed`) or does not fit the document."""

    def __init__(self, message: str, *, is_malformed: bool = True) -> None:
        super().__init__(message)
        self.is_malformed = is_malformed


class TestFailed(BadPatch):
    """A `test` of the patch found another value."""

    __test__ = False


def merge_patch(document: Any, patch: Any) -> Any:
    """A document with a merge patch applied: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def json_patch(document: Any, operations: Any) -> Any:
    """Run the operations in order; the first that fails fails the whole patch."""
    if not isinstance(operations, list):
        raise BadPatch("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise BadPatch(f"the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")
    allowance = _Allowance()
    try:
        for operation in operations:
            document = _run(document, operation, allowance)
    except RecursionError:
        raise BadPatch("the patched document is nested too deeply", is_malformed=False) from None
    return document


class _Allowance:
    """Counts what copies add."""

    def __init__(self) -> None:
        self._copied_bytes = 0

    def copy(self, value: Any) -> Any:
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > MAX_COPIED_BYTES:
            problem = f"the accumulated size increase of copy is {self._copied_bytes}"
            raise BadPatch(
                f"Unable to complete the copy, {problem}, exceeding the limit {MAX_COPIED_BYTES}", is_malformed=False
            )
        return copy.deepcopy(value)


def _run(document: Any, operation: Any, allowance: _Allowance) -> Any:
    if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
        raise BadPatch("each operation of a JSON patch is an object with `op` and `path`")
    name, path = operation.get("op"), _pointer(operation["path"])
    if name in ("add", "replace", "test") and "value" not in operation:
        raise BadPatch(f"`{name}` needs a `value`")
    if name == "add":
        return _add(document, path, operation["value"])
    if name == "replace":
        return _replace(document, path, operation["value"])
    if name == "remove":
        return _remove(document, path)
    if name == "test":
        return _test(document, path, operation)
    if name in ("move", "copy") and isinstance(operation.get("from"), str):
        source = _pointer(operation["from"])
        if name == "move":
            return _move(document, path, source)
        return _add(document, path, allowance.copy(_resolve(document, source)))
    raise BadPatch(f"Unexpected kind: {name}")


def _pointer(text: str) -> list[str]:
    if text == "":
        return []
    if not text.startswith("/"):
        raise BadPatch(f"the path `{text}` does not start with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _missing(path: list[str]) -> BadPatch:
    return BadPatch(f"there is nothing at /{'/'.join(path)}", is_malformed=False)


def _index(items: list[Any], part: str, path: list[str], *, may_append: bool) -> int:
    if part == "-" and may_append:
        return len(items)
    is_number = part.isascii() and part.isdigit() and len(part) < _LONGEST_INDEX
    if not is_number or int(part) > len(items) - (0 if may_append else 1):
        raise BadPatch(f"the index `{part}` is out of bounds at /{'/'.join(path)}", is_malformed=False)
    return int(part)


def _resolve(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(document, part, path, may_append=False)]
        else:
            raise _missing(path)
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _resolve(document, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        parent.insert(_index(parent, path[-1], path, may_append=True), value)
    else:
        raise _missing(path)
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    _resolve(document, path)
    parent = _resolve(document, path[:-1])
    parent[int(path[-1]) if isinstance(parent, list) else path[-1]] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise BadPatch("the whole document cannot be removed")
    _resolve(document, path)
    parent = _resolve(document, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
    return document


def _test(document: Any, path: list[str], operation: dict[str, Any]) -> Any:
    try:
        found = _resolve(document, path)
    except BadPatch:
        found = None
    if found != operation["value"] or isinstance(found, bool) != isinstance(operation["value"], bool):
        raise TestFailed(f"testing value {operation['path']} failed: test failed", is_malformed=False)
    return document


def _move(document: Any, path: list[str], source: list[str]) -> Any:
    value = _resolve(document, source)
    if path[: len(source)] == source and path != source:
        raise BadPatch("a value cannot be moved into itself")
    return _add(_remove(document, source), path, value)
