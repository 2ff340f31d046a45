"""`"%s has %d".format([name, count])`: clauses, their arguments and how values are spelled.

Numbers with a fixed point are grouped as in American English, and powers of ten are written with superscripts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bayplan.cel.errors import CostExceeded, EvaluationError
from bayplan.cel.syntax import Expression, ListLiteral, MapLiteral
from bayplan.cel.times import Duration, Timestamp
from bayplan.cel.types import Type, TypeKind
from bayplan.cel.values import MOST_CHARACTERS, TypeValue, Uint, Value, show_double, type_name

__all__ = ["ESCAPES", "FormatProblem", "check_format", "format_text", "quoted"]

_DEFAULT_PRECISION = 6
_LARGEST_PRECISION = 1000
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_STRINGS = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_REFUSALS = {
    "s": f"string clause can only be used on {_STRINGS}, was given ",
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}
_KINDS: dict[str, frozenset[TypeKind]] = {
    "s": frozenset(
        {
            TypeKind.LIST,
            TypeKind.MAP,
            TypeKind.INT,
            TypeKind.UINT,
            TypeKind.DOUBLE,
            TypeKind.BOOL,
            TypeKind.STRING,
            TypeKind.TIMESTAMP,
            TypeKind.BYTES,
            TypeKind.DURATION,
            TypeKind.TYPE,
            TypeKind.NULL,
        }
    ),
    "d": frozenset({TypeKind.INT, TypeKind.UINT}),
    "f": frozenset({TypeKind.DOUBLE, TypeKind.STRING}),
    "e": frozenset({TypeKind.DOUBLE, TypeKind.STRING}),
    "b": frozenset({TypeKind.INT, TypeKind.UINT, TypeKind.BOOL}),
    "x": frozenset({TypeKind.INT, TypeKind.UINT, TypeKind.STRING, TypeKind.BYTES}),
    "o": frozenset({TypeKind.INT, TypeKind.UINT}),
}


class FormatProblem(EvaluationError):
    """A format that is wrong, or an argument that does not fit its clause; `part` is the argument, if it is one."""

    def __init__(self, message: str, part: Expression | None = None) -> None:
        super().__init__(message)
        self.part = part


Spelling = Callable[[int, str, int | None], str]
"""Spells the argument at a position for a clause and its precision."""


def _expand(pattern: str, count: int, spell: Spelling, *, is_checked_first: bool) -> tuple[str, int]:
    """The pattern with its clauses replaced, and how many arguments it used."""
    pieces: list[str] = []
    position = used = 0
    while position < len(pattern):
        if pattern[position] != "%":
            end = pattern.find("%", position)
            end = len(pattern) if end < 0 else end
            pieces.append(pattern[position:end])
            position = end
        elif pattern[position + 1 : position + 2] == "%":
            pieces.append("%")
            position += 2
        else:
            if used >= count and is_checked_first:
                raise FormatProblem(f"index {used} out of range")
            if position + 1 >= len(pattern):
                raise FormatProblem("unexpected end of string")
            if used >= count:
                raise FormatProblem(f"index {used} out of range")
            position, clause, precision = _clause(pattern, position + 1)
            pieces.append(spell(used, clause, precision))
            used += 1
    return "".join(pieces), used


def _clause(pattern: str, position: int) -> tuple[int, str, int | None]:
    """The end of the clause, its letter and its precision."""
    precision: int | None = None
    problem = "could not parse formatting clause: "
    if pattern[position] == ".":
        end = position + 1
        while end < len(pattern) and pattern[end].isascii() and pattern[end].isdigit():
            end += 1
        digits = pattern[position + 1 : end]
        if end >= len(pattern):
            raise FormatProblem(problem + "error while parsing precision: could not find end of precision specifier")
        if not digits or len(digits) > 18:
            reason = "invalid syntax" if not digits else "value out of range"
            atoi = f'strconv.Atoi: parsing "{digits}": {reason}'
            raise FormatProblem(
                f"{problem}error while parsing precision: error while converting precision to integer: {atoi}"
            )
        precision, position = int(digits), end
    letter = pattern[position]
    if letter not in _KINDS and letter != "X":
        raise FormatProblem(f'{problem}unrecognized formatting clause "{letter}"')
    return position + 1, letter, precision


def format_text(pattern: str, arguments: list[Value]) -> Value:
    """The pattern with its clauses replaced by the arguments."""

    def spell(position: int, clause: str, precision: int | None) -> str:
        return _spelled(arguments[position], clause, precision)

    text, _ = _expand(pattern, len(arguments), spell, is_checked_first=True)
    if len(text) > MOST_CHARACTERS:
        raise CostExceeded
    return text


def check_format(pattern: str, arguments: Sequence[Expression]) -> int:
    """How many arguments the pattern uses. Raises `FormatProblem` for what can be seen to be wrong."""

    def check(position: int, clause: str, precision: int | None) -> str:
        letter = clause.lower()
        refused = _refused(arguments[position], letter)
        if refused is not None:
            raise FormatProblem(f"error during formatting: {_REFUSALS[letter]}{refused.type.name}", refused)
        return ""

    return _expand(pattern, len(arguments), check, is_checked_first=False)[1]


def _refused(part: Expression, letter: str) -> Expression | None:
    """The part that the clause cannot spell; of literal lists and maps also what is inside."""
    if not _may_be(part.type, _KINDS[letter]):
        return part
    if letter != "s":
        return None
    inside: list[Expression] = []
    if isinstance(part, ListLiteral):
        inside = part.elements
    elif isinstance(part, MapLiteral):
        inside = [each for entry in part.entries for each in (entry.key, entry.value)]
    return next((found for each in inside if (found := _refused(each, letter)) is not None), None)


def _may_be(found: Type, kinds: frozenset[TypeKind]) -> bool:
    return found.kind is TypeKind.DYN or found.kind in kinds


def _spelled(value: Value, clause: str, precision: int | None) -> str:
    try:
        return _SPELLINGS[clause](value, precision)
    except FormatProblem as problem:
        raise FormatProblem(f"error during formatting: {problem}") from None


def _refuse(letter: str, value: Value) -> FormatProblem:
    return FormatProblem(_REFUSALS[letter] + type_name(value))


def _string(value: Value, precision: int | None = None) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_inside, value)) + "]"
    if isinstance(value, dict):
        entries = sorted(((_key(key), _inside(entry)) for key, entry in value.items()), key=lambda entry: entry[0])
        return "{" + ", ".join(f"{key}:{entry}" for key, entry in entries) + "}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            problem = "invalid UTF-8 in bytes, cannot convert to string"
            raise FormatProblem(f'could not convert argument "{problem}" to string') from None
    if isinstance(value, float):
        return show_double(value)
    if isinstance(value, int | str | Timestamp | Duration | TypeValue):
        return str(value)
    raise _refuse("s", value)


def _key(key: Value) -> str:
    if isinstance(key, str):
        return quoted(key)
    if isinstance(key, bool | int):
        return _string(key)
    raise FormatProblem(f"no formatting function for map key of type {type_name(key)}")


def _inside(value: Value) -> str:
    """A value within a list or map: strings are quoted, doubles have six places."""
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(_string(value))}"
        case float():
            plain = f"{value:.6f}" if math.isfinite(value) else _not_finite(value)
            return plain if math.isfinite(value) else quoted(plain)
        case Timestamp():
            return f"timestamp({quoted(str(value))})"
        case Duration():
            return f"duration({quoted(str(value))})"
        case bool() | int() | None | list() | dict() | TypeValue():
            return _string(value)
    raise FormatProblem(f"no formatting function for {type_name(value)}")


def _not_finite(number: float) -> str:
    return "NaN" if number != number else ("+Inf" if number > 0 else "-Inf")


def _decimal(value: Value, precision: int | None) -> str:
    if value.__class__ in (int, Uint):
        return str(value)
    raise _refuse("d", value)


def _number(value: Value, letter: str) -> float:
    if isinstance(value, float):
        return value
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(str(value))
    raise _refuse(letter, value)


def _fixed(value: Value, precision: int | None) -> str:
    number = _number(value, "f")
    if not math.isfinite(number):
        return "NaN" if number != number else ("∞" if number > 0 else "-∞")
    places = _DEFAULT_PRECISION if precision is None else precision
    if places > _LARGEST_PRECISION:
        raise CostExceeded
    return f"{number or 0.0:,.{places}f}"


def _scientific(value: Value, precision: int | None) -> str:
    """Six places, whatever was asked for: the precision is taken as the least width."""
    number = _number(value, "e")
    width = _DEFAULT_PRECISION if precision is None else precision
    if width > _LARGEST_PRECISION:
        raise CostExceeded
    if not math.isfinite(number):
        return ("NaN" if number != number else ("∞" if number > 0 else "-∞")).rjust(width)
    mantissa, _, exponent = f"{number or 0.0:.6e}".partition("e")
    return f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}".rjust(width)


def _binary(value: Value, precision: int | None) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return f"{value:b}"
    raise _refuse("b", value)


def _hexadecimal(value: Value, precision: int | None) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:x}"
    raise _refuse("x", value)


def _upper_hexadecimal(value: Value, precision: int | None) -> str:
    return _hexadecimal(value, precision).upper()


def _octal(value: Value, precision: int | None) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:o}"
    raise _refuse("o", value)


_SPELLINGS: dict[str, Callable[[Value, int | None], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "X": _upper_hexadecimal,
    "o": _octal,
}
ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    """The text between double quotes, with escapes for what is not printable."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
