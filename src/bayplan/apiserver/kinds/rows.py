"""How rows of the tables of built-in kinds are written."""

from __future__ import annotations

from typing import Any

from bayplan.apiserver.kinds.kind import Selectable, ServedKind
from bayplan.apiserver.kinds.type_table import builtin_types

CREATE_ONLY = ("create",)


def selectable(*names: str, **defaults: str) -> dict[str, Selectable]:
    """Selectable fields; keyword arguments (dots as `__`) give what an absent field counts as."""
    found: dict[str, Selectable] = {name: (tuple(name.split(".")), "") for name in names}
    for name, default in defaults.items():
        path = tuple(name.split("__"))
        found[".".join(path)] = (path, default)
    return found


def builtin_kind(type_name: str, plural: str, *, group: str | None = None, **options: Any) -> ServedKind:
    """The row of a kind; its type is in the table of types under `type_name`."""
    package, version, kind = type_name.split(".")
    if group is None:
        group = "" if package == "core" else package
    declared = builtin_types()[type_name]
    options.setdefault("singular", kind.lower())
    return ServedKind(group, version, kind, plural, type=declared, **options)
