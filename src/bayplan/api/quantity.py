"""Kubernetes quantities ("1500m", "16393244Ki", "129e6") as exact integers.

Both readings round up, as the API machinery does: `value("1500m")` is 2 and `milli_value("0.1m")` is 1. Parsing is
exact (no floats) and cached, because a cluster repeats the same few hundred strings.
"""

from __future__ import annotations

from functools import lru_cache

__all__ = ["Quantity", "QuantityError", "binary_quantity", "format_quantity", "milli_value", "nano_value", "value"]

Quantity = str | int | float
"""The JSON and YAML types of a quantity field; the API server always sends a string."""

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_INT64_MAX = 2**63 - 1
_POWER = {0: 1, 3: 1000}
_NANO = 10**9
_MOST_DIGITS = 1000
"""The longest text that is parsed; real amounts are far shorter."""
_MOST_REMEMBERED = 32
"""The longest text that is remembered: custom resources may state any number of longer ones."""


class QuantityError(ValueError):
    """A string that is not a quantity."""


def value(quantity: Quantity) -> int:
    """The quantity in whole units, rounded away from zero."""
    return _remembered(str(quantity), 0)


def milli_value(quantity: Quantity) -> int:
    """The quantity in thousandths, rounded away from zero."""
    return _remembered(str(quantity), 3)


@lru_cache(maxsize=65536)
def nano_value(quantity: Quantity) -> int:
    """The quantity in billionths, the finest that Kubernetes keeps; rounded away from zero, without a limit."""
    numerator, denominator = _parse(str(quantity))
    rounded = -(-abs(numerator) * _NANO // denominator)
    return rounded if numerator >= 0 else -rounded


def binary_quantity(amount: int) -> str:
    """A whole amount as Kubernetes writes a quantity in powers of 1024; below 1024, in powers of 1000."""
    if abs(amount) < 1024:
        return f"{amount // 1000}k" if amount and amount % 1000 == 0 else str(amount)
    for suffix, shift in reversed(_BINARY.items()):
        if amount % (1 << shift) == 0:
            return f"{amount >> shift}{suffix}"
    return str(amount)


def _remembered(text: str, places: int) -> int:
    return _scaled(text, places) if len(text) <= _MOST_REMEMBERED else _scaled.__wrapped__(text, places)


@lru_cache(maxsize=65536)
def _scaled(text: str, places: int) -> int:
    numerator, denominator = _parse(text)
    scaled = abs(numerator) * _POWER[places]
    rounded = -(-scaled // denominator)
    return min(rounded, _INT64_MAX) if numerator >= 0 else -min(rounded, _INT64_MAX)


def _parse(text: str) -> tuple[int, int]:
    """The exact fraction that the text stands for."""
    number, suffix = _split(text)
    sign = -1 if number.startswith("-") else 1
    whole, _, fraction = _unsigned(number).partition(".")
    if not _is_digits(whole + fraction) or len(whole + fraction) > _MOST_DIGITS:
        raise QuantityError(
            f"`{text}` is not a quantity; write a number with an optional suffix, such as `500m` or `2Gi`"
        )
    numerator, denominator = sign * int(whole + fraction), 10 ** len(fraction)
    if suffix in _BINARY:
        return numerator << _BINARY[suffix], denominator
    exponent = _exponent(text, suffix)
    return (numerator * 10**exponent, denominator) if exponent >= 0 else (numerator, denominator * 10**-exponent)


def _split(text: str) -> tuple[str, str]:
    end = len(text)
    for position, character in enumerate(text):
        if not (character.isdigit() or character in "+-."):
            end = position
            break
    return text[:end], text[end:]


def _unsigned(number: str) -> str:
    return number[1:] if number[:1] in ("+", "-") else number


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _exponent(text: str, suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    digits = suffix[1:]
    if suffix[:1] in ("e", "E") and _is_digits(_unsigned(digits)) and len(digits) <= 5:
        return int(digits)
    raise QuantityError(
        f"`{text}` has an unknown suffix `{suffix}`; use one of m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei"
    )


def format_quantity(amount: int, resource: str) -> str:
    """An amount in our internal unit (milli-cpu, bytes, counts) as a person writes it."""
    if resource == "cpu":
        return f"{amount // 1000}" if amount % 1000 == 0 else f"{amount}m"
    if resource == "memory" or resource == "ephemeral-storage" or resource.startswith("hugepages-"):
        for suffix, shift in reversed(_BINARY.items()):
            if amount and amount % (1 << shift) == 0:
                return f"{amount >> shift}{suffix}"
    return str(amount)
