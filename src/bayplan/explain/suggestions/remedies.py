"""Remedies: for each filter, the smallest changes that would make it let a pod onto a node.

A remedy works on a `Trial`, the pod and the node as they would be, and remedies can follow one another. Nothing here
claims that one is enough: `bayplan.explain.suggestions.search` tries every one of them and keeps those that work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from bayplan.api.node import Node, Taint
from bayplan.api.pod import Affinity, Container, NodeAffinity, Pod, PodSpec, Toleration
from bayplan.api.quantity import format_quantity
from bayplan.api.requests import pod_requests, to_amounts
from bayplan.api.tolerations import is_tolerated, with_cordon
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.claims.phrases import cores
from bayplan.explain.whatif.remaking import is_lost
from bayplan.framework.diagnosis import Remedy

__all__ = ["REMEDIES", "Trial", "human_amount", "parts_of_requests", "shortfall"]

_HARD = ("NoSchedule", "NoExecute")
HOSTNAME = "kubernetes.io/hostname"
(
    TOLERATION,
    NODE_LABEL,
    NODE_SPEC,
    OBJECT,
    GATE,
    MEMBERS,
    SELECTOR,
    AMOUNT,
    RELAXED,
    OTHER_LABELS,
    VOLUME,
    VICTIMS,
    MORE_NODES,
) = range(13)
"""Kinds of changes in the order in which an operator would prefer them."""
_MEBIBYTE = 2**20
_ASKED = "the pod asked "


@dataclass(frozen=True)
class Trial:
    """A pod, a node and what has been done to them so far."""

    pod: Pod
    node: Node
    info: NodeInfo
    """The node as it is; what runs there."""
    nominated: tuple[PodInfo, ...] = ()
    """Pods that have to be left their room there."""
    may_ask_nothing: bool = False
    """Whether the pod may be told to do without what the node lacks."""
    evicted: tuple[PodInfo, ...] = ()
    done: tuple[str, ...] = ()
    """In words, each after "would fit if"."""
    effort: int = 0
    """The order in which an operator would prefer changes: the worst of what was done."""

    def with_pod(self, spec: PodSpec, what: str, effort: int) -> Trial:
        return self.changed(what, effort, pod=msgspec.structs.replace(self.pod, spec=spec))

    def with_node(self, node: Node, what: str, effort: int) -> Trial:
        return self.changed(what, effort, node=node)

    def shortfall(self, *more_evicted: PodInfo) -> dict[str, int]:
        return shortfall(self.pod, self.node, self.info, (*self.evicted, *more_evicted), self.nominated)

    @property
    def is_of_daemon_set(self) -> bool:
        """Whether a controller put the pod's node into its affinity, which cannot be left out."""
        return self.pod.is_of_daemon_set

    def without(self, victims: tuple[PodInfo, ...], what: str) -> Trial:
        return self.changed(what, VICTIMS, evicted=(*self.evicted, *victims))

    def changed(self, what: str, effort: int, **changes: Any) -> Trial:
        return replace(self, done=(*self.done, what), effort=max(self.effort, effort), **changes)


Change = Callable[[Trial], Iterator[Trial]]
_replace = msgspec.structs.replace


def _taints(trial: Trial) -> Iterator[Trial]:
    tolerations = trial.pod.spec.tolerations or []
    untolerated = [
        taint
        for taint in trial.node.spec.taints or []
        if taint.effect in _HARD and not is_tolerated(taint, tolerations)
    ]
    if not untolerated:
        return
    names = " and ".join(_taint_text(taint) for taint in untolerated)
    added = [Toleration(key=t.key, operator="Equal", value=t.value, effect=t.effect) for t in untolerated]
    spec = _replace(trial.pod.spec, tolerations=[*tolerations, *added])
    yield trial.with_pod(spec, f"the pod tolerated {names}", TOLERATION)
    left = [taint for taint in trial.node.spec.taints or [] if taint not in untolerated]
    node = _replace(trial.node, spec=_replace(trial.node.spec, taints=left or None))
    yield trial.with_node(node, f"{trial.node.name} had no taint {names}", NODE_SPEC)


