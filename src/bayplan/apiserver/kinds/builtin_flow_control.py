"""Built-in kinds, continued: API priority and fairness. They are checked, stored and shown; no request is held back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bayplan.apiserver.kinds.columns import AGE, NAME, NONE, Cell, Column, Compute, at, get
from bayplan.apiserver.kinds.kind import CONTROLLED_METADATA, ServedKind
from bayplan.apiserver.kinds.rows import builtin_kind
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause

_MOST_PRECEDENCE, _MOST_QUEUES = 10_000, 10_000_000
_QUEUING = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")


def flow_control_kinds() -> list[ServedKind]:
    group: dict[str, Any] = {
        "group": "flowcontrol.apiserver.k8s.io",
        "namespaced": False,
        "status": True,
        "kept_by_status": CONTROLLED_METADATA,
        "generation": True,
    }
    return [
        builtin_kind(
            "flowcontrol.v1.FlowSchema",
            "flowschemas",
            columns=_FLOW_SCHEMA,
            default=_default_flow_schema,
            validate=_validate_flow_schema,
            **group,
        ),
        builtin_kind(
            "flowcontrol.v1.PriorityLevelConfiguration",
            "prioritylevelconfigurations",
            columns=_PRIORITY_LEVEL,
            default=_default_priority_level,
            validate=_validate_priority_level,
            **group,
        ),
    ]


def _default_flow_schema(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def _default_priority_level(document: Json) -> None:
    spec = document.setdefault("spec", {})
    if isinstance(spec.get("exempt"), dict):
        spec["exempt"] = {"nominalConcurrencyShares": 0, "lendablePercent": 0} | spec["exempt"]
    if isinstance(spec.get("limited"), dict):
        spec["limited"] = {"nominalConcurrencyShares": 30, "lendablePercent": 0} | spec["limited"]
        queuing = get(spec, "limited", "limitResponse", "queuing")
        if queuing is not None:
            queuing.update({name: queuing.get(name) or value for name, value in _QUEUING.items()})


def _validate_flow_schema(document: Json, old: Json | None) -> list[Cause]:
    spec, causes = document["spec"], list[Cause]()
    precedence = spec["matchingPrecedence"]
    path = "spec.matchingPrecedence"
    if precedence <= 0:
        causes.append(errors.invalid_value(path, precedence, "must be a positive value"))
    if precedence > _MOST_PRECEDENCE:
        causes.append(errors.invalid_value(path, precedence, f"must not be greater than {_MOST_PRECEDENCE}"))
    if precedence == 1 and document["metadata"].get("name") != "exempt":
        detail = "only the schema named 'exempt' may have matchingPrecedence 1"
        causes.append(errors.invalid_value(path, precedence, detail))
    method = get(spec, "distinguisherMethod", "type")
    if spec.get("distinguisherMethod") is not None and method not in ("ByNamespace", "ByUser"):
        allowed = ["ByNamespace", "ByUser"]
        causes.append(errors.not_supported("spec.distinguisherMethod.type", method, allowed))
    if not get(spec, "priorityLevelConfiguration", "name"):
        causes.append(errors.required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
    for index, rule in enumerate(spec.get("rules") or ()):
        causes += _wrong_with_rule(rule, f"spec.rules[{index}]")
    return causes


def _wrong_with_rule(rule: Json, path: str) -> Iterator[Cause]:
    if not rule.get("subjects"):
        yield errors.required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(rule.get("subjects") or ()):
        yield from _wrong_with_subject(subject, f"{path}.subjects[{index}]")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        yield errors.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, one in enumerate(rule.get("nonResourceRules") or ()):
        inner = f"{path}.nonResourceRules[{index}]"
        yield from _wrong_with_verbs(one, inner)
        yield from _wrong_with_names(one, "nonResourceURLs", "non-resource URLs", inner, "nonResourceURLs must contain")
    for index, one in enumerate(rule.get("resourceRules") or ()):
        inner = f"{path}.resourceRules[{index}]"
        yield from _wrong_with_verbs(one, inner)
        yield from _wrong_with_names(one, "apiGroups", "api groups", inner, "resource rules must supply")
        yield from _wrong_with_names(one, "resources", "resources", inner, "resource rules must supply")
        if not one.get("namespaces") and not one.get("clusterScope"):
            detail = "resource rules that are not cluster scoped must supply at least one namespace"
            yield errors.required(f"{inner}.namespaces", detail)
        elif one.get("namespaces"):
            yield from _wrong_with_names(one, "namespaces", "namespaces", inner, "")


def _wrong_with_subject(subject: Json, path: str) -> Iterator[Cause]:
    kind = subject.get("kind")
    if kind not in _SUBJECTS:
        yield errors.not_supported(f"{path}.kind", kind, list(_SUBJECTS))
        return
    for other, member in _SUBJECTS.items():
        if other != kind and subject.get(member) is not None:
            detail = f"{member} is forbidden when subject kind is not '{other}'"
            yield errors.forbidden_field(f"{path}.{member}", detail)
    named, inner = subject.get(_SUBJECTS[kind]), f"{path}.{_SUBJECTS[kind]}"
    if named is None:
        yield errors.required(inner, f"{_SUBJECTS[kind]} is required when subject kind is '{kind}'")
        return
    if not named.get("name"):
        yield errors.required(f"{inner}.name")
    if kind == "ServiceAccount" and not named.get("namespace"):
        yield errors.required(f"{inner}.namespace", "must specify namespace for service account")


def _wrong_with_verbs(rule: Json, path: str) -> Iterator[Cause]:
    verbs = rule.get("verbs") or []
    yield from _wrong_with_names(rule, "verbs", "verbs", path, "verbs must contain")
    if verbs and "*" not in verbs and not set(verbs) <= set(_VERBS):
        yield errors.not_supported(f"{path}.verbs", verbs, _VERBS)


def _wrong_with_names(rule: Json, name: str, said: str, path: str, missing: str) -> Iterator[Cause]:
    names = rule.get(name) or []
    if not names:
        what = "value" if missing.startswith(name) else said.removesuffix("s")
        yield errors.required(f"{path}.{name}", f"{missing} at least one {what}")
    elif "*" in names and len(names) > 1:
        yield errors.invalid_value(f"{path}.{name}", names, f"if '*' is present, must not specify other {said}")


def _validate_priority_level(document: Json, old: Json | None) -> list[Cause]:
    spec, causes = document["spec"], list[Cause]()
    kind, limited = spec.get("type"), spec.get("limited")
    if (document["metadata"].get("name") == "exempt") != (kind == "Exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        causes.append(errors.invalid_value("spec.type", kind, detail))
    if not kind:
        causes.append(errors.required("spec.type"))
    elif kind not in ("Exempt", "Limited"):
        causes.append(errors.not_supported("spec.type", kind, ["Exempt", "Limited"]))
    elif kind == "Exempt" and limited is not None:
        causes.append(errors.forbidden_field("spec.limited", "must be nil if the type is not Limited"))
    elif kind == "Limited":
        if spec.get("exempt") is not None:
            causes.append(errors.forbidden_field("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            causes.append(errors.required("spec.limited", "must not be empty when type is Limited"))
    for member in ("exempt", "limited"):
        causes += _wrong_with_shares(spec.get(member) or {}, f"spec.{member}")
    if kind == "Limited" and limited is not None:
        causes += _wrong_with_response(limited.get("limitResponse") or {}, "spec.limited.limitResponse")
    return causes


def _wrong_with_shares(shares: Json, path: str) -> Iterator[Cause]:
    if shares.get("nominalConcurrencyShares", 0) < 0:
        value = shares["nominalConcurrencyShares"]
        yield errors.invalid_value(f"{path}.nominalConcurrencyShares", value, "must be a non-negative integer")
    if not 0 <= shares.get("lendablePercent", 0) <= 100:
        detail = "must be between 0 and 100, inclusive"
        yield errors.invalid_value(f"{path}.lendablePercent", shares["lendablePercent"], detail)
    if shares.get("borrowingLimitPercent", 0) < 0:
        detail = "if specified, must be a non-negative integer"
        yield errors.invalid_value(f"{path}.borrowingLimitPercent", shares["borrowingLimitPercent"], detail)


def _wrong_with_response(response: Json, path: str) -> Iterator[Cause]:
    kind, queuing = response.get("type"), response.get("queuing")
    if not kind:
        yield errors.required(f"{path}.type")
    elif kind not in ("Queue", "Reject"):
        yield errors.not_supported(f"{path}.type", kind, ["Queue", "Reject"])
    elif kind == "Reject" and queuing is not None:
        detail = "must be nil if limited.limitResponse.type is not Limited"
        yield errors.forbidden_field(f"{path}.queuing", detail)
    elif kind == "Queue" and queuing is None:
        detail = "must not be empty if limited.limitResponse.type is Limited"
        yield errors.required(f"{path}.queuing", detail)
    elif kind == "Queue" and queuing is not None:
        yield from _wrong_with_queues(queuing, f"{path}.queuing")


def _wrong_with_queues(queuing: Json, path: str) -> Iterator[Cause]:
    for name in _QUEUING:
        if queuing[name] <= 0:
            yield errors.invalid_value(f"{path}.{name}", queuing[name], "must be positive")
    if queuing["queues"] > _MOST_QUEUES:
        detail = f"must not be greater than {_MOST_QUEUES}"
        yield errors.invalid_value(f"{path}.queues", queuing["queues"], detail)
    if queuing["handSize"] > queuing["queues"]:
        detail = f"should not be greater than queues ({queuing['queues']})"
        yield errors.invalid_value(f"{path}.handSize", queuing["handSize"], detail)


def _missing_level(document: Json, _: float) -> Cell:
    conditions = get(document, "status", "conditions") or ()
    return next((str(one.get("status")) for one in conditions if one.get("type") == "Dangling"), "?")


def _queuing(name: str) -> Compute:
    return at("spec", "limited", "limitResponse", "queuing", name, default=NONE)


_FLOW_SCHEMA = (
    NAME,
    Column("PriorityLevel", at("spec", "priorityLevelConfiguration", "name")),
    Column("MatchingPrecedence", at("spec", "matchingPrecedence")),
    Column("DistinguisherMethod", at("spec", "distinguisherMethod", "type", default=NONE)),
    AGE,
    Column("MissingPL", _missing_level),
)
_PRIORITY_LEVEL = (
    NAME,
    Column("Type", at("spec", "type")),
    Column("NominalConcurrencyShares", at("spec", "limited", "nominalConcurrencyShares", default=NONE)),
    Column("Queues", _queuing("queues")),
    Column("HandSize", _queuing("handSize")),
    Column("QueueLengthLimit", _queuing("queueLengthLimit")),
    AGE,
)
