"""Extended resources that a device class stands for: the claim that the scheduler makes for a pod that asks for them.

On a node that offers the resource itself (a device plugin), the pod gets it the old way. On a node that offers none of
it, the amount becomes requests for devices of the class, in a claim that belongs to the pod.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from bayplan.framework import NodeInfo
from bayplan.framework.columns import NodeTable, Rows
from bayplan.framework.devices import (
    IMPLICIT_PREFIX,
    DeviceClassNames,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from bayplan.framework.objects import Container, Metadata, OwnerReference, Pod, is_extended_resource, value

__all__ = [
    "ANNOTATION",
    "IN_MEMORY",
    "DelegationColumns",
    "RequestMapping",
    "delegated_on",
    "device_requests",
    "is_backed_name",
    "new_claim",
    "with_requests",
]

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
IN_MEMORY = "<extended-resources>"
"""The name of the claim until the API server gives it one."""


class RequestMapping(NamedTuple):
    """Which request of the claim a container's resource comes from."""

    container_name: str
    resource_name: str
    request_name: str


def is_backed_name(resource: str) -> bool:
    """Whether a class may stand for a resource of this name."""
    return resource.startswith(IMPLICIT_PREFIX) or is_extended_resource(resource)


def delegated_on(node: NodeInfo, resources: tuple[str, ...], classes: DeviceClassNames) -> tuple[str, ...]:
    """The resources that devices stand for on a node: those of which it offers nothing itself."""
    if not resources:
        return ()
    offered = node.node.status.allocatable or {}
    return tuple([n for n in resources if not value(offered.get(n, 0)) and classes.class_for(n) is not None])


def _is_missing_on(node: NodeInfo, resources: tuple[str, ...], classes: DeviceClassNames) -> bool:
    """Whether the node does not know a resource for which no class stands."""
    offered = node.node.status.allocatable or {}
    return any(name not in offered and classes.class_for(name) is None for name in resources)


class DelegationColumns:
    """Which resources devices stand for on each node, for all nodes at once; kept while nodes and classes stay."""

    def __init__(self, table: NodeTable, classes: DeviceClassNames) -> None:
        self._table, self._classes = table, classes
        self._columns: OrderedDict[tuple[str, ...], _Delegations] = OrderedDict()

    def of(self, resources: tuple[str, ...], rows: Rows) -> tuple[dict[tuple[str, ...], Rows], Rows]:
        """The positions by what devices stand for there, and those of nodes that do not know one of the resources."""
        column = self._columns.get(resources)
        if column is None:
            column = self._columns[resources] = _Delegations(self._table, self._classes, resources)
            if len(self._columns) > _MOST_COLUMNS:
                self._columns.popitem(last=False)
        self._columns.move_to_end(resources)
        column.follow()
        codes = column.codes.take(rows)
        groups = {delegated: np.flatnonzero(codes == code) for code, delegated in enumerate(column.groups)}
        return {each: positions for each, positions in groups.items() if len(positions)}, np.flatnonzero(
            codes == _MISSING
        )


_NO_NODE, _MISSING = -1, -2
_MOST_COLUMNS = 64


class _Delegations:
    """One code a row: the number of a group, or why the node is in none."""

    def __init__(self, table: NodeTable, classes: DeviceClassNames, resources: tuple[str, ...]) -> None:
        self._table, self._classes, self._resources = table, classes, resources
        self._nodes = self._version = -1
        self.codes: npt.NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self.groups: list[tuple[str, ...]] = []

    def follow(self) -> None:
        table = self._table
        position, version = table.node_changes.position, self._classes.version
        if (position, version) == (self._nodes, self._version) and len(self.codes) >= table.size:
            return
        rows = table.node_changes.since(self._nodes) if version == self._version else None
        self._nodes, self._version = position, version
        if len(self.codes) < table.size:
            more = np.full(max(table.size, 2 * len(self.codes)) - len(self.codes), _NO_NODE, dtype=np.int32)
            self.codes = np.concatenate([self.codes, more])
        if rows is None:
            self.groups = []
        for row in range(table.size) if rows is None else set(rows.tolist()):
            info = table.infos[row]
            self.codes[row] = _NO_NODE if info is None else self._code(info)

    def _code(self, node: NodeInfo) -> int:
        if _is_missing_on(node, self._resources, self._classes):
            return _MISSING
        delegated = delegated_on(node, self._resources, self._classes)
        if delegated not in self.groups:
            self.groups.append(delegated)
        return self.groups.index(delegated)


