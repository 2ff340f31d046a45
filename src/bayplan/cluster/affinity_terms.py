"""Pod affinity terms, compiled: which pods a term means and across which topology key.

A term is hashable: pods of one template share one compiled term, and all counting is done per distinct term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from bayplan.api.pod import Affinity, PodAffinity, PodAffinityTerm
from bayplan.api.selectors import NOTHING, Selector, SelectorError, compile_selector

__all__ = [
    "NO_TERMS",
    "PodTerm",
    "PodTerms",
    "WeightedTerm",
    "compile_pod_terms",
    "compile_readable_terms",
    "compile_term",
]

T = TypeVar("T")


class PodTerm(NamedTuple):
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod of that namespace with those labels is one the term means."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


class WeightedTerm(NamedTuple):
    weight: int
    term: PodTerm


class PodTerms(NamedTuple):
    required_affinity: tuple[PodTerm, ...]
    required_anti_affinity: tuple[PodTerm, ...]
    preferred_affinity: tuple[WeightedTerm, ...]
    preferred_anti_affinity: tuple[WeightedTerm, ...]

    @property
    def has_any(self) -> bool:
        return self is not NO_TERMS and any(self)

    @property
    def has_required(self) -> bool:
        return bool(self.required_affinity or self.required_anti_affinity)

    @property
    def has_preferred(self) -> bool:
        return bool(self.preferred_affinity or self.preferred_anti_affinity)


NO_TERMS = PodTerms((), (), (), ())


def compile_pod_terms(affinity: Affinity | None, namespace: str) -> PodTerms:
    """All terms of a pod. Raises SelectorError for a selector that the API server would have refused."""
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    wanted, avoided = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    return PodTerms(
        _required(wanted, namespace),
        _required(avoided, namespace),
        _preferred(wanted, namespace),
        _preferred(avoided, namespace),
    )


def compile_readable_terms(affinity: Affinity | None, namespace: str) -> PodTerms:
    """The same for a pod that already runs: a list with a term that does not parse counts as empty.

    API servers have admitted such pods, and an existing pod must be counted whatever its terms are.
    """
    try:
        return compile_pod_terms(affinity, namespace)
    except SelectorError:
        sides = affinity or Affinity()
    wanted, avoided = sides.pod_affinity or PodAffinity(), sides.pod_anti_affinity or PodAffinity()
    return PodTerms(
        _or_empty(_required, wanted, namespace),
        _or_empty(_required, avoided, namespace),
        _or_empty(_preferred, wanted, namespace),
        _or_empty(_preferred, avoided, namespace),
    )


def _required(side: PodAffinity, namespace: str) -> tuple[PodTerm, ...]:
    return tuple(compile_term(term, namespace) for term in side.required)


def _preferred(side: PodAffinity, namespace: str) -> tuple[WeightedTerm, ...]:
    return tuple(WeightedTerm(w.weight, compile_term(w.pod_affinity_term, namespace)) for w in side.preferred)


def _or_empty(
    compile_list: Callable[[PodAffinity, str], tuple[T, ...]], side: PodAffinity, namespace: str
) -> tuple[T, ...]:
    try:
        return compile_list(side, namespace)
    except SelectorError:
        return ()


def compile_term(term: PodAffinityTerm, namespace: str) -> PodTerm:
    """One term. Without namespaces and without a namespace selector it means the pod's own namespace."""
    listed = frozenset(term.namespaces or ())
    if not listed and term.namespace_selector is None:
        listed = frozenset((namespace,))
    namespaces = NOTHING if term.namespace_selector is None else compile_selector(term.namespace_selector)
    return PodTerm(term.topology_key, listed, namespaces, compile_selector(term.label_selector))
