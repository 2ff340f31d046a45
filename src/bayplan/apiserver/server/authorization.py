"""Authorisation: allow everything, or RBAC.

`ApiAuthorizer` allows every authenticated request. `RbacAuthorizer` evaluates the roles and bindings in the store;
members of `system:masters` may do everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.protocol.identity import ApiUser
from bayplan.apiserver.protocol.selectors import matches_label_selector
from bayplan.apiserver.storage.store import Entry, Store

_GROUP = "rbac.authorization.k8s.io"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Attributes:
    """The RBAC attributes of a request."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """A non-resource path; the other fields are empty then."""

    def refusal(self, user: ApiUser) -> errors.RequestRefused:
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        problem = f'User "{user.name}" cannot {self.verb} resource "{resource}" in API group "{self.group}" {where}'
        return errors.forbidden(self.resource, self.name, problem, group=self.group)


class ApiAuthorizer:
    """Allows everything."""

    allows_everything: ClassVar[bool] = True
    """Whether there is nothing to ask it."""

    def allows(self, user: ApiUser, attributes: Attributes) -> bool:
        return True

    def rules_for(self, user: ApiUser, namespace: str) -> list[Json]:
        return [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]


class RbacAuthorizer(ApiAuthorizer):
    """Allows what the roles bound to a user allow."""

    allows_everything = False

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, user: ApiUser, attributes: Attributes) -> bool:
        if MASTERS in user.groups:
            return True
        return any(_rule_allows(rule, attributes) for rule in self._rules(user, attributes.namespace))

    def rules_for(self, user: ApiUser, namespace: str) -> list[Json]:
        if MASTERS in user.groups:
            return super().rules_for(user, namespace)
        return list(self._rules(user, namespace))

    def _rules(self, user: ApiUser, namespace: str) -> Iterator[Json]:
        for entry in self._store.listing(f"clusterrolebindings.{_GROUP}").entries:
            yield from self._bound_rules(_document(entry), user, "")
        if namespace:
            for entry in self._store.listing(f"rolebindings.{_GROUP}").entries:
                if entry.namespace == namespace:
                    yield from self._bound_rules(_document(entry), user, namespace)

    def _bound_rules(self, binding: Json, user: ApiUser, namespace: str) -> Iterator[Json]:
        if not any(_is_subject(subject, user, namespace) for subject in binding.get("subjects") or ()):
            return
        reference = binding.get("roleRef") or {}
        if reference.get("kind") == "Role":
            entry = self._store.get(f"roles.{_GROUP}", namespace, reference.get("name", ""))
        else:
            entry = self._store.get(f"clusterroles.{_GROUP}", "", reference.get("name", ""))
        if entry is not None:
            yield from self._role_rules(_document(entry))

    def _role_rules(self, role: Json) -> Iterator[Json]:
        yield from role.get("rules") or ()
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        for selector in selectors:
            for entry in self._store.listing(f"clusterroles.{_GROUP}").entries:
                if entry.name != role["metadata"]["name"] and matches_label_selector(selector, entry.labels):
                    yield from _document(entry).get("rules") or ()


@lru_cache(maxsize=2048)
def _document(entry: Entry) -> Json:
    """Entries never change, so their decoded form may be kept; readers must not change it."""
    return decode_object(entry.raw)


def _is_subject(subject: Json, user: ApiUser, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "User":
        return name in (user.name, "*")
    if kind == "Group":
        return name in user.groups
    account = f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
    return kind == "ServiceAccount" and user.name == account


def _rule_allows(rule: Json, attributes: Attributes) -> bool:
    if not _contains(rule.get("verbs"), attributes.verb):
        return False
    if attributes.path:
        return any(_path_matches(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    if not _contains(rule.get("apiGroups"), attributes.group):
        return False
    names = rule.get("resourceNames") or ()
    return _resource_matches(rule.get("resources") or (), attributes) and (not names or attributes.name in names)


def _contains(values: list[str] | None, wanted: str) -> bool:
    return values is not None and ("*" in values or wanted in values)


def _resource_matches(resources: Sequence[str], attributes: Attributes) -> bool:
    wanted = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    if "*" in resources or wanted in resources:
        return True
    return bool(attributes.subresource) and f"*/{attributes.subresource}" in resources


def _path_matches(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern[:-1]))
