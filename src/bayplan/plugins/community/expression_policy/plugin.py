"""The plugin: its arguments, compiled expressions, and answers for one node."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from bayplan.cel import CompileError, EvaluationError, Program
from bayplan.cel.syntax import paths_read
from bayplan.cel.types import BOOL, DOUBLE, INT, UINT, Type
from bayplan.cel.values import Map
from bayplan.framework import (
    ALL,
    MAX_NODE_SCORE,
    UNSIGNED,
    ActionType,
    ClusterEvent,
    CycleState,
    Depends,
    EventHint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PluginArgs,
    PodInfo,
    Remedy,
    Resource,
    Status,
    StatusTable,
    Unresolvable,
    Unschedulable,
    Verdicts,
)
from bayplan.framework.columns import Int64N
from bayplan.plugins.community.expression_policy.groups import Groups
from bayplan.plugins.community.expression_policy.variables import (
    BEYOND_NODE_OBJECT,
    BEYOND_SHAPE,
    ENVIRONMENT,
    node_variable,
    pod_variable,
)

__all__ = ["ExpressionPolicy", "ExpressionPolicyArgs", "Filter", "Score"]

_NUMBERS = (INT, UINT, DOUBLE)
_MOST_WEIGHT = 1000


class Filter(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """An expression that is true for nodes that fit, and the reason that is given for the others."""

    expression: str
    reason: str = "node(s) did not satisfy an expression of the policy"


class Score(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """An expression that gives a number from 0 to 100, and its share in the score."""

    expression: str
    weight: int = 1


class ExpressionPolicyArgs(PluginArgs):
    """Expressions over `pod` and `node`."""

    filters: list[Filter] = []
    scores: list[Score] = []

    def validate(self) -> list[str]:
        problems = []
        for position, rule in enumerate(self.filters):
            problems += _problems(f"filters[{position}].expression", rule.expression, (BOOL,))
            if not rule.reason:
                problems.append(f"filters[{position}].reason: must not be empty; leave it out for a general reason")
        for position, share in enumerate(self.scores):
            problems += _problems(f"scores[{position}].expression", share.expression, _NUMBERS)
            if not 1 <= share.weight <= _MOST_WEIGHT:
                problems.append(f"scores[{position}].weight: must be 1 to {_MOST_WEIGHT}, not {share.weight}")
        return problems


def _problems(path: str, expression: str, types: tuple[Type, ...]) -> list[str]:
    try:
        _compiled(expression, types)
    except CompileError as error:
        return [f"{path}: {error}"]
    return []


@lru_cache(maxsize=1024)
def _compiled(expression: str, types: tuple[Type, ...]) -> Program:
    def accept(result: Type) -> str | None:
        return None if result in types else f"must be {' or '.join(map(str, types))}, not {result}"

    return ENVIRONMENT.compile(expression, accept=accept)


class _Rule(NamedTuple):
    program: Program
    reason: str
    rejection: Status


class ExpressionPolicy(Plugin[ExpressionPolicyArgs]):
    """Filter and score nodes with CEL expressions over the pod and the node.

    *What it does*: evaluates the expressions of its arguments for each node; `pod` and `node` are their variables.
    *Rejects when*: an expression of `filters` is false for the node, or cannot be evaluated (a label is missing), with
    the reason given; what only another node object could change is unresolvable, the rest may end by eviction.
    *Scores by*: the weighted mean of `scores`, each number held to 0 to 100; an expression without a value counts as 0.
    *Retries on*: a change of a node; where expressions read `node.requested` or `node.pods`, a pod that leaves a node;
    a change of the pod itself.
    *Arguments*: filters (`expression`, `reason`), scores (`expression`, `weight`, 1).
    *Differs from the original*: there is none; admission policies of Kubernetes gave the idea.
    """

    filter_depends = Depends.USE
    score_depends = Depends.USE
    is_within_bounds = True
    reasons = ("node(s) did not satisfy an expression of the policy",)

    def setup(self) -> None:
        filters = [_compiled(rule.expression, (BOOL,)) for rule in self.args.filters]
        scores = [_compiled(share.expression, _NUMBERS) for share in self.args.scores]
        self._pod_fields = _read([*filters, *scores], "pod")
        self._node_fields = _read([*filters, *scores], "node")
        self._scores = [(program, share.weight) for program, share in zip(scores, self.args.scores, strict=True)]
        self._weights = sum(weight for _, weight in self._scores)
        self._rules = [_rule(program, rule.reason) for program, rule in zip(filters, self.args.filters, strict=True)]
        self._variables: dict[str, tuple[object, Map]] = {}
        self._groups = Groups.of(_paths([*filters, *scores], "node"))
        # Narrower than the promise of the class where the expressions allow it: the engine reads it from the instance.
        vars(self).update(filter_depends=_depends(filters), score_depends=_depends(scores))
        vars(self).update(remedies=tuple(_REMEDIES[name] for name in sorted(_REMEDIES.keys() & _read(filters, "pod"))))

    def sign(self, pod: PodInfo) -> Hashable:
        if self._pod_fields & BEYOND_SHAPE:
            return UNSIGNED
        return pod.shape.number if self._pod_fields else ()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        values = pod_variable(pod, self._pod_fields), self._node_variable(node)
        for program, reason, rejection in self._rules:
            try:
                if program.call(*values) is not True:
                    return rejection
            except EvaluationError as error:
                return Status(rejection.code, (f"{reason}: {error}",))
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        values = pod_variable(pod, self._pod_fields), self._node_variable(node)
        total = sum(weight * _points(program, values) for program, weight in self._scores)
        return total // self._weights if self._weights else 0

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        table = StatusTable()
        answers = self._groups.answers(nodes, lambda node: table.number(self.filter(state, pod, node)))
        return Verdicts(answers.astype(np.int32), table.status)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        return self._groups.answers(nodes, lambda node: self.score(state, pod, node))

    def _node_variable(self, node: NodeInfo) -> Map:
        """Kept as long as the node object is the same, unless it says what runs there."""
        if self._node_fields & BEYOND_NODE_OBJECT:
            return node_variable(node, self._node_fields)
        known = self._variables.get(node.name)
        if known is not None and known[0] is node.node:
            return known[1]
        if len(self._variables) >= _MOST_VARIABLES:
            self._variables.clear()
        made = node_variable(node, self._node_fields)
        self._variables[node.name] = (node.node, made)
        return made

    def events_to_register(self) -> list[EventHint]:
        events = [EventHint(ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE))]
        if self._node_fields & BEYOND_NODE_OBJECT:
            events.append(EventHint(ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE | ActionType.UPDATE)))
        if self._pod_fields:
            events.append(EventHint(ClusterEvent(Resource.UNSCHEDULABLE_POD, ALL)))
        return events


_REMEDIES = {
    "nodeSelector": Remedy.NODE_AFFINITY,
    "requests": Remedy.REQUESTS,
    "tolerations": Remedy.TOLERATIONS,
}
"""What may be changed of a pod, by the field that expressions read."""
_MOST_VARIABLES = 50_000
"""Nodes whose variables are kept; deleted nodes are forgotten when there are more."""


def _rule(program: Program, reason: str) -> _Rule:
    is_final = _depends([program]) is Depends.NODE
    return _Rule(program, reason, Unresolvable(reason) if is_final else Unschedulable(reason))


def _depends(programs: Iterable[Program]) -> Depends:
    return Depends.USE if _read(programs, "node") & BEYOND_NODE_OBJECT else Depends.NODE


def _read(programs: Iterable[Program], variable: str) -> frozenset[str]:
    """The fields of a variable that some expression reads."""
    known = frozenset(ENVIRONMENT.fields(variable))
    fields: set[str] = set()
    for path in _paths(programs, variable):
        fields |= {path[0]} if path else known
    return frozenset(fields)


def _paths(programs: Iterable[Program], variable: str) -> set[tuple[str, ...]]:
    return {path for program in programs for path in paths_read(program.expression, variable)}


def _points(program: Program, values: tuple[Map, Map]) -> int:
    try:
        number = program.call(*values)
    except EvaluationError:
        return 0
    assert isinstance(number, int | float), "the type of a score is checked when it is compiled"
    if number != number:
        return 0
    return int(min(max(number, 0), MAX_NODE_SCORE))
