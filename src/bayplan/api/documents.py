"""Parses YAML and JSON text into plain data with line numbers.

`yaml.safe_load` silently keeps the last of two equal keys, has no line numbers, reads `1:30` as ninety and `2026-01-01`
as a date, and expands aliases without limit. Kubernetes does none of that. Nesting, and what aliases add, is bounded,
so that hostile text fails early.

`bayplan.api.decode` and `bayplan.config` interpret kinds and fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import yaml

__all__ = ["Document", "DocumentError", "PlainDocument", "Rows", "Table", "parse_documents", "read_plain"]

MAX_DEPTH = 128
MAX_ALIASED_VALUES = 200_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"))
_FALSE = frozenset(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"))
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL_FLOATS = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
_STANDARD_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(f"{_STANDARD_TAG}{name}" for name in ("null", "bool", "int", "float"))
_PLAIN_TAGS = frozenset(f"{_STANDARD_TAG}{name}" for name in ("str", "map", "seq"))


class DocumentError(ValueError):
    """Text that is not YAML, or YAML that Kubernetes would not accept. `line` counts from 1; 0 when unknown."""

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.message = message
        self.line = line


class Table(dict[str, Any]):
    """A mapping. `lines` holds the line of each key, `repeated` the keys that were written twice and where."""

    __slots__ = ("later", "line", "lines", "repeated")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        self.repeated: list[tuple[str, int, int]] = []
        """(key, line of the first, line of the second). The first value is the one kept."""
        self.later: dict[str, Any] = {}
        """The last value of each repeated key."""


class Rows(list[Any]):
    """A list. `lines` holds the line of each element."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


class Document:
    """One document of a stream: its number from 1, the line it starts on, and its value."""

    __slots__ = ("line", "number", "value")

    def __init__(self, number: int, line: int, value: Any) -> None:
        self.number, self.line, self.value = number, line, value


def parse_documents(text: str) -> Iterator[Document]:
    """The documents of a YAML stream (JSON is YAML). Empty documents are left out. Raises `DocumentError`."""
    if text.lstrip()[:1] == "{" and "\\u" in text:
        yield from _json_document(text)
        return
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                builder.start(_line(event))
            elif isinstance(event, yaml.DocumentEndEvent):
                if builder.value is not None:
                    yield Document(builder.number, builder.line, builder.value)
            elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                builder.take(event)
    except yaml.YAMLError as error:
        raise _as_document_error(error) from None
    except (UnicodeError, RecursionError) as error:
        raise DocumentError(f"not readable as YAML: {error}") from None


class PlainDocument(NamedTuple):
    """A document as bare dicts and lists, and its repeated keys, each with the line on which it stands again."""

    value: Any
    repeated: list[tuple[str, int]]


