"""Edits: changes of a cluster as data, applied to a copy and taken back.

An edit of an object is a JSON merge patch (RFC 7386), so what an explanation suggests can be shown, sent to `whatif`,
or handed to `kubectl patch --type merge`. Edits are applied to copies only; nothing here knows an API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import msgspec

from bayplan.api import patches
from bayplan.api.decode import InputError, decode_object
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.explain.case import JsonObject
from bayplan.explain.cluster_copy import ClusterCopy
from bayplan.explain.raw_objects import complete_objects

__all__ = ["Edit", "Undo", "apply_edits", "merge_patch", "patched", "read_object"]

K = TypeVar("K", bound=KubeObject)
Undo = Callable[[], None]


class Edit(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """`patchPod` is about a pending pod; `name` is `namespace/name` for pods."""

    kind: Literal["patchPod", "patchNode", "deletePod", "addNode", "removeNode"]
    name: str
    patch: JsonObject = {}
    object: JsonObject = {}
    """For `addNode`: the whole node."""


def apply_edits(copy: ClusterCopy, edits: Iterable[Edit]) -> Undo:
    """Change the copy; the answer puts it back. An edit that makes no sense raises `InputError` and changes nothing."""
    undo: list[Undo] = []

    def undo_all() -> None:
        for step in reversed(undo):
            step()

    try:
        for edit in edits:
            undo.append(_APPLY[edit.kind](copy, edit))  # noqa: PERF401 - what is done so far must be known to undo it
    except InputError:
        undo_all()
        raise
    return undo_all


def _patch_pod(copy: ClusterCopy, edit: Edit) -> Undo:
    before = copy.waiting.get(edit.name)
    if before is None:
        raise InputError(f"no pending pod `{edit.name}`")
    copy.waiting[edit.name] = patched(before, edit.patch)

    def undo() -> None:
        copy.waiting[edit.name] = before

    return undo


def _patch_node(copy: ClusterCopy, edit: Edit) -> Undo:
    info = copy.cache.cluster.node(edit.name)
    if info is None:
        raise InputError(f"no node `{edit.name}`")
    before = info.node
    copy.cache.add_node(patched(before, edit.patch))
    return lambda: _discard(copy.cache.add_node(before))


def _delete_pod(copy: ClusterCopy, edit: Edit) -> Undo:
    for info in copy.cache.pods():
        if info.key == edit.name:
            copy.cache.remove_pod(info.uid)
            return lambda: _discard(copy.cache.assume(info, info.node_name))
    raise InputError(f"no running pod `{edit.name}`")


def _add_node(copy: ClusterCopy, edit: Edit) -> Undo:
    node = read_object(edit.object, Node)
    if copy.cache.cluster.node(node.name) is not None:
        raise InputError(f"node `{node.name}` is there already")
    copy.cache.add_node(node)
    return lambda: copy.cache.remove_node(node.name)


def _remove_node(copy: ClusterCopy, edit: Edit) -> Undo:
    info = copy.cache.cluster.node(edit.name)
    if info is None:
        raise InputError(f"no node `{edit.name}`")
    node = info.node
    copy.cache.remove_node(edit.name)
    return lambda: _discard(copy.cache.add_node(node))


_APPLY: dict[str, Callable[[ClusterCopy, Edit], Undo]] = {
    "patchPod": _patch_pod,
    "patchNode": _patch_node,
    "deletePod": _delete_pod,
    "addNode": _add_node,
    "removeNode": _remove_node,
}


def _discard(_: object) -> None:
    """What putting something back answers is of no interest."""


def read_object(item: Any, kind: type[K]) -> K:
    """An object that somebody wrote, with the defaults that an API server would give it."""
    implied = {"apiVersion": "v1", "kind": kind.__name__}
    decoded = decode_object(item, where=kind.__name__, inherited=implied)
    if not isinstance(decoded, kind):
        raise InputError(f"expected a {kind.__name__}, found a {type(decoded).__name__}")
    complete_objects([decoded], priority_classes=(), source="")
    return decoded


def patched(item: K, patch: JsonObject) -> K:
    """The object with a merge patch applied. Raises `InputError`."""
    try:
        return msgspec.convert(patches.merge_patch(msgspec.to_builtins(item), patch), type(item))
    except msgspec.ValidationError as error:
        raise InputError(f"the patch of `{item.key}` does not fit: {error}") from None


def merge_patch(before: Pod | Node, after: Pod | Node) -> JsonObject:
    """What turns one into the other."""
    difference = _difference(msgspec.to_builtins(before), msgspec.to_builtins(after))
    return difference if isinstance(difference, dict) else {}


def _difference(before: Any, after: Any) -> Any:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    changed: JsonObject = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            changed[key] = value
        elif before[key] != value:
            changed[key] = _difference(before[key], value)
    return changed
