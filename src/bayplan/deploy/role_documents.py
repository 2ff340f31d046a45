"""Manifests of a service account and its roles; `rbac` derives the rules.

Two ClusterRoles have no binding. `viewer` allows reading the scheduler's explanations and dashboard, whose endpoints
authorise by SubjectAccessReview. Its rules name paths, not objects: a viewer sees all pods and nodes that the scheduler
sees, unless `serving.reviewPods` is set. `summaries` lets a scheduler annotate pods that ask with
`bayplan.dev/explain: summary`; patching pods is a broad permission, so it is not part of the scheduler's own role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bayplan.deploy.rbac import Lease, Rule, lease_rules, merged_rules
from bayplan.framework.plugin import Permission

__all__ = [
    "Account",
    "authentication_reader_document",
    "cluster_role_documents",
    "lease_documents",
    "service_account",
    "summary_rules",
    "unbound_role_documents",
    "viewer_rules",
]

Document = dict[str, Any]
_GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class Account:
    """A service account, and the labels of everything that belongs to it."""

    name: str
    namespace: str
    labels: dict[str, str]

    @property
    def subject(self) -> Document:
        return {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}


def service_account(account: Account) -> Document:
    metadata = {"name": account.name, "namespace": account.namespace, "labels": account.labels}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def cluster_role_documents(account: Account, name: str, rules: Sequence[Rule]) -> list[Document]:
    """A cluster role of that name, given to the account."""
    return _role_and_binding("Cluster", {"name": name, "labels": account.labels}, rules, account)


def lease_documents(account: Account, lease: Lease) -> list[Document]:
    """What a candidate for a lease needs, in the lease's own namespace."""
    metadata = {"name": f"{account.name}-lease", "namespace": lease.namespace, "labels": account.labels}
    return _role_and_binding("", metadata, lease_rules(lease), account)


def authentication_reader_document(account: Account, name: str) -> Document:
    """Lets the account read the client certificate authorities of the cluster, by a role that every cluster has."""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": "kube-system", "labels": account.labels},
        "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
        "subjects": [account.subject],
    }


def _role_and_binding(scope: str, metadata: Document, rules: Sequence[Rule], account: Account) -> list[Document]:
    role = f"{scope}Role"
    shared = {"apiVersion": f"{_GROUP}/v1", "metadata": metadata}
    reference = {"apiGroup": _GROUP, "kind": role, "name": metadata["name"]}
    return [
        {**shared, "kind": role, "rules": list(rules)},
        {**shared, "kind": f"{role}Binding", "roleRef": reference, "subjects": [account.subject]},
    ]


def viewer_rules() -> list[Rule]:
    return [
        {"nonResourceURLs": ["/bayplan/v1/*", "/dashboard", "/dashboard/*"], "verbs": ["get"]},
        {"nonResourceURLs": ["/bayplan/v1/whatif"], "verbs": ["post"]},
    ]


def summary_rules() -> list[Rule]:
    return merged_rules([Permission("", "pods", ("patch",))])


def unbound_role_documents(role_name: str, labels: dict[str, str]) -> list[Document]:
    """The roles `viewer` and `summaries`, for administrators to bind."""
    rules = {"viewer": viewer_rules(), "summaries": summary_rules()}
    return [
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"{role_name}:{suffix}", "labels": labels},
            "rules": found,
        }
        for suffix, found in rules.items()
    ]
