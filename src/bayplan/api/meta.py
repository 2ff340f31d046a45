"""Object metadata, and the base of every typed object."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["KubeObject", "LabelSelector", "LabelSelectorRequirement", "Metadata", "OwnerReference", "Struct"]


class Struct(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, gc=False):
    """Slim struct: only the fields that something reads; camelCase on the wire, snake_case here.

    `gc=False` keeps a hundred thousand of them out of the cyclic collector's walks; none of them can form a cycle.
    """


class OwnerReference(Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class Metadata(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class KubeObject(Struct):
    """What every kind has. `name`, `namespace` and the maps are never absent when read through the properties."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone for cluster-scoped objects."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations or {}

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        for owner in self.metadata.owner_references or ():
            if owner.controller:
                return owner
        return None


class LabelSelectorRequirement(Struct):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Struct):
    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


JsonObject = dict[str, Any]
