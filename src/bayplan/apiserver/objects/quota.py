"""Charging resource quotas when objects are created."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.kinds.pod_resources import Amounts, amounts_of
from bayplan.apiserver.kinds.quota_rules import concerns, problem_with, shown, usage
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.storage.store import Store

QUOTAS = "resourcequotas"
SetUsed = Callable[[Json, Json], None]


def charge(store: Store, kind: ServedKind, document: Json, set_used: SetUsed) -> None:
    """Refuse an object that exceeds a quota of its namespace, and count it in those that concern it."""
    namespace = document["metadata"].get("namespace", "")
    found = [decode_object(entry.raw) for entry in store.listing(QUOTAS).entries if entry.namespace == namespace]
    if not found:
        return
    wanted = usage(kind.resource, document)
    concerned = [quota for quota in found if concerns(quota, kind.resource, document)]
    for quota in concerned:
        problem = problem_with(quota, kind.resource, document, wanted)
        if problem:
            raise errors.forbidden(kind.plural, document["metadata"].get("name", ""), problem, group=kind.group)
    for quota in concerned:
        used = used_after(quota, wanted)
        if used != (quota.get("status") or {}).get("used"):
            set_used(quota, used)


def used_after(quota: Json, wanted: Amounts) -> Json:
    hard = (quota.get("spec") or {}).get("hard") or {}
    used = amounts_of((quota.get("status") or {}).get("used"))
    return {name: shown(used.get(name, Decimal(0)) + wanted.get(name, Decimal(0))) for name in hard}
