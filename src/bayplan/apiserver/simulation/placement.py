"""Which nodes a pod spec allows: node selectors, required node affinity, tolerations."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.apiserver.protocol.encoding import Json, JsonValue

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def matches_node(spec: Json, node: Json) -> bool:
    """Whether a node has what the selector and the required affinity of a pod ask for."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    return not required or any(_term_matches(term, node) for term in required.get("nodeSelectorTerms") or ())


def tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _term_matches(term: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    return all(_matches(r, labels) for r in term.get("matchExpressions") or ()) and all(
        _matches(r, fields) for r in term.get("matchFields") or ()
    )


def _matches(requirement: Json, values: Mapping[str, str]) -> bool:
    value: JsonValue = values.get(requirement.get("key", ""))
    allowed: list[str] = requirement.get("values") or []
    operator = requirement.get("operator")
    if operator == "In":
        return bool(value in allowed)
    if operator == "NotIn":
        return bool(value not in allowed)
    if operator in ("Exists", "DoesNotExist"):
        return bool((value is not None) == (operator == "Exists"))
    try:
        number, bound = int(value or ""), int(allowed[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound
