"""What refused each pod after the choice of a node, found in one walk over the records.

An answer about thousands of pods asks for many. By uid, because a pod may have the name of one that was refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bayplan.explain.claims.phrases import error_itself
from bayplan.loop.notes import Note, Restored
from bayplan.loop.record import UNDER_WAY
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.time_slices import Work

__all__ = ["LastRefusal", "LateRefusal", "last_refusals", "no_refusals"]

_AT_ONCE = 1_000


class LateRefusal(NamedTuple):
    """Reserve, Permit, PreBind or Bind of an attempt refused its pod, or failed."""

    point: str
    plugin: str
    error: str
    has_failed: bool
    attempt: int

    @property
    def title(self) -> str:
        who = f"{self.plugin} failed" if self.has_failed else self.plugin
        return f"{who} at {self.point}: {self.error_itself}".lstrip()

    @property
    def error_itself(self) -> str:
        return error_itself(self.point, self.plugin, self.error)


LastRefusal = Callable[[str], LateRefusal | None]
"""By the uid of a pod, what refused it after the choice at its latest attempt that has ended; None if nothing did."""


def last_refusals(recorder: DecisionRecorder) -> Work[LastRefusal]:
    found: dict[str, Note | Restored] = {}
    notes = recorder.newest()
    for start in range(0, len(notes), _AT_ONCE):
        for note in notes[start : start + _AT_ONCE]:
            if note.outcome != UNDER_WAY:
                found.setdefault(note.uid, note)
        yield
    return lambda uid: _refusal(note) if (note := found.get(uid)) is not None else None


def no_refusals(uid: str) -> LateRefusal | None:
    """Of a scheduler without records."""
    return None


def _refusal(note: Note | Restored) -> LateRefusal | None:
    past = note.past if isinstance(note, Restored) else note
    if not past.stopped_at:
        return None
    return LateRefusal(past.stopped_at, past.stopped_by, past.error, past.outcome == "error", past.attempt)
