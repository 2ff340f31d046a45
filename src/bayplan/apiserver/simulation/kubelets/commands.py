"""What containers with the plainest commands do: sleep, echo, true, false, exit, also one after the other in a shell.

Simulated nodes run no containers, but the jobs of examples mostly wait a while and end one way or the other. A command
with anything else in it says nothing.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from bayplan.apiserver.protocol.encoding import Json

__all__ = ["Course", "course_of"]

_SHELLS = ("sh", "bash", "ash")
_FOR_EVER = ("infinity", "inf")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 4096


class Course(NamedTuple):
    """How long a run takes, None for ever, and how it ends."""

    seconds: float | None
    exit_code: int


def course_of(container: Json) -> Course | None:
    """What a container does by its command, or None if that cannot be known."""
    words = [str(word) for word in (container.get("command") or []) + (container.get("args") or [])]
    if not container.get("command") or not words:
        return None
    program = words[0].rpartition("/")[2]
    if program in _SHELLS:
        return _script(words[2]) if len(words) == 3 and words[1] in ("-c", "-ec") else None
    return _then(Course(0.0, 0), words)


def _script(text: str) -> Course | None:
    """A script of plain commands; None as soon as there is something else in it."""
    if len(text) > _LONGEST or any(mark in text for mark in "$`|&<>(){}*\\"):
        return None
    course = Course(0.0, 0)
    for line in text.replace(";", "\n").splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            return None
        if not words:
            continue
        if words[0] == "exit":
            return _exit(course, words)
        following = _then(course, words)
        if following is None or following.seconds is None:
            return following
        course = following
    return course


def _then(course: Course, words: list[str]) -> Course | None:
    """The course after one more command."""
    match [words[0].rpartition("/")[2], *words[1:]]:
        case ["true"] | ["echo", *_]:
            return Course(course.seconds, 0)
        case ["false"]:
            return Course(course.seconds, 1)
        case ["sleep", amount]:
            if amount in _FOR_EVER:
                return Course(None, 0)
            seconds = _seconds(amount)
            return None if seconds is None else Course((course.seconds or 0.0) + seconds, 0)
    return None


def _exit(course: Course, words: list[str]) -> Course | None:
    if len(words) == 1:
        return course
    is_code = len(words) == 2 and words[1].isdecimal() and len(words[1]) <= 3
    return Course(course.seconds, int(words[1]) % 256) if is_code else None


def _seconds(amount: str) -> float | None:
    unit = _UNITS.get(amount[-1:])
    try:
        seconds = float(amount[:-1]) * unit if unit is not None else float(amount)
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e10 else None
