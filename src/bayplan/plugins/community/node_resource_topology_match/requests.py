"""The requests of a pod on NUMA cells: quality of service, requests by container, and which resources concern cells."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.framework import PodInfo
from bayplan.framework.objects import Amounts, Container, PodSpec, to_amounts

__all__ = [
    "NumaContainer",
    "NumaRequests",
    "exclusive_requests",
    "has_exclusive",
    "is_affine",
    "is_host_level",
    "is_native",
    "requests_of",
]

_HOST_LEVEL = ("storage", "ephemeral-storage")
_COMPUTE = ("cpu", "memory")
_WHOLE_CPU = 1000


def is_native(resource: str) -> bool:
    return "/" not in resource or "kubernetes.io/" in resource


def is_affine(resource: str) -> bool:
    """Bound to a cell by the kubelet, for Guaranteed pods."""
    return resource in _COMPUTE or resource.startswith("hugepages-")


def is_host_level(resource: str) -> bool:
    """May belong to the node as a whole instead of to a cell."""
    return resource in _HOST_LEVEL or not is_native(resource)


class NumaContainer(NamedTuple):
    name: str
    requests: Amounts
    is_init: bool
    is_sidecar: bool

    @property
    def failure(self) -> str:
        if self.is_sidecar:
            return "cannot align sidecar container"
        return "cannot align init container" if self.is_init else "cannot align container"


class NumaRequests(NamedTuple):
    is_guaranteed: bool
    is_indifferent: bool
    """Best effort, without requests for devices."""
    containers: tuple[NumaContainer, ...]
    """Init containers first."""
    whole: Amounts
    """The effective request of the pod, as the original computes it for the pod scope."""


def requests_of(pod: PodInfo) -> NumaRequests:
    """The requests of a pod, computed once for all shapes with the same containers."""
    found: NumaRequests = pod.shape.note_on_amounts(NumaRequests, lambda shape: _requests(shape.spec))
    return found


def _requests(spec: PodSpec) -> NumaRequests:
    inits, apps = spec.init_containers or [], spec.containers or []
    containers = tuple(_container(each, is_init=True) for each in inits)
    containers += tuple(_container(each, is_init=False) for each in apps)
    quality = _quality(spec)
    asks_devices = any(not is_native(name) for each in containers for name in each.requests)
    whole = _effective(containers, to_amounts(spec.overhead))
    return NumaRequests(quality == "Guaranteed", quality == "BestEffort" and not asks_devices, containers, whole)


def _container(container: Container, *, is_init: bool) -> NumaContainer:
    requests = to_amounts(container.resources.requests if container.resources else None)
    return NumaContainer(container.name, requests, is_init, is_init and container.restart_policy == "Always")


def _effective(containers: tuple[NumaContainer, ...], overhead: Amounts) -> Amounts:
    """By resource the sum of the app containers or the largest init container, and the overhead."""
    total: Amounts = {}
    for each in containers:
        for name, amount in each.requests.items():
            if not each.is_init:
                total[name] = total.get(name, 0) + amount
    for each in containers:
        for name, amount in each.requests.items():
            if each.is_init:
                total[name] = max(total.get(name, 0), amount)
    return total | {name: total.get(name, 0) + amount for name, amount in overhead.items()}


def _quality(spec: PodSpec) -> str:
    """Guaranteed when every container limits cpu and memory to what it requests; BestEffort when none asks."""
    asked, guaranteed = False, True
    for container in [*(spec.init_containers or ()), *(spec.containers or ())]:
        given = container.resources
        limits = {k: v for k, v in to_amounts(given.limits if given else None).items() if k in _COMPUTE and v}
        requests = {k: v for k, v in to_amounts(given.requests if given else None).items() if k in _COMPUTE and v}
        asked |= bool(limits or requests)
        guaranteed &= len(limits) == len(_COMPUTE) and {**limits, **requests} == limits
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def exclusive_requests(container: NumaContainer, listed: frozenset[str], *, is_guaranteed: bool) -> Amounts:
    """The exclusive resources of a container on its node: devices that the cells list and, in a Guaranteed pod, whole
    cpus, memory and huge pages. Init containers have some only if they keep running.
    """
    if container.is_init and not container.is_sidecar:
        return {}
    return {
        name: amount
        for name, amount in container.requests.items()
        if (not is_native(name) and name in listed)
        or (is_guaranteed and is_affine(name) and amount and (name != "cpu" or amount % _WHOLE_CPU == 0))
    }


def has_exclusive(pod: PodInfo, listed: frozenset[str]) -> bool:
    """Whether some container of the pod has exclusive resources on the node."""
    asked = requests_of(pod)
    return any(exclusive_requests(each, listed, is_guaranteed=asked.is_guaranteed) for each in asked.containers)
