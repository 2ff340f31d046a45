"""Node selectors: required and preferred node affinity, the nodeSelector map, the affinity of volumes.

Terms are ORed, requirements inside a term are ANDed; an empty term and one that does not parse match nothing. Compiled
forms are hashable; `NodeTerm.node_names` are the nodes that a term names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bayplan.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

__all__ = ["NodeRequirement", "NodeTerm", "RequiredNodes", "compile_node_selector", "compile_term", "parse_int64"]

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_MOST_DIGITS = 19
_ARITY = {"In": (1, None), "NotIn": (1, None), "Exists": (0, 0), "DoesNotExist": (0, 0), "Gt": (1, 1), "Lt": (1, 1)}


class NodeRequirement(NamedTuple):
    key: str
    operator: str
    values: tuple[str, ...]

    def accepts(self, present: str | None) -> bool:
        """Whether a label value (None: the node lacks the key) satisfies this requirement."""
        operator = self.operator
        if operator == "In":
            return present is not None and present in self.values
        if operator == "NotIn":
            return present is None or present not in self.values
        if operator == "Exists":
            return present is not None
        if operator == "DoesNotExist":
            return present is None
        return present is not None and self._compares(present)

    def _compares(self, present: str) -> bool:
        left, right = parse_int64(present), parse_int64(self.values[0])
        if left is None or right is None:
            return False
        return left > right if self.operator == "Gt" else left < right


class NodeTerm(NamedTuple):
    """One compiled term. `is_valid` is False when it did not parse; it then matches no node."""

    expressions: tuple[NodeRequirement, ...]
    fields: tuple[NodeRequirement, ...]
    is_valid: bool = True

    @property
    def is_empty(self) -> bool:
        return not self.expressions and not self.fields

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if not self.is_valid or self.is_empty:
            return False
        for requirement in self.expressions:
            if not requirement.accepts(labels.get(requirement.key)):
                return False
        for requirement in self.fields:  # noqa: SIM110 - generators cost more than loops, and every pinned pod asks
            if not requirement.accepts(name):
                return False
        return True

    def node_names(self) -> frozenset[str] | None:
        """The nodes that this term requires by name, or None."""
        names: frozenset[str] | None = None
        for requirement in self.fields:
            if requirement.operator == "In":
                values = frozenset(requirement.values)
                names = values if names is None else names & values
        return names


class RequiredNodes(NamedTuple):
    """What a pod requires of a node: the nodeSelector map and the required terms; without `terms` there are none."""

    labels: tuple[tuple[str, str], ...]
    terms: tuple[NodeTerm, ...] | None

    @property
    def is_anything(self) -> bool:
        return not self.labels and self.terms is None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        for key, value in self.labels:
            if labels.get(key) != value:
                return False
        if self.terms is None:
            return True
        for term in self.terms:  # noqa: SIM110 - see NodeTerm.matches
            if term.matches(labels, name):
                return True
        return False

    def repinned(self, name: str) -> RequiredNodes:
        """The same with another name in its only term, whose only field is a name."""
        (term,) = self.terms or ()
        (field,) = term.fields
        pin = NodeRequirement(field.key, field.operator, (name,))
        return RequiredNodes(self.labels, (NodeTerm(term.expressions, (pin,), term.is_valid),))


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    return tuple(compile_term(term) for term in selector.node_selector_terms or ())


def compile_term(term: NodeSelectorTerm) -> NodeTerm:
    expressions = tuple(_requirement(r) for r in term.match_expressions or ())
    fields = tuple(_requirement(r) for r in term.match_fields or ())
    is_valid = all(_is_expression(r) for r in expressions) and all(_is_field(r) for r in fields)
    return NodeTerm(expressions, fields, is_valid)


def _requirement(requirement: NodeSelectorRequirement) -> NodeRequirement:
    return NodeRequirement(requirement.key, requirement.operator, tuple(requirement.values or ()))


def _is_expression(requirement: NodeRequirement) -> bool:
    arity = _ARITY.get(requirement.operator)
    if arity is None or len(requirement.values) < arity[0]:
        return False
    if arity[1] is not None and len(requirement.values) > arity[1]:
        return False
    return requirement.operator not in ("Gt", "Lt") or parse_int64(requirement.values[0]) is not None


def _is_field(requirement: NodeRequirement) -> bool:
    is_name = requirement.key == "metadata.name"
    return is_name and requirement.operator in ("In", "NotIn") and len(requirement.values) == 1


def parse_int64(text: str) -> int | None:
    """A decimal int64 as strconv reads it: optional sign, ASCII digits, nothing else."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit() or len(digits.lstrip("0")) > _MOST_DIGITS:
        return None
    number = int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
    return number if _INT64_MIN <= number <= _INT64_MAX else None