def read_plain(content: bytes) -> PlainDocument:
    """The single document of a request or a file, as Kubernetes reads it where it is not strict: the last of equal keys
    counts, and what aliases stand for is copied. Raises `DocumentError`."""
    try:
        documents = list(parse_documents(content.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise DocumentError(f"not readable as YAML: {error.reason}") from None
    if len(documents) > 1:
        raise DocumentError("expected a single document, found another", line=documents[1].line)
    repeated: list[tuple[str, int]] = []
    value = _bare(documents[0].value, repeated) if documents else None
    return PlainDocument(value, repeated)


def _bare(value: Any, repeated: list[tuple[str, int]]) -> Any:
    if isinstance(value, Rows):
        return [_bare(item, repeated) for item in value]
    if not isinstance(value, Table):
        return value
    repeated.extend((key, line) for key, _, line in value.repeated)
    return {key: _bare(item, repeated) for key, item in (value | value.later).items()}


def _json_document(text: str) -> Iterator[Document]:
    """JSON whose escapes YAML reads differently (pairs of surrogates); without line numbers."""
    try:
        value = json.loads(text, object_pairs_hook=_table)
    except json.JSONDecodeError as error:
        raise DocumentError(f"not valid JSON: {error.msg}", line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not valid JSON: {error}") from None
    yield Document(1, 1, value)


def _table(pairs: list[tuple[str, Any]]) -> Table:
    table = Table()
    for key, value in pairs:
        if key in table:
            table.repeated.append((key, 0, 0))
            table.later[key] = value
        else:
            table[key] = value
            table.lines[key] = 0
    return table


def _as_document_error(error: yaml.YAMLError) -> DocumentError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    hint = "; a tab or a reserved character at the start of a value" if "cannot start any token" in str(what) else ""
    return DocumentError(f"not valid YAML: {what}{hint}", line=mark.line + 1 if mark else 0)


def _line(event: Any) -> int:
    line: int = event.start_mark.line + 1
    return line


class _Open:
    """A mapping or list that is still open."""

    __slots__ = ("anchor", "began", "key", "key_line", "merges", "value", "wants_key")

    def __init__(self, value: Table | Rows, anchor: str | None, began: int) -> None:
        self.value = value
        self.anchor = anchor
        self.began = began
        self.wants_key = isinstance(value, Table)
        self.key: str = ""
        self.key_line = 0
        self.merges: list[Any] = []


class _Builder:
    """Builds the value of one document from parser events, without recursion."""

    def __init__(self) -> None:
        self.number = 0
        self.start(0)
        self.number = 0

    def start(self, line: int) -> None:
        self.number += 1
        self.line = line
        self.value: Any = None
        self._open: list[_Open] = []
        self._count = self._aliased = 0
        self._anchors: dict[str, tuple[Any, int]] = {}

    def take(self, event: Any) -> None:
        self._count += 1
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        else:
            self._end()

    def _begin(self, event: Any) -> None:
        line = _line(event)
        if len(self._open) >= MAX_DEPTH:
            raise DocumentError(f"nested more than {MAX_DEPTH} levels deep", line=line)
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            raise DocumentError(f"tag `{event.tag}` is not supported; remove it", line=line)
        if self._open and self._open[-1].wants_key:
            raise DocumentError("a key must be a text, found a list or mapping", line=line)
        value: Table | Rows = Table(line) if isinstance(event, yaml.MappingStartEvent) else Rows(line)
        self._open.append(_Open(value, event.anchor, self._count))

    def _end(self) -> None:
        done = self._open.pop()
        if isinstance(done.value, Table):
            _merge(done.value, done.merges)
        if done.anchor:
            self._anchors[done.anchor] = (done.value, self._count - done.began)
        self._put(done.value, done.value.line)

    def _scalar(self, event: Any) -> None:
        if self._open and self._open[-1].wants_key:
            self._key(event.value, _line(event))
            return
        value = _resolve(event)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, _line(event))

    def _key(self, key: Hashable, line: int) -> None:
        top = self._open[-1]
        top.key, top.key_line, top.wants_key = str(key), line, False

    def _alias(self, event: Any) -> None:
        line = _line(event)
        if event.anchor not in self._anchors:
            raise DocumentError(f"alias `*{event.anchor}` stands for nothing, or for itself", line=line)
        value, size = self._anchors[event.anchor]
        self._count += size
        self._aliased += size
        if self._aliased > MAX_ALIASED_VALUES:
            raise DocumentError(f"aliases stand for more than {MAX_ALIASED_VALUES} values", line=line)
        if self._open and self._open[-1].wants_key:
            if isinstance(value, Table | Rows):
                raise DocumentError("a key must be a text, found a list or mapping", line=line)
            self._key(value, line)
            return
        self._put(value, line)

    def _put(self, value: Any, line: int) -> None:
        if not self._open:
            self.value = value
            return
        top = self._open[-1]
        if isinstance(top.value, Rows):
            top.value.append(value)
            top.value.lines.append(line)
            return
        top.wants_key = True
        if top.key == "<<":
            top.merges.append(value)
        elif top.key in top.value:
            top.value.repeated.append((top.key, top.value.lines[top.key], top.key_line))
            top.value.later[top.key] = value
        else:
            top.value[top.key] = value
            top.value.lines[top.key] = top.key_line


def _merge(table: Table, merges: list[Any]) -> None:
    """YAML's merge key `<<`: keys that the mapping lacks are taken from the referenced ones, earlier ones first."""
    for merge in merges:
        for source in merge if isinstance(merge, Rows) else [merge]:
            if not isinstance(source, Table):
                raise DocumentError("`<<` needs a mapping or a list of mappings", line=table.line)
            for key, value in source.items():
                if key not in table:
                    table[key] = value
                    table.lines[key] = source.lines[key]


def _resolve(event: Any) -> Any:
    text: str = event.value
    if event.tag is None:
        return _plain(text) if event.implicit[0] else text
    if event.tag in _SCALAR_TAGS:
        return _plain(text)
    if event.tag == f"{_STANDARD_TAG}str" or event.tag == "!":
        return text
    raise DocumentError(f"tag `{event.tag}` is not supported; remove it", line=_line(event))


def _plain(text: str) -> Any:
    """An unquoted scalar, as the YAML library of Kubernetes reads it."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "-+.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    special = _SPECIAL_FLOATS.get(text.lower())
    return float(special) if special else text


def _integer(text: str) -> int | str:
    digits = text.replace("_", "")
    sign, digits = (-1, digits[1:]) if digits[0] == "-" else (1, digits.lstrip("+"))
    try:
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            return sign * int(digits, 8)
        return sign * int(digits, 0)
    except ValueError:
        return text
