"""Semantic versions in expressions: `semver("1.2.3").isLessThan(…)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from bayplan.cel.declarations import Library, function, member, overload
from bayplan.cel.errors import EvaluationError
from bayplan.cel.library.formatting import quoted
from bayplan.cel.types import BOOL, INT, STRING, object_type
from bayplan.cel.values import INT_MAX, UINT_MAX, Special, Value, no_overload

__all__ = ["SEMVER", "SEMVERS", "Semver", "parse_semver"]

SEMVER = object_type("kubernetes.Semver")

_DIGITS = frozenset("0123456789")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") | _DIGITS
_LONGEST = 4096

Identifier = tuple[int, int, str]
"""A part of a prerelease, ordered: numbers before words."""


class Semver(Special):
    """A version with its order; what follows `+` is kept and means nothing."""

    __slots__ = ("_order", "build", "numbers", "prerelease")
    type = SEMVER
    reflected_name = "cel.Semver"
    has_fixed_cost = True

    def __init__(
        self, numbers: tuple[int, int, int], prerelease: tuple[Identifier, ...], build: tuple[str, ...]
    ) -> None:
        self.numbers = numbers
        self.prerelease = prerelease
        self.build = build
        self._order = (numbers, not prerelease, prerelease)

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Semver):
            raise no_overload()
        return self._order == other._order

    def compare_to(self, other: Semver) -> int:
        return (self._order > other._order) - (self._order < other._order)

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        if self.prerelease:
            text += "-" + ".".join(str(number) if kind == 0 else word for kind, number, word in self.prerelease)
        return text + ("+" + ".".join(self.build) if self.build else "")


@lru_cache(maxsize=16384)
def parse_semver(text: str) -> Semver:
    """The version of a text such as `1.2.3-rc.1+linux`. Raises `EvaluationError`."""
    if not text:
        raise EvaluationError("Version string empty")
    if len(text) > _LONGEST:
        raise EvaluationError("Version string too long")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number("major", parts[0]), _number("minor", parts[1])
    rest, plus, build_text = parts[2].partition("+")
    patch_text, dash, prerelease_text = rest.partition("-")
    patch = _number("patch", patch_text)
    prerelease = tuple(map(_identifier, prerelease_text.split("."))) if dash else ()
    build = tuple(map(_build, build_text.split("."))) if plus else ()
    return Semver((major, minor, patch), prerelease, build)


def _number(name: str, text: str) -> int:
    if not _DIGITS.issuperset(text):
        raise EvaluationError(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name.capitalize()} number must not contain leading zeroes {quoted(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if int(text) > UINT_MAX:
        raise EvaluationError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)


def _identifier(text: str) -> Identifier:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return 0, _unsigned(text), ""
    if not _WORD.issuperset(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return 1, 0, text


def _build(text: str) -> str:
    if not text:
        raise EvaluationError("Build meta data is empty")
    if not _WORD.issuperset(text):
        raise EvaluationError(f"Invalid character(s) found in build meta data {quoted(text)}")
    return text


def _normalized(text: str) -> str:
    """Without a leading `v` and leading zeros, with three parts."""
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part.encode()) > 1:
            stripped = part.lstrip("0")
            parts[position] = stripped if stripped and stripped[0] in _DIGITS else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _parse(text: str, normalize: bool = False) -> Value:
    return parse_semver(_normalized(text) if normalize else text)


def _is_semver(text: str, normalize: bool = False) -> Value:
    try:
        _parse(text, normalize)
    except EvaluationError:
        return False
    return True


def _part(position: int) -> Callable[[Semver], Value]:
    def part(version: Semver) -> Value:
        number = version.numbers[position]
        return number if number <= INT_MAX else number - UINT_MAX - 1

    return part


_PAIR = (SEMVER, SEMVER)
SEMVERS = Library(
    "kubernetes.semver",
    (
        function(
            "semver",
            overload("string_to_semver", (STRING,), SEMVER, _parse),
            overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _parse),
        ),
        function(
            "isSemver",
            overload("is_semver_string", (STRING,), BOOL, _is_semver),
            overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver),
        ),
        function(
            "isGreaterThan",
            member("semver_is_greater_than", _PAIR, BOOL, lambda left, right: left.compare_to(right) > 0),
        ),
        function(
            "isLessThan", member("semver_is_less_than", _PAIR, BOOL, lambda left, right: left.compare_to(right) < 0)
        ),
        function("compareTo", member("semver_compare_to", _PAIR, INT, Semver.compare_to)),
        function("major", member("semver_major", (SEMVER,), INT, _part(0))),
        function("minor", member("semver_minor", (SEMVER,), INT, _part(1))),
        function("patch", member("semver_patch", (SEMVER,), INT, _part(2))),
    ),
)
