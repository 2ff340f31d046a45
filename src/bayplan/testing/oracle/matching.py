"""The oracle's own reading of selectors, taints and tolerations, one label map at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.api.meta import LabelSelector
from bayplan.api.node import NodeSelectorRequirement, NodeSelectorTerm, Taint
from bayplan.api.pod import Pod, Toleration

__all__ = ["matches_labels", "matches_required_nodes", "matches_term", "pinned_names", "untolerated"]


def matches_labels(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """An absent selector selects nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    return all(_accepts(e.operator, e.values, labels.get(e.key)) for e in selector.match_expressions or ())


def _accepts(operator: str, values: list[str] | None, present: str | None) -> bool:
    if operator == "In":
        return present is not None and present in (values or ())
    if operator == "NotIn":
        return present is None or present not in (values or ())
    if operator == "Exists":
        return present is not None
    return present is None


def matches_required_nodes(pod: Pod, labels: Mapping[str, str], name: str) -> bool:
    """The nodeSelector map and required node affinity."""
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return any(matches_term(term, labels, name) for term in affinity.required.node_selector_terms or ())


def matches_term(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """A term without requirements matches nothing, and so does one that an API server would refuse."""
    expressions, fields = term.match_expressions or [], term.match_fields or []
    if not expressions and not fields:
        return False
    if not all(map(_is_valid_expression, expressions)) or not all(map(_is_valid_field, fields)):
        return False
    return all(_matches_expression(e, labels.get(e.key)) for e in expressions) and all(
        _accepts(f.operator, f.values, name) for f in fields
    )


def _is_valid_expression(requirement: NodeSelectorRequirement) -> bool:
    count = len(requirement.values or ())
    if requirement.operator in ("In", "NotIn"):
        return count > 0
    if requirement.operator in ("Exists", "DoesNotExist"):
        return count == 0
    return requirement.operator in ("Gt", "Lt") and count == 1 and _integer((requirement.values or [""])[0]) is not None


def _is_valid_field(requirement: NodeSelectorRequirement) -> bool:
    is_name = requirement.key == "metadata.name" and requirement.operator in ("In", "NotIn")
    return is_name and len(requirement.values or ()) == 1


def _matches_expression(requirement: NodeSelectorRequirement, present: str | None) -> bool:
    if requirement.operator not in ("Gt", "Lt"):
        return _accepts(requirement.operator, requirement.values, present)
    here, there = _integer(present or ""), _integer((requirement.values or [""])[0])
    if here is None or there is None:
        return False
    return here > there if requirement.operator == "Gt" else here < there


def _integer(text: str) -> int | None:
    digits = text[1:] if text.startswith(("-", "+")) else text
    if not digits or any(character not in "0123456789" for character in digits):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < (1 << 63) else None


def pinned_names(pod: Pod) -> set[str] | None:
    """The only nodes that required affinity allows by name; None when some term does not name any."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return None
    terms = affinity.required.node_selector_terms or []
    allowed: set[str] = set()
    for term in terms:
        named = [set(f.values or ()) for f in term.match_fields or () if f.operator == "In"]
        if not named:
            return None
        allowed |= set.intersection(*named)
    return allowed if terms else None


def untolerated(taints: Iterable[Taint] | None, tolerations: Iterable[Toleration], effects: tuple[str, ...]) -> int:
    """How many taints with one of the effects no toleration lets through."""
    known = list(tolerations)
    return sum(1 for t in taints or () if t.effect in effects and not any(_tolerates(each, t) for each in known))


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
