"""Reading Kubernetes' protobuf bodies, which kubectl's typed commands send, into plain documents.

Only reading: answers are JSON, which every client accepts. The field numbers come from the type table; a number it
does not know is skipped, as protobuf wants. Truncated or malformed input is a `BadProtobuf`.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator

from bayplan.apiserver.kinds.type_table import ANY, Field, Type
from bayplan.apiserver.protocol.encoding import BadJson, Json, JsonValue, decode, microtimestamp, timestamp

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 100
# Protobuf writes zeros, false and empty text for fields that JSON leaves out. These are pointers in the Go types, so
# that their zero was meant.
_MEANINGFUL_ZEROS = frozenset(
    {
        "allowPrivilegeEscalation",
        "automountServiceAccountToken",
        "backoffLimit",
        "blockOwnerDeletion",
        "completions",
        "controller",
        "enableServiceLinks",
        "gracePeriodSeconds",
        "orphanDependents",
        "parallelism",
        "partition",
        "replicas",
        "revisionHistoryLimit",
        "runAsNonRoot",
        "runAsUser",
        "storageClassName",
        "suspend",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "ttlSecondsAfterFinished",
        "value",
    }
)


class BadProtobuf(ValueError):
    """The bytes are no protobuf message of the expected type."""


def read_protobuf(body: bytes, declared: Type) -> Json:
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


def _numbered(declared: Type, prefix: tuple[int, ...]) -> dict[int, Field]:
    depth = len(prefix)
    return {
        field.numbers[depth]: field
        for field in declared.fields.values()
        if len(field.numbers) == depth + 1 and field.numbers[:depth] == prefix
    }


def _message(data: bytes, declared: Type, depth: int, prefix: tuple[int, ...] = ()) -> Json:
    if depth > _MAX_DEPTH:
        raise BadProtobuf(f"nested more than {_MAX_DEPTH} levels deep")
    known = _numbered(declared, prefix)
    inlined = (
        {field.numbers[0] for field in declared.fields.values() if len(field.numbers) == 2} if not prefix else set()
    )
    document: Json = {}
    for number, wire, value in _fields(data):
        if number in known:
            _add(document, known[number], wire, value, depth)
        elif number in inlined:
            document |= _message(_as_bytes(value), declared, depth + 1, (number,))
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
    else:
        read = _value(value, wire, declared, depth)
        if read not in ("", 0, None) or (read is not None and field.name in _MEANINGFUL_ZEROS):
            document[field.name] = read


def _value(value: int | bytes, wire: int, declared: Type, depth: int) -> JsonValue:
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
