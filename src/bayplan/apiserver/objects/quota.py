"""Charging resource quotas when objects are created, and when they change so that they ask for more."""

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


def charge(store: Store, kind: ServedKind, document: Json, set_used: SetUsed, *, old: Json | None = None) -> None:
    """Refuse an object that exceeds a quota of its namespace, and count it, or what it asks for beyond its `old` state,
    in the quotas that concern it."""
    namespace = document["metadata"].get("namespace", "")
    found = [decode_object(entry.raw) for entry in store.listing(QUOTAS).entries if entry.namespace == namespace]
    if not found:
        return
    wanted = usage(kind.resource, document)
    more = wanted if old is None else _beyond(wanted, usage(kind.resource, old))
    charged = []
    for quota in found:
        if concerns(quota, kind.resource, document):
            was_counted = old is not None and concerns(quota, kind.resource, old)
            charged.append((quota, more if was_counted else wanted))
    for quota, added in charged:
        problem = problem_with(quota, kind.resource, document, added)
        if problem:
            raise errors.forbidden(kind.plural, document["metadata"].get("name", ""), problem, group=kind.group)
    for quota, added in charged:
        used = used_after(quota, added)
        if used != (quota.get("status") or {}).get("used"):
            set_used(quota, used)


def _beyond(wanted: Amounts, before: Amounts) -> Amounts:
    grown = {name: amount - before.get(name, Decimal(0)) for name, amount in wanted.items()}
    return {name: amount for name, amount in grown.items() if amount > 0}


def used_after(quota: Json, wanted: Amounts) -> Json:
    hard = (quota.get("spec") or {}).get("hard") or {}
    used = amounts_of((quota.get("status") or {}).get("used"))
    return {name: shown(used.get(name, Decimal(0)) + wanted.get(name, Decimal(0))) for name in hard}
