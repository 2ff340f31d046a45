"""The string functions of the CEL extensions, version 2. Positions count characters."""

from __future__ import annotations

from bayplan.cel.declarations import Library, function, member, overload
from bayplan.cel.errors import CostExceeded, EvaluationError
from bayplan.cel.library.formatting import ESCAPES, format_text
from bayplan.cel.types import DYN, INT, STRING, list_of
from bayplan.cel.values import MOST_CHARACTERS, Value, show

__all__ = ["STRINGS"]

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTES = str.maketrans(ESCAPES)


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _character_at(text: str, index: int) -> Value:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> Value:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> Value:
    if not part:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise _out_of_range(start)
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> Value:
    if len(text) + (text.count(old) + 1) * len(new) > MOST_CHARACTERS:
        raise CostExceeded
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, most: int = -1) -> Value:
    if most == 0:
        return []
    if separator:
        return list(text.split(separator, most - 1 if most > 0 else -1))
    if most < 0 or most > len(text):
        return list(text)
    return [*text[: most - 1], text[most - 1 :]]


def _substring(text: str, start: int, end: int | None = None) -> Value:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if end is not None and not 0 <= end <= len(text):
        raise _out_of_range(end)
    return text[start:end]


def _join(elements: list[Value], separator: str = "") -> Value:
    texts: list[str] = []
    for element in elements:
        if not isinstance(element, str):
            raise EvaluationError(f"join: invalid input: {show(element)}")
        texts.append(element)
    if sum(map(len, texts)) + len(separator) * len(texts) > MOST_CHARACTERS:
        raise CostExceeded
    return separator.join(texts)


def _quote(text: str) -> Value:
    return f'"{text.translate(_QUOTES)}"'


STRINGS = Library(
    "strings",
    (
        function("charAt", member("string_char_at_int", (STRING, INT), STRING, _character_at)),
        function(
            "indexOf",
            member("string_index_of_string", (STRING, STRING), INT, _index_of),
            member("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
        ),
        function(
            "lastIndexOf",
            member("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
            member("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_of),
        ),
        function("lowerAscii", member("string_lower_ascii", (STRING,), STRING, lambda text: text.translate(_LOWER))),
        function(
            "replace",
            member("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
            member("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
        ),
        function(
            "split",
            member("string_split_string", (STRING, STRING), list_of(STRING), _split),
            member("string_split_string_int", (STRING, STRING, INT), list_of(STRING), _split),
        ),
        function(
            "substring",
            member("string_substring_int", (STRING, INT), STRING, _substring),
            member("string_substring_int_int", (STRING, INT, INT), STRING, _substring),
        ),
        function("trim", member("string_trim", (STRING,), STRING, lambda text: text.strip(_SPACE))),
        function("upperAscii", member("string_upper_ascii", (STRING,), STRING, lambda text: text.translate(_UPPER))),
        function("format", member("string_format", (STRING, list_of(DYN)), STRING, format_text)),
        function("strings.quote", overload("strings_quote", (STRING,), STRING, _quote)),
        function(
            "join",
            member("list_join", (list_of(STRING),), STRING, _join),
            member("list_join_string", (list_of(STRING), STRING), STRING, _join),
        ),
    ),
)
