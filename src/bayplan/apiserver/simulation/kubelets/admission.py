"""What a kubelet refuses: pods that do not fit its node, although they were bound to it."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from bayplan.apiserver.kinds.pod_resources import Amounts, allocatable, lacking, pod_requests, sum_amounts
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.placement import matches_node

Port = tuple[str, int, str]
"""Address, number and protocol of a host port."""
_ANY_ADDRESS = ("", "0.0.0.0", "::")


class Admitted(NamedTuple):
    """What a pod holds of its node."""

    requests: Amounts = {}
    ports: frozenset[Port] = frozenset()

    @classmethod
    def of(cls, pod: Json) -> Admitted:
        return cls(pod_requests(pod["spec"]), host_ports(pod["spec"]))


def host_ports(spec: Json) -> frozenset[Port]:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    ports = [port for one in containers for port in one.get("ports") or () if port.get("hostPort")]
    return frozenset((port.get("hostIP", ""), port["hostPort"], port.get("protocol", "TCP")) for port in ports)


def refusal(pod: Json, node: Json, admitted: Iterable[Admitted]) -> tuple[str, str] | None:
    """Reason and message with which a kubelet refuses a pod beside those that it has admitted, or None."""
    wanted = Admitted.of(pod)
    used: Amounts = {}
    ports: set[Port] = set()
    for one in admitted:
        used = sum_amounts(used, one.requests)
        ports |= one.ports
    room = allocatable(node)
    short = lacking(wanted.requests, used, room)
    if short:
        figures = [_figure(short, amounts.get(short, Decimal(0))) for amounts in (wanted.requests, used, room)]
        message = f"Node didn't have enough resource: {short}, requested: {figures[0]}, used: {figures[1]}"
        return f"OutOf{short}", f"Pod was rejected: {message}, capacity: {figures[2]}"
    if not matches_node(pod["spec"], node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if any(_conflict(mine, other) for mine in wanted.ports for other in ports):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    return None


def _figure(name: str, amount: Decimal) -> int:
    return int(amount * 1000) if name == "cpu" else int(amount)


def _predicate(name: str, detail: str) -> tuple[str, str]:
    return name, f"Pod was rejected: Predicate {name} failed: {detail}"


def _conflict(left: Port, right: Port) -> bool:
    if left[1:] != right[1:]:
        return False
    return left[0] == right[0] or left[0] in _ANY_ADDRESS or right[0] in _ANY_ADDRESS
