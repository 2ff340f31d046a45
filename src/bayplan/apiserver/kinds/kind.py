"""The kinds this server knows: one declaration each.

Routes, discovery, OpenAPI, selectors, Table output, defaulting and validation are all derived from these rows, so a
kind is added by adding a row. Custom resources become rows too, when their definition is established.
`Kinds` is the lookup; it holds no objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from bayplan.apiserver.kinds.columns import DEFAULT_COLUMNS, Column
from bayplan.apiserver.kinds.type_table import ANY, FieldType
from bayplan.apiserver.protocol.encoding import Json, decode_object, timestamp
from bayplan.apiserver.protocol.errors import Cause
from bayplan.apiserver.protocol.identity import ApiUser
from bayplan.apiserver.storage.store import Store
from bayplan.observe.clock import Clock

CONTROLLED_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""Metadata that clients may change."""
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
FieldPath = tuple[str, ...]
Selectable = tuple[FieldPath, str | FieldPath]
"""Where a selectable field lives, and what it counts as when it is absent: a text, or another field."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a scalable kind keeps its replica counts."""

    spec_path: FieldPath = ("spec", "replicas")
    status_path: FieldPath = ("status", "replicas")
    selector_path: FieldPath = ("spec", "selector")


@dataclass(frozen=True, slots=True)
class Admission:
    """What the hooks of a kind (defaulting, admission, validation) may read: the store, the time and the user."""

    store: Store
    clock: Clock
    user: ApiUser

    def find(self, resource: str, namespace: str, name: str) -> Json | None:
        entry = self.store.get(resource, namespace, name)
        return None if entry is None else decode_object(entry.raw)

    def all(self, resource: str) -> Iterator[Json]:
        for entry in self.store.listing(resource).entries:
            yield decode_object(entry.raw)

    def now(self) -> str:
        return timestamp(self.clock.now())


@dataclass(frozen=True, slots=True, eq=False)
class ServedKind:
    """Everything the server knows about one kind in one version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    type: FieldType = ANY
    columns: tuple[Column, ...] = DEFAULT_COLUMNS
    status: bool = False
    """Has a status subresource: writes to the main resource keep status, writes to status keep the rest."""
    keeps_status_on_create: bool = False
    kept_by_status: tuple[str, ...] = ()
    """Metadata that writes to the status leave alone; with most kinds, they may change all."""
    scale: Scale | None = None
    generation: bool = False
    """Counts changes outside metadata and status in metadata.generation."""
    graceful: bool = False
    unconditional_update: bool = True
    """An update without a resourceVersion overwrites; custom resources refuse it."""
    selectable: dict[str, Selectable] = field(default_factory=dict)
    name_rule: str = "subdomain"
    """`subdomain`, `label` or `path`: which names are allowed."""
    returns_deleted: bool = False
    """A finished deletion answers with the object instead of a Status."""
    creates_on_update: bool = False
    storage: str = ""
    """Two kinds with one storage name show the same objects in two shapes (core and events.k8s.io Events)."""
    storage_version: str = ""
    default: Callable[[Json], None] | None = None
    admit: Callable[[Json, Json | None, Admission], None] | None = None
    validate: Callable[[Json, Json | None], list[Cause]] | None = None
    default_status: Callable[[Json], None] | None = None
    admit_status: Callable[[Json, Json, Admission], None] | None = None
    """Completes a written status, which is given with the object as it was."""
    warn: Callable[[Json], list[str]] | None = None
    """Warnings for the client that wrote an accepted object."""
    is_custom: bool = False
    """Patched by JSON and merge patch and apply only; a strategic merge needs a built-in type."""
    prune: Callable[[Json], list[str]] | None = None
    schema: Json = field(default_factory=dict)
    """The OpenAPI schema of a custom resource; built-in kinds have theirs in `type`."""
    to_storage: Callable[[Json], Json] | None = None
    from_storage: Callable[[Json], Json] | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`pods`, `deployments.apps`: how messages and the store name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def stored_as(self) -> str:
        return self.storage or self.resource

    def empty_status(self) -> Json:
        """What is written for a status in which nothing is set."""
        status = self.type.fields.get("status")
        return {} if status is None or self.is_custom else status.type.zero()

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"


class Kinds:
    """Lookup of kinds by path and by name; custom resources are added and removed at run time."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._by_path: dict[tuple[str, str, str], ServedKind] = {}
        self._by_resource: dict[str, ServedKind] = {}
        self.generation = 0
        """Changes whenever a kind is added or removed; discovery documents are cached by it."""
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(self._by_path.values())

    def add(self, kind: ServedKind) -> None:
        self._by_path[(kind.group, kind.version, kind.plural)] = kind
        self._by_resource.setdefault(kind.resource, kind)
        self.generation += 1

    def remove_resource(self, resource: str) -> None:
        """Forget every version of a resource."""
        self._by_path = {path: kind for path, kind in self._by_path.items() if kind.resource != resource}
        self._by_resource.pop(resource, None)
        self.generation += 1

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._by_path.get((group, version, plural))

    def resource(self, name: str) -> ServedKind:
        """The kind stored as `pods` or `deployments.apps`; KeyError when there is none."""
        return self._by_resource[name]

    def by_kind(self, api_version: str, kind: str) -> ServedKind | None:
        for candidate in self:
            if candidate.kind == kind and candidate.api_version == api_version:
                return candidate
        return None

    def groups(self) -> dict[str, list[str]]:
        """Versions by group, in order of declaration; the core group is the empty name."""
        groups: dict[str, list[str]] = {}
        for kind in self:
            versions = groups.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return groups

    def in_group_version(self, group: str, version: str) -> list[ServedKind]:
        return [kind for kind in self if (kind.group, kind.version) == (group, version)]
