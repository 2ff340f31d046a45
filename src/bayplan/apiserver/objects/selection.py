"""Which objects a list, a watch or a delete-collection is about.

Compiled once from the query; answers by the few facts an `Entry` carries, so no object is decoded to be skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bayplan.apiserver.kinds.kind import FieldPath, ServedKind
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.selectors import (
    BadSelector,
    FieldRequirement,
    LabelPredicate,
    parse_field_selector,
    parse_label_selector,
)
from bayplan.apiserver.storage.store import Entry

FieldPredicate = Callable[[Entry], bool]


@dataclass(frozen=True, slots=True)
class Selection:
    """A predicate on entries."""

    namespace: str = ""
    name: str = ""
    labels: LabelPredicate | None = None
    fields: tuple[FieldPredicate, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not (self.namespace or self.name or self.labels or self.fields)

    @property
    def has_selectors(self) -> bool:
        return self.labels is not None or bool(self.fields) or bool(self.name)

    def matches(self, entry: Entry) -> bool:
        if self.namespace and entry.namespace != self.namespace:
            return False
        if self.name and entry.name != self.name:
            return False
        if self.labels is not None and not self.labels(entry.labels):
            return False
        return not self.fields or all(predicate(entry) for predicate in self.fields)


def select(
    kind: ServedKind, *, namespace: str, name: str = "", label_selector: str = "", field_selector: str = ""
) -> Selection:
    """Compile a selection. Raises a 400 `ApiError` for a selector that cannot be understood."""
    try:
        labels = parse_label_selector(label_selector) if label_selector else None
        requirements = parse_field_selector(field_selector) if field_selector else []
    except BadSelector as problem:
        raise errors.bad_request(str(problem)) from problem
    fields = []
    for requirement in requirements:
        if requirement.field == "metadata.name" and requirement.equal and not name:
            name = requirement.value
        else:
            fields.append(_field_predicate(kind, requirement))
    return Selection(namespace=namespace, name=name, labels=labels, fields=tuple(fields))


def _field_predicate(kind: ServedKind, requirement: FieldRequirement) -> FieldPredicate:
    value, equal = requirement.value, requirement.equal
    if requirement.field == "metadata.name":
        return lambda entry: (entry.name == value) is equal
    if requirement.field == "metadata.namespace":
        return lambda entry: (entry.namespace == value) is equal
    if requirement.field not in kind.selectable:
        raise errors.bad_request(f"field label not supported: {requirement.field}")
    index = list(kind.selectable).index(requirement.field)
    return lambda entry: (entry.fields[index] == value) is equal


def selectable_values(kind: ServedKind, document: Json) -> tuple[str, ...]:
    """The values of the kind's selectable fields, in the order of declaration."""
    values = []
    for path, default in kind.selectable.values():
        if len(path) == 2 and type(default) is str:  # nearly all
            part = document.get(path[0])
            found = part.get(path[1]) if type(part) is dict else None
            if found is None or type(found) is str:
                values.append(default if found is None else found)
                continue
        values.append(_value_at(document, path, default))
    return tuple(values)


def _value_at(document: Json, path: FieldPath, default: str | FieldPath) -> str:
    found: object = document
    for part in path:
        if not isinstance(found, dict):
            return default if isinstance(default, str) else _value_at(document, default, "")
        found = found.get(part)
    if type(found) is str:
        return found
    if isinstance(found, bool):
        return "true" if found else "false"
    if found is not None and not isinstance(found, (dict, list)):
        return str(found)
    return default if isinstance(default, str) else _value_at(document, default, "")
