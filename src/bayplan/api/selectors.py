"""Label selectors: compiled once, hashable, so that equal selectors share their counts.

`NOTHING` is what an absent selector means and `EVERYTHING` what an empty one means; the two are never confused. A
compiled `Selector` has the equalities that it implies, so that an index finds candidates without a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bayplan.api.meta import LabelSelector

__all__ = ["EVERYTHING", "NOTHING", "Requirement", "Selector", "SelectorError", "compile_selector", "from_labels"]

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class SelectorError(ValueError):
    """A selector that the API server would have refused."""


class Requirement(NamedTuple):
    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = labels.get(self.key)
        if self.operator == "In":
            return present is not None and present in self.values
        if self.operator == "NotIn":
            return present is None or present not in self.values
        return (present is not None) == (self.operator == "Exists")


class Selector(NamedTuple):
    """A conjunction of requirements. `is_nothing` stands for the selector that matches no labels at all."""

    requirements: tuple[Requirement, ...]
    is_nothing: bool = False

    @property
    def is_everything(self) -> bool:
        return not self.requirements and not self.is_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.is_nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    def equalities(self) -> Iterable[tuple[str, frozenset[str]]]:
        """Keys that must be present with one of the given values; what an index can look up."""
        return ((r.key, r.values) for r in self.requirements if r.operator == "In")

    def and_equal(self, pairs: Iterable[tuple[str, str]]) -> Selector:
        """This selector with more equalities; `NOTHING` is returned unchanged."""
        if self.is_nothing:
            return self
        extra = [Requirement(key, "In", frozenset((value,))) for key, value in pairs]
        return Selector(_sorted([*self.requirements, *extra]))


EVERYTHING = Selector(())
NOTHING = Selector((), is_nothing=True)


def from_labels(labels: Mapping[str, str]) -> Selector:
    """The selector of a Service or ReplicationController: equality on every pair."""
    return Selector(_sorted([Requirement(key, "In", frozenset((value,))) for key, value in labels.items()]))


def compile_selector(selector: LabelSelector | None) -> Selector:
    """An API label selector; absent means nothing, empty means everything."""
    if selector is None:
        return NOTHING
    equal = [Requirement(key, "In", frozenset((value,))) for key, value in (selector.match_labels or {}).items()]
    stated = [_requirement(e.key, e.operator, e.values or []) for e in selector.match_expressions or ()]
    return Selector(_sorted(equal + stated))


def _requirement(key: str, operator: str, values: list[str]) -> Requirement:
    if operator not in _OPERATORS:
        raise SelectorError(f'"{operator}" is not a valid label selector operator')
    if (operator in ("In", "NotIn")) != bool(values):
        raise SelectorError(f"operator {operator} of key `{key}` does not go with values {values}")
    return Requirement(key, operator, frozenset(values))


def _sorted(requirements: list[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(set(requirements), key=lambda r: (r.key, r.operator, sorted(r.values))))
