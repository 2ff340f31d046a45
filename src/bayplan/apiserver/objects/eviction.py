"""Evictions: deletions of pods that disruption budgets may refuse."""

from __future__ import annotations

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.objects.bodies import read_as
from bayplan.apiserver.objects.conditions import set_condition
from bayplan.apiserver.objects.deletion import DeleteOptions, delete
from bayplan.apiserver.objects.writing import Caller, ObjectWriter
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object, timestamp
from bayplan.apiserver.protocol.exchange import Request
from bayplan.apiserver.protocol.selectors import matches_label_selector

BUDGETS = "poddisruptionbudgets.policy"
_VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_UNCONFIRMED = 2000
"""Evictions that the controller of a budget has not seen yet."""


def evict(objects: ObjectWriter, namespace: str, name: str, request: Request) -> None:
    """Delete a pod, if its disruption budget allows it."""
    eviction = _read_eviction(request)
    if (eviction.get("metadata") or {}).get("name") != name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options = DeleteOptions.read(eviction.get("deleteOptions") or {}, request.query)
    kind = objects.kinds.resource("pods")
    entry = objects.store.get("pods", namespace, name)
    if entry is None:
        raise errors.not_found("pods", name)
    pod = decode_object(entry.raw)
    if _is_guarded(pod):
        _spend_budget(objects, pod, dry_run=options.dry_run)
    if not options.dry_run:
        _mark_disrupted(objects, kind, pod, request)
    delete(objects, kind, objects.store.get("pods", namespace, name) or entry, options)


def _is_guarded(pod: Json) -> bool:
    """Whether budgets have a say: the pod runs, and does not end already."""
    phase = pod.get("status", {}).get("phase")
    return phase not in ("Pending", "Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def _mark_disrupted(objects: ObjectWriter, kind: ServedKind, pod: Json, request: Request) -> None:
    def mark(document: Json) -> Json:
        now = timestamp(objects.clock.now())
        reason, message = "EvictionByEvictionAPI", "Eviction API: evicting"
        set_condition(document["status"], "DisruptionTarget", "True", now=now, reason=reason, message=message)
        return document

    caller = Caller(request.user, subresource="status")
    objects.update(kind, pod["metadata"]["namespace"], pod["metadata"]["name"], mark, caller)


def _spend_budget(objects: ObjectWriter, pod: Json, *, dry_run: bool) -> None:
    """Take one disruption from the budget that covers the pod, or refuse."""
    labels, namespace = pod["metadata"].get("labels") or {}, pod["metadata"]["namespace"]
    budgets = [decode_object(e.raw) for e in objects.store.listing(BUDGETS).entries if e.namespace == namespace]
    covering = [b for b in budgets if matches_label_selector(b.get("spec", {}).get("selector"), labels)]
    if len(covering) > 1:
        raise errors.unexpected(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    for budget in covering:
        if _is_spared(budget, pod):
            continue
        _check_budget(budget)
        if not dry_run:
            _write_budget(objects, budget, pod["metadata"]["name"])


def _is_spared(budget: Json, pod: Json) -> bool:
    """Whether the pod goes without a disruption of the budget: it is not ready, and the budget does not need it."""
    conditions = pod["status"].get("conditions") or ()
    if any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    return bool(0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0))


def _check_budget(budget: Json) -> None:
    name, status = budget["metadata"]["name"], budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        message = f"The disruption budget {name} is still being processed by the server."
        causes = [{"reason": "DisruptionBudget", "message": message}]
        raise errors.too_many_requests(_VIOLATION, causes=causes, retry_after_seconds=10)
    if len(status.get("disruptedPods") or ()) > _MOST_UNCONFIRMED:
        problem = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden("poddisruptionbudget", name, problem, group="policy")
    if status.get("disruptionsAllowed", 0) <= 0:
        wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        message = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        raise errors.too_many_requests(_VIOLATION, causes=[{"reason": "DisruptionBudget", "message": message}])


def _write_budget(objects: ObjectWriter, budget: Json, pod_name: str) -> None:
    status, now = budget["status"], timestamp(objects.clock.now())
    status["disruptionsAllowed"] -= 1
    status.setdefault("disruptedPods", {})[pod_name] = now
    if not status["disruptionsAllowed"]:
        _note_exhaustion(budget, now)
    objects.commit(objects.kinds.resource(BUDGETS), budget)


def _note_exhaustion(budget: Json, now: str) -> None:
    conditions = budget["status"].setdefault("conditions", [])
    found = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), None)
    if found is None:
        conditions.append(found := {"type": "DisruptionAllowed"})
    if found.get("status") != "False":
        found |= {"status": "False", "lastTransitionTime": now}
    generation = budget["metadata"].get("generation", 0)
    found |= {"observedGeneration": generation, "reason": "InsufficientPods", "message": ""}


def _read_eviction(request: Request) -> Json:
    """In either version: the older one is still sent by kubectls from before 1.22, and the same in shape."""
    try:
        return read_as(request.body, request.headers, "policy/v1", "Eviction", "policy.v1.Eviction")
    except errors.RequestRefused as problem:
        try:
            return read_as(request.body, request.headers, "policy/v1beta1", "Eviction", "policy.v1.Eviction")
        except errors.RequestRefused:
            raise problem from None
