"""The verdict about a pod or a node in one sentence, from an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from bayplan.explain.explanation import Explanation, NodeExplanation

__all__ = ["node_verdict", "summary_of", "verdict_of"]

_NAMED = 3


def verdict_of(explanation: Explanation) -> str:
    """One sentence that starts with the pod."""
    pod = explanation.pod
    if explanation.state == "placed":
        return f"{pod} runs on {explanation.node}{_why_there(explanation)}."
    if explanation.state == "binding":
        return f"{pod} is being bound to {explanation.node}{_why_there(explanation)}."
    if explanation.state == "gated":
        holder = explanation.queue.gated_by if explanation.queue is not None else ""
        return f"{pod} is held back before scheduling{f' by {holder}' if holder else ''}."
    if explanation.state == "gone":
        return _gone(explanation)
    if explanation.fits:
        return f"{pod} would go to {explanation.node} now{_why_there(explanation)}{_still_waiting(explanation)}."
    if explanation.victims is not None and explanation.victims.pods:
        victims = _listed(explanation.victims.pods, "pods")
        return f"{pod} fits nowhere now, and would preempt {victims} on {explanation.victims.node}."
    return f"{pod} is pending: {_ended(explanation.message or 'no reason was recorded')}"


def _gone(explanation: Explanation) -> str:
    taken_by = explanation.evicted
    if taken_by is None or taken_by.preemption is None:
        where = f"; its last attempt ended {explanation.message}" if explanation.message else ""
        return f"{explanation.pod} is not in the cluster any more{where}."
    when = datetime.fromtimestamp(taken_by.time, UTC).strftime("%H:%M:%S UTC")
    node = taken_by.preemption.node
    return (
        f"{explanation.pod} was preempted on {node} at {when} for {taken_by.pod}, and is not in the cluster any more."
    )


def _why_there(explanation: Explanation) -> str:
    total = next((node.total for node in explanation.best if node.node == explanation.node), None)
    if explanation.preemption is not None:
        return f", where {_listed([v.pod for v in explanation.preemption.victims], 'pods')} had to leave for it"
    if explanation.feasible == 1:
        count = explanation.node_count
        return f", the only one of {count} nodes that fits" if count > 1 else ""
    if total is None or explanation.lead is None:
        return ""
    if explanation.tie_count > 1:
        return f" with {_points(total)}, drawn from {explanation.tie_count} nodes that have as many"
    lead = explanation.lead
    by = f"; {lead.plugin} decides" if lead.plugin else ""
    return f" with {_points(total)}, {lead.points} ahead of {lead.runner_up}{by}"


def _still_waiting(explanation: Explanation) -> str:
    place = explanation.queue.place if explanation.queue is not None else ""
    return {
        "active": "; it waits for its turn",
        "backoff": "; it is backing off after a failed attempt",
        "unschedulable": "; it waits for an event to be tried again",
        "in-flight": "; it is being scheduled",
    }.get(place, "")


def summary_of(explanation: Explanation) -> str:
    """For an annotation: node, score, runner-up."""
    total = next((node.total for node in explanation.best if node.node == explanation.node), None)
    parts = [f"{explanation.node}: {explanation.feasible} of {explanation.node_count} nodes fit"]
    if total is not None:
        parts.append(_points(total))
    if explanation.lead is not None:
        lead = explanation.lead
        by = f" ({lead.plugin})" if lead.plugin else ""
        parts.append(f"{lead.points} ahead of {lead.runner_up}{by}" if lead.points else f"tied with {lead.runner_up}")
    return "; ".join(parts)


def node_verdict(node: NodeExplanation) -> str:
    fits = sum(group.count for group in node.pending if group.fits)
    waiting = sum(group.count for group in node.pending)
    state = "is cordoned" if node.unschedulable else f"runs {node.pod_count} of {node.allowed_pods} pods"
    if not waiting:
        return f"{node.node} {state}; no pod is pending."
    return f"{node.node} {state}; {fits} of {waiting} pending pods would fit here now."


def _points(count: int) -> str:
    return f"{count} point" if count == 1 else f"{count} points"


def _listed(names: Sequence[str], noun: str) -> str:
    if len(names) <= _NAMED:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{len(names)} {noun} ({', '.join(names[:_NAMED])}, …)"


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
