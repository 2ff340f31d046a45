"""Requests and limits of each pod, as kube-scheduler shows them at /metrics/resources.

There can be a million of these lines, so they come in pieces that a server sends between other work. What depends on
the template alone (resource, unit, amount) is formatted once per pod shape. Pods that are done are left out, and so are
amounts of zero. Amounts follow the scheduler's own rule for requests; a limit adds the pod's overhead where it is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bayplan.api.pod import Container, Pod
from bayplan.api.requests import Amounts, to_amounts
from bayplan.app.live import LiveScheduler
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.shapes import PodShape
from bayplan.observe.component_metrics import POD_LIMIT, POD_REQUEST
from bayplan.observe.exposition import escaped_label, family_header, sample_line
from bayplan.observe.metrics import Family

__all__ = ["known_pods", "pod_limits", "pod_resource_lines"]

_PODS_PER_PIECE = 25
_POD_LEVEL = ("cpu", "memory")


def known_pods(live: LiveScheduler) -> Iterator[PodInfo]:
    """The pods on nodes and those that wait for one; not those that wait for another scheduler."""
    yield from live.cache.pods()
    for waiting in live.queue.pending_pods().values():
        yield from (queued.info for queued in waiting)


def pod_resource_lines(pods: Callable[[], Iterable[PodInfo]]) -> Iterator[bytes]:
    """The whole text in pieces; pods that come or go meanwhile do not disturb it."""
    seen = list(pods())
    for family, tails in ((POD_LIMIT, _limit_tails), (POD_REQUEST, _request_tails)):
        yield family_header(family).encode()
        for start in range(0, len(seen), _PODS_PER_PIECE):
            piece = "".join(_pod_lines(family, info, tails) for info in seen[start : start + _PODS_PER_PIECE])
            if piece:
                yield piece.encode()


def _pod_lines(family: Family, info: PodInfo, tails: Callable[[PodShape], tuple[str, ...]]) -> str:
    found = info.shape.note(family.name, lambda: tails(info.shape))
    if not found or info.pod.is_finished:
        return ""
    head = f'{family.name}{{namespace="{escaped_label(info.namespace)}",pod="{escaped_label(info.name)}"'
    head += f',node="{escaped_label(info.node_name)}",'
    return "".join(head + tail for tail in found)


def _request_tails(shape: PodShape) -> tuple[str, ...]:
    return _tails(shape, shape.amounts)


def _limit_tails(shape: PodShape) -> tuple[str, ...]:
    return _tails(shape, pod_limits(Pod(spec=shape.spec)))


def _tails(shape: PodShape, amounts: Amounts) -> tuple[str, ...]:
    """The end of each line: the labels that all pods of the shape share, and the number."""
    priority = "" if shape.spec.priority is None else str(shape.spec.priority)
    shared = f'scheduler="{escaped_label(shape.spec.scheduler_name)}",priority="{priority}"'
    tails = []
    for name in sorted(amounts):
        if amounts[name]:
            amount = amounts[name] / 1000 if name == "cpu" else amounts[name]
            labels = f'{shared},resource="{escaped_label(name)}",unit="{_unit(name)}"'
            # Only the part after the opening brace: the head brings name, brace and the pod's own labels.
            tails.append(sample_line("", labels, amount)[1:])
    return tuple(tails)


def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in ("memory", "ephemeral-storage", "storage") or resource.startswith("hugepages-"):
        return "bytes"
    return "integer"


def pod_limits(pod: Pod) -> Amounts:
    """The effective limit: containers and sidecars add up, an init container can only raise it."""
    total: Amounts = {}
    for container in pod.spec.containers or ():
        _add(total, _limits_of(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers or ():
        limits = _limits_of(container)
        if container.restart_policy == "Always":
            _add(total, limits)
            _add(sidecars, limits)
            limits = dict(sidecars)
        else:
            _add(limits, sidecars)
        _raise_to(peak, limits)
    _raise_to(total, peak)
    _override_with_pod_level(pod, total)
    for name, amount in to_amounts(pod.spec.overhead).items():
        if total.get(name):
            total[name] += amount
    return total


def _limits_of(container: Container) -> Amounts:
    return to_amounts(container.resources.limits if container.resources else None)


def _override_with_pod_level(pod: Pod, total: Amounts) -> None:
    limits = to_amounts(pod.spec.resources.limits if pod.spec.resources else None)
    total.update({n: amount for n, amount in limits.items() if n in _POD_LEVEL or n.startswith("hugepages-")})


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, floor: Amounts) -> None:
    for name, amount in floor.items():
        total[name] = max(total.get(name, 0), amount)
