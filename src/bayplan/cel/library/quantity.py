"""Kubernetes' quantities in expressions: `quantity("10Gi").isLessThan(…)`.

Exact, with at most nine decimal places (more are rounded up), as the API machinery keeps them. Amounts that it would
keep as 64-bit numbers know whether they are whole; larger or finer ones never are.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bayplan.cel.declarations import Library, function, member, overload
from bayplan.cel.errors import EvaluationError
from bayplan.cel.types import BOOL, DOUBLE, INT, STRING, object_type
from bayplan.cel.values import INT_MAX, INT_MIN, Special, Value, no_overload

__all__ = ["QUANTITIES", "QUANTITY", "Quantity", "parse_quantity"]

QUANTITY = object_type("kubernetes.Quantity")

_FORMAT = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_PARTS = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = -9
_MOST_DIGITS, _LARGEST_EXPONENT = 18, 1000


class Quantity(Special):
    """An amount: `unscaled` times ten to the `exponent`."""

    __slots__ = ("exponent", "is_computed", "is_wide", "nanos", "unscaled")
    type = QUANTITY
    reflected_name = "cel.Quantity"
    has_fixed_cost = True

    def __init__(self, unscaled: int, exponent: int, *, is_wide: bool = False, is_computed: bool = False) -> None:
        """`is_wide` says that it is kept as a decimal of any size, `is_computed` that arithmetic made it."""
        self.unscaled = unscaled
        self.exponent = exponent
        self.is_wide = is_wide
        self.is_computed = is_computed
        self.nanos: int = unscaled * 10 ** (exponent - _NANO)

    def equals(self, other: Value) -> bool:
        """Sums and differences are compared with other quantities, and others not with them, as in Kubernetes."""
        if not isinstance(other, Quantity) or other.is_computed:
            raise no_overload()
        return self.nanos == other.nanos

    def reflection(self) -> str:
        return f"*{self.reflected_name}" if self.is_computed else self.reflected_name

    def whole(self) -> int | None:
        """The amount as an integer of 64 bits, if it is kept as one."""
        if self.is_wide or self.exponent < 0:
            return None
        amount = self.unscaled * 10**self.exponent
        return amount if INT_MIN <= amount <= INT_MAX else None

    def __str__(self) -> str:
        sign = "-" if self.nanos < 0 else ""
        whole, fraction = divmod(abs(self.nanos), 10**9)
        places = f"{fraction:09d}".rstrip("0")
        return f"{sign}{whole}.{places}" if places else f"{sign}{whole}"


@lru_cache(maxsize=16384)
def parse_quantity(text: str) -> Quantity:
    """The quantity of a text such as `1500m` or `16Gi`. Raises `EvaluationError`."""
    match = _PARTS.fullmatch(text)
    if match is None or not text:
        raise EvaluationError(f"quantities must match the regular expression '{_FORMAT}'")
    sign, number, fraction, suffix = match[1], match[2].lstrip("0"), match[3] or "", match[4]
    exponent, shift = _suffix(suffix)
    if len(text) > _LARGEST_EXPONENT:
        raise EvaluationError("unable to parse numeric part of quantity")
    unscaled = int((number or "0") + fraction or "0") * (-1 if sign == "-" else 1)
    if shift:
        return _binary(unscaled, len(fraction), shift, len(number or "0"))
    scale = exponent - len(fraction)
    if len(number or "0") + len(fraction) <= _MOST_DIGITS and scale >= _NANO:
        return Quantity(unscaled, scale)
    return _wide(unscaled, scale)


def _suffix(suffix: str) -> tuple[int, int]:
    """The power of ten and the power of two that a suffix stands for."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], 0
    if suffix in _BINARY:
        return 0, _BINARY[suffix]
    digits = suffix[1:].lstrip("+-")
    if suffix[0] in "eE" and digits.isdigit() and len(digits) < 5 and abs(int(suffix[1:])) <= _LARGEST_EXPONENT:
        return int(suffix[1:]), 0
    raise EvaluationError("unable to parse quantity's suffix")


