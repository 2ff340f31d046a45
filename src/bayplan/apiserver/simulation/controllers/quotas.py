"""ResourceQuotas: how much of each is used, counted again when something goes away or a quota changes.

Creations are charged as they happen (`objects.quota`), so that only deletions and finished pods are followed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from bayplan.apiserver.kinds.pod_resources import Amounts, sum_amounts
from bayplan.apiserver.kinds.quota_rules import COUNTED_BY_NAME, concerns, shown, usage
from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.pod_tally import PHASE_FIELD
from bayplan.apiserver.storage.store import DELETED, Change, Key

_WATCHED = ("pods", *(name for name in COUNTED_BY_NAME if name != "resourcequotas"))
_AGAIN_SECONDS = 10.0


class ResourceQuotas(Controller):
    """Keeps the status of quotas."""

    name = "resourcequota-controller"
    primary = "resourcequotas"
    watches = _WATCHED

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        if not self.primaries or (change.type != DELETED and not (resource == "pods" and _has_finished(change))):
            return ()
        return [entry.key for entry in self.client.entries(self.primary, change.entry.namespace)]

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
        served = {kind.stored_as for kind in self.client.api.kinds if kind.namespaced}
        return sorted((named | legacy | pods | claims) & served)


def _is_about_pods(name: str) -> bool:
    return name in ("pods", "cpu", "memory", "ephemeral-storage") or name.startswith(("requests.", "limits."))


def _has_finished(change: Change) -> bool:
    done = ("Succeeded", "Failed")
    before = change.previous.fields[PHASE_FIELD] if change.previous is not None else ""
    return change.entry.fields[PHASE_FIELD] in done and before not in done
