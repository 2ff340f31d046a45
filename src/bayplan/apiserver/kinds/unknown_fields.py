"""Fields that the kind of an object does not have, as in `nodeSelektor`, with the name that was probably meant.

The fields of built-in kinds come from the table that the embedded API server serves. Custom resources are left to the
server that has their definition. An object that an API server has written (it has a `resourceVersion`) was checked
there, and may have fields that are newer than the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from bayplan.api.suggest import closest

if TYPE_CHECKING:
    from bayplan.apiserver.kinds.type_table import FieldType

__all__ = ["UnknownField", "drop_unknown_fields", "find_unknown_fields", "unknown_fields"]


def unknown_fields(document: dict[str, Any]) -> list[str]:
    """A sentence for each field that the object's kind does not have, with the name that was probably meant."""
    return [found.sentence for found in find_unknown_fields(document)]


def drop_unknown_fields(document: dict[str, Any]) -> list[str]:
    """Take the fields out that the object's kind does not have, and answer what `unknown_fields` does."""
    found = list(find_unknown_fields(document))
    for each in found:
        del each.owner[each.name]
    return [each.sentence for each in found]


class UnknownField(NamedTuple):
    owner: dict[str, Any]
    """What has the field."""
    name: str
    path: str
    like: str | None

    @property
    def sentence(self) -> str:
        return f"unknown field `{self.path}`{f'; did you mean `{self.like}`?' if self.like else ''}"


def find_unknown_fields(document: dict[str, Any]) -> Iterator[UnknownField]:
    """The fields of an object that its kind does not have."""
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and metadata.get("resourceVersion"):
        return
    declared = _type_of(document.get("apiVersion"), document.get("kind"))
    if declared is not None:
        yield from _unknown(document, declared, "")


@cache
def _type_of(api_version: Any, kind: Any) -> FieldType | None:
    """Of a built-in kind. The table of types is read without the rules of kinds, which take long to load."""
    from bayplan.apiserver.kinds.type_table import builtin_types

    group, _, version = str(api_version).rpartition("/")
    if "." in group and not group.endswith(".k8s.io"):
        return None
    name = f"{group.partition('.')[0] or 'core'}.{version}.{kind}"
    return builtin_types()[name] if name in builtin_types().names() else None


def _unknown(value: Any, declared: FieldType, path: str) -> Iterator[UnknownField]:
    if declared.kind == "struct" and isinstance(value, dict):
        for name, inner in value.items():
            member, here = declared.fields.get(name), f"{path}.{name}" if path else str(name)
            if member is not None:
                yield from _unknown(inner, member.type, here)
            elif not declared.preserves_unknown:
                yield UnknownField(value, name, here, closest(str(name), declared.fields))
    elif declared.element is not None and declared.kind == "list" and isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _unknown(inner, declared.element, f"{path}[{place}]")
    elif declared.element is not None and declared.kind == "map" and isinstance(value, dict):
        for name, inner in value.items():
            yield from _unknown(inner, declared.element, f"{path}.{name}")
