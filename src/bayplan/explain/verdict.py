"""The verdict in one sentence: what happens to the pod, and what decided it."""

from __future__ import annotations

from bayplan.explain.report import Candidate, Outcome, PodReport

__all__ = ["verdict"]

_NAMED = 3
"""How many nodes or pods a sentence names before it counts."""


def verdict(report: PodReport) -> str:
    """One sentence that starts with the pod."""
    if report.outcome is Outcome.SCHEDULED:
        return f"{report.pod} goes to {report.context.chosen}{_because(report)}."
    if report.outcome is Outcome.PREEMPTS:
        chosen = next(candidate for candidate in report.candidates if candidate.is_chosen)
        return f"{report.pod} fits nowhere now, and would preempt {_victims(chosen)}."
    if report.outcome is Outcome.GATED:
        return f"{report.pod} is held back before scheduling by {report.context.gated_by}: {_ended(report.message)}"
    if report.outcome is Outcome.FAILED:
        return f"{report.pod} cannot be placed: {_ended(report.message)}"
    return f"{report.pod} stays pending: {_ended(report.message)}"


def _because(report: PodReport) -> str:
    if report.context.nominated == report.context.chosen:
        return ", which it had been nominated to"
    if len(report.ranking) == 1:
        return f", the only one of {report.context.node_count} nodes that fits" if report.context.node_count > 1 else ""
    if report.margin is None:
        return ""
    if len(report.ties) > 1:
        others = [name for name in report.ties if name != report.context.chosen]
        return f" with {_points(report.total)}, as many as {_listed(others)} (first by name)"
    by = f"; {report.margin.plugin} decides" if report.margin.plugin else ""
    return f" with {_points(report.total)}, {report.margin.points} ahead of {report.margin.runner_up}{by}"


def _points(count: int) -> str:
    return f"{count} point" if count == 1 else f"{count} points"


def _victims(candidate: Candidate) -> str:
    broken = candidate.budget_violations
    against = f", against {broken} disruption budget{'s' if broken > 1 else ''}" if broken else ""
    return f"{_listed(candidate.victims, 'pods')} on {candidate.node}{against}"


def _listed(names: tuple[str, ...] | list[str], noun: str = "nodes") -> str:
    if len(names) <= _NAMED:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{len(names)} {noun} ({', '.join(names[:_NAMED])}, …)"


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
