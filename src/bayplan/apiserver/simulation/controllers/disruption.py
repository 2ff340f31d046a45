"""PodDisruptionBudgets: how many of the selected pods may be disrupted now."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.protocol.encoding import Json, decode_object, parse_timestamp
from bayplan.apiserver.protocol.selectors import matches_label_selector
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.deployments import absolute
from bayplan.apiserver.simulation.controllers.pod_tally import facts_of
from bayplan.apiserver.storage.store import Change, Entry, Key

_SCALABLE = ("replicasets.apps", "statefulsets.apps", "replicationcontrollers")
_DISRUPTED_SECONDS = 120.0


class DisruptionBudgets(Controller):
    """Keeps the status of budgets."""

    name = "disruption-controller"
    primary = "poddisruptionbudgets.policy"
    watches = ("pods",)

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        if not self.primaries:
            return
        for entry in self.client.entries(self.primary, change.entry.namespace):
            selector = decode_object(entry.raw).get("spec", {}).get("selector")
            labels = [change.entry.labels] + ([change.previous.labels] if change.previous else [])
            if any(matches_label_selector(selector, found) for found in labels):
                yield entry.key

    def reconcile(self, key: Key) -> float | None:
        budget = self.client.get(self.primary, key)
        if budget is None:
            return None
        selector = budget.get("spec", {}).get("selector")
        chosen = [e for e in self.client.entries("pods", key[0]) if matches_label_selector(selector, e.labels)]
        pods = {entry.name: (entry, facts) for entry in chosen if (facts := facts_of(entry)).is_active}
        disrupted = self._still_disrupted(budget, set(pods))
        expected = self._expected([entry for entry, _ in pods.values()])
        desired = _desired(budget["spec"], expected)
        healthy = sum(facts.ready_since is not None for name, (_, facts) in pods.items() if name not in disrupted)
        allowed = max(0, healthy - desired) if expected else 0
        status = _status(budget, allowed, healthy, desired, expected, self.client.now())
        if disrupted:
            status["disruptedPods"] = disrupted
        if budget.get("status") != status:
            self.client.set_status(self.primary, key, status)
        return _DISRUPTED_SECONDS if disrupted else None

    def _still_disrupted(self, budget: Json, names: set[str]) -> Json:
        """Pods whose eviction was granted recently and that still exist."""
        now = self.client.clock.now()
        granted = (budget.get("status") or {}).get("disruptedPods") or {}
        return {
            name: time
            for name, time in granted.items()
            if name in names and parse_timestamp(time) + _DISRUPTED_SECONDS > now
        }

    def _expected(self, pods: list[Entry]) -> int:
        """How many pods there should be, by the owners of those there are."""
        total = 0
        seen: set[str] = set()
        for pod in pods:
            uid = pod.controller
            place = self.client.owners.place(uid)
            if place is None or place[0] not in _SCALABLE:
                total += 1
            elif uid not in seen:
                seen.add(uid)
                total += (self.client.get(*place) or {}).get("spec", {}).get("replicas", 1)
        return total


def _desired(spec: Json, expected: int) -> int:
    if spec.get("maxUnavailable") is not None:
        return max(0, expected - absolute(spec["maxUnavailable"], expected, round_up=True))
    return absolute(spec.get("minAvailable", 1), expected, round_up=True)


def _status(budget: Json, allowed: int, healthy: int, desired: int, expected: int, now: str) -> Json:
    old: Json = next((c for c in (budget.get("status") or {}).get("conditions") or ()), {})
    value = "True" if allowed else "False"
    moved = old.get("lastTransitionTime", now) if old.get("status") == value else now
    generation = budget["metadata"].get("generation", 1)
    return {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "observedGeneration": generation,
        "conditions": [
            {
                "type": "DisruptionAllowed",
                "status": value,
                "observedGeneration": generation,
                "lastTransitionTime": moved,
                "reason": "SufficientPods" if allowed else "InsufficientPods",
                "message": "",
            }
        ],
    }