def _taint_text(taint: Taint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _cordon(trial: Trial) -> Iterator[Trial]:
    yield trial.with_node(with_cordon(trial.node, False), f"{trial.node.name} were uncordoned", NODE_LABEL)


def _node_affinity(trial: Trial) -> Iterator[Trial]:
    spec = trial.pod.spec
    wrong = {k: v for k, v in (spec.node_selector or {}).items() if trial.node.labels.get(k) != v}
    if wrong:
        text = ", ".join(f"{key}={value}" for key, value in wrong.items())
        left = {k: v for k, v in (spec.node_selector or {}).items() if k not in wrong}
        if HOSTNAME not in wrong:
            yield trial.with_node(_labelled(trial.node, wrong), f"{trial.node.name} had the label {text}", NODE_LABEL)
        yield trial.with_pod(_replace(spec, node_selector=left), f"the pod did not select {text}", SELECTOR)
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return
    required = "required_during_scheduling_ignored_during_execution"
    for labels in _labels_for(trial):
        text = ", ".join(f"{key}={value}" for key, value in labels.items())
        if HOSTNAME not in labels:
            yield trial.with_node(_labelled(trial.node, labels), f"{trial.node.name} had the label {text}", NODE_LABEL)
    if trial.is_of_daemon_set:
        return
    loose: NodeAffinity = _replace(affinity.node_affinity, **{required: None})
    dropped = _replace(spec, affinity=_replace(affinity, node_affinity=loose))
    yield trial.with_pod(dropped, "the pod's required node affinity were left out", SELECTOR)
    if wrong:
        left = {k: v for k, v in (spec.node_selector or {}).items() if k not in wrong}
        both = _replace(dropped, node_selector=left)
        yield trial.with_pod(both, f"the pod neither selected {text} nor required a node affinity", SELECTOR)


def _labels_for(trial: Trial) -> Iterator[dict[str, str]]:
    """Labels that would satisfy one of the required terms, as far as labels can."""
    affinity = trial.pod.spec.affinity
    required = affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
    for term in (required.node_selector_terms if required is not None else None) or ():
        wanted: dict[str, str] = {}
        for requirement in term.match_expressions or ():
            present = trial.node.labels.get(requirement.key)
            if requirement.operator == "In" and present not in (requirement.values or ()):
                wanted[requirement.key] = (requirement.values or [""])[0]
            elif requirement.operator == "Exists" and present is None:
                wanted[requirement.key] = "true"
        if wanted and not term.match_fields:
            yield wanted


def _labelled(node: Node, labels: dict[str, str]) -> Node:
    return _replace(node, metadata=_replace(node.metadata, labels={**node.labels, **labels}))


def _node_name(trial: Trial) -> Iterator[Trial]:
    if trial.pod.spec.node_name:
        yield trial.with_pod(_replace(trial.pod.spec, node_name=""), "the pod named no node", SELECTOR)


def shortfall(
    pod: Pod,
    node: Node,
    info: NodeInfo,
    evicted: tuple[PodInfo, ...] = (),
    nominated: tuple[PodInfo, ...] = (),
) -> dict[str, int]:
    """By resource, how much more the pod asks for than the node has left; `pods` for places. Pods that are `nominated`
    to the node have to be left their room."""
    offered = to_amounts(node.status.allocatable)
    freed: dict[str, int] = {}
    for pods, sign in ((evicted, 1), (nominated, -1)):
        for place, amount in (entry for each in pods for entry in each.usage.vector):
            name = info.resources.names[place]
            freed[name] = freed.get(name, 0) + sign * amount
    lacking: dict[str, int] = {}
    for name, amount in pod_requests(pod).items():
        left = offered.get(name, 0) - info.requested_of(name) + freed.get(name, 0)
        if amount > left and amount > 0:
            lacking[name] = amount - left
    places = offered.get("pods", 0) - len(info.pods) + len(evicted) - len(nominated)
    if places < 1:
        lacking["pods"] = 1 - places
    return lacking


def human_amount(amount: int, resource: str) -> str:
    """`500 CPU`, `64Gi memory`, `8 nvidia.com/gpu`."""
    name = "CPU" if resource == "cpu" else resource
    return f"{cores(format_quantity(amount, resource))} {name}"


def _resources(trial: Trial) -> Iterator[Trial]:
    lacking = trial.shortfall()
    if not lacking:
        yield from parts_of_requests(trial, most=4)
        return
    lacking = {name: _rounded_up(amount, name) for name, amount in lacking.items()}
    smaller = _with_smaller_requests(
        trial.pod, {n: a for n, a in lacking.items() if n != "pods"}, may_be_none=trial.may_ask_nothing
    )
    if smaller is not None and "pods" not in lacking:
        asked = pod_requests(trial.pod)
        words = " and ".join(
            f"{cores(format_quantity(asked[name] - amount, name))} instead of {human_amount(asked[name], name)}"
            for name, amount in lacking.items()
        )
        yield trial.with_pod(smaller, f"{_ASKED}{words}", AMOUNT)
    yield from _evictions(trial, lacking)


def parts_of_requests(trial: Trial, *, most: int) -> Iterator[Trial]:
    """Half of what the pod asks, a quarter and so on: for amounts that are not those of the node as a whole."""
    if any(what.startswith(_ASKED) for what in trial.done):
        return
    for name, amount in pod_requests(trial.pod).items():
        share = 2
        while share <= most and amount // share:
            part = amount // share
            spec = _with_smaller_requests(trial.pod, {name: amount - part})
            if spec is not None:
                words = f"{_ASKED}{cores(format_quantity(part, name))} instead of {human_amount(amount, name)}"
                yield trial.with_pod(spec, words, AMOUNT)
            share *= 2


def _rounded_up(amount: int, name: str) -> int:
    """Bytes in whole mebibytes, as people write them."""
    if name not in ("memory", "ephemeral-storage") or amount < _MEBIBYTE:
        return amount
    return -(-amount // _MEBIBYTE) * _MEBIBYTE


def _with_smaller_requests(pod: Pod, lacking: dict[str, int], *, may_be_none: bool = False) -> PodSpec | None:
    """Less by the shortfall: of init containers that ask for more, and of the container that asks for most. None if
    nothing would be left, or if that cannot be said simply."""
    if pod.spec.resources is not None:
        return None
    spec: PodSpec | None = pod.spec
    for name, amount in lacking.items():
        wanted = pod_requests(pod).get(name, 0) - amount - to_amounts(pod.spec.overhead).get(name, 0)
        is_enough = wanted > 0 or (wanted == 0 and may_be_none)
        spec = _asking_at_most(spec, name, wanted) if spec is not None and is_enough else None
    return spec


def _asking_at_most(spec: PodSpec, name: str, most: int) -> PodSpec | None:
    """What runs together asks that much: the largest container less, or the largest sidecar if that is not enough."""
    first, containers = list(spec.init_containers or []), list(spec.containers or [])
    sidecars = [container for container in first if container.restart_policy == "Always"]
    excess = sum(_request(container, name) for container in (*containers, *sidecars)) - most
    if excess > 0:
        largest = [max(some, key=lambda each: _request(each, name)) for some in (containers, sidecars) if some]
        reduced = next((each for each in largest if _request(each, name) >= excess), None)
        if reduced is None:
            return None
        part = containers if any(each is reduced for each in containers) else first
        place = next(number for number, each in enumerate(part) if each is reduced)
        part[place] = _with_request(reduced, name, _request(reduced, name) - excess)
    before = 0
    for place, container in enumerate(first):
        asked = _request(container, name)
        if container.restart_policy == "Always":
            before += asked
        elif before + asked > most:
            first[place] = _with_request(container, name, most - before)
    return _replace(spec, containers=containers, init_containers=first or spec.init_containers)


def _with_request(container: Container, name: str, amount: int) -> Container:
    resources = container.resources
    assert resources is not None  # it requests something
    reduced = {**(resources.requests or {}), name: format_quantity(amount, name)}
    limits = resources.limits
    if limits and to_amounts(limits).get(name) == _request(container, name):
        # A pod whose limits are its requests stays one.
        limits = {**limits, name: reduced[name]}
    return _replace(container, resources=_replace(resources, requests=reduced, limits=limits))


def _request(container: Container, name: str) -> int:
    return to_amounts(container.resources.requests if container.resources else None).get(name, 0)


def _evictions(trial: Trial, lacking: dict[str, int]) -> Iterator[Trial]:
    """Pods whose leaving would make the room, the least important ones first, of equal ones those that are made again,
    and no more than needed."""
    here = sorted(
        (pod for pod in trial.info.pods.values() if pod not in trial.evicted and not pod.pod.ends_with_its_node),
        key=lambda pod: (pod.priority, is_lost(pod.pod), pod.key),
    )
    chosen: list[PodInfo] = []
    for pod in here:
        chosen.append(pod)
        if not trial.shortfall(*chosen):
            break
    else:
        return
    for pod in list(chosen):
        fewer = [other for other in chosen if other is not pod]
        if not trial.shortfall(*fewer):
            chosen = fewer
    if len(chosen) <= 5:
        names = ", ".join(pod.key for pod in chosen)
        yield trial.without(tuple(chosen), f"{names} left {trial.node.name}")


def _ports(trial: Trial) -> Iterator[Trial]:
    holders = [
        pod
        for pod in trial.info.pods.values()
        if any(
            port.host_port == mine.host_port
            for port in pod.shape.host_ports
            for container in trial.pod.spec.containers or ()
            for mine in container.ports or ()
            if mine.host_port
        )
    ]
    if holders and not any(pod.pod.ends_with_its_node for pod in holders):
        names = ", ".join(pod.key for pod in holders)
        yield trial.without(tuple(holders), f"{names} left {trial.node.name}")
    free = [
        _replace(c, ports=[p for p in c.ports or () if not p.host_port] or None)
        for c in trial.pod.spec.containers or ()
    ]
    yield trial.with_pod(_replace(trial.pod.spec, containers=free), "the pod asked for no host port", RELAXED)


def _spread(trial: Trial) -> Iterator[Trial]:
    constraints = trial.pod.spec.topology_spread_constraints or []
    # There may be one of a kind for a topology key: those that are preferred already stay.
    by_key = {c.topology_key: c for c in sorted(constraints, key=lambda c: c.when_unsatisfiable == "ScheduleAnyway")}
    soft = [_replace(c, when_unsatisfiable="ScheduleAnyway", min_domains=None) for c in by_key.values()]
    if constraints:
        yield trial.with_pod(
            _replace(trial.pod.spec, topology_spread_constraints=soft),
            "the pod's spread were preferred, not required",
            RELAXED,
        )


def _pod_affinity(trial: Trial) -> Iterator[Trial]:
    affinity = trial.pod.spec.affinity
    if affinity is not None:
        rules = (("pod_affinity", "affinity to other pods"), ("pod_anti_affinity", "anti-affinity"))
        found = [rule for rule in rules if (side := getattr(affinity, rule[0])) is not None and side.required]
        for few in [*([rule] for rule in found), *([found] if len(found) > 1 else [])]:
            loose = _without_required(affinity, *(name for name, _ in few))
            words = " and ".join(words for _, words in few)
            spec = _replace(trial.pod.spec, affinity=loose)
            yield trial.with_pod(spec, f"the pod's required {words} were left out", RELAXED)
    if trial.pod.labels and trial.pod.controller is None:
        # A controller selects its pods by these labels.
        metadata = _replace(trial.pod.metadata, labels=None)
        what = "the pod did not have the labels that other pods keep away from"
        yield trial.changed(what, OTHER_LABELS, pod=_replace(trial.pod, metadata=metadata))
    objectors = tuple(p for p in trial.info.pods.values() if p.shape.pod_terms.has_any)
    if 0 < len(objectors) <= 3 and not any(pod.pod.ends_with_its_node for pod in objectors):
        names = ", ".join(pod.key for pod in objectors)
        yield trial.without(objectors, f"{names} left {trial.node.name}")


def _without_required(affinity: Affinity, *sides: str) -> Affinity:
    nothing = {"required_during_scheduling_ignored_during_execution": None}
    return _replace(affinity, **{side: _replace(getattr(affinity, side), **nothing) for side in sides})


def _volumes(trial: Trial) -> Iterator[Trial]:
    volumes = trial.pod.spec.volumes or []
    for volume in volumes:
        left = [other for other in volumes if other is not volume]
        yield trial.with_pod(
            _replace(trial.pod.spec, volumes=left or None), f"the pod had no volume {volume.name}", VOLUME
        )
    if len(volumes) > 1:
        yield trial.with_pod(_replace(trial.pod.spec, volumes=None), "the pod had no volumes", VOLUME)


REMEDIES: dict[Remedy, Change] = {
    Remedy.TOLERATIONS: _taints,
    Remedy.UNCORDON: _cordon,
    Remedy.NODE_AFFINITY: _node_affinity,
    Remedy.NODE_NAME: _node_name,
    Remedy.REQUESTS: _resources,
    Remedy.HOST_PORTS: _ports,
    Remedy.TOPOLOGY_SPREAD: _spread,
    Remedy.POD_AFFINITY: _pod_affinity,
    Remedy.VOLUMES: _volumes,
}
"""By the remedies that plugins declare."""
