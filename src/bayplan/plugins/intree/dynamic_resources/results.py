"""What a search found, in the form in which a claim's status holds it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.framework.devices import (
    AllocatedDevice,
    AllocationConfiguration,
    AllocationResult,
    ClaimConfiguration,
    DeviceAllocation,
)
from bayplan.framework.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.plugins.intree.dynamic_resources.requests import AllocationError, Ask, ClaimAsks
from bayplan.plugins.intree.dynamic_resources.search import Taken

__all__ = ["allocation_of", "shown_allocation"]


def allocation_of(asks: ClaimAsks, chosen: Sequence[int], taken: Sequence[Taken], node_name: str) -> AllocationResult:
    """`chosen` has for each request the number of the alternative that was taken."""
    used = [listed.asks[number] for listed, number in zip(asks.requests, chosen, strict=True)]
    config = [*_class_config(used), *_claim_config(asks, used)]
    devices = DeviceAllocation(results=[_result(each) for each in taken] or None, config=config or None)
    return AllocationResult(devices=devices, node_selector=_node_selector(asks, taken, node_name))


def shown_allocation(allocation: AllocationResult) -> dict[str, Any]:
    """An allocation for people and programs to compare: without the time and the random ids of shares."""
    shown: dict[str, Any] = msgspec.to_builtins(allocation)
    shown.pop("allocationTimestamp", None)
    for result in shown.get("devices", {}).get("results", ()):
        result.pop("shareID", None)
    return shown


def _result(taken: Taken) -> AllocatedDevice:
    device, ask = taken.device, taken.ask
    driver, pool, name = device.id
    capacity = {name: amount.text for name, amount in taken.share.items()} if taken.share else None
    return AllocatedDevice(
        request=ask.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=ask.has_admin_access or None,
        tolerations=list(ask.tolerations) or None,
        binding_conditions=device.raw.binding_conditions or None,
        binding_failure_conditions=device.raw.binding_failure_conditions or None,
        share_id=None if taken.share is None else str(uuid.uuid4()),
        consumed_capacity=capacity,
    )


def _class_config(used: Sequence[Ask]) -> list[AllocationConfiguration]:
    """The configuration of each class once, with the names of all requests for devices of that class."""
    requests: dict[str, list[str]] = {}
    for ask in used:
        requests.setdefault(ask.device_class.name, []).append(ask.full_name)
    classes = {ask.device_class.name: ask.device_class for ask in used}
    return [
        AllocationConfiguration(source="FromClass", requests=requests[name], opaque=config.opaque)
        for name in requests
        for config in classes[name].spec.config or ()
    ]


def _claim_config(asks: ClaimAsks, used: Sequence[Ask]) -> list[AllocationConfiguration]:
    """The configuration of the claim that concerns what was allocated; once for every request that it names."""

    def made(config: ClaimConfiguration) -> AllocationConfiguration:
        return AllocationConfiguration(source="FromClaim", requests=config.requests or None, opaque=config.opaque)

    found = []
    for config in asks.config:
        named = config.requests or []
        concerned = [ask for ask in used if ask.base_name in named or (ask.parent and ask.full_name in named)]
        found += [made(config)] * (len(concerned) if named else 1)
    return found


def _node_selector(asks: ClaimAsks, taken: Sequence[Taken], node_name: str) -> NodeSelector | None:
    """The nodes that reach all devices; None stands for every node."""
    expressions: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for each in taken:
        nodes = each.device.nodes
        if nodes.node_name or each.device.raw.binds_to_node:
            pin = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node_name])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[pin])])
        terms = (nodes.selector.node_selector_terms or []) if nodes.selector is not None else []
        if len(terms) > 1:
            problem = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise AllocationError(f"create NodeSelector for claim {asks.claim.name}: {problem}")
        for term in terms:
            _add_new(fields, term.match_fields or ())
            _add_new(expressions, term.match_expressions or ())
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_expressions=expressions or None, match_fields=fields or None)
    return NodeSelector(node_selector_terms=[term])


def _add_new(known: list[NodeSelectorRequirement], more: Sequence[NodeSelectorRequirement]) -> None:
    for requirement in more:
        meaning = _meaning(requirement)
        if all(_meaning(each) != meaning for each in known):
            known.append(requirement)


def _meaning(requirement: NodeSelectorRequirement) -> tuple[str, str, frozenset[str]]:
    return requirement.key, requirement.operator, frozenset(requirement.values or ())
