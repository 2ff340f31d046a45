"""The shapes of Kubernetes objects: fields, types and merge rules, read from one table.

`types/kubernetes-1.36.txt` declares every built-in type once. Validation, pruning, strategic merge, server-side
apply and OpenAPI are all derived from it; `types/descriptions.txt` adds what `kubectl explain` says. Custom resources
are translated into the same `FieldType` (see `crd_schema`), so that the rest of the server treats both alike.
This module is independent of particular kinds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Annotated, Any, Literal

import msgspec

SCALARS = frozenset(
    {"string", "int32", "int64", "bool", "number", "quantity", "intorstring", "time", "microtime", "bytes", "any"}
)
_SCHEMA = "apiextensions.v1.JSONSchemaProps"
UNIONS = frozenset({"schema-or-bool", "schema-or-schemas", "schema-or-strings"})
"""A schema, or a boolean, a list of schemas or a list of strings: JSON does not tell which, protobuf does."""


@dataclass(slots=True, eq=False)
class FieldType:
    """One type: a scalar, `any`, a `list`, a `map`, a `struct` or a `union` (its name says which)."""

    kind: str
    name: str = ""
    element: FieldType | None = None
    fields: dict[str, Field] = field(default_factory=dict)
    list_type: str = "atomic"
    """`atomic`, `set` or `map`: how server-side apply merges a list."""
    list_keys: tuple[str, ...] = ()
    atomic: bool = False
    """A map or struct that is owned as a whole."""
    preserves_unknown: bool = False
    description: str = ""

    def required_fields(self) -> list[str]:
        return [name for name, declared in self.fields.items() if declared.required]

    def zero(self, within: tuple[FieldType, ...] = ()) -> dict[str, Any]:
        """What is written for an empty struct."""
        zeros = {name: member.zero(within) for name, member in self.fields.items()}
        return {name: zero for name, zero in zeros.items() if zero is not None}


@dataclass(slots=True, eq=False)
class Field:
    """One field of a struct."""

    name: str
    type: FieldType
    required: bool = False
    is_pointer: bool = False
    """Its zero value differs from its absence."""
    is_always_written: bool = False
    """Written even when it is zero; other fields that are no pointers are left out then."""
    patch_strategies: frozenset[str] = frozenset()
    patch_key: str = ""
    numbers: tuple[int, ...] = ()
    """The field's number in protobuf; two numbers when it is inlined from a message of its own."""
    description: str = ""

    def zero(self, within: tuple[FieldType, ...] = ()) -> Any:
        """What is written for the field when it is absent; None for fields that are left out then.

        A struct that is no pointer is never left out; here it is, unless something inside it is always written.
        """
        if self.is_pointer or self.type in within:
            return None
        if self.type.kind == "struct":
            return self.type.zero((*within, self.type)) or None
        if self.type.kind == "quantity":  # a struct in Go
            return "0"
        return ZEROS.get(self.type.kind) if self.is_always_written else None


ZEROS: dict[str, str | int | bool] = {
    "string": "",
    "int32": 0,
    "int64": 0,
    "bool": False,
    "number": 0,
    "intorstring": 0,
}

ANY = FieldType("any", "any", preserves_unknown=True)


class TypeTable:
    """All built-in types by name (`core.v1.Pod`)."""

    def __init__(self, text: str) -> None:
        self._structs: dict[str, FieldType] = {}
        self._scalars = {name: ANY if name == "any" else FieldType(name, name) for name in SCALARS}
        for header, lines in _paragraphs(text):
            self._declare(header, lines)

    def __getitem__(self, name: str) -> FieldType:
        return self._struct(name)

    def names(self) -> list[str]:
        return sorted(self._structs)

    def describe(self, text: str) -> None:
        """Attach descriptions to types and fields; raises `KeyError` for one that does not exist."""
        everywhere: dict[str, str] = {}
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            what, said = line.split(maxsplit=1)
            owner, _, name = what.rpartition(".")
            if owner == "*":
                everywhere[name] = said
            elif what in self._structs:
                self._structs[what].description = said
            else:
                self._structs[owner].fields[name].description = said
        for struct in self._structs.values():
            for declared in struct.fields.values():
                declared.description = declared.description or everywhere.get(declared.name, "")

    def _struct(self, name: str) -> FieldType:
        if name not in self._structs:
            self._structs[name] = FieldType("struct", name)
        return self._structs[name]

    def _declare(self, header: str, lines: list[str]) -> None:
        name, _, flag = header.partition(" ")
        struct = self._struct(name)
        struct.atomic = flag == "atomic"
        prefix = name.rpartition(".")[0] + "."
        for line in lines:
            declared = self._field(line, prefix)
            struct.fields[declared.name] = declared

    def _field(self, line: str, prefix: str) -> Field:
        name, spelled, *flags = line.split()
        numbers = flags.pop(0)[1:].split(".") if flags and flags[0].startswith("@") else []
        options = dict(flag.partition("=")[::2] for flag in flags)
        built = self._type(spelled.removeprefix("*"), prefix)
        if built.kind == "list":
            built.list_type = "map" if "map" in options else "set" if "set" in options else "atomic"
            built.list_keys = tuple(options.get("map", "").split(",")) if "map" in options else ()
        elif built.kind == "map":
            built.atomic = "atomic" in options
        strategies, _, key = options.get("patch", "").partition(":")
        return Field(
            name.rstrip("!"),
            built,
            required=name.endswith("!"),
            is_pointer=spelled.startswith("*"),
            is_always_written="always" in options,
            patch_strategies=frozenset(strategies.split(",")) if strategies else frozenset(),
            patch_key=key,
            numbers=tuple(int(number) for number in numbers),
        )

    def _type(self, spelled: str, prefix: str) -> FieldType:
        if spelled.startswith("["):
            return FieldType("list", element=self._type(spelled[1:-1], prefix))
        if spelled.startswith("{"):
            return FieldType("map", element=self._type(spelled[1:-1], prefix))
        if spelled in UNIONS:
            return FieldType("union", spelled, element=self._struct(_SCHEMA))
        if spelled in self._scalars:
            return self._scalars[spelled]
        return self._struct(spelled if "." in spelled else prefix + spelled)


