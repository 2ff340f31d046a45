"""The effective resource request of a pod: containers, sidecars, init containers, pod level and overhead.

Amounts are integers: milli-cpu for `cpu`, whole units for the rest. A key that is present with 0 is kept, because the
defaults for scoring (100m, 200Mi) replace missing keys only. `status=True` takes what the kubelet has actuated into
account, which is how a pod that already runs on a node is counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from bayplan.api.pod import Container, ContainerStatus, Pod
from bayplan.api.quantity import Quantity, milli_value, value

__all__ = [
    "DEFAULT_CPU_MILLI",
    "DEFAULT_MEMORY_BYTES",
    "Amounts",
    "has_pod_level_requests",
    "is_extended_resource",
    "is_scalar_resource",
    "pod_requests",
    "to_amounts",
]

DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
_POD_LEVEL = ("cpu", "memory")
_MOST = 2**63 - 1

Amounts = dict[str, int]
_SCORING_DEFAULTS: Amounts = {"cpu": DEFAULT_CPU_MILLI, "memory": DEFAULT_MEMORY_BYTES}


def pod_requests(
    pod: Pod, *, status: bool = False, nonzero: bool | Collection[str] = False, pod_level: bool = True
) -> Amounts:
    """The effective request.

    `nonzero` puts the scoring defaults where a container names no cpu or memory (or only for the resources that it
    lists); `pod_level` lets the pod's own requests override the sum of its containers.
    """
    statuses = _statuses(pod) if status else None
    total = _container_requests(pod, statuses, _defaults(nonzero))
    if pod_level:
        _override_with_pod_level(pod, total, status=status)
    _add(total, to_amounts(pod.spec.overhead))
    return total


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod-level requests name a resource that only containers requested before."""
    requests = pod.spec.resources.requests if pod.spec.resources else None
    return any(_is_pod_level(name) for name in requests or ())


def _defaults(nonzero: bool | Collection[str]) -> Amounts:
    if isinstance(nonzero, bool):
        return _SCORING_DEFAULTS if nonzero else {}
    return {name: amount for name, amount in _SCORING_DEFAULTS.items() if name in nonzero}


class _Statuses(NamedTuple):
    by_name: dict[str, ContainerStatus]
    is_resize_infeasible: bool


def _statuses(pod: Pod) -> _Statuses | None:
    found = {s.name: s for s in [*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())]}
    found = {name: s for name, s in found.items() if s.resources is not None or s.allocated_resources is not None}
    return _Statuses(found, _is_resize_infeasible(pod)) if found else None


def _is_resize_infeasible(pod: Pod) -> bool:
    pending = pod.condition("PodResizePending")
    return pending is not None and pending.reason == "Infeasible"


def _container_requests(pod: Pod, statuses: _Statuses | None, defaults: Amounts) -> Amounts:
    total: Amounts = {}
    for container in pod.spec.containers or ():
        _add(total, _requests_of(container, statuses, defaults))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers or ():
        is_sidecar = container.restart_policy == "Always"
        footprint = _requests_of(container, statuses if is_sidecar else None, defaults)
        if is_sidecar:
            _add(total, footprint)
            _add(sidecars, footprint)
            footprint = sidecars
        else:
            _add(footprint, sidecars)
        _raise_to(peak, footprint)
    _raise_to(total, peak)
    return total


def _requests_of(container: Container, statuses: _Statuses | None, defaults: Amounts) -> Amounts:
    requests = to_amounts(container.resources.requests if container.resources else None)
    actuated = statuses.by_name.get(container.name) if statuses else None
    if statuses is not None and actuated is not None:
        requests = _actuated(requests, actuated, is_infeasible=statuses.is_resize_infeasible)
    for name, amount in defaults.items():
        requests.setdefault(name, amount)
    return requests


def _actuated(spec: Amounts, status: ContainerStatus, *, is_infeasible: bool) -> Amounts:
    """The larger of the requests and what the kubelet has allocated; an infeasible resize does not count."""
    if status.resources is None:
        return spec
    result: Amounts = {} if is_infeasible else dict(spec)
    _raise_to(result, to_amounts(status.resources.requests))
    _raise_to(result, to_amounts(status.allocated_resources))
    return result


def _override_with_pod_level(pod: Pod, total: Amounts, *, status: bool) -> None:
    requests = to_amounts(pod.spec.resources.requests if pod.spec.resources else None)
    requests = {name: amount for name, amount in requests.items() if _is_pod_level(name)}
    if not requests:
        return
    if status and pod.status.resources is not None:
        granted: Amounts = {} if _is_resize_infeasible(pod) else dict(requests)
        _raise_to(granted, to_amounts(pod.status.resources.requests))
        _raise_to(granted, to_amounts(pod.status.allocated_resources))
        requests = {name: amount for name, amount in granted.items() if name in requests}
    total.update(requests)


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith("hugepages-")


def to_amounts(quantities: Mapping[str, Quantity] | None) -> Amounts:
    if not quantities:
        return {}
    return {name: milli_value(q) if name == "cpu" else value(q) for name, q in quantities.items()}


def _add(total: Amounts, more: Amounts) -> None:
    """No sum is larger than the largest amount there is: columns hold 64 bits, and no node offers more."""
    for name, amount in more.items():
        total[name] = min(total.get(name, 0) + amount, _MOST)


def _raise_to(total: Amounts, floor: Amounts) -> None:
    for name, amount in floor.items():
        if amount > total.get(name, -1):
            total[name] = amount


def is_extended_resource(name: str) -> bool:
    """Resources that a device plugin advertises: `vendor.example/thing`, not in the kubernetes.io domain."""
    if "/" not in name or "kubernetes.io/" in name:
        return False
    return not name.startswith("requests.")


def is_scalar_resource(name: str) -> bool:
    """Counted one by one, beside cpu, memory and ephemeral-storage."""
    return (
        is_extended_resource(name)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or ("kubernetes.io/" in name and "/" in name)
    )
