"""A write as admission policies and webhooks see it, and whether one of them concerns it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.identity import ApiUser
from bayplan.apiserver.protocol.selectors import matches_label_selector

__all__ = ["CREATE", "DELETE", "GROUP", "UPDATE", "AdmissionAttributes"]

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class AdmissionAttributes:
    """The attributes of a request: user, verb and object."""

    kind: ServedKind
    operation: str
    namespace: str
    name: str
    user: ApiUser
    document: Json | None
    """The object as it would be stored; absent for deletions."""
    old: Json | None
    """The object as it is; absent for creations."""
    subresource: str = ""
    dry_run: bool = False

    def request(self) -> Json:
        """The part of a review that says what is asked for."""
        kind = {"group": self.kind.group, "version": self.kind.version, "kind": self.kind.kind}
        resource = {"group": self.kind.group, "version": self.kind.version, "resource": self.kind.plural}
        found: Json = {"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource}
        if self.subresource:
            found |= {"subResource": self.subresource, "requestSubResource": self.subresource}
        user: Json = {"username": self.user.name, "groups": list(self.user.groups)}
        if self.user.uid:
            user["uid"] = self.user.uid
        if self.user.extra:
            user["extra"] = dict(self.user.extra)
        found |= {"name": self.name, "namespace": self.namespace, "operation": self.operation, "userInfo": user}
        return found | {"dryRun": self.dry_run}

    def selected_by(self, constraints: Json, namespace: Json | None) -> bool:
        """Whether rules, exclusions and selectors of a policy, binding or webhook pick this write.

        Absent rules pick everything, as those of a binding do.
        """
        rules = constraints.get("resourceRules", constraints.get("rules"))
        if rules is not None and not self._matches(rules, constraints):
            return False
        if self._matches(constraints.get("excludeResourceRules") or (), constraints):
            return False
        if not self._labels_match(constraints.get("namespaceSelector"), namespace):
            return False
        selector = constraints.get("objectSelector")
        return not selector or any(
            matches_label_selector(selector, one["metadata"].get("labels") or {})
            for one in (self.document, self.old)
            if one is not None
        )

    def _labels_match(self, selector: Json | None, namespace: Json | None) -> bool:
        if not selector:
            return True
        subject = namespace
        if self.kind.stored_as == "namespaces":
            subject = self.document or self.old
        # What belongs to no namespace is not selected by the labels of one.
        return subject is None or matches_label_selector(selector, subject["metadata"].get("labels") or {})

    def _matches(self, rules: Iterable[Json], constraints: Json) -> bool:
        is_exact = constraints.get("matchPolicy", "Equivalent") == "Exact"
        return any(self._matches_rule(rule, is_exact) for rule in rules)

    def _matches_rule(self, rule: Json, is_exact: bool) -> bool:
        scope = rule.get("scope") or "*"
        if scope != "*" and (scope == "Namespaced") != bool(self.namespace and self.kind.stored_as != "namespaces"):
            return False
        if rule.get("resourceNames") and self.name not in rule["resourceNames"]:
            return False
        versions = rule.get("apiVersions") or ()
        return (
            _listed(self.operation, rule.get("operations"))
            and _listed(self.kind.group, rule.get("apiGroups"))
            and (not is_exact or _listed(self.kind.version, versions))
            and any(self._is_resource(pattern) for pattern in rule.get("resources") or ())
        )

    def _is_resource(self, pattern: str) -> bool:
        resource, _, subresource = pattern.partition("/")
        if resource not in ("*", self.kind.plural):
            return False
        return subresource in ("*", self.subresource)


def _listed(value: str, allowed: Iterable[str] | None) -> bool:
    return any(one in ("*", value) for one in allowed or ())
