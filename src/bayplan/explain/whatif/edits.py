"""Edits: changes of a cluster as data, applied to a copy and taken back.

An edit of an object is a strategic merge patch, so what an explanation suggests can be shown, sent to `whatif`, or
handed to `kubectl patch`. Edits are applied to copies only; no request is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from bayplan.api.decode import InputError, decode_object
from bayplan.api.devices import ResourceClaim, ResourceClaimStatus
from bayplan.api.kinds import KINDS
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.app.frameworks import watched_resources
from bayplan.explain.claims.base import Edit, JsonObject
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.explain.whatif.raw_objects import complete_objects
from bayplan.explain.whatif.remaking import is_lost, is_made_again, made_again, started_on
from bayplan.framework.resources import resource_info

__all__ = ["Undo", "add_node", "apply_edits", "kind_of", "merge_patch", "patched", "read_object"]

K = TypeVar("K", bound=KubeObject)
Undo = Callable[[], None]


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
    after = copy.waiting[edit.name] = patched(before, edit.patch)
    copy.cache.note_pod(before, after)

    def undo() -> None:
        copy.waiting[edit.name] = before
        copy.cache.note_pod(after, before)

    return undo


def _patch_node(copy: ClusterCopy, edit: Edit) -> Undo:
    info = copy.cache.cluster.node(edit.name)
    if info is None:
        raise InputError(f"no node `{edit.name}`")
    before = info.node
    copy.cache.add_node(patched(before, edit.patch))
    return lambda: _discard(copy.cache.add_node(before))


def _delete_pod(copy: ClusterCopy, edit: Edit) -> Undo:
    info = next((each for each in copy.cache.pods() if each.key == edit.name), None)
    if info is None:
        raise InputError(f"no running pod `{edit.name}`")
    pod, node = info.pod, info.node_name
    if pod.is_of_kubelet:
        raise InputError(f"deleting `{pod.key}` changes nothing: the kubelet of {node} runs it from a file")
    copy.cache.remove_pod(info.uid)
    reserve_again = copy.release_claims(pod)
    if is_made_again(pod):
        copy.waiting[pod.key] = made_again(pod, node)
        copy.remade[pod.key] = None
        copy.cache.note_pod(None, copy.waiting[pod.key])
    elif is_lost(pod):
        copy.lost[pod.key] = None

    def undo() -> None:
        if pod.key in copy.remade:
            del copy.waiting[pod.key], copy.remade[pod.key]
        copy.lost.pop(pod.key, None)
        reserve_again()
        copy.cache.assume(info, node)

    return undo


def _add_pod(copy: ClusterCopy, edit: Edit) -> Undo:
    pod = read_object(edit.object, Pod)
    if pod.key in copy.waiting:
        raise InputError(f"pod `{pod.key}` is there already")
    pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=f"added-{pod.key}"))
    copy.add_waiting(pod)

    def undo() -> None:
        del copy.waiting[pod.key]
        copy.cache.note_pod(pod, None)

    return undo


def _create(copy: ClusterCopy, edit: Edit) -> Undo:
    """An object that is neither a pod nor a node: a claim, a class, a quota."""
    item = _decoded(copy, edit)
    if item is None or isinstance(item, Pod | Node):
        raise InputError(f"`{edit.name}` cannot be created so")
    copy.cache.put_object(item)
    return lambda: copy.cache.remove_object(item)


def _patch_claim(copy: ClusterCopy, edit: Edit) -> Undo:
    """Of a resource claim, as if it had been made so: its spec cannot be changed later."""
    return _put_claim(copy, edit.name, lambda claim: patched(claim, edit.patch))


def _release_claim(copy: ClusterCopy, edit: Edit) -> Undo:
    """A resource claim that gives its devices back."""
    return _put_claim(copy, edit.name, lambda claim: msgspec.structs.replace(claim, status=ResourceClaimStatus()))


def _put_claim(copy: ClusterCopy, name: str, change: Callable[[ResourceClaim], ResourceClaim]) -> Undo:
    before = copy.cache.cluster.objects.get(ResourceClaim, name)
    if before is None:
        raise InputError(f"no resource claim `{name}`")
    copy.cache.put_object(change(before))
    return lambda: copy.cache.put_object(before)


def _decoded(copy: ClusterCopy, edit: Edit) -> KubeObject | None:
    """Of a built-in kind, or of a custom resource that a plugin watches."""
    for kind in watched_resources(decider.framework for decider in copy.deciders.values()):
        if kind_of(kind) == edit.object.get("kind"):
            try:
                return cast(KubeObject, msgspec.convert(edit.object, kind))
            except msgspec.ValidationError as error:
                raise InputError(f"`{edit.name}` does not fit: {error}") from None
    return decode_object(edit.object, where=edit.name)


def _patch_object(copy: ClusterCopy, edit: Edit) -> Undo:
    """An object that is neither a pod nor a node, such as a quota."""
    before = _known_object(copy, str(edit.object.get("kind", "")), edit.name)
    after = patched(before, edit.patch)
    copy.cache.put_object(after)
    return lambda: copy.cache.put_object(before)


def _known_object(copy: ClusterCopy, kind: str, key: str) -> KubeObject:
    types = [*(each.type for each in KINDS), *watched_resources(d.framework for d in copy.deciders.values())]
    found = next((each for each in types if kind_of(each) == kind and each not in (Pod, Node)), None)
    item: KubeObject | None = copy.cache.cluster.objects.get(found, key) if found is not None else None
    if item is None:
        raise InputError(f"no {kind or 'object'} `{key}` that scheduling reads")
    return item


def kind_of(type_: type[KubeObject]) -> str:
    """As documents have it: a custom resource may have another kind than its type is named."""
    builtin = next((each.name for each in KINDS if each.type is type_), None)
    return resource_info(type_).kind if builtin is None else builtin


def _add_node(copy: ClusterCopy, edit: Edit) -> Undo:
    node = read_object(edit.object, Node)
    if copy.cache.cluster.node(node.name) is not None:
        raise InputError(f"node `{node.name}` is there already")
    return add_node(copy, node, edit.like)


def add_node(copy: ClusterCopy, node: Node, like: str = "") -> Undo:
    """A new node; where it is to be `like` another one, with the pods that DaemonSets and its kubelet start there."""
    cache, model = copy.cache, copy.cache.cluster.node(like) if like else None
    started = [started_on(pod, node.name) for pod in (model.pods.values() if model is not None else ())]
    cache.add_node(node)
    pods = [cache.assume(pod, node.name) for pod in started if pod is not None]

    def undo() -> None:
        for pod in pods:
            cache.remove_pod(pod.uid)
        cache.remove_node(node.name)

    return undo


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
    "addPod": _add_pod,
    "addNode": _add_node,
    "create": _create,
    "patchClaim": _patch_claim,
    "releaseClaim": _release_claim,
    "patch": _patch_object,
    "removeNode": _remove_node,
}


def _discard(_: object) -> None:
    """Drop the result of an expression: an undo function has none."""


def read_object(item: Any, kind: type[K]) -> K:
    """An object of a manifest or a request, with the defaults that an API server would give it."""
    implied = {"apiVersion": "v1", "kind": kind.__name__}
    decoded = decode_object(item, where=kind.__name__, inherited=implied)
    if not isinstance(decoded, kind):
        raise InputError(f"expected a {kind.__name__}, found a {type(decoded).__name__}")
    complete_objects([decoded], priority_classes=(), source="")
    return decoded


def patched(item: K, patch: JsonObject) -> K:
    """The object with a patch applied. Raises `InputError`."""
    try:
        return msgspec.convert(_applied(msgspec.to_builtins(item), patch), type(item))
    except msgspec.ValidationError as error:
        raise InputError(f"the patch of `{item.key}` does not fit: {error}") from None


_BY_NAME = ("containers", "initContainers", "volumes")
"""Lists whose entries kubectl tells apart by name; other lists are replaced."""
_MERGED = ("ports", "topologySpreadConstraints")
"""Lists that kubectl would merge by other fields."""
_WHOLE = {"$patch": "replace"}
"""In front of entries, where a list that kubectl would merge is replaced."""


def _applied(current: Any, patch: Any, key: str = "") -> Any:
    if isinstance(patch, list):
        return _applied_list(current if isinstance(current, list) else [], patch, key)
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _applied(result.get(name), value, name)
    return result


def _applied_list(current: list[Any], patch: list[Any], key: str) -> list[Any]:
    if key not in _BY_NAME:
        return [entry for entry in patch if entry != _WHOLE]
    changes = {entry["name"]: entry for entry in patch if isinstance(entry, dict) and "name" in entry}
    kept = [entry for entry in current if changes.get(entry.get("name"), {}).get("$patch") != "delete"]
    known = {entry.get("name") for entry in current}
    added = [entry for name, entry in changes.items() if name not in known and "$patch" not in entry]
    return [_applied(entry, changes.get(entry.get("name"), {})) for entry in kept] + added


def merge_patch(before: KubeObject, after: KubeObject) -> JsonObject:
    """What turns one into the other and touches nothing else, as `kubectl patch` takes it (strategic merge)."""
    difference = _difference(_document(before), _document(after))
    return difference if isinstance(difference, dict) else {}


def _document(item: Any) -> Any:
    """With the defaults that mean something, which are left out when objects are sent."""
    if isinstance(item, msgspec.Struct):
        found: JsonObject = {}
        for part in _fields(type(item)):
            value = getattr(item, part.name)
            if value is not None and (value or value != part.default):
                found[part.encode_name] = _document(value)
        return found
    if isinstance(item, list | tuple):
        return [_document(entry) for entry in item]
    return (
        {key: _document(value) for key, value in item.items()} if isinstance(item, dict) else msgspec.to_builtins(item)
    )


@lru_cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Found out from annotations, which takes a while."""
    return msgspec.structs.fields(kind)


def _difference(before: Any, after: Any, key: str = "") -> Any:
    if key in _BY_NAME and isinstance(before, list) and isinstance(after, list):
        return _difference_by_name(before, after)
    if key in _MERGED and isinstance(after, list):
        return [_WHOLE, *after]
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    changed: JsonObject = {}
    for name in [name for name in before if name not in after]:
        gone = before[name] if name in _BY_NAME else None
        changed[name] = None if gone is None else _difference_by_name(gone, [])
    for name, value in after.items():
        if name not in before:
            changed[name] = value
        elif before[name] != value:
            changed[name] = _difference(before[name], value, name)
    return changed


def _difference_by_name(before: list[Any], after: list[Any]) -> list[Any]:
    known = {entry["name"]: entry for entry in before}
    left = {entry["name"] for entry in after}
    changes = [
        {"name": entry["name"], **_difference(known.get(entry["name"], {}), entry)}
        for entry in after
        if entry != known.get(entry["name"])
    ]
    return changes + [{"$patch": "delete", "name": name} for name in known if name not in left]
