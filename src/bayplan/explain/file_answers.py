"""What a decision file says about a pod, without a scheduler: what was decided then, and nothing about now."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.explain.builders import chosen_of, later_refusal_of
from bayplan.explain.claims.pods import THEN, Preempted, Unplaced
from bayplan.explain.claims.wording import sentence
from bayplan.explain.model import PodExplanation, decided_of
from bayplan.loop.record import DecisionRecord

__all__ = ["explained_from_records"]

_NOTE = "From records alone: what has become of it since is not known."


def explained_from_records(key: str, records: Sequence[DecisionRecord]) -> PodExplanation | None:
    """The last pod of that name, from attempts of all pods, newest first; None if no record names it."""
    own = next((record for record in records if record.pod == key), None)
    preempted = _preempted(key, records)
    claim: THEN
    if preempted is not None and (own is None or own.uid == preempted[0] or own.time < preempted[1].time):
        (uid, claim), state = preempted, "gone"
        own = next((record for record in records if record.uid == uid), None)
    elif own is not None:
        uid, claim, state = own.uid, _claim(own), "placed" if own.outcome == "bound" else "unknown"
    else:
        return None
    explanation = PodExplanation(pod=key, uid=uid, state=state, verdict=sentence(claim), claim=claim, note=_NOTE)
    explanation.attempts = [record for record in records if record.pod == key and record.uid == uid]
    if own is not None:
        explanation.profile, explanation.decision = own.profile, decided_of(own)
    return explanation


def _claim(record: DecisionRecord) -> THEN:
    if record.outcome == "bound":
        return chosen_of(record, is_past=True)
    return later_refusal_of(record) or Unplaced(pod=record.pod, message=record.message, is_gone=False)


def _preempted(key: str, records: Sequence[DecisionRecord]) -> tuple[str, Preempted] | None:
    """The uid of the last pod of that name which had to leave, and for whom."""
    for record in records:
        preemption = record.preemption
        for victim in record.victims:
            if victim.pod == key and preemption is not None:
                claim = Preempted(pod=key, by=record.pod, node=preemption.node, time=preemption.time)
                return victim.uid, claim
    return None
