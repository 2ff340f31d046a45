"""The oracle's own arithmetic of requests: what a pod asks for and what it counts for on a node."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.api.pod import Container, Pod
from bayplan.api.quantity import Quantity, milli_value, value

__all__ = ["DEFAULTS", "Amounts", "counted", "is_counted", "nonzero", "requested", "scoring_request"]

Amounts = dict[str, int]
DEFAULTS: Amounts = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What scoring assumes of a container that does not say."""


def requested(pod: Pod) -> Amounts:
    """What filtering compares with free room: the spec alone, with pod-level requests."""
    return _requests(pod, actuated=False, defaults={}, pod_level=True)


def counted(pod: Pod) -> Amounts:
    """What the pod takes of the node it is on: resizes that are under way count in full."""
    return _requests(pod, actuated=True, defaults={}, pod_level=True)


def scoring_request(pod: Pod) -> Amounts:
    """What NodeResourcesFit scores an incoming pod by: containers with defaults, blind to pod-level requests."""
    return _requests(pod, actuated=False, defaults=DEFAULTS, pod_level=False)


def nonzero(pod: Pod) -> Amounts:
    """cpu and memory of a pod on a node, with defaults for containers that name none.

    Where the pod as a whole names requests, the defaults stand in only for what the result would lack altogether.
    """
    plain = counted(pod)
    defaults = {n: a for n, a in DEFAULTS.items() if n not in plain} if _pod_level(pod) else DEFAULTS
    return _requests(pod, actuated=True, defaults=defaults, pod_level=True)


def _requests(pod: Pod, *, actuated: bool, defaults: Amounts, pod_level: bool) -> Amounts:
    """Regular containers and sidecars run together; before them each init container, beside the sidecars so far."""
    together: list[Amounts] = [_container(pod, c, actuated, defaults) for c in pod.spec.containers or ()]
    sidecars: list[Amounts] = []
    moments: list[Amounts] = []
    for init in pod.spec.init_containers or ():
        if init.restart_policy == "Always":
            sidecars.append(_container(pod, init, actuated, defaults))
            moments.append(_sum(sidecars))
        else:
            moments.append(_sum([*sidecars, _container(pod, init, False, defaults)]))
    total = _largest([_sum([*together, *sidecars]), *moments])
    if pod_level and _pod_level(pod):
        total |= _pod_level_amounts(pod, actuated=actuated)
    return _sum([total, _amounts(pod.spec.overhead)])


def _container(pod: Pod, container: Container, actuated: bool, defaults: Amounts) -> Amounts:
    asked = _amounts(container.resources.requests if container.resources else None)
    if actuated:
        statuses = [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
        for status in statuses:
            if status.name == container.name and status.resources is not None:
                granted = [_amounts(status.resources.requests), _amounts(status.allocated_resources)]
                asked = _largest(granted if _is_infeasible(pod) else [asked, *granted])
    return {**defaults, **asked}


def _is_infeasible(pod: Pod) -> bool:
    return any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions or ())


def _pod_level(pod: Pod) -> Amounts:
    stated = _amounts(pod.spec.resources.requests if pod.spec.resources else None)
    return {n: a for n, a in stated.items() if n in ("cpu", "memory") or n.startswith("hugepages-")}


def _pod_level_amounts(pod: Pod, *, actuated: bool) -> Amounts:
    stated = _pod_level(pod)
    if not actuated or pod.status.resources is None:
        return stated
    granted = [_amounts(pod.status.resources.requests), _amounts(pod.status.allocated_resources)]
    merged = _largest(granted if _is_infeasible(pod) else [stated, *granted])
    return {name: amount for name, amount in merged.items() if name in stated}


def _amounts(quantities: Mapping[str, Quantity] | None) -> Amounts:
    return {name: milli_value(q) if name == "cpu" else value(q) for name, q in (quantities or {}).items()}


def _sum(lists: list[Amounts]) -> Amounts:
    names = {name for amounts in lists for name in amounts}
    return {name: sum(amounts.get(name, 0) for amounts in lists) for name in names}


def _largest(lists: list[Amounts]) -> Amounts:
    names = {name for amounts in lists for name in amounts}
    return {name: max(amounts[name] for amounts in lists if name in amounts) for name in names}


def is_counted(name: str) -> bool:
    """Whether nodes keep count of a resource: the three basic ones and scalars."""
    if name in ("cpu", "memory", "ephemeral-storage"):
        return True
    if name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in name and not name.startswith("requests.")
