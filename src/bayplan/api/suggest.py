"""Suggests known names for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["closest", "did_you_mean", "quoted", "with_suggestion"]

_SHOWN = 12


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that is most like the given one, or None. Case and underscores do not count as differences."""
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(_fold(candidate), candidate)
    matches = get_close_matches(_fold(name[:200]), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence: the closest known name, else the choices when they are few, else nothing."""
    choices = sorted(set(known))
    match = closest(name, choices)
    if match is not None:
        return f"did you mean `{match}`?"
    return f"known are {quoted(choices)}" if 0 < len(choices) <= _SHOWN else ""


def with_suggestion(problem: str, name: str, known: Iterable[str]) -> str:
    """The problem, and after it what `did_you_mean` says where it says something."""
    suggestion = did_you_mean(name, known)
    return f"{problem}; {suggestion}" if suggestion else problem


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
