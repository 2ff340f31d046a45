"""Which pods an explanation is about, for clusters in which users of the explanations may not read all pods
(`serving.reviewPods`).

An explanation of one pod, and the pending pods of one namespace, are for whoever may read these. Every other answer is
about the cluster, and for whoever may list all pods. What stands in a pod's way is part of its explanation and may be
another user's, as in the scheduler's events.
"""

from __future__ import annotations

from starlette.datastructures import QueryParams

from bayplan.explain.http.endpoints import PREFIX
from bayplan.server.options import PodAccess

__all__ = ["pods_in"]

_ALL = PodAccess("list")


def pods_in(path: str, query: str) -> PodAccess | None:
    """By path and query of a request; None for one that is about no pods."""
    if not path.startswith(f"{PREFIX}/"):
        return None
    asked = QueryParams(query)
    match path.removeprefix(f"{PREFIX}/").split("/"):
        case ["config"]:
            return None
        case ["explain", "pod", namespace, name] | ["explain", "pod", namespace, name, "changes"]:
            return PodAccess("get", namespace, name)
        case ["decisions"]:
            return _named(asked.get("pod", ""))
        case ["pending"] if not asked.get("change"):
            return PodAccess("list", asked.get("namespace", ""))
    return _ALL


def _named(key: str) -> PodAccess:
    namespace, _, name = key.rpartition("/")
    return PodAccess("get", namespace, name) if namespace and name and "/" not in namespace else _ALL
