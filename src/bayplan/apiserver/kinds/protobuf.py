"""Kubernetes' protobuf form of objects: envelopes and messages, read into documents and written from them.

Numbers and types of fields come from the type table. Reading keeps what the message holds, zero values included;
`conform` then drops those that Go's JSON leaves out. A number that the table does not know is skipped. Truncated or
malformed input is a `BadProtobuf`. Clients that accept JSON are answered in JSON, as it is stored; the writer serves
those that accept protobuf alone.
"""

from __future__ import annotations

import base64
import functools
import struct
from collections.abc import Iterator
from datetime import datetime

from bayplan.apiserver.kinds.type_table import ANY, ZEROS, Field, FieldType
from bayplan.apiserver.protocol.encoding import (
    BadJson,
    Json,
    JsonValue,
    decode,
    encode,
    microtimestamp,
    timestamp,
)

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 100
_STRING = FieldType("string", "string")
_GO_ZEROS = ZEROS | {"struct": {}, "quantity": "0"}
"""What Go writes for absent fields that are no pointers."""
_UNION_LISTS = {"schema-or-schemas": 2, "schema-or-strings": 2}
_UNION_SCHEMAS = {"schema-or-bool": 2, "schema-or-schemas": 1, "schema-or-strings": 1}


class BadProtobuf(ValueError):
    """The bytes are no protobuf message of the expected type."""


def read_protobuf(body: bytes, declared: FieldType) -> Json:
    """The object inside a Kubernetes protobuf envelope."""
    if not body.startswith(_MAGIC):
        raise BadProtobuf("the body does not start with the protobuf prefix of Kubernetes")
    envelope = {number: value for number, _, value in _fields(body[len(_MAGIC) :])}
    type_meta = {number: value for number, _, value in _fields(_as_bytes(envelope.get(1, b"")))}
    document = _message(_as_bytes(envelope.get(2, b"")), declared, 0)
    for number, name in ((1, "apiVersion"), (2, "kind")):
        if number in type_meta:
            document[name] = _as_bytes(type_meta[number]).decode("utf-8", "replace")
    return document


def _as_bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise BadProtobuf("a number stands where a message or text belongs")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and raw value of each field."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        value: int | bytes
        if wire == _VARINT:
            value, position = _varint(data, position)
        elif wire == _BYTES:
            length, position = _varint(data, position)
            value, position = _slice(data, position, length)
        elif wire in (_FIXED64, _FIXED32):
            value, position = _slice(data, position, 8 if wire == _FIXED64 else 4)
        else:
            raise BadProtobuf(f"wire type {wire} is not used by Kubernetes")
        yield number, wire, value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        result |= (byte & 0x7F) << shift
        position += 1
        if not byte & 0x80:
            return result, position
        shift += 7
    raise BadProtobuf("a number is cut off or too long")


def _slice(data: bytes, position: int, length: int) -> tuple[bytes, int]:
    end = position + length
    if end > len(data):
        raise BadProtobuf("a field is cut off")
    return data[position:end], end


@functools.cache
def _numbered(declared: FieldType, prefix: tuple[int, ...] = ()) -> dict[int, Field]:
    """The fields of a message by number; those of a message that is inlined in JSON have the prefix of its number."""
    depth = len(prefix)
    return {
        field.numbers[depth]: field
        for field in declared.fields.values()
        if len(field.numbers) == depth + 1 and field.numbers[:depth] == prefix
    }


@functools.cache
def _inlined(declared: FieldType, prefix: tuple[int, ...] = ()) -> frozenset[int]:
    """The numbers of the messages that are inlined in JSON."""
    depth = len(prefix)
    return frozenset(
        field.numbers[depth]
        for field in declared.fields.values()
        if len(field.numbers) > depth + 1 and field.numbers[:depth] == prefix
    )


# ---- reading


