"""Node selectors and taints as columns: which nodes match, for all nodes at once.

For node affinity, spread constraints and the affinity of volumes. Each requirement is evaluated once per distinct value
(a label value, a set of taints) and the result spread over the nodes by one look-up, so the cost follows the number of
distinct values and not the number of nodes. The one-node forms are in
`bayplan.api.node_selectors` and `bayplan.api.tolerations`; both forms agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from bayplan.api.node import Taint
from bayplan.api.node_selectors import NodeRequirement, NodeTerm, RequiredNodes
from bayplan.api.pod import Toleration
from bayplan.api.tolerations import first_untolerated
from bayplan.cluster.axes import ABSENT, BoolN, Int32N, Int64N
from bayplan.cluster.node_columns import NodeColumns

__all__ = ["by_taint_set", "has_untolerated_taint", "match_required", "match_requirement", "match_term"]


def match_required(required: RequiredNodes, nodes: NodeColumns) -> BoolN:
    """Where a node has every label of the nodeSelector map and matches one of the terms, if there are terms."""
    mask = None if required.terms is None else _match_any(required.terms, nodes)
    for key, value in required.labels:
        equal = _equals(key, value, nodes)
        mask = equal if mask is None else mask & equal
    return np.ones(len(nodes), dtype=np.bool_) if mask is None else mask


def _match_any(terms: tuple[NodeTerm, ...], nodes: NodeColumns) -> BoolN:
    mask: BoolN = np.zeros(len(nodes), dtype=np.bool_)
    for term in terms:
        mask |= match_term(term, nodes)
    return mask


def match_term(term: NodeTerm, nodes: NodeColumns) -> BoolN:
    """Where a node meets every requirement of a term. A term that is empty or did not parse matches nowhere."""
    mask: BoolN = np.full(len(nodes), term.is_valid and not term.is_empty, dtype=np.bool_)
    if not term.is_valid:
        return mask
    for requirement in term.expressions:
        mask &= match_requirement(requirement, nodes)
    for requirement in term.fields:
        mask &= _match_name(requirement, nodes)
    return mask


def match_requirement(requirement: NodeRequirement, nodes: NodeColumns) -> BoolN:
    """Where a node's label (or its absence) satisfies one requirement."""
    operator = requirement.operator
    if operator == "In":
        return _is_in(requirement, nodes)
    if operator == "NotIn":
        return ~_is_in(requirement, nodes)
    values = nodes.label_values(requirement.key)
    if operator == "Exists":
        return np.not_equal(values, ABSENT)
    if operator == "DoesNotExist":
        return np.equal(values, ABSENT)
    names = nodes.label(requirement.key).names
    return _by_distinct(values, len(names), lambda number: requirement.accepts(names[number]))


def _is_in(requirement: NodeRequirement, nodes: NodeColumns) -> BoolN:
    key, wanted = requirement.key, requirement.values
    if len(wanted) == 1:
        return _equals(key, wanted[0], nodes)
    column = nodes.label(key)
    # One place more than there are values: ABSENT (-1) reads the last one, which stays False.
    chosen = np.zeros(column.domains + 1, dtype=np.bool_)
    for value in wanted:
        number = column.id_of(value)
        if number != ABSENT:
            chosen[number] = True
    return chosen.take(nodes.label_values(key), mode="wrap")


def _equals(key: str, value: str, nodes: NodeColumns) -> BoolN:
    number = nodes.label(key).id_of(value)
    if number == ABSENT:
        return np.zeros(len(nodes), dtype=np.bool_)
    return np.equal(nodes.label_values(key), number)


def _match_name(requirement: NodeRequirement, nodes: NodeColumns) -> BoolN:
    row_of = nodes.table.row_of
    named: BoolN = np.zeros(len(nodes), dtype=np.bool_)
    for row in (row_of[name] for name in requirement.values if name in row_of):
        if nodes.is_all:
            named[row] = True
        else:
            named |= nodes.rows == row
    return named if requirement.operator == "In" else ~named


def has_untolerated_taint(tolerations: Sequence[Toleration], nodes: NodeColumns) -> BoolN:
    """Where a node has a NoSchedule or NoExecute taint that none of the tolerations lets through."""
    return np.not_equal(by_taint_set(nodes, lambda taints: first_untolerated(taints, tolerations) is not None), 0)


def by_taint_set(nodes: NodeColumns, answer: Callable[[list[Taint]], int]) -> Int64N:
    """For each node the answer for its taints, computed once per distinct set of taints."""
    sets = nodes.table.taint_sets
    numbers = nodes.taint_set
    answers = np.zeros(len(sets) + 1, dtype=np.int64)
    for number in _worth_asking(numbers, len(sets)):
        answers[number] = answer(sets[number])
    return answers.take(numbers)


def _by_distinct(values: Int32N, distinct: int, accepts: Callable[[int], bool]) -> BoolN:
    """Where the value is present and accepted."""
    chosen = np.zeros(distinct + 1, dtype=np.bool_)
    for number in _worth_asking(values, distinct):
        chosen[number] = accepts(number)
    return chosen.take(values, mode="wrap")


def _worth_asking(numbers: npt.NDArray[np.int32], distinct: int) -> Sequence[int]:
    """Every number below `distinct`, or only those that occur when few nodes are at issue."""
    if distinct <= len(numbers):
        return range(distinct)
    return [number for number in set(numbers.tolist()) if number != ABSENT]
