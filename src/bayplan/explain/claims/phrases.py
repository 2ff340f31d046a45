"""Pieces of sentences: counts, lists of names, names of templates, ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = [
    "BEING_DELETED",
    "NO_REASON",
    "cores",
    "counted",
    "ended",
    "error_itself",
    "listed",
    "named",
    "plural",
    "stopped",
    "template_of",
]

BEING_DELETED = "being deleted, and not tried any more"
NO_REASON = "no reason given"
"""Of a plugin that refuses without one."""
_NAMED = 3
_GENERATED = re.compile(r"(-([bcdfghjklmnpqrstvwxz2456789]{5}|[bcdfghjklmnpqrstvwxz2456789]{8,10}|[0-9]+))+$")
"""What controllers add to names: the letters of `generateName`, the hash of a template, an ordinal, a time."""


def listed(names: Sequence[str], noun: str) -> str:
    """A few names in full, more as a number and some of them."""
    if not names:
        return f"no {noun}"
    if len(names) <= _NAMED:
        return named(names)
    return f"{len(names)} {noun} ({', '.join(names[:_NAMED])}, …)"


def named(names: Sequence[str]) -> str:
    """All of some names."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


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


def stopped(point: str, plugin: str, *, has_failed: bool) -> str:
    """Where a pod that had a node was stopped, and by whom; a plugin that failed did not refuse it."""
    if has_failed:
        return f"failed at {point}{f' in {plugin}' if plugin else ''}"
    return f"refused at {point}{f' by {plugin}' if plugin else ''}"


def error_itself(point: str, plugin: str, error: str) -> str:
    """Without what kube-scheduler puts before an error, for sentences that name point and plugin themselves."""
    return error.removeprefix(f'running {point} plugin "{plugin}": ')


def ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


@lru_cache(maxsize=20_000)
def template_of(name: str) -> str:
    """The name without what its controller added."""
    return _GENERATED.sub("", name) or name
