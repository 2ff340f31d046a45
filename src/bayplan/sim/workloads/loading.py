"""Reads workload files and clusters for simulations. Every problem is one line with the file and the line in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bayplan.api.decode import InputError, decode_object
from bayplan.api.documents import Document, DocumentError, parse_documents
from bayplan.api.kinds import ObjectKind
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.pod_defaults import UnknownPriorityClass, apply_pod_defaults
from bayplan.api.workload import PriorityClass
from bayplan.apiserver.kinds.unknown_fields import find_unknown_fields
from bayplan.sim.workloads.arrivals import check_arrivals
from bayplan.sim.workloads.model import AddNodes, Item, NodeEvent, WorkloadFile
from bayplan.sim.workloads.openb import read_nodes
from bayplan.sim.workloads.units import MOST_PODS, Durations, period_of, seconds_of

__all__ = [
    "NodePool",
    "check_identities",
    "decode_template",
    "nodes_of",
    "pool_nodes",
    "read_cluster",
    "read_pools",
    "read_workload",
]

T = TypeVar("T")
_POOL = ("bayplan.dev/v1alpha1", "NodePool")
_WORKLOAD = ("bayplan.dev/v1alpha1", "Workload")
_MOST_NODES = 100_000
_PATH = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([A-Za-z]\w*)|\[(\d+)\]")


class NodePool(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Nodes by template: `kind: NodePool` in a cluster file."""

    api_version: str
    kind: str
    name: str
    count: int
    template: dict[str, Any]


def read_cluster(paths: Iterable[Path], custom: Mapping[tuple[str, str], ObjectKind] | None = None) -> list[KubeObject]:
    """The objects of cluster files: dumps and manifests, node pools, openb node lists.

    `custom` are the custom resources to read, by `apiVersion` and `kind`.
    """
    found: list[KubeObject] = []
    for path in paths:
        if path.name.endswith((".csv", ".csv.gz")):
            found += read_nodes(path)
        else:
            for document in _documents(path):
                found += _objects(document, path, custom)
        check_identities(found, source=str(path))
    if not any(isinstance(item, Node) for item in found):
        names = ", ".join(str(path) for path in paths)
        raise InputError("no node in it", source=names)
    _complete(found)
    return found


def _complete(objects: Sequence[KubeObject]) -> None:
    """Make of what was written by hand what an API server would have made of it, as `evaluate` does."""
    classes = [item for item in objects if isinstance(item, PriorityClass)]
    for item in objects:
        if isinstance(item, Node) and item.status.allocatable is None and item.status.capacity is not None:
            item.status.allocatable = dict(item.status.capacity)
        elif isinstance(item, Pod):
            try:
                apply_pod_defaults(item, priority_classes=classes)
            except UnknownPriorityClass as error:
                raise InputError(str(error)) from error


def check_identities(objects: Sequence[KubeObject], *, source: str) -> None:
    """Raises InputError for a node or a pod that is there twice; the latter would replace the former."""
    seen: set[tuple[type[KubeObject], str]] = set()
    for item in objects:
        if isinstance(item, Node | Pod):
            key = (type(item), item.key)
            if key in seen:
                raise InputError(f"{type(item).__name__} `{item.key}` is there twice", source=source)
            seen.add(key)


def _objects(document: Document, path: Path, custom: Mapping[tuple[str, str], ObjectKind] | None) -> list[KubeObject]:
    value = document.value
    if not isinstance(value, dict):
        raise InputError("is no object", source=f"{path}:{document.line}")
    if (value.get("apiVersion"), value.get("kind")) == _POOL:
        return list(pool_nodes(_pool(document, path), source=f"{path}:{document.line}"))
    items = value["items"] if str(value.get("kind", "")).endswith("List") and "items" in value else [value]
    if not isinstance(items, list):
        raise InputError("`items` is no list", source=f"{path}:{document.line}")
    found = []
    for place, item in enumerate(items):
        decoded = decode_object(item, source=str(path), ignore_unread=True, more_kinds=custom)
        if decoded is not None:
            inside = "" if item is value else f"items[{place}]"
            _check_fields(item, path, partial(_line_of_field, value, inside))
            found.append(decoded)
    return found


def _check_fields(item: dict[str, Any], path: Path, line: Callable[[str], int], *, prefix: str = "") -> None:
    """Refuse a field that the kind of an object does not have: without it, pods would ask for other things."""
    for unknown in find_unknown_fields(item):
        raise InputError(f"{prefix}{unknown.sentence}", source=f"{path}:{line(unknown.path)}")


