"""Defaults and admission that the API server applies to pods and that matter to scheduling, for pods from files.

A pod read from an API server has all of this already and comes back unchanged. Only what bears on scheduling is here:
requests, host ports, label keys merged into selectors, priority. (`protocol: TCP` and `schedulerName` are defaults of
the structs themselves.) Admission that a cluster configures (limit ranges, injected tolerations) is not imitated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bayplan.api.meta import LabelSelector, LabelSelectorRequirement
from bayplan.api.pod import Affinity, Container, Pod, PodAffinityTerm, ResourceRequirements
from bayplan.api.quantity import Quantity, format_quantity
from bayplan.api.requests import pod_requests
from bayplan.api.workload import PriorityClass

__all__ = ["UnknownPriorityClass", "apply_pod_defaults"]

_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class UnknownPriorityClass(ValueError):
    """The pod names a priority class that does not exist; the API server would refuse the pod."""


def apply_pod_defaults(pod: Pod, *, priority_classes: Iterable[PriorityClass] | None = None) -> Pod:
    """The pod, changed in place as the API server would have changed it.

    `priority_classes` are those of the cluster; None leaves the priority alone. Applying it twice changes nothing.
    """
    containers = [*(pod.spec.containers or ()), *(pod.spec.init_containers or ())]
    for container in containers:
        _requests_from_limits(container.resources)
    _pod_level_requests(pod)
    if pod.spec.host_network:
        _host_ports(containers)
    _merge_label_keys(pod)
    if priority_classes is not None:
        _set_priority(pod, {item.name: item for item in priority_classes})
    return pod


def _requests_from_limits(resources: ResourceRequirements | None) -> None:
    if resources is not None and resources.limits:
        requests = resources.requests or {}
        resources.requests = {**requests, **{k: v for k, v in resources.limits.items() if k not in requests}}


def _pod_level_requests(pod: Pod) -> None:
    """Set pod-level requests from pod-level limits: the sum of the containers' requests, else the limits."""
    resources = pod.spec.resources
    if resources is None:
        return
    _pod_level_huge_pages(pod, resources)
    if not resources.limits:
        return
    requests: dict[str, Quantity] = dict(resources.requests or {})
    asked = _of_containers(pod, lambda container: container.requests)
    for name in ("cpu", "memory"):
        if name not in requests and name in asked:
            requests[name] = format_quantity(asked[name], name)
    for name, limit in resources.limits.items():
        if name not in requests and _is_pod_level(name):
            requests[name] = limit
    if requests:
        resources.requests = requests


def _pod_level_huge_pages(pod: Pod, resources: ResourceRequirements) -> None:
    """Set the pod-level limit of huge pages to the sum of the containers' limits: they cannot be overcommitted."""
    own = resources.limits or {}
    requests = resources.requests or {}
    if not own and not requests:
        return
    missing = {
        name: format_quantity(amount, name)
        for name, amount in _of_containers(pod, lambda container: container.limits).items()
        if name.startswith("hugepages-") and name not in own and name not in requests
    }
    if missing:
        resources.limits = {**own, **missing}


def _of_containers(pod: Pod, pick: Callable[[ResourceRequirements], dict[str, Quantity] | None]) -> dict[str, int]:
    """The sum over the containers, without overhead, of requests or limits."""
    bare = Pod()
    bare.spec.containers = [_bare(container, pick) for container in pod.spec.containers or ()]
    bare.spec.init_containers = [_bare(container, pick) for container in pod.spec.init_containers or ()]
    return pod_requests(bare)


def _bare(container: Container, pick: Callable[[ResourceRequirements], dict[str, Quantity] | None]) -> Container:
    picked = pick(container.resources) if container.resources else None
    return Container(resources=ResourceRequirements(requests=picked), restart_policy=container.restart_policy)


def _is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _host_ports(containers: Iterable[Container]) -> None:
    """On the host's network a container port is a host port."""
    for container in containers:
        for port in container.ports or ():
            port.host_port = port.host_port or port.container_port


def _merge_label_keys(pod: Pod) -> None:
    for constraint in pod.spec.topology_spread_constraints or ():
        _merge(constraint.label_selector, constraint.match_label_keys, "In", pod.labels)
    for term in _affinity_terms(pod.spec.affinity):
        _merge(term.label_selector, term.match_label_keys, "In", pod.labels)
        _merge(term.label_selector, term.mismatch_label_keys, "NotIn", pod.labels)


def _affinity_terms(affinity: Affinity | None) -> Iterable[PodAffinityTerm]:
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if side is not None:
            yield from side.required
            yield from (weighted.pod_affinity_term for weighted in side.preferred)


def _merge(
    selector: LabelSelector | None, keys: Iterable[str] | None, operator: str, labels: Mapping[str, str]
) -> None:
    """Each key that the pod has becomes a requirement on the pod's own value; keys it lacks are left out."""
    if selector is None or not keys:
        return
    present = selector.match_expressions or []
    wanted = [LabelSelectorRequirement(key=k, operator=operator, values=[labels[k]]) for k in keys if k in labels]
    missing = [requirement for requirement in wanted if requirement not in present]
    if missing:
        selector.match_expressions = [*present, *missing]


def _set_priority(pod: Pod, classes: Mapping[str, PriorityClass]) -> None:
    spec = pod.spec
    if spec.priority is not None:
        return
    name = spec.priority_class_name
    chosen = classes.get(name) if name else _global_default(classes)
    if chosen is None and name in _SYSTEM_CLASSES:
        spec.priority = _SYSTEM_CLASSES[name]
    elif chosen is not None:
        spec.priority, spec.priority_class_name = chosen.value, chosen.name
        spec.preemption_policy = spec.preemption_policy or chosen.preemption_policy
    elif name:
        raise UnknownPriorityClass(
            f"pod `{pod.key}` names the PriorityClass `{name}`, which is not there; add it or set `spec.priority`"
        )


def _global_default(classes: Mapping[str, PriorityClass]) -> PriorityClass | None:
    """The class of pods that name none; of several the one with the lowest value, as admission chooses."""
    defaults = [item for item in classes.values() if item.global_default]
    return min(defaults, key=lambda item: item.value) if defaults else None
