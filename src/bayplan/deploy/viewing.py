"""Two ClusterRoles without bindings: `viewer` and `summaries`.

`viewer` allows reading the scheduler's explanations and dashboard, whose endpoints authorise by SubjectAccessReview.
Its rules name paths, not objects: a viewer sees all pods and nodes that the scheduler sees. `summaries` lets a
scheduler annotate pods that ask with `bayplan.dev/explain: summary`; patching pods is a broad permission, so it is not
part of the scheduler's own role.
"""

from __future__ import annotations

from typing import Any

from bayplan.deploy.rbac import Rule, merged_rules
from bayplan.framework.plugin import Permission

__all__ = ["summary_rules", "viewer_rules", "viewing_documents"]

Document = dict[str, Any]


def viewer_rules() -> list[Rule]:
    return [
        {"nonResourceURLs": ["/bayplan/v1/*", "/dashboard", "/dashboard/*"], "verbs": ["get"]},
        {"nonResourceURLs": ["/bayplan/v1/whatif"], "verbs": ["post"]},
    ]


def summary_rules() -> list[Rule]:
    return merged_rules([Permission("", "pods", ("patch",))])


def viewing_documents(role_name: str, labels: dict[str, str]) -> list[Document]:
    """The two ClusterRoles; administrators bind them."""
    rules = {"viewer": viewer_rules(), "summaries": summary_rules()}
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"{role_name}:{suffix}", "labels": labels},
            "rules": found,
        }
        for suffix, found in rules.items()
    ]