def read_pools(path: Path) -> list[NodePool]:
    """The node pools of a file that has nothing else in it, each with another name."""
    found: dict[str, NodePool] = {}
    for document in _documents(path):
        where = f"{path}:{document.line}"
        _check_kind(document, path, *_POOL)
        pool = _pool(document, path)
        if pool.name in found:
            raise InputError(f"there are two pools of the name `{pool.name}`", source=where)
        pool_nodes(msgspec.structs.replace(pool, count=1), source=where)
        found[pool.name] = pool
    if not found:
        raise InputError("no NodePool in it", source=str(path))
    return list(found.values())


def _pool(document: Document, path: Path) -> NodePool:
    pool = _convert(document.value, NodePool, path, document)
    if not 0 <= pool.count <= _MOST_NODES:
        line = _line(document.value, "count") or document.line
        raise InputError(f"count is {pool.count}, expected 0 to {_MOST_NODES}", source=f"{path}:{line}")
    node = {**pool.template, "apiVersion": "v1", "kind": "Node"}
    _check_fields(node, path, partial(_line_of_field, document.value, "template"), prefix="template: ")
    return pool


def pool_nodes(pool: NodePool, *, source: str = "") -> list[Node]:
    template = AddNodes(at="0s", count=pool.count, name=pool.name, template=pool.template)
    return nodes_of(template, source=source or pool.name)


def nodes_of(given: AddNodes, *, source: str) -> list[Node]:
    """The nodes that a template stands for, numbered."""
    return [_decode_node(given.template, f"{given.name}-{number}", source=source) for number in range(given.count)]


def _decode_node(template: dict[str, Any], name: str, *, source: str) -> Node:
    metadata = _mapping(template, "metadata", source)
    labels = {"kubernetes.io/hostname": name} | _mapping(metadata, "labels", source)
    document = template | {"apiVersion": "v1", "kind": "Node"}
    document["metadata"] = metadata | {"name": name, "labels": labels}
    status = _mapping(document, "status", source)
    document["status"] = {"allocatable": status.get("capacity", {})} | status
    decoded = decode_object(document, source=source)
    assert isinstance(decoded, Node)  # its kind is stated above
    return decoded


def _mapping(value: dict[str, Any], field: str, source: str) -> dict[str, Any]:
    found = value.get(field)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"`{field}` of the template is {found!r:.60}, expected fields and values", source=source)
    return dict(found)


