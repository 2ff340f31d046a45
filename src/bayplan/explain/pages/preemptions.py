"""Preemptions: who had to leave, for whom and where, why there, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import msgspec

from bayplan.loop.notes import Note, Restored
from bayplan.loop.record import UNDER_WAY, CandidateKey, Preemption, Victim
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.time_slices import Work

__all__ = ["IsThere", "ListedPreemption", "PreemptionPage", "list_preemptions"]

_AT_ONCE = 512
IsThere = Callable[[str, str], bool]
"""Whether the pod, `namespace/name` and uid, is in the cluster still."""


class ListedPreemption(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    time: float
    pod: str
    attempt: int
    node: str
    """Where it was nominated to."""
    victims: list[Victim] = []
    victim_count: int = 0
    candidates: int = 0
    keys: list[CandidateKey] = []
    outcome: str = ""
    """bound, elsewhere: on another node, gone: deleted before it got one; empty while the pod waits"""
    waited: float = 0.0
    """Seconds from the preemption to the decision that gave the pod a node."""
    got: str = ""
    """The node that it was given."""


class PreemptionPage(msgspec.Struct, kw_only=True, rename="camel"):
    total: int
    victims: int
    waiting: int
    """How many of the pods that others left for have no node yet."""
    median_waited: float | None
    """Seconds from a preemption to the decision that gave the pod a node; None where none got one."""
    preemptions: list[ListedPreemption]


def list_preemptions(
    recorder: DecisionRecorder, *, offset: int, limit: int, is_there: IsThere = lambda pod, uid: True
) -> Work[PreemptionPage]:
    """Newest first."""
    found: list[ListedPreemption] = []
    later: dict[str, Note | Restored] = {}
    """By uid, the oldest attempt so far that chose a node: notes are read from the newest to the oldest."""
    victims = 0
    for count, note in enumerate(recorder.newest()):
        if count % _AT_ONCE == 0:
            yield
        past = note if isinstance(note, Note) else note.past
        if note.node and past.outcome in ("bound", UNDER_WAY):
            later[past.uid] = note
        elif past.preemption is not None and past.preemption.attempt == past.attempt:
            victims += past.preemption.victim_count
            found.append(_listed(f"{note.namespace}/{note.name}", past.preemption, later.get(past.uid)))
            if not found[-1].outcome and not is_there(found[-1].pod, past.uid):
                found[-1].outcome = "gone"
    waits = [each.waited for each in found if each.got]
    return PreemptionPage(
        total=len(found),
        victims=victims,
        waiting=sum(not each.outcome for each in found),
        median_waited=median(waits) if waits else None,
        preemptions=found[offset : offset + limit],
    )


def _listed(pod: str, preemption: Preemption, later: Note | Restored | None) -> ListedPreemption:
    listed = ListedPreemption(
        time=preemption.time,
        pod=pod,
        attempt=preemption.attempt,
        node=preemption.node,
        victims=list(preemption.victims),
        victim_count=preemption.victim_count,
        candidates=preemption.candidates,
        keys=list(preemption.keys),
    )
    if later is not None:
        past = later if isinstance(later, Note) else later.past
        listed.got, listed.waited = later.node, max(0.0, past.time - preemption.time)
        listed.outcome = "bound" if later.node == preemption.node else "elsewhere"
    return listed
