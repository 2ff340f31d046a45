"""ResourceQuotas: how much of each is used, counted again when something goes away, asks for less, or a quota changes.

Creations are charged as they happen (`objects.quota`), so that only deletions and changes are followed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from bayplan.apiserver.kinds.pod_resources import Amounts, sum_amounts
from bayplan.apiserver.kinds.quota_rules import (
    COUNTED_BY_NAME,
    DEVICE_CLAIMS,
    concerns,
    counts_devices,
    scope_of,
    shown,
    usage,
)
from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.storage.store import DELETED, Change, Entry, Key

_WATCHED = ("pods", DEVICE_CLAIMS, *(name for name in COUNTED_BY_NAME if name != "resourcequotas"))
_AGAIN_SECONDS = 10.0


class ResourceQuotas(Controller):
    """Keeps the status of quotas."""

    name = "resourcequota-controller"
    primary = "resourcequotas"
    watches = _WATCHED

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        if not self.primaries:
            return ()
        keys = [entry.key for entry in self.client.entries(self.primary, change.entry.namespace)]
        if not keys or change.type == DELETED:
            return keys
        is_known = change.previous is None or _counted_as(resource, change.previous) == _counted_as(
            resource, change.entry
        )
        return () if is_known else keys

    def reconcile(self, key: Key) -> float | None:
        quota = self.client.get(self.primary, key)
        if quota is None:
            return None
        hard = (quota.get("spec") or {}).get("hard") or {}
        total = self._usage(quota, hard)
        status = {"hard": hard, "used": {name: shown(total.get(name, Decimal(0))) for name in hard}}
        if quota.get("status") != status:
            self.client.set_status(self.primary, key, status)
        # Kinds that are counted by `count/` alone are not watched.
        return _AGAIN_SECONDS if any(name.startswith("count/") for name in hard) else None

    def _usage(self, quota: Json, hard: Json) -> Amounts:
        total: Amounts = {}
        for resource in self._counted(hard):
            for entry in self.client.entries(resource, quota["metadata"]["namespace"]):
                document = decode_object(entry.raw)
                if concerns(quota, resource, document):
                    total = sum_amounts(total, usage(resource, document))
        return total

    def _counted(self, hard: Json) -> list[str]:
        """The resources whose objects count for the names of a quota."""
        named = {name.removeprefix("count/") for name in hard if name.startswith("count/")}
        legacy = {name.partition(".")[0] for name in hard} & set(COUNTED_BY_NAME)
        pods = {"pods"} if any(_is_about_pods(name) for name in hard) else set()
        claims = {"persistentvolumeclaims"} if any("storage" in name for name in hard) else set()
        devices = {DEVICE_CLAIMS} if any(counts_devices(name) for name in hard) else set()
        served = {kind.stored_as for kind in self.client.api.kinds if kind.namespaced}
        return sorted((named | legacy | pods | claims | devices) & served)


def _is_about_pods(name: str) -> bool:
    return name in ("pods", "cpu", "memory", "ephemeral-storage") or name.startswith(("requests.", "limits."))


def _counted_as(resource: str, entry: Entry) -> tuple[Amounts, object]:
    """What of an object quotas count, and what says which quotas."""
    document = decode_object(entry.raw)
    return usage(resource, document), scope_of(resource, document)