def _message(data: bytes, declared: FieldType, depth: int, prefix: tuple[int, ...] = ()) -> Json:
    if depth > _MAX_DEPTH:
        raise BadProtobuf(f"nested more than {_MAX_DEPTH} levels deep")
    known = _numbered(declared, prefix)
    inlined = _inlined(declared, prefix)
    document: Json = {}
    for number, wire, value in _fields(data):
        if number in known:
            _add(document, known[number], wire, value, depth)
        elif number in inlined:
            document |= _message(_as_bytes(value), declared, depth + 1, (*prefix, number))
    return document


def _add(document: Json, field: Field, wire: int, value: int | bytes, depth: int) -> None:
    declared = field.type
    if declared.kind == "list":
        document.setdefault(field.name, []).append(_value(value, wire, declared.element or ANY, depth))
    elif declared.kind == "map":
        entry = {number: (kind, inner) for number, kind, inner in _fields(_as_bytes(value))}
        key = _as_bytes(entry.get(1, (_BYTES, b""))[1]).decode("utf-8", "replace")
        kind, inner = entry.get(2, (_BYTES, b""))
        document.setdefault(field.name, {})[key] = _value(inner, kind, declared.element or ANY, depth)
    elif (read := _value(value, wire, declared, depth)) is not None:
        document[field.name] = read


def _value(value: int | bytes, wire: int, declared: FieldType, depth: int) -> JsonValue:
    kind = declared.kind
    if kind == "struct":
        return _message(_as_bytes(value), declared, depth + 1)
    if kind == "list":  # a list inside a map is wrapped in a message with one repeated field
        element = declared.element or ANY
        return [_value(inner, inner_wire, element, depth + 1) for _, inner_wire, inner in _fields(_as_bytes(value))]
    if kind in ("int32", "int64", "bool"):
        return _integer(value, kind)
    if kind == "number":
        return struct.unpack("<d" if wire == _FIXED64 else "<f", _as_bytes(value))[0]
    data = _as_bytes(value)
    if kind == "union":
        return _read_union(data, declared, depth)
    if kind in ("string", "bytes"):
        return data.decode("utf-8", "replace") if kind == "string" else base64.b64encode(data).decode()
    return _wrapped(data, kind)


def _integer(value: int | bytes, kind: str) -> int | bool:
    if not isinstance(value, int):
        raise BadProtobuf("text stands where a number belongs")
    if kind == "bool":
        return bool(value)
    return value - (1 << 64) if value >= 1 << 63 else value


def _wrapped(data: bytes, kind: str) -> JsonValue:
    """Scalars that are messages in protobuf."""
    fields = {number: value for number, _, value in _fields(data)}
    if not fields and kind in ("time", "microtime"):
        return None
    if kind == "quantity":
        return _as_bytes(fields.get(1, b"0")).decode("utf-8", "replace")
    if kind == "intorstring":
        if fields.get(1):
            return _as_bytes(fields.get(3, b"")).decode("utf-8", "replace")
        return _integer(fields.get(2, 0), "int64")
    if kind in ("time", "microtime"):
        seconds, nanos = _integer(fields.get(1, 0), "int64"), _integer(fields.get(2, 0), "int64")
        return _time(seconds, nanos, kind)
    raw = _as_bytes(fields.get(1, b""))
    try:
        return decode(raw) if raw else None
    except BadJson as problem:
        raise BadProtobuf(str(problem)) from problem


def _time(seconds: int, nanos: int, kind: str) -> str | None:
    # The zero time is the first of January of the year one: it means "not set".
    if not -62_135_596_800 < seconds < 253_402_300_800:
        return None
    return timestamp(seconds) if kind == "time" else microtimestamp(seconds + nanos / 1e9)


def _read_union(data: bytes, declared: FieldType, depth: int) -> JsonValue:
    """A schema if there is one, else the list or the boolean beside it."""
    schema, listed, allows = None, [], False
    for number, wire, value in _fields(data):
        if number == _UNION_SCHEMAS[declared.name]:
            schema = _message(_as_bytes(value), declared.element or ANY, depth + 1)
        elif number == _UNION_LISTS.get(declared.name):
            is_text = declared.name == "schema-or-strings"
            element = _STRING if is_text else declared.element or ANY
            listed.append(_value(value, wire, element, depth + 1))
        else:
            allows = bool(value)
    if schema is not None:
        return schema
    return allows if declared.name == "schema-or-bool" else listed