def new_claim(pod: Pod) -> ResourceClaim:
    """A claim without requests: which ones it gets depends on the node."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    metadata = Metadata(
        name=IN_MEMORY,
        namespace=pod.namespace,
        uid=str(uuid.uuid4()),
        annotations={ANNOTATION: "true"},
        owner_references=[owner],
    )
    return ResourceClaim(metadata=metadata)


def with_requests(claim: ResourceClaim, requests: list[DeviceRequest]) -> ResourceClaim:
    devices = msgspec.structs.replace(claim.spec.devices, requests=requests or None)
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))


def device_requests(
    pod: Pod, resources: Iterable[str], classes: DeviceClassNames
) -> tuple[list[DeviceRequest], list[RequestMapping]]:
    """The requests of the claim in the order of their names, and which container uses which."""
    starting = len(pod.spec.init_containers or ())
    containers = [*(pod.spec.init_containers or ()), *(pod.spec.containers or ())]
    is_short_lived = [
        number < starting and container.restart_policy != "Always" for number, container in enumerate(containers)
    ]
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        device_class = classes.class_for(resource)
        if device_class is not None:
            asked = _Asked(resource, device_class.name, containers, is_short_lived)
            requests += asked.requests
            mappings += asked.mappings
    return sorted(requests, key=lambda request: request.name), mappings


class _Asked:
    """The requests for one resource. Init containers that end before the others start use the devices of those, and
    only the largest number that they need beyond that is asked for."""

    def __init__(
        self, resource: str, class_name: str, containers: Sequence[Container], is_short_lived: Sequence[bool]
    ) -> None:
        self._resource, self._class = resource, class_name
        lasting: list[DeviceRequest | None] = [None] * len(containers)
        self.mappings: list[RequestMapping] = []
        for number, container in enumerate(containers):
            if not is_short_lived[number]:
                lasting[number] = self._request(number, container, (), self.mappings)
        brief: list[RequestMapping] = []
        extra: list[DeviceRequest] = []
        for number, container in enumerate(containers):
            if is_short_lived[number]:
                reused = [each for each in lasting[number:] if each is not None]
                made = self._request(number, container, reused, brief)
                extra += [made] if made is not None else []
        largest = max(extra, key=_count, default=None)
        if largest is not None:
            replaced = {each.name for each in extra}
            brief = [m._replace(request_name=largest.name) if m.request_name in replaced else m for m in brief]
        self.mappings += brief
        kept = [largest, *lasting]
        self.requests = [each for each in kept if each is not None]

    def _request(
        self, number: int, container: Container, reused: Sequence[DeviceRequest], mappings: list[RequestMapping]
    ) -> DeviceRequest | None:
        """What a container needs beyond the requests it can use; None when that is nothing."""
        asked = (container.resources.requests if container.resources is not None else None) or {}
        left = value(asked[self._resource]) if self._resource in asked else 0
        if not left:
            return None
        for each in reused:
            mappings.append(RequestMapping(container.name, self._resource, each.name))
            left -= _count(each)
            if left <= 0:
                return None
        name = f"container-{number}-request-{sorted(asked).index(self._resource)}"
        mappings.append(RequestMapping(container.name, self._resource, name))
        exactly = ExactDeviceRequest(device_class_name=self._class, allocation_mode="ExactCount", count=left)
        return DeviceRequest(name=name, exactly=exactly)


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0