def _binary(unscaled: int, places: int, shift: int, digits: int) -> Quantity:
    amount = unscaled << shift
    if not places and 15 - digits - shift * 3 // 10 - 1 >= 0:
        return Quantity(amount, 0)
    limit = INT_MAX * 10**places
    return _wide(max(min(amount, limit), -limit), -places)


def _wide(unscaled: int, scale: int) -> Quantity:
    """In nanos, rounded away from zero."""
    if scale >= _NANO:
        return Quantity(unscaled * 10 ** (scale - _NANO), _NANO, is_wide=True)
    rounded = -(-abs(unscaled) // 10 ** (_NANO - scale))
    return Quantity(rounded if unscaled > 0 else -rounded, _NANO, is_wide=True)


def _added(left: Quantity, right: Quantity) -> Value:
    """The sum; a 64-bit number if both are, and if neither they nor the sum leave 64 bits at the finer scale."""
    if not left.is_wide and not right.is_wide and 0 in (left.unscaled, right.unscaled):
        only = left if right.unscaled == 0 else right
        return Quantity(only.unscaled, only.exponent, is_computed=True)
    exponent = min(left.exponent, right.exponent)
    scaled = [each.unscaled * 10 ** (each.exponent - exponent) for each in (left, right)]
    is_narrow = all(INT_MIN <= number <= INT_MAX for number in (*scaled, sum(scaled)))
    is_wide = left.is_wide or right.is_wide or not is_narrow
    return Quantity(sum(scaled), exponent, is_wide=is_wide, is_computed=True)


def _subtracted(left: Quantity, right: Quantity) -> Value:
    return _added(left, Quantity(-right.unscaled, right.exponent, is_wide=right.is_wide))


def _is_quantity(text: str) -> Value:
    try:
        parse_quantity(text)
    except EvaluationError:
        return False
    return True


def _as_integer(quantity: Quantity) -> Value:
    whole = quantity.whole()
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _as_float(quantity: Quantity) -> Value:
    try:
        base = float(quantity.unscaled)
        return base if quantity.exponent == 0 else base * float(f"1e{quantity.exponent}")
    except OverflowError:
        return float("inf") if quantity.unscaled > 0 else float("-inf")


def _sign(quantity: Quantity) -> Value:
    return (quantity.nanos > 0) - (quantity.nanos < 0)


def _compare(left: Quantity, right: Quantity) -> Value:
    return (left.nanos > right.nanos) - (left.nanos < right.nanos)


_PAIR = (QUANTITY, QUANTITY)
QUANTITIES = Library(
    "kubernetes.quantity",
    (
        function("quantity", overload("string_to_quantity", (STRING,), QUANTITY, parse_quantity)),
        function("isQuantity", overload("is_quantity_string", (STRING,), BOOL, _is_quantity)),
        function("sign", overload("quantity_sign", (QUANTITY,), INT, _sign)),
        function(
            "isGreaterThan",
            member("quantity_is_greater_than", _PAIR, BOOL, lambda left, right: left.nanos > right.nanos),
        ),
        function(
            "isLessThan", member("quantity_is_less_than", _PAIR, BOOL, lambda left, right: left.nanos < right.nanos)
        ),
        function("compareTo", member("quantity_compare_to", _PAIR, INT, _compare)),
        function("asApproximateFloat", member("quantity_get_float", (QUANTITY,), DOUBLE, _as_float)),
        function("asInteger", member("quantity_get_int", (QUANTITY,), INT, _as_integer)),
        function(
            "isInteger", member("quantity_is_integer", (QUANTITY,), BOOL, lambda quantity: quantity.whole() is not None)
        ),
        function(
            "add",
            member("quantity_add", _PAIR, QUANTITY, _added),
            member("quantity_add_int", (QUANTITY, INT), QUANTITY, lambda left, right: _added(left, Quantity(right, 0))),
        ),
        function(
            "sub",
            member("quantity_sub", _PAIR, QUANTITY, _subtracted),
            member(
                "quantity_sub_int", (QUANTITY, INT), QUANTITY, lambda left, right: _subtracted(left, Quantity(right, 0))
            ),
        ),
    ),
)
