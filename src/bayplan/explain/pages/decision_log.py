"""The log of decisions: attempts of one template with one outcome are one row, and unfold into their decisions.

Read from the notes of the recorder, newest first, in turns with the scheduling. Records are made for the page that is
shown alone.
"""

from __future__ import annotations

import re

import msgspec

from bayplan.explain.claims.phrases import error_itself, template_of
from bayplan.loop.notes import Note, Restored
from bayplan.loop.record import DecisionRecord
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.time_slices import Work

__all__ = ["DecisionGroup", "LogPage", "LogQuery", "LoggedDecision", "decisions_of", "group_log"]

_AT_ONCE = 256
_MOST_NOTES = 20_000
"""So many of the newest are looked at; older ones are found by the name of a pod."""
_MOST_GROUPS = 500


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which decisions; empty means all."""

    text: str = ""
    """Part of `namespace/name`."""
    namespace: str = ""
    outcome: str = ""
    node: str = ""
    template: str = ""
    """`namespace/template` of a group that is unfolded."""
    reason: str | None = None
    """Of a group that is unfolded; None stands for any."""
    offset: int = 0
    limit: int = 50


class DecisionGroup(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    template: str
    """`namespace/name` without what a controller added."""
    outcome: str
    reason: str = ""
    """Plugin and reason that keep the pods from most nodes, or what stopped the attempt."""
    count: int = 0
    pods: int = 0
    nodes: int = 0
    """How many nodes were chosen."""
    pod: str = ""
    """The newest."""
    node: str = ""
    first: float = 0.0
    last: float = 0.0
    seconds: float = 0.0
    """Of a decision, in the mean."""


class LogPage(msgspec.Struct, kw_only=True, rename="camel"):
    groups: list[DecisionGroup]
    """The one with the newest decision first."""
    matching: int
    """Groups."""
    looked_at: int
    """Decisions."""
    kept: int
    dropped: int
    """Decisions that had to make room for newer ones."""
    outcomes: dict[str, int]
    namespaces: dict[str, int]


class LoggedDecision(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    number: int
    time: float
    pod: str
    outcome: str
    attempt: int = 1
    node: str = ""
    feasible: int = 0
    nodes: int = 0
    seconds: float = 0.0
    total: int = 0
    ahead: int | None = None
    """Of the runner-up, in points."""
    victims: int = 0
    message: str = ""


class _Sum(msgspec.Struct):
    group: DecisionGroup
    pods: set[str]
    nodes: set[str]


def group_log(recorder: DecisionRecorder, query: LogQuery) -> Work[LogPage]:
    sums: dict[tuple[str, str, str], _Sum] = {}
    outcomes: dict[str, int] = {}
    namespaces: dict[str, int] = {}
    looked_at = 0
    for note in recorder.newest(_MOST_NOTES):
        looked_at += 1
        if looked_at % _AT_ONCE == 0:
            yield
        namespaces[note.namespace] = namespaces.get(note.namespace, 0) + 1
        if not _is_wanted(note, query):
            continue
        outcome = _outcome(note)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if query.outcome and outcome != query.outcome:
            continue
        _add(sums, note, outcome)
    ordered = [_summed(each) for each in sums.values()]
    return LogPage(
        groups=ordered[query.offset : query.offset + query.limit],
        matching=len(ordered),
        looked_at=looked_at,
        kept=len(recorder),
        dropped=recorder.dropped,
        outcomes=outcomes,
        namespaces=dict(sorted(namespaces.items())[:_MOST_GROUPS]),
    )


def _is_wanted(note: Note | Restored, query: LogQuery) -> bool:
    if query.namespace and note.namespace != query.namespace:
        return False
    if query.node and note.node != query.node:
        return False
    return not query.text or query.text.lower() in f"{note.namespace}/{note.name}"


def _outcome(note: Note | Restored) -> str:
    return note.outcome if isinstance(note, Note) else note.past.outcome


def _reason(note: Note | Restored) -> str:
    """Why it was not placed, with the name of its template where its own stands: pods of one template share it."""
    said = _said(note)
    if note.name not in said:
        return said
    template = template_of(note.name)
    return said if template == note.name else re.sub(rf"\b{re.escape(note.name)}(?![\w.-])", template, said)


def _said(note: Note | Restored) -> str:
    """What a failed attempt has in common with others of its kind."""
    if _outcome(note) in ("bound", "under way"):
        return ""
    preemption = note.preemption if isinstance(note, Note) else note.past.preemption
    attempt = note.attempt if isinstance(note, Note) else note.past.attempt
    if preemption is not None and preemption.attempt == attempt:
        count = preemption.victim_count
        return f"preempts {count} pod{'' if count == 1 else 's'} on {preemption.node}"
    if isinstance(note, Note):
        refused, message = (note.failure.refused, note.failure.message) if note.failure is not None else ((), "")
        point, plugin, error = note.stopped_at, note.stopped_by, note.error
    else:
        refused, message = note.past.refused, note.past.message
        point, plugin, error = note.past.stopped_at, note.past.stopped_by, note.past.error
    if point:
        return f"{f'{point} {plugin}'.strip()}: {error_itself(point, plugin, error)}"
    if refused:
        return f"{refused[0].plugin or 'PreFilter'}: {'; '.join(refused[0].reasons)}"
    return error or message


def _add(sums: dict[tuple[str, str, str], _Sum], note: Note | Restored, outcome: str) -> None:
    template, reason = f"{note.namespace}/{template_of(note.name)}", _reason(note)
    key = (template, outcome, reason)
    found = sums.get(key)
    past = note if isinstance(note, Note) else note.past
    if found is None:
        group = DecisionGroup(template=template, outcome=outcome, reason=reason, node=note.node, last=past.time)
        group.pod = f"{note.namespace}/{note.name}"
        found = sums[key] = _Sum(group, set(), set())
    found.group.count += 1
    found.group.first = past.time
    found.group.seconds += past.seconds
    found.pods.add(note.name)
    if note.node:
        found.nodes.add(note.node)


def _summed(found: _Sum) -> DecisionGroup:
    group = found.group
    group.pods, group.nodes = len(found.pods), len(found.nodes)
    group.seconds /= group.count
    return group


def decisions_of(recorder: DecisionRecorder, query: LogQuery) -> Work[list[LoggedDecision]]:
    """The decisions of a group, or all that match, newest first."""
    wanted: list[Note | Restored] = []
    for count, note in enumerate(recorder.newest(_MOST_NOTES)):
        if count % _AT_ONCE == 0:
            yield
        if not _is_wanted(note, query) or (query.outcome and _outcome(note) != query.outcome):
            continue
        if query.template and f"{note.namespace}/{template_of(note.name)}" != query.template:
            continue
        if query.reason is not None and _reason(note) != query.reason:
            continue
        wanted.append(note)
        if len(wanted) == query.offset + query.limit:
            break
    return [_logged(note.record()) for note in wanted[query.offset :]]


def _logged(record: DecisionRecord) -> LoggedDecision:
    second = record.runner_up
    return LoggedDecision(
        number=record.number,
        time=record.time,
        pod=record.pod,
        outcome=record.outcome,
        attempt=record.attempt,
        node=record.node or record.nominated,
        feasible=record.feasible,
        nodes=record.nodes,
        seconds=record.seconds,
        total=record.total,
        ahead=record.total - second.total if second is not None else None,
        victims=len(record.victims),
        message=record.error or record.message,
    )