def _paragraphs(text: str) -> Iterator[tuple[str, list[str]]]:
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
        if lines:
            yield lines[0], lines[1:]


@functools.cache
def builtin_types() -> TypeTable:
    """The table shipped with the package, parsed once."""
    folder = resources.files("bayplan.apiserver.kinds").joinpath("types")
    table = TypeTable(folder.joinpath("kubernetes-1.36.txt").read_text(encoding="utf-8"))
    table.describe(folder.joinpath("descriptions.txt").read_text(encoding="utf-8"))
    return table


@functools.cache
def list_type(declared: FieldType) -> FieldType:
    """The type of a list of objects."""
    items = Field("items", FieldType("list", element=declared), numbers=(2,))
    metadata = Field("metadata", builtin_types()["meta.v1.ListMeta"], numbers=(1,))
    return FieldType("struct", f"{declared.name}List", fields={"metadata": metadata, "items": items})


_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
# Text that is already spelled as the server would store it; any other spelling takes the slow walk.
_CANONICAL_QUANTITY = Annotated[str, msgspec.Meta(pattern=r"^(?:0|[1-9][0-9]{0,2}(?:m|k|M|G|Ki|Mi|Gi|Ti)?)\Z")]
_TIME = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}Z\Z")]
_MICROTIME = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}\.[0-9]{6}Z\Z")]
_BASE64 = Annotated[str, msgspec.Meta(pattern=r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z")]
_PYTHON_SCALARS: dict[str, Any] = {
    "string": str,
    "int32": _INT32,
    "int64": _INT64,
    "bool": bool,
    "number": float,
    "quantity": _CANONICAL_QUANTITY,
    "intorstring": str | _INT32,
    "time": _TIME,
    "microtime": _MICROTIME,
    "bytes": _BASE64,
    "any": Any,
    # Of the schemas inside, unknown fields have to be found: none is accepted here.
    "union": Literal["union"],
}


# A value that may have to be left out.
_ZERO = re.compile(rb':\s*(?:""|-?0(?:\.0*)?(?:[eE][+-]?\d+)?\s*[,}]|false|\[\s*\]|\{\s*\})')


class StrictDecoders:
    """Compiled decoders that accept a document only when it is exactly of its type.

    They accept a correct body within microseconds. Anything they refuse (unknown fields, nulls,
    wrong types) goes to the slow walk in `conform`, which reports the problem: an optimisation only.
    """

    def __init__(self) -> None:
        self._structs: dict[int, Any] = {}
        self._decoders: dict[int, msgspec.json.Decoder[Any]] = {}

    def accepts(self, body: bytes, declared: FieldType) -> bool:
        if _ZERO.search(body):
            return False
        decoder = self._decoders.get(id(declared))
        if decoder is None:
            decoder = msgspec.json.Decoder(self._python_type(declared, ()))
            self._decoders[id(declared)] = decoder
        try:
            decoder.decode(body)
        except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError):
            return False
        return True

    def _python_type(self, declared: FieldType, within: tuple[int, ...]) -> Any:
        if declared.kind == "list" and declared.element is not None:
            return list[self._python_type(declared.element, within)]  # type: ignore[misc]
        if declared.kind == "map" and declared.element is not None:
            return dict[str, self._python_type(declared.element, within)]  # type: ignore[misc]
        if declared.kind != "struct":
            return _PYTHON_SCALARS[declared.kind]
        if id(declared) in within:  # a type that contains itself is checked to this depth only
            return Any
        if id(declared) not in self._structs:
            self._structs[id(declared)] = self._struct(declared, (*within, id(declared)))
        return self._structs[id(declared)]

    def _struct(self, declared: FieldType, within: tuple[int, ...]) -> Any:
        members: list[Any] = []
        wire_names: dict[str, str] = {}
        for index, (name, member) in enumerate(declared.fields.items()):
            wire_names[f"f{index}"] = name
            if member.zero((declared,)) is not None:
                members.append((f"f{index}", self._python_type(member.type, within)))
            else:
                members.append((f"f{index}", self._python_type(member.type, within) | msgspec.UnsetType, msgspec.UNSET))
        return msgspec.defstruct(
            declared.name.replace(".", "_") or "Anonymous",
            members,
            rename=wire_names,
            forbid_unknown_fields=not declared.preserves_unknown,
            gc=False,
            kw_only=True,
        )
