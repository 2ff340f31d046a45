"""Roles for people and for one favour, made and given to nobody: who may look, and who may write summaries onto pods.

`viewer` opens the scheduler's explanations and dashboard; its endpoints ask the API server whether the caller may. The
rules are about paths, not objects: what a viewer sees of pods and nodes is what the scheduler sees, so it is for those
who may see that anyway. `summaries` lets a scheduler answer pods annotated with `bayplan.dev/explain: summary`. To
patch pods is a wide right, so it is not part of the scheduler's own role.
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
    """Two cluster roles without bindings; whoever runs the cluster gives them to whom they like."""
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
