"""Plain data into typed structs, field by field, with every problem found on the way.

Driven by the struct types themselves (`msgspec.inspect`), so the model, nested API structs and the argument classes of
plugins are all read by the same rules: unknown and repeated fields are errors everywhere, `null` means absent, and a
problem names the path, what was found and what is allowed. The struct library builds the result in the end; it
would stop at the first problem, which is why it runs last.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from bayplan.api.documents import Rows, Table
from bayplan.api.suggest import did_you_mean, quoted
from bayplan.config.durations import parse_duration
from bayplan.config.errors import Problems

__all__ = ["Reader", "inside", "shown"]

T = TypeVar("T")
UnknownHint = Callable[[str, str], str]


class _Absent:
    """The type of `_ABSENT`."""


_ABSENT: Final = _Absent()
"""What is left of a value that was refused."""
_LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)


class Reader:
    """Reads values of one document. `lines` fills with the line of every path that the document gives."""

    def __init__(self, problems: Problems, *, unknown_hint: UnknownHint | None = None) -> None:
        self.problems = problems
        self.lines: dict[str, int] = {}
        self._unknown_hint = unknown_hint

    def read(self, value: Any, type_: type[T], *, path: str = "", line: int = 0) -> T | None:
        """The value as that type. What was refused inside it is left at its default; None when nothing is left."""
        before = len(self.problems)
        cleaned = self._value(value, inspect.type_info(type_), path, line)
        if isinstance(cleaned, _Absent):
            return None
        try:
            return msgspec.convert(cleaned, type_)
        except (msgspec.ValidationError, TypeError, OverflowError) as error:
            if len(self.problems) == before:
                what, _, where = str(error).partition(" - at `$")
                place = inside(path, where.rstrip("`").lstrip("."))
                self.problems.add(place, what, line=self.lines.get(place, line))
            return None

    def _value(self, value: Any, info: inspect.Type, path: str, line: int) -> Any:
        self.lines[path] = line
        if isinstance(info, inspect.Metadata):
            return self._value(value, info.type, path, line)
        if isinstance(info, inspect.StructType):
            return value if info.array_like or info.tag is not None else self._struct(value, info, path, line)
        if isinstance(info, _LISTS):
            return self._list(value, info.item_type, path, line)
        if isinstance(info, inspect.DictType):
            return self._map(value, info, path, line)
        if isinstance(info, inspect.UnionType):
            return self._union(value, info, path, line)
        return self._scalar(value, info, path, line)

    def _struct(self, value: Any, info: inspect.StructType, path: str, line: int) -> Any:
        fields = {field.encode_name: field for field in info.fields}
        if not isinstance(value, dict):
            hint = f"write `name: {value}`" if isinstance(value, str) and value and "name" in fields else ""
            return self._refuse(path, "a mapping", value, line, hint=hint) if path else self._refuse_top(value)
        self._report_repeated(value, path)
        cleaned: dict[str, Any] = {}
        for key, inner in value.items():
            place, at = inside(path, str(key)), _line_of(value, key, line)
            if key not in fields:
                self._report_unknown(str(key), list(fields), path, place, at)
            elif inner is not None:
                result = self._value(inner, fields[key].type, place, at)
                if not isinstance(result, _Absent):
                    cleaned[key] = result
        self._report_missing(value, info, path, line)
        return cleaned

    def _report_repeated(self, value: dict[Any, Any], path: str) -> None:
        for key, first, second in value.repeated if isinstance(value, Table) else ():
            where = f"on lines {first} and {second}" if first else "twice"
            self.problems.add(inside(path, key), f"is written {where}", hint="keep one", line=second)

    def _report_unknown(self, key: str, known: list[str], path: str, place: str, line: int) -> None:
        hint = self._unknown_hint(path, key) if self._unknown_hint else ""
        allowed = "no fields are allowed here" if not known else did_you_mean(key, known)
        self.problems.add(place, "unknown field", hint=hint or allowed, line=line)

    def _report_missing(self, value: dict[Any, Any], info: inspect.StructType, path: str, line: int) -> None:
        for field in info.fields:
            if field.required and value.get(field.encode_name) is None:
                place = inside(path, field.encode_name)
                self.problems.add(place, "is required", hint=f"expected {_words(field.type)}", line=line)

    def _list(self, value: Any, item: inspect.Type, path: str, line: int) -> Any:
        if not isinstance(value, list | tuple):
            return self._refuse(path, "a list", value, line, hint="write each element after `- `")
        elements = []
        for index, inner in enumerate(value):
            at = value.lines[index] if isinstance(value, Rows) and index < len(value.lines) else line
            result = self._value(inner, item, f"{path}[{index}]", at)
            if not isinstance(result, _Absent):
                elements.append(result)
            elif isinstance(item, inspect.StructType):
                elements.append({})  # so that the elements after it keep their place
        return elements

    def _map(self, value: Any, info: inspect.DictType, path: str, line: int) -> Any:
        if not isinstance(value, dict):
            return self._refuse(path, "a mapping", value, line)
        self._report_repeated(value, path)
        cleaned = {}
        for key, inner in value.items():
            result = self._value(inner, info.value_type, f"{path}[{key}]", _line_of(value, key, line))
            if not isinstance(result, _Absent):
                cleaned[key] = result
        return cleaned

    def _union(self, value: Any, info: inspect.UnionType, path: str, line: int) -> Any:
        if value is None and any(isinstance(part, inspect.NoneType) for part in info.types):
            return None
        parts = [part for part in info.types if not isinstance(part, inspect.NoneType)]
        fitting = [part for part in parts if _may_hold(part, value)]
        if len(parts) == 1 or len(fitting) == 1:
            return self._value(value, (fitting or parts)[0], path, line)
        return value if fitting else self._refuse(path, " or ".join(map(_words, parts)), value, line)

    def _scalar(self, value: Any, info: inspect.Type, path: str, line: int) -> Any:
        if isinstance(info, inspect.TimeDeltaType):
            return self._duration(value, path, line)
        if isinstance(info, inspect.LiteralType | inspect.EnumType):
            return self._choice(value, info, path, line)
        if not _may_hold(info, value):
            return self._refuse(path, _words(info, with_limits=False), value, line, hint=_quoting_hint(info, value))
        if isinstance(info, inspect.AnyType):
            self._note_lines(value, path, line)
        if isinstance(info, inspect.IntType | inspect.FloatType) and not _in_range(info, value):
            return self._refuse(path, _words(info), value, line)
        return value

    def _note_lines(self, value: Any, path: str, line: int) -> None:
        """Lines inside a value that is read later, when its type is known."""
        self.lines[path] = line
        if isinstance(value, Table):
            for key, inner in value.items():
                self._note_lines(inner, inside(path, key), _line_of(value, key, line))
        elif isinstance(value, Rows):
            for index, inner in enumerate(value):
                self._note_lines(inner, f"{path}[{index}]", value.lines[index])

    def _duration(self, value: Any, path: str, line: int) -> Any:
        parsed = parse_duration(value) if isinstance(value, str) else None
        if parsed is not None:
            return parsed
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        hint = f"with its unit: `{value}s`" if is_number else "units are h, m, s, ms, us and ns"
        return self._refuse(path, "a duration such as `15s` or `1m30s`", value, line, hint=hint)

    def _choice(self, value: Any, info: inspect.LiteralType | inspect.EnumType, path: str, line: int) -> Any:
        values = info.values if isinstance(info, inspect.LiteralType) else [member.value for member in info.cls]
        if any(value == allowed and type(value) is type(allowed) for allowed in values):
            return value
        hint = did_you_mean(value, map(str, values)) if isinstance(value, str) else ""
        hint = hint if hint.startswith("did") else ""
        return self._refuse(path, f"one of {quoted(map(str, values))}", value, line, hint=hint)

    def _refuse(self, path: str, wanted: str, value: Any, line: int, *, hint: str = "") -> _Absent:
        self.problems.add(path, f"expected {wanted}, found {shown(value)}", hint=hint, line=line)
        return _ABSENT

    def _refuse_top(self, value: Any) -> _Absent:
        self.problems.add("", f"expected a mapping, found {shown(value)}")
        return _ABSENT


def inside(path: str, key: str) -> str:
    """The path of something inside a path."""
    if not path or not key:
        return path or key
    return f"{path}{key}" if key.startswith("[") else f"{path}.{key}"


def shown(value: Any) -> str:
    """A found value as a message shows it: short, and never a whole tree."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text[:60]}...`" if len(text) > 60 else f"`{text}`"


