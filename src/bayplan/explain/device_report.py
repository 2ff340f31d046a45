"""Devices in explanations: what each device of the nearest nodes is to a pod that waits, and what a placed pod has.

The plugin that allocates devices says what it found (`bayplan.framework.device_findings`); here it becomes claims. Only
the nodes where the fewest devices are missing are listed, and only so many nodes are looked at: an explanation must
not hold up the scheduler of a large cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.explain.claims.device_wording import DEVICE_WORDS, device_phrase
from bayplan.explain.claims.devices import (
    ABOUT_NODE,
    ABOUT_ONE,
    ClaimUnreachable,
    DeviceElsewhere,
    DeviceFails,
    DeviceFree,
    DeviceRefused,
    DevicesContested,
    DeviceShort,
    DevicesSplit,
    DeviceTainted,
    DeviceTaken,
    HasDevices,
    LacksDevices,
    NoDevices,
    PoolUnused,
)
from bayplan.explain.model import DeviceFact, DeviceReport, NodeDevice, NodeDeviceReport, NodeFact, RequestDevices
from bayplan.framework.device_findings import (
    DeviceExaminer,
    DeviceFinding,
    DeviceState,
    NodeFindings,
    RequestFindings,
    taint_text,
)
from bayplan.framework.runtime.framework import Framework
from bayplan.loop.decide import Decision

__all__ = ["device_report", "devices_of_node", "devices_of_pod", "lacking_cause", "lacks"]

_MOST_LOOKED_AT = 300
_MOST_NODES = 8
_MOST_DEVICES = 128


def device_report(framework: Framework, decision: Decision) -> DeviceReport | None:
    """None where devices are not what keeps the pod from any node."""
    examiner = next((each for each in framework.plugins.values() if isinstance(each, DeviceExaminer)), None)
    if examiner is None or decision.is_scheduled:
        return None
    nodes = _refused(framework, decision, examiner.name)
    found: list[NodeFindings] = []
    for node in _with_devices(framework.cluster, nodes)[:_MOST_LOOKED_AT]:
        findings = examiner.examine_devices(decision.state, decision.pod, node)
        if findings is not None and not findings.fits:
            found.append(findings)
    if not found:
        return None
    found.sort(key=lambda each: (not each.error, each.missing or 10**6 * bool(each.pools), each.node))
    told = [_node_devices(decision.pod.key, each) for each in found[:_MOST_NODES]]
    return DeviceReport(nodes=told, refused=len(nodes), looked_at=min(len(nodes), _MOST_LOOKED_AT))


def _refused(framework: Framework, decision: Decision, plugin: str) -> list[NodeInfo]:
    table = framework.cluster.nodes
    if decision.failure is not None:
        return [node for node in table.infos if node is not None] if decision.failure.plugin == plugin else []
    groups = decision.diagnosis.groups if decision.diagnosis is not None else ()
    return [table.at(row) for status, rows in groups if status.plugin == plugin for row in rows.tolist()]


def _with_devices(cluster: ClusterState, nodes: Sequence[NodeInfo]) -> list[NodeInfo]:
    """Nodes with devices first."""
    return sorted(nodes, key=lambda node: next(iter(cluster.devices.slices_on(node.name)), None) is None)


def _node_devices(pod: str, found: NodeFindings) -> NodeDeviceReport:
    return NodeDeviceReport(
        node=found.node,
        missing=found.missing,
        requests=[_request_devices(pod, found.node, each) for each in found.requests],
        facts=[NodeFact(sentence=DEVICE_WORDS[type(claim)](claim), claim=claim) for claim in _node_claims(pod, found)],
        error=found.error,
    )


def _request_devices(pod: str, node: str, found: RequestFindings) -> RequestDevices:
    request = f"{found.claim}/{found.request}"
    claims = [(each, _device_claim(pod, node, request, each)) for each in found.devices[:_MOST_DEVICES]]
    return RequestDevices(
        request=request,
        device_class=found.device_class,
        asked=found.count or 0,
        usable=found.usable,
        devices=[
            DeviceFact(device=claim.device, state=each.state.value, phrase=device_phrase(claim), claim=claim)
            for each, claim in claims
        ],
    )


def _device_claim(pod: str, node: str, request: str, found: DeviceFinding) -> ABOUT_ONE:
    device = "/".join(found.device)
    match found.state:
        case DeviceState.FREE:
            return DeviceFree(pod=pod, node=node, device=device, request=request)
        case DeviceState.TAKEN:
            owners, users = found.claims, found.pods
            return DeviceTaken(pod=pod, node=node, device=device, request=request, owners=owners, users=users)
        case DeviceState.TAINTED:
            return DeviceTainted(pod=pod, node=node, device=device, request=request, taint=found.taint)
        case DeviceState.SHORT:
            return DeviceShort(
                pod=pod,
                node=node,
                device=device,
                request=request,
                of=found.shortage,
                needs=found.needs,
                left=found.left,
            )
        case DeviceState.ELSEWHERE:
            return DeviceElsewhere(pod=pod, node=node, device=device, request=request)
    if found.error:
        by, text = found.selector, found.term
        return DeviceFails(
            pod=pod, node=node, device=device, request=request, by=by, expression=text, error=found.error
        )
    return DeviceRefused(
        pod=pod,
        node=node,
        device=device,
        request=request,
        by=found.selector,
        term=found.term,
        values=dict(found.values),
    )


def _node_claims(pod: str, found: NodeFindings) -> Iterator[ABOUT_NODE]:
    if not any(each.devices for each in found.requests) and not found.pools and not found.unreachable:
        yield NoDevices(pod=pod, node=found.node)
    for each in found.constraints:
        values = {value: len(devices) for value, devices in each.values.items()}
        yield DevicesSplit(
            pod=pod,
            node=found.node,
            owner=each.claim,
            attribute=each.attribute,
            is_distinct=each.is_distinct,
            values=values,
        )
    if found.is_contested and not found.unreachable:
        yield DevicesContested(pod=pod, node=found.node)
    for pool, problem in found.pools.items():
        yield PoolUnused(pod=pod, node=found.node, pool=pool, problem=problem)
    for owner in found.unreachable:
        yield ClaimUnreachable(pod=pod, node=found.node, owner=owner)


def lacks(report: DeviceReport, pod: str, nodes: int) -> LacksDevices | None:
    """The one sentence about a pod for which devices are missing; None where something else is wrong with them."""
    nearest = report.nodes[0]
    short = max(nearest.requests, key=lambda each: max(each.asked, 1) - each.usable, default=None)
    split = tuple(fact.claim.attribute for fact in nearest.facts if isinstance(fact.claim, DevicesSplit))
    if short is None or nearest.error or (not nearest.missing and not split):
        return None
    states = Counter(each.state for each in short.devices if each.state != DeviceState.FREE.value)
    return LacksDevices(
        pod=pod,
        nodes=nodes,
        refused=report.refused,
        node=nearest.node,
        request=short.request,
        asked=short.asked,
        usable=short.usable,
        states=dict(sorted(states.items())),
        split=split,
        looked_at=report.looked_at if report.looked_at < report.refused else 0,
    )


def lacking_cause(report: DeviceReport) -> str:
    """What is missing, without names of nodes, so that pods that miss the same are counted together."""
    nearest = report.nodes[0]
    if nearest.error:
        return nearest.error
    short = [each for each in nearest.requests if max(each.asked, 1) > each.usable]
    if short:
        nobody = "no node" if report.looked_at == report.refused else f"none of {report.looked_at:,} nodes looked at"
        wanted = [f"{each.asked or 'all'} of class {each.device_class} wanted" for each in short]
        return " and ".join(
            f"{what}, {nobody} has more than {each.usable} that would do"
            for what, each in zip(wanted, short, strict=True)
        )
    return "; ".join(_without_node(fact.claim) for fact in nearest.facts) or "no device would do"


def _without_node(claim: ABOUT_NODE) -> str:
    match claim:
        case DevicesSplit():
            rule = "differ" if claim.is_distinct else "agree"
            return f"enough devices would do, and they do not {rule} in {claim.attribute}"
        case DevicesContested():
            return "its requests want the same devices"
        case NoDevices():
            return "no node has devices"
        case PoolUnused():
            return f"a pool is not used: {claim.problem}"
    return "its claim has devices elsewhere"


def devices_of_node(cluster: ClusterState, node: NodeInfo) -> list[NodeDevice]:
    """The devices that the node reaches, by driver and pool."""
    holders = cluster.devices.holders()
    found: list[NodeDevice] = []
    for slice_ in cluster.devices.slices_on(node.name):
        for device in slice_.devices if slice_.reaches(node.name, node.labels) else ():
            if len(found) >= _MOST_DEVICES or not device.nodes.includes(node.name, node.labels):
                continue
            owners = holders.get(device.id, ())
            taints = [taint_text(taint) for taint in device.taints]
            is_whole = device.id in cluster.devices.use.dedicated
            found.append(
                NodeDevice(
                    device="/".join(device.id),
                    state="taken" if is_whole else "shared" if owners else "tainted" if taints else "free",
                    owners=[claim.key for claim in owners],
                    users=[
                        f"{claim.namespace}/{user.name}" for claim in owners for user in claim.status.reserved_for or ()
                    ],
                    taints=taints,
                )
            )
    return sorted(found, key=lambda each: each.device)


def devices_of_pod(cluster: ClusterState, info: PodInfo) -> list[HasDevices]:
    """What a placed pod has, from the claims that are reserved for it."""
    names = {entry.resource_claim_name for entry in info.pod.spec.resource_claims or ()}
    names |= {status.resource_claim_name for status in info.pod.status.resource_claim_statuses or ()}
    found: list[HasDevices] = []
    for claim in cluster.devices.claims(info.namespace):
        is_named = claim.name in names or (claim.controller is not None and claim.controller.uid == info.uid)
        allocation = claim.status.allocation
        if not is_named or allocation is None:
            continue
        devices: dict[str, tuple[str, ...]] = {}
        for result in allocation.devices.results or ():
            name = "/".join((result.driver, result.pool, result.device))
            devices[result.request] = (*devices.get(result.request, ()), name)
        found.append(HasDevices(pod=info.key, owner=claim.key, devices=devices))
    return found
