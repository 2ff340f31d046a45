"""A decision as plain data, ready to be said in a sentence, drawn as tables or written as JSON.

A report is derived from a case's result alone (`bayplan.explain.case`), so whatever produces that shape, offline or
live, can be shown the same way. Nothing here decides, prints or colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from bayplan.explain.case import JsonObject

__all__ = ["Candidate", "Context", "Margin", "Outcome", "PodReport", "RankedNode", "Refusal", "Step", "report_of"]

BEFORE_FILTERS = "PreFilter"
"""Stands for the plugin where nodes were left out before any filter looked at them."""


class Outcome(Enum):
    SCHEDULED = "scheduled"
    PREEMPTS = "preempts"
    """Fits nowhere now; pods of lower priority would be evicted for it."""
    PENDING = "pending"
    GATED = "gated"
    """Not let into the queue."""
    FAILED = "failed"
    """Something went wrong, or there are no nodes at all; not a verdict about the pod."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader of a result has to know beside it."""

    pod: str
    """namespace/name"""
    node_count: int
    filters: tuple[str, ...] = ()
    """In the order in which they run."""
    weights: Mapping[str, int] = {}
    """Of the plugins that score."""
    chosen: str = ""
    """The node that the pod got; empty when it got none."""
    nominated: str = ""
    """The node that the pod had been nominated to before."""
    gated_by: str = ""
    has_failed: bool = False


class Step(msgspec.Struct, frozen=True):
    """One filter of the funnel: how many nodes it was the first to reject, and how many were left."""

    plugin: str
    rejected: int
    left: int


class Refusal(msgspec.Struct, frozen=True):
    """Nodes that were refused by the same plugin for the same reasons."""

    plugin: str
    reasons: tuple[str, ...]
    nodes: tuple[str, ...]
    is_final: bool
    """Whether evicting pods cannot change it."""


class RankedNode(msgspec.Struct, frozen=True):
    node: str
    total: int
    shares: Mapping[str, int]


class Margin(msgspec.Struct, frozen=True):
    """How far the best node is ahead of the next one, and which plugin made most of the difference."""

    runner_up: str
    points: int
    plugin: str


class Candidate(msgspec.Struct, frozen=True):
    """A node that would have room if these pods left."""

    node: str
    victims: tuple[str, ...]
    budget_violations: int
    is_chosen: bool


class PodReport(msgspec.Struct, frozen=True, kw_only=True):
    context: Context
    outcome: Outcome
    total: int
    """Points of the node that the pod got."""
    ties: tuple[str, ...]
    """The best nodes; the pod goes to one of them."""
    funnel: tuple[Step, ...]
    ranking: tuple[RankedNode, ...]
    """Every feasible node, the best first."""
    margin: Margin | None
    refusals: tuple[Refusal, ...]
    """Most nodes first."""
    candidates: tuple[Candidate, ...]
    """The chosen one first."""
    message: str
    """Why not, in kube-scheduler's words, before it looked for pods to evict; empty when a node was found."""
    result: JsonObject

    @property
    def pod(self) -> str:
        return self.context.pod

    @property
    def is_scheduled(self) -> bool:
        return self.outcome is Outcome.SCHEDULED


def report_of(result: JsonObject, context: Context) -> PodReport:
    ranking = _ranking(result["scores"])
    candidates = _candidates(result.get("preemption", {}))
    return PodReport(
        context=context,
        outcome=_outcome(context, candidates),
        total=next((entry.total for entry in ranking if entry.node == context.chosen), 0),
        ties=tuple(result["best"]),
        funnel=_funnel(result, context),
        ranking=ranking,
        margin=_margin(ranking, context.chosen),
        refusals=_refusals(result, context),
        candidates=candidates,
        message=result.get("message", ""),
        result=result,
    )


def _outcome(context: Context, candidates: Sequence[Candidate]) -> Outcome:
    if context.chosen:
        return Outcome.SCHEDULED
    if context.gated_by:
        return Outcome.GATED
    if context.has_failed:
        return Outcome.FAILED
    return Outcome.PREEMPTS if any(candidate.is_chosen for candidate in candidates) else Outcome.PENDING


def _ranking(scores: Mapping[str, Mapping[str, int]]) -> tuple[RankedNode, ...]:
    ranked = [
        RankedNode(node, entry["total"], {name: share for name, share in entry.items() if name != "total"})
        for node, entry in scores.items()
    ]
    return tuple(sorted(ranked, key=lambda entry: (-entry.total, entry.node)))


def _margin(ranking: Sequence[RankedNode], chosen: str) -> Margin | None:
    """None when nothing was chosen by its points: no node, one node, or a nomination that came first."""
    if len(ranking) < 2 or not any(entry.node == chosen and entry.total == ranking[0].total for entry in ranking):
        return None
    best = next(entry for entry in ranking if entry.node == chosen)
    second = next(entry for entry in ranking if entry.node != chosen)
    gains = {name: best.shares.get(name, 0) - second.shares.get(name, 0) for name in (*best.shares, *second.shares)}
    leader = max(gains, key=lambda name: gains[name], default="")
    points = best.total - second.total
    return Margin(second.node, points, leader if points and gains[leader] > 0 else "")


def _funnel(result: JsonObject, context: Context) -> tuple[Step, ...]:
    """Filters that rejected nobody are left out."""
    left = context.node_count
    if "prefilter" in result:
        return (Step(result["prefilter"]["plugin"] or BEFORE_FILTERS, left, 0),)
    rejected: dict[str, int] = {}
    for entry in result["nodes"].values():
        plugin = entry["plugin"] or BEFORE_FILTERS
        rejected[plugin] = rejected.get(plugin, 0) + 1
    steps = []
    for plugin in (BEFORE_FILTERS, *_in_order(rejected, context.filters)):
        if rejected.get(plugin):
            left -= rejected[plugin]
            steps.append(Step(plugin, rejected[plugin], left))
    return tuple(steps)


def _in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Those that are not in the order (an extender) come last."""
    known = {name: place for place, name in enumerate(order)}
    return sorted((name for name in names if name != BEFORE_FILTERS), key=lambda name: known.get(name, len(order)))


def _refusals(result: JsonObject, context: Context) -> tuple[Refusal, ...]:
    if "prefilter" in result:
        return (_refusal(result["prefilter"], ()),)
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for node, entry in result["nodes"].items():
        groups.setdefault((entry["plugin"], entry["code"], tuple(entry["reasons"])), []).append(node)
    found = [
        _refusal({"plugin": plugin, "code": code, "reasons": reasons}, sorted(nodes))
        for (plugin, code, reasons), nodes in groups.items()
    ]
    order = {name: place for place, name in enumerate(context.filters)}
    return tuple(sorted(found, key=lambda entry: (-len(entry.nodes), order.get(entry.plugin, 0), entry.reasons)))


def _refusal(entry: Mapping[str, Any], nodes: Iterable[str]) -> Refusal:
    is_final = entry["code"] == "UnschedulableAndUnresolvable"
    return Refusal(entry["plugin"] or BEFORE_FILTERS, tuple(entry["reasons"]), tuple(nodes), is_final)


def _candidates(preemption: Mapping[str, Any]) -> tuple[Candidate, ...]:
    nominated = list(preemption.get("nominatedNodes", ()))
    violations = preemption.get("pdbViolations", {})
    found = [
        Candidate(node, tuple(victims), violations.get(node, 0), bool(nominated) and node == nominated[0])
        for node, victims in preemption.get("victims", {}).items()
    ]
    return tuple(sorted(found, key=lambda c: (not c.is_chosen, c.budget_violations, len(c.victims), c.node)))