# ---- writing


def write_protobuf(document: Json, declared: FieldType) -> bytes:
    """An object that conforms to its type in a Kubernetes protobuf envelope, with the zero values that Go writes."""
    type_meta = _text(1, document.get("apiVersion", "")) + _text(2, document.get("kind", ""))
    return _MAGIC + _bytes(1, type_meta) + _bytes(2, _write_message(document, declared)) + _text(3, "") + _text(4, "")


def _write_message(document: Json, declared: FieldType, prefix: tuple[int, ...] = ()) -> bytes:
    parts = []
    numbers = sorted((*_numbered(declared, prefix), *_inlined(declared, prefix)))
    for number in numbers:
        field = _numbered(declared, prefix).get(number)
        value = None if field is None else document.get(field.name)
        if field is None:
            parts.append(_bytes(number, _write_message(document, declared, (*prefix, number))))
        elif value is not None:
            parts.append(_write_field(number, value, field.type))
        elif not field.is_pointer and field.type.kind in _GO_ZEROS:
            parts.append(_write_field(number, _GO_ZEROS[field.type.kind], field.type))
    return b"".join(parts)


def _write_field(number: int, value: JsonValue, declared: FieldType) -> bytes:
    element = declared.element or ANY
    if declared.kind == "list":
        return b"".join(_write(number, item, element) for item in value)
    if declared.kind == "map":
        return b"".join(_bytes(number, _text(1, key) + _write(2, item, element)) for key, item in value.items())
    return _write(number, value, declared)


def _write(number: int, value: JsonValue, declared: FieldType) -> bytes:
    kind = declared.kind
    if kind == "struct":
        return _bytes(number, _write_message(value, declared))
    if kind == "list":  # a list inside a map is wrapped in a message with one repeated field
        return _bytes(number, b"".join(_write(1, item, declared.element or ANY) for item in value))
    if kind in ("int32", "int64", "bool"):
        return _number(number, int(value))
    if kind == "number":
        return _varint_bytes(number << 3 | _FIXED64) + struct.pack("<d", value)
    if kind == "string":
        return _text(number, value)
    if kind == "bytes":
        return _bytes(number, base64.b64decode(value))
    return _bytes(number, _write_union(value, declared) if kind == "union" else _write_wrapped(value, kind))


def _write_wrapped(value: JsonValue, kind: str) -> bytes:
    if kind == "quantity":
        return _text(1, value)
    if kind == "intorstring":
        is_text = isinstance(value, str)
        return _number(1, int(is_text)) + _number(2, 0 if is_text else value) + _text(3, value if is_text else "")
    if kind in ("time", "microtime"):
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        return _number(1, int(moment.timestamp() // 1)) + _number(2, moment.microsecond * 1000)
    return _bytes(1, encode(value))


def _write_union(value: JsonValue, declared: FieldType) -> bytes:
    schema = declared.element or ANY
    if isinstance(value, dict):
        content = _bytes(_UNION_SCHEMAS[declared.name], _write_message(value, schema))
        return _number(1, 1) + content if declared.name == "schema-or-bool" else content
    if isinstance(value, bool):
        return _number(1, int(value))
    element = _STRING if declared.name == "schema-or-strings" else schema
    return b"".join(_write(_UNION_LISTS[declared.name], item, element) for item in value)


def _varint_bytes(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(number: int, value: int) -> bytes:
    return _varint_bytes(number << 3 | _VARINT) + _varint_bytes(value)


def _bytes(number: int, content: bytes) -> bytes:
    return _varint_bytes(number << 3 | _BYTES) + _varint_bytes(len(content)) + content


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())
