"""Changes of resource claims that might let a pod have its devices. Each is tried before it is given.

What to change follows from what keeps the devices of the nearest nodes from the pod: ask for fewer, release a claim
that has some of them, tolerate a taint, leave out a selector or a constraint, take less of a capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from bayplan.api.devices import DeviceRequest, ExactDeviceRequest, ResourceClaim
from bayplan.cluster.state import ClusterState
from bayplan.explain.claims.base import Edit
from bayplan.explain.claims.devices import (
    DeviceRefused,
    DeviceShort,
    DevicesSplit,
    DeviceTainted,
    DeviceTaken,
)
from bayplan.explain.claims.phrases import listed
from bayplan.explain.model import DeviceReport, NodeDeviceReport, RequestDevices
from bayplan.explain.suggestions.remedies import AMOUNT, RELAXED, TOLERATION, VICTIMS

__all__ = ["DeviceTrial", "device_trials"]

_MOST_NODES = 3
_CAPACITY = "capacity "


class DeviceTrial(NamedTuple):
    what: str
    """After "if"."""
    effort: int
    edits: list[Edit]


def device_trials(cluster: ClusterState, report: DeviceReport) -> Iterator[DeviceTrial]:
    for node in report.nodes[:_MOST_NODES]:
        for asked in node.requests:
            yield from _fewer(cluster, asked)
            yield from _tolerated(cluster, asked)
            yield from _less_capacity(cluster, asked)
            yield from _unselected(cluster, asked)
        yield from _unconstrained(cluster, node)
        yield from _released(cluster, node)


def _fewer(cluster: ClusterState, asked: RequestDevices) -> Iterator[DeviceTrial]:
    if 0 < asked.usable < asked.asked:
        what = f"request {asked.request} asked for {asked.usable} instead of {asked.asked}"
        yield from _changed(cluster, asked.request, what, AMOUNT, lambda request: {"count": asked.usable})


def _tolerated(cluster: ClusterState, asked: RequestDevices) -> Iterator[DeviceTrial]:
    taints = sorted({fact.claim.taint for fact in asked.devices if isinstance(fact.claim, DeviceTainted)})
    if not taints:
        return

    def with_tolerations(request: ExactDeviceRequest) -> dict[str, Any]:
        tolerations = msgspec.to_builtins(request.tolerations or [])
        return {"tolerations": tolerations + [_toleration(taint) for taint in taints]}

    what = f"request {asked.request} tolerated {listed(taints, 'taints')}"
    yield from _changed(cluster, asked.request, what, TOLERATION, with_tolerations)


def _toleration(taint: str) -> dict[str, str]:
    key, _, effect = taint.rpartition(":")
    key, is_equal, value = key.partition("=")
    return {"key": key, "operator": "Equal" if is_equal else "Exists", "effect": effect, "value": value}


def _less_capacity(cluster: ClusterState, asked: RequestDevices) -> Iterator[DeviceTrial]:
    for fact in asked.devices:
        claim = fact.claim
        if isinstance(claim, DeviceShort) and claim.of.startswith(_CAPACITY) and claim.left not in ("", "0"):
            name, left = claim.of.removeprefix(_CAPACITY), claim.left
            what = f"request {asked.request} asked for {left} {name} instead of {claim.needs}"

            def with_less(request: ExactDeviceRequest, name: str = name, left: str = left) -> dict[str, Any]:
                wanted = request.capacity.requests if request.capacity is not None else None
                return {"capacity": {"requests": {**(wanted or {}), name: left}}}

            yield from _changed(cluster, asked.request, what, AMOUNT, with_less)


def _unselected(cluster: ClusterState, asked: RequestDevices) -> Iterator[DeviceTrial]:
    """Without the selectors of the claim that are false of some device."""
    terms = {
        fact.claim.term
        for fact in asked.devices
        if isinstance(fact.claim, DeviceRefused) and fact.claim.by.startswith("claim ")
    }
    if not terms:
        return

    def without_selectors(request: ExactDeviceRequest) -> dict[str, Any]:
        kept = [
            each
            for each in request.selectors or ()
            if each.cel is None or not any(term in each.cel.expression for term in terms)
        ]
        return {"selectors": msgspec.to_builtins(kept) or None}

    words = " and ".join(f"`{' '.join(term.split())}`" for term in sorted(terms))
    what = f"request {asked.request} did not select by {words}"
    yield from _changed(cluster, asked.request, what, RELAXED, without_selectors)


def _unconstrained(cluster: ClusterState, node: NodeDeviceReport) -> Iterator[DeviceTrial]:
    for fact in node.facts:
        split = fact.claim
        claim = cluster.devices.claim(split.owner) if isinstance(split, DevicesSplit) else None
        if claim is None or not isinstance(split, DevicesSplit):
            continue
        kept = [
            each
            for each in claim.spec.devices.constraints or ()
            if split.attribute not in (each.match_attribute, each.distinct_attribute)
        ]
        patch = {"constraints": msgspec.to_builtins(kept) or None}
        what = f"claim {split.owner} had no constraint on {split.attribute}"
        yield DeviceTrial(what, RELAXED, [_patch(claim, patch)])


def _released(cluster: ClusterState, node: NodeDeviceReport) -> Iterator[DeviceTrial]:
    """Each claim that has devices of the node which the pod could use, and with it the pods that use it; unless some of
    them come back to the node, or end already."""
    info = cluster.node(node.node)
    staying = {pod.key for pod in info.pods.values() if pod.pod.ends_with_its_node} if info is not None else set()
    owners = {
        owner: fact.claim.users
        for asked in node.requests
        for fact in asked.devices
        if isinstance(fact.claim, DeviceTaken)
        for owner in fact.claim.owners
    }
    for owner in owners:
        claim = cluster.devices.claim(owner)
        if claim is None or staying.intersection(claim.users):
            continue
        users = claim.users
        gone = f" and {listed(users, 'pods')} left" if users else ""
        edits = [Edit(kind="deletePod", name=user) for user in users]
        yield DeviceTrial(
            f"claim {owner} were released{gone}", VICTIMS, [*edits, Edit(kind="releaseClaim", name=owner)]
        )


def _changed(
    cluster: ClusterState,
    name: str,
    what: str,
    effort: int,
    change: Callable[[ExactDeviceRequest], dict[str, Any]],
) -> Iterator[DeviceTrial]:
    """One request of a claim with other fields; `name` is `namespace/claim/request[/alternative]`."""
    namespace, claim_name, request_name, *alternative = name.split("/")
    claim = cluster.devices.claim(f"{namespace}/{claim_name}")
    if claim is None:
        return  # of extended resources, which the scheduler would make
    requests = [
        _changed_request(request, alternative, change) if request.name == request_name else msgspec.to_builtins(request)
        for request in claim.spec.devices.requests or ()
    ]
    yield DeviceTrial(what, effort, [_patch(claim, {"requests": requests})])


def _changed_request(
    request: DeviceRequest, alternative: list[str], change: Callable[[ExactDeviceRequest], dict[str, Any]]
) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(request)
    if request.exactly is not None:
        document["exactly"] = _without_nothing(document["exactly"] | change(request.exactly))
    for place, each in enumerate(request.first_available or ()):
        if [each.name] == alternative:
            entry = document["firstAvailable"][place]
            document["firstAvailable"][place] = _without_nothing(entry | change(each))
    return document


def _without_nothing(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value is not None}


def _patch(claim: ResourceClaim, devices: dict[str, Any]) -> Edit:
    return Edit(kind="patchClaim", name=claim.key, patch={"spec": {"devices": devices}})
