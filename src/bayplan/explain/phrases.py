"""Pieces of sentences: counts, lists of names, ends."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "ended", "listed", "plural"]

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


def plural(noun: str, items: Sequence[str]) -> str:
    return noun if len(items) == 1 else f"{noun}s"


def ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
