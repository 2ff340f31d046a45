"""Derives RBAC rules from declarations: those of the scheduler itself and of each enabled plugin.

The scheduler keeps a copy of every kind in `bayplan.api.kinds`, whichever plugins run, so that a reload may enable any
of them; reading those is part of the core. Everything that is written, and every custom resource, comes from a plugin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from bayplan.api.kinds import KINDS
from bayplan.framework.plugin import Permission, Plugin
from bayplan.framework.resources import resource_info

__all__ = [
    "Lease",
    "Rule",
    "core_permissions",
    "lease_rules",
    "merged_rules",
    "needed_permissions",
    "plugin_permissions",
]

READ = ("get", "list", "watch")
_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete")

_CORE_WRITES = (
    Permission("", "pods/status", ("patch",)),
    Permission("events.k8s.io", "events", ("create", "patch")),
    Permission("authentication.k8s.io", "tokenreviews", ("create",)),
    Permission("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)
"""Pod status, events, and reviews for the scheduler's own endpoints."""

Rule = dict[str, Any]


class Lease(NamedTuple):
    """The lease by which replicas agree on one leader."""

    name: str
    namespace: str


def core_permissions() -> list[Permission]:
    return [*(Permission(kind.group, kind.plural, READ) for kind in KINDS), *_CORE_WRITES]


def plugin_permissions(plugin: type[Plugin]) -> list[Permission]:
    """What a plugin declares: its permissions, and reading the custom resources it watches."""
    watched = [resource_info(kind) for kind in plugin.watches]
    return [*plugin.permissions, *(Permission(info.group, info.plural, READ) for info in watched)]


def needed_permissions(plugins: Iterable[type[Plugin]], *, others: Iterable[Permission] = ()) -> list[Permission]:
    """The permissions of core, plugins and `others`, one entry a resource, in a fixed order."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for permission in [*core_permissions(), *(p for plugin in plugins for p in plugin_permissions(plugin)), *others]:
        verbs.setdefault((permission.group, permission.resource), set()).update(permission.verbs)
    return [
        Permission(group, resource, tuple(sorted(verbs[group, resource], key=_place)))
        for group, resource in sorted(verbs)
    ]


def merged_rules(permissions: Iterable[Permission]) -> list[Rule]:
    """RBAC rules: resources of one group that need the same verbs share a rule."""
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for permission in permissions:
        grouped.setdefault((permission.group, permission.verbs), []).append(permission.resource)
    return [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": list(verbs)}
        for (group, verbs), resources in sorted(grouped.items(), key=lambda entry: (entry[0][0], entry[1]))
    ]


def lease_rules(lease: Lease) -> list[Rule]:
    """For a Role in the lease's namespace. A creation cannot be limited to a name, because there is none yet."""
    group = "coordination.k8s.io"
    return [
        {"apiGroups": [group], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": [group], "resources": ["leases"], "resourceNames": [lease.name], "verbs": ["get", "update"]},
    ]


def _place(verb: str) -> tuple[int, str]:
    return (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb)