def _line_of(table: Any, key: Any, otherwise: int) -> int:
    return table.lines.get(key, otherwise) if isinstance(table, Table) else otherwise


def _may_hold(info: inspect.Type, value: Any) -> bool:
    """Whether a value has the outer shape of a type."""
    if isinstance(info, inspect.BoolType):
        return isinstance(value, bool)
    if isinstance(info, inspect.IntType):
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(info, inspect.FloatType):
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if isinstance(info, inspect.StrType):
        return isinstance(value, str)
    if isinstance(info, inspect.StructType | inspect.DictType):
        return isinstance(value, dict)
    if isinstance(info, _LISTS):
        return isinstance(value, list | tuple)
    return not isinstance(info, inspect.NoneType)


def _quoting_hint(info: inspect.Type, value: Any) -> str:
    """What to do about a text that needs quotes, or a number that has them."""
    if isinstance(info, inspect.StrType) and isinstance(value, bool | int | float):
        return f'put it in quotes: "{shown(value)[1:-1]}"'
    is_number = isinstance(info, inspect.IntType | inspect.FloatType) and isinstance(value, str)
    if is_number and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        return f"it is text; write it without quotes: {value}"
    return ""


def _in_range(info: inspect.IntType | inspect.FloatType, value: float) -> bool:
    return (
        (info.ge is None or value >= info.ge)
        and (info.gt is None or value > info.gt)
        and (info.le is None or value <= info.le)
        and (info.lt is None or value < info.lt)
    )


def _words(info: inspect.Type, *, with_limits: bool = True) -> str:
    """A type in plain words."""
    if isinstance(info, inspect.Metadata):
        return _words(info.type, with_limits=with_limits)
    if isinstance(info, inspect.IntType | inspect.FloatType):
        return _number_words(info, with_limits=with_limits)
    if isinstance(info, inspect.LiteralType):
        return f"one of {quoted(map(str, info.values))}"
    if isinstance(info, inspect.UnionType):
        return " or ".join(_words(part) for part in info.types if not isinstance(part, inspect.NoneType))
    words = {inspect.BoolType: "true or false", inspect.StrType: "text", inspect.TimeDeltaType: "a duration"}
    if type(info) in words:
        return words[type(info)]
    return "a list" if isinstance(info, _LISTS) else "a mapping"


def _number_words(info: inspect.IntType | inspect.FloatType, *, with_limits: bool) -> str:
    noun = "a whole number" if isinstance(info, inspect.IntType) else "a number"
    bounds = [(info.ge, "at least"), (info.gt, "above"), (info.le, "at most"), (info.lt, "below")]
    limits = [f"{word} {bound}" for bound, word in bounds if bound is not None]
    return f"{noun} {' and '.join(limits)}" if limits and with_limits else noun
