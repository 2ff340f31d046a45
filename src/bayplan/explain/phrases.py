"""Pieces of sentences: counts, lists of names, ends."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["cores", "counted", "ended", "listed", "plural"]

_NAMED = 3


def listed(names: Sequence[str], noun: str) -> str:
    """A few names in full, more as a number and some of them."""
    if not names:
        return f"no {noun}"
    if len(names) <= _NAMED:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{len(names)} {noun} ({', '.join(names[:_NAMED])}, …)"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def cores(quantity: str) -> str:
    """`36100m` as `36.1`: thousandths are for less than one core, and for nothing but cores."""
    number = quantity.removesuffix("m")
    if number == quantity or not number.isdecimal() or int(number) < 1000:
        return quantity
    return f"{int(number) // 1000}.{int(number) % 1000:03}".rstrip("0").rstrip(".")


def plural(noun: str, items: Sequence[str]) -> str:
    return noun if len(items) == 1 else f"{noun}s"


def ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
