"""Quantities as the API server writes them back: `0.5` becomes `500m`, `1024Mi` becomes `1Gi`.

Arithmetic on quantities belongs to the scheduler; here they are only read, canonicalised and compared.
"""

from __future__ import annotations

import functools
import re
from decimal import ROUND_CEILING, Decimal, localcontext

_QUANTITY = re.compile(
    r"^([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?[0-9]+|)\Z",
)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_BY_POWER = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
_DECIMAL_BY_POWER = {power: suffix for suffix, power in _DECIMAL.items()}
_NANO = Decimal("1e-9")
_MAX_EXPONENT = 30
_MAX_TEXT = 64
# More digits than any accepted text can have, so that nothing is rounded by accident.
_PRECISION = 160
_LARGEST = Decimal(2**63 - 1)
HINT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class BadQuantity(ValueError):
    """The text is no quantity."""


@functools.lru_cache(maxsize=8192)
def parse_quantity(text: str) -> Decimal:
    """The exact value of a quantity, rounded up to a billionth."""
    return _parse(text)[0]


@functools.lru_cache(maxsize=8192)
def canonical_quantity(text: str) -> str:
    """The spelling the API server would store."""
    value, form = _parse(text)
    if form == "exponent":
        return _in_exponent_form(value)
    # Small values cannot be written with a binary suffix, so they take the decimal form.
    if form == "binary" and abs(value) >= 1024 and value == value.to_integral_value():
        return _in_binary_form(int(value))
    return _in_decimal_form(value)


def _parse(text: str) -> tuple[Decimal, str]:
    match = _QUANTITY.match(text)
    if match is None or len(text) > _MAX_TEXT:
        raise BadQuantity(HINT)
    sign, digits, suffix = match.groups()
    with localcontext(prec=_PRECISION):
        number, form = _scaled(Decimal(sign + digits), suffix)
        if abs(number) > _LARGEST:
            number = _LARGEST.copy_sign(number)
        return number.quantize(_NANO, rounding=ROUND_CEILING).normalize(), form


def _scaled(number: Decimal, suffix: str) -> tuple[Decimal, str]:
    if suffix in _BINARY:
        return number * (1024 ** _BINARY[suffix]), "binary"
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix]), "decimal"
    exponent = int(suffix[1:])
    if abs(exponent) > _MAX_EXPONENT:
        raise BadQuantity(f"the exponent is out of range; {HINT}")
    return number.scaleb(exponent), "exponent"


def _in_binary_form(value: int) -> str:
    power = 0
    while value % 1024 == 0 and value and power < 6:
        value //= 1024
        power += 1
    return f"{value}{_BINARY_BY_POWER[power]}"


def _decimal_digits(value: Decimal) -> tuple[int, int]:
    """The value as an integer times ten to a multiple of three."""
    power = -9
    with localcontext(prec=_PRECISION):
        integer = int(value.scaleb(9))
    while integer and integer % 1000 == 0 and power < 18:
        integer //= 1000
        power += 3
    return integer, power if integer else 0


def _in_decimal_form(value: Decimal) -> str:
    integer, power = _decimal_digits(value)
    return f"{integer}{_DECIMAL_BY_POWER[power]}"


def _in_exponent_form(value: Decimal) -> str:
    integer, power = _decimal_digits(value)
    return f"{integer}e{power}" if power else str(integer)
