"""Claims in words: one sentence for each type of claim, made of its fields and of nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from bayplan.explain.claims import pods as c
from bayplan.explain.claims.device_wording import DEVICE_WORDS
from bayplan.explain.claims.phrases import NO_REASON, cores, counted, ended, listed, named, plural, stopped

__all__ = ["WORDS", "sentence"]

_WAITING = {
    "active": "; it waits for its turn",
    "backoff": "; it is backing off after a failed attempt",
    "unschedulable": "; it waits for an event to be tried again",
    "in-flight": "; it is being scheduled",
}


def sentence(claim: c.Claim) -> str:
    """Starts with the pod where it is about one."""
    say: Callable[[Any], str] = WORDS[type(claim)]
    return say(claim)


# Then


def _chosen(claim: c.Chosen) -> str:
    verb = "is being bound to" if not claim.is_bound else "was placed on" if claim.is_past else "runs on"
    return f"{claim.pod} {verb} {claim.node}{_why_chosen(claim)}."


def _why_chosen(claim: c.Chosen) -> str:
    if claim.victims:
        return f", where {listed(claim.victims, 'pods')} had to leave for it"
    if claim.by == "nomination":
        return ", which it had been nominated to"
    if claim.by == "only node" and claim.scored:
        return ", the only one left of those that were looked at; nothing was scored"
    if claim.by == "only node":
        return f", the only one of {claim.nodes:,} nodes that fitted; nothing was scored" if claim.nodes > 1 else ""
    return f"{_points_and_lead(claim)}{_some_scored(claim)}" if claim.by == "points" else ""


def _some_scored(claim: c.Chosen) -> str:
    return f"; {claim.scored:,} of {claim.feasible:,} nodes that fitted were scored" if claim.scored else ""


def _points_and_lead(claim: c.Chosen | c.GoesTo) -> str:
    if not claim.runner_up:
        return f" with {_points(claim.total)}" if claim.total else ""
    if claim.ties > 1:
        return f" with {_points(claim.total)}, one of {claim.ties:,} nodes with as many, {claim.runner_up} among them"
    by = f"; {claim.plugin} decides" if claim.plugin else ""
    return f" with {_points(claim.total)}, {claim.ahead:,} ahead of {claim.runner_up}{by}"


def _preempted(claim: c.Preempted) -> str:
    when = datetime.fromtimestamp(claim.time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"{claim.pod} was preempted on {claim.node} at {when} to make room for {claim.by}."


def _left(claim: c.Left) -> str:
    return f"{claim.pod} was on {claim.node}, and has ended or been deleted."


def _unplaced(claim: c.Unplaced) -> str:
    if not claim.is_gone:
        return ended(f"{claim.pod} got no node at its last attempt: {claim.message or 'no reason is known'}")
    last = f"; its last attempt failed: {claim.message}" if claim.message else ""
    return ended(f"{claim.pod} neither waits nor runs any more{last}")


def _refused_later(claim: c.RefusedLater) -> str:
    how = stopped(claim.point, claim.plugin, has_failed=claim.has_failed)
    return ended(f"{claim.pod} was given {claim.node} and then {how}: {claim.message}")


def _picked(claim: c.Picked) -> str:
    if claim.is_nominated:
        why = "it had been nominated to it"
    elif claim.feasible == 1:
        why = "the only node that fits"
    else:
        tied = f", one of {claim.ties} best" if claim.ties > 1 else ""
        some = f" and {claim.scored} were scored" if claim.scored else ""
        why = f"score {claim.total}, {claim.feasible} nodes fit{some}{tied}"
    return f"{claim.pod} -> {claim.node} ({why})"


def _failed(claim: c.Failed) -> str:
    return f"{claim.pod} waits: {claim.message}"


def _preempts(claim: c.Preempts) -> str:
    return f"{claim.pod} preempts {listed(claim.victims, 'pods')} on {claim.node}"


def _put_on_hold(claim: c.PutOnHold) -> str:
    who = " and ".join(claim.plugins)
    return f"{claim.pod} is held at Permit by {who} on {claim.node}, for {claim.seconds:g} s at most"


# Now


def _pending_together(claim: c.PendingTogether) -> str:
    if not claim.total:
        return "No pod is pending."
    rest = f", {claim.total - claim.count:,} for other reasons" if claim.total > claim.count else ""
    return f"{counted(claim.total, 'pod')} pending: {claim.count:,} because of {claim.title}{rest}."


def _node_stands(claim: c.NodeStands) -> str:
    cordoned = "is cordoned and " if claim.is_cordoned else ""
    coming = f", and {claim.coming} more {'is' if claim.coming == 1 else 'are'} not bound yet" if claim.coming else ""
    state = f"{claim.node} {cordoned}runs {claim.pods} of {claim.allowed} pods{coming}"
    if not claim.waiting:
        return f"{state}; no pod is pending."
    more = f"; {counted(claim.untried, 'more pod')} of other kinds were not looked at" if claim.untried else ""
    return f"{state}; {claim.fits:,} of {claim.waiting:,} pending pods would fit here now{more}."


def _node_answers(claim: c.NodeAnswers) -> str:
    if claim.fits:
        return f"{claim.pod} fits on {claim.node}, place {claim.place:,} with {_points(claim.total)}"
    return f"{claim.node} refuses {claim.pod}: {claim.plugin or 'PreFilter'}: {'; '.join(claim.reasons)}"


def _goes_to(claim: c.GoesTo) -> str:
    if claim.feasible == 1:
        why = f", the only one of {claim.nodes:,} nodes that fits" if claim.nodes > 1 else ""
    else:
        why = _points_and_lead(claim)
    if claim.sample:
        why += f", or to another that fits, since {claim.sample:,} are scored at a time"
    if claim.is_offline:
        return f"{claim.pod} goes to {claim.node}{why}."
    return f"{claim.pod} would go to {claim.node} now{why}{_WAITING.get(claim.place, '')}."


def _fits_nowhere(claim: c.FitsNowhere) -> str:
    if claim.resource and claim.largest:
        return f"{claim.pod} is pending: it asks {claim.asked}; the largest node has {claim.largest}."
    if claim.resource:
        return f"{claim.pod} is pending: no node offers {claim.resource}, and it asks {claim.asked}."
    if not claim.refused:
        return ended(f"{claim.pod} is pending: {claim.reason or claim.message or 'no reason is known'}")
    nodes = "the one node" if claim.nodes == 1 else f"{claim.refused:,} of {claim.nodes:,} nodes"
    return ended(f"{claim.pod} is pending: {claim.plugin or 'PreFilter'} refuses {nodes}: {claim.reason or NO_REASON}")


def _would_preempt(claim: c.WouldPreempt) -> str:
    some = f"{claim.violations} of them " if len(claim.victims) > 1 else ""
    budgets = f", {some}against a disruption budget" if claim.violations else ""
    victims = listed(claim.victims, "pods")
    return f"{claim.pod} fits nowhere now, and would preempt {victims} on {claim.node}{budgets}{_as_good(claim.ties)}."


def _as_good(ties: int) -> str:
    return f", one of {ties:,} nodes where that costs the same" if ties > 1 else ""


def _awaits_victims(claim: c.AwaitsVictims) -> str:
    victims = listed(claim.victims, "pods")
    return f"{claim.pod} is pending: it has preempted {victims} on {claim.node}, and waits for the room there."


def _held_back(claim: c.HeldBack) -> str:
    if claim.gates:
        gates = listed([f"`{gate}`" for gate in claim.gates], "gates")
        return f"{claim.pod} is held back before scheduling by {plural('gate', claim.gates)} {gates}."
    return ended(f"{claim.pod} is held back before scheduling by {claim.plugin}: {claim.message or NO_REASON}")


def _held_at_permit(claim: c.HeldAtPermit) -> str:
    who = " and ".join(claim.plugins)
    why = f" ({claim.reason})" if claim.reason else ""
    return f"{claim.pod} has {claim.node} and is held at Permit by {who}{why}, for {claim.seconds_left:.0f} s at most."


def _no_scheduler(claim: c.NoScheduler) -> str:
    ours = listed([f"`{name}`" for name in claim.known], "profiles")
    return (
        f"{claim.pod} waits for the scheduler `{claim.scheduler}`, which is none of ours"
        f"{f' ({ours})' if claim.known else ''}; nothing happens unless somebody runs it."
    )


# If


def _would_fit(claim: c.WouldFit) -> str:
    more = claim.nodes - 1
    where = f" on {claim.node}" if claim.node else ""
    where += f" and {counted(more, 'other node')}" if more > 0 else ""
    price = f", and {listed(claim.victims, 'pods')} would be preempted" if claim.victims else ""
    others = counted(claim.before, "pod")
    turn = f", and its turn came before that of {others} that waited longer" if claim.before else ""
    return f"It would fit{where} if {claim.what}{turn}{price}{_fate(claim)}."


def _fate(claim: c.WouldFit | c.Frees) -> str:
    """Which disruption budgets do not allow pods to be deleted, and what becomes of those that find no node again."""
    budgets = (
        f"; that is against the disruption {plural('budget', claim.against)} {named(claim.against)}"
        if claim.against
        else ""
    )
    lost = f"; that deletes {named(claim.lost)}, which nobody makes again" if claim.lost else ""
    displaced = f"; {named(claim.displaced)} would be made again and find no node" if claim.displaced else ""
    return budgets + lost + displaced


def _would_move(claim: c.WouldMove) -> str:
    if not claim.node:
        return f"It would find no other node if {claim.what}."
    price = f", where {listed(claim.victims, 'pods')} would be preempted" if claim.victims else ""
    price += _as_good(claim.ties)
    return f"It would go to {claim.node} if {claim.what}{price}."


def _without(claim: c.Without) -> str:
    return f"without {claim.plugin}: {counted(claim.nodes, 'node')}"


def _lacks(claim: c.Lacks) -> str:
    amounts = " and ".join(_lacking(name, amount) for name, amount in claim.amounts.items())
    also = f" and is also rejected by {' and '.join(claim.also)}" if claim.also else ""
    return f"{claim.node} lacks {amounts}{also}"


def _lacking(resource: str, amount: str) -> str:
    if resource != "pods":
        return f"{cores(amount)} {resource}"
    return f"{amount} place{'' if amount == '1' else 's'} for pods"


def _too_large(claim: c.TooLarge) -> str:
    if not claim.largest:
        return f"No node offers {claim.resource}; the pod asks {claim.asked}."
    return f"The pod asks {claim.asked}; the largest node has {claim.largest}."


def _frees(claim: c.Frees) -> str:
    least = "at least " if claim.is_limited else ""
    return f"{least}{claim.count:,} of {claim.of:,} pending pods would find a node if {claim.what}{_fate(claim)}."


def _played(claim: c.Played) -> str:
    if not claim.placed and not claim.pending:
        return "No pod would be waiting."
    price = f", and {counted(claim.evicted, 'pod')} would be evicted" if claim.evicted else ""
    if not claim.pending:
        who = "The pod" if claim.placed == 1 else f"All {claim.placed:,} pods"
        return f"{who} would be placed, on {counted(claim.nodes, 'node')}{price}."
    both = claim.placed + claim.pending
    return f"{claim.placed:,} of {counted(both, 'pod')} would be placed; {claim.pending:,} would stay pending{price}."


def _nothing_helps(claim: c.NothingHelps) -> str:
    return ended(f"Nothing that was tried would let it run: {claim.reason}")


WORDS: dict[type, Callable[[Any], str]] = {
    c.Chosen: _chosen,
    c.Preempted: _preempted,
    c.Left: _left,
    c.Unplaced: _unplaced,
    c.RefusedLater: _refused_later,
    c.Picked: _picked,
    c.Failed: _failed,
    c.Preempts: _preempts,
    c.PutOnHold: _put_on_hold,
    c.PendingTogether: _pending_together,
    c.NodeStands: _node_stands,
    c.NodeAnswers: _node_answers,
    c.Played: _played,
    c.GoesTo: _goes_to,
    c.FitsNowhere: _fits_nowhere,
    c.WouldPreempt: _would_preempt,
    c.AwaitsVictims: _awaits_victims,
    c.HeldBack: _held_back,
    c.HeldAtPermit: _held_at_permit,
    c.NoScheduler: _no_scheduler,
    c.WouldFit: _would_fit,
    c.WouldMove: _would_move,
    c.Without: _without,
    c.Lacks: _lacks,
    c.TooLarge: _too_large,
    c.Frees: _frees,
    c.NothingHelps: _nothing_helps,
    **DEVICE_WORDS,
}


def _points(count: int) -> str:
    return counted(count, "point")