def decode_template(item: Item, *, source: str) -> Pod:
    """The pod of an item, without a name of its own."""
    metadata = _mapping(item.template, "metadata", source) | {"name": item.name, "namespace": item.namespace}
    spec = _mapping(item.template, "spec", source)
    document = {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": metadata}
    decoded = decode_object(document, source=source)
    assert isinstance(decoded, Pod)  # its kind is stated above
    return decoded


def read_workload(path: Path) -> WorkloadFile:
    """A workload file, checked."""
    documents = _documents(path)
    if len(documents) != 1:
        raise InputError(f"has {len(documents)} documents, expected one Workload", source=str(path))
    (document,) = documents
    _check_kind(document, path, *_WORKLOAD)
    workload = _convert(document.value, WorkloadFile, path, document)
    names: set[tuple[str, str]] = set()
    for place, item in enumerate(workload.items):
        if (item.namespace, item.name) in names:
            line = _line(document.value, f"items[{place}].name")
            raise InputError(f"there are two items of the name `{item.name}`", source=f"{path}:{line}")
        names.add((item.namespace, item.name))
        line_of = partial(_line_of_field, document.value, f"items[{place}]")
        _check_item(item, path, line_of)
        _check_fields_of_kind(item, document.value["items"][place], path, line_of)
    for place, event in enumerate(workload.nodes):
        _check_node_event(event, path, partial(_line_of_field, document.value, f"nodes[{place}]"))
    if workload.until is not None:
        _check(lambda: seconds_of(workload.until or 0), path, _line(document.value, "until"))
    return workload


def _check_kind(document: Document, path: Path, version: str, kind: str) -> None:
    value = document.value
    if isinstance(value, dict) and (value.get("apiVersion"), value.get("kind")) == (version, kind):
        return
    written = value.get("kind") if isinstance(value, dict) else None
    found = f", found `kind: {written}`" if written and written != kind else ""
    advice = f"; write `apiVersion: {version}` and `kind: {kind}`"
    raise InputError(f"expected a {kind} of {version}{found}{advice}", source=f"{path}:{document.line}")


def _check_item(item: Item, path: Path, line: Callable[[str], int]) -> None:
    _check(lambda: check_arrivals(item.arrivals, folder=path.parent), path, line("arrivals"))
    duration = item.duration
    if isinstance(duration, Durations):
        _check(duration.check, path, line("duration"))
    elif duration is not None:
        _check(lambda: seconds_of(duration), path, line("duration"))
    if item.rollout is not None:
        _check(partial(period_of, item.rollout.every), path, line("rollout"))
        _check_count("surge", item.rollout.surge, f"{path}:{line('rollout')}")
    for field in ("replicas", "completions", "parallelism"):
        _check_count(field, getattr(item, field), f"{path}:{line(field)}")
    if item.backoff_limit < 0:
        problem = f"backoffLimit is {item.backoff_limit}, expected 0 or more"
        raise InputError(problem, source=f"{path}:{line('backoffLimit')}")
    decode_template(item, source=f"{path}:{line('template')}")
    pod = {**item.template, "apiVersion": "v1", "kind": "Pod"}
    _check_fields(pod, path, lambda field: line(f"template.{field}"), prefix="template: ")


_FIELDS_OF = {"Deployment": ("replicas", "rollout"), "Job": ("completions", "parallelism", "backoffLimit")}


def _check_fields_of_kind(item: Item, given: Mapping[str, Any], path: Path, line: Callable[[str], int]) -> None:
    """Refuse a field of another kind, which would be without effect."""
    for kind, fields in _FIELDS_OF.items():
        for field in fields:
            if field in given and item.kind != kind:
                problem = f"`{field}` is a field of a {kind}, and the item is a {item.kind}; write `kind: {kind}`"
                raise InputError(problem, source=f"{path}:{line(field)}")


def _check_count(field: str, given: int, place: str) -> None:
    if given < 1:
        raise InputError(f"{field} is {given}, expected 1 or more", source=place)
    if given > MOST_PODS:
        raise InputError(f"{field} is {given}, expected {MOST_PODS} or less", source=place)


def _check_node_event(event: NodeEvent, path: Path, line: Callable[[str], int]) -> None:
    given = [form for form in (event.fail, event.drain, event.add, event.remove) if form is not None]
    if len(given) != 1:
        raise InputError("state one of fail, drain, add and remove", source=f"{path}:{line('')}")
    _check(partial(_check_times, given[0]), path, line(""))
    if event.add is not None:
        if not 0 <= event.add.count <= _MOST_NODES:
            message = f"count is {event.add.count}, expected 0 to {_MOST_NODES}"
            raise InputError(message, source=f"{path}:{line('add.count')}")
        nodes_of(event.add, source=f"{path}:{line('add.template')}")
        node = {**event.add.template, "apiVersion": "v1", "kind": "Node"}
        _check_fields(node, path, lambda field: line(f"add.template.{field}"), prefix="template: ")


def _check_times(given: Any) -> None:
    for field in ("every", "repaired_after", "pods_lost_after", "at", "back_after"):
        text = getattr(given, field, None)
        if text is not None:
            (period_of if field == "every" else seconds_of)(text)


def _check(check: Callable[[], object], path: Path, line: int) -> None:
    try:
        check()
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error), source=f"{path}:{line}") from error


def _documents(path: Path) -> list[Document]:
    try:
        return list(parse_documents(path.read_text(encoding="utf-8-sig")))
    except DocumentError as error:
        raise InputError(error.message, source=f"{path}:{error.line}" if error.line else str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text (byte {error.start})", source=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=str(path)) from error


def _convert(value: Any, kind: type[T], path: Path, document: Document) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        found = _PATH.match(str(error))
        inside = (found["path"] or "").lstrip(".") if found else ""
        what = found["what"] if found else str(error)
        message = f"{inside}: {what}" if inside else what
        raise InputError(message, source=f"{path}:{_line(value, inside) or document.line}") from None


def _line_of_field(value: Any, inside: str, field: str) -> int:
    return _line(value, ".".join(filter(None, (inside, field))))


def _line(value: Any, inside: str) -> int:
    """The line of the innermost part of a path that has one."""
    line = getattr(value, "line", 0)
    for name, number in _STEP.findall(f".{inside}" if inside and inside[0] != "[" else inside):
        lines = getattr(value, "lines", None)
        if lines is None:
            break
        if name:
            line = lines.get(name, line)
            value = value.get(name)
        else:
            line = lines[int(number)] if int(number) < len(lines) else line
            value = value[int(number)] if int(number) < len(value) else None
    return int(line)
