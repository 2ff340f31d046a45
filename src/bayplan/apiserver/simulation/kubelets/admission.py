"""What a kubelet refuses: pods that do not fit its node, although they were bound to it."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from bayplan.apiserver.kinds.pod_resources import Amounts, allocatable, lacking, pod_requests
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.placement import matches_node

Port = tuple[str, int, str]
"""Address, number and protocol of a host port."""
_ZERO = Decimal(0)
_ANY_ADDRESS = ("", "0.0.0.0", "::")


class Admitted(NamedTuple):
    """What a pod holds of its node."""

    requests: Amounts = {}
    ports: frozenset[Port] = frozenset()

    @classmethod
    def of(cls, pod: Json) -> Admitted:
        return cls(pod_requests(pod["spec"]), host_ports(pod["spec"]))


_NOTHING = Admitted()


class NodeLoad:
    """What the pods of a node hold of it, added up as they come and go."""

    def __init__(self) -> None:
        self._pods: dict[str, Admitted] = {}
        self._used: Amounts = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def put(self, uid: str, admitted: Admitted) -> None:
        self.remove(uid)
        self._pods[uid] = admitted
        for name, amount in admitted.requests.items():
            self._used[name] = self._used.get(name, _ZERO) + amount

    def remove(self, uid: str) -> None:
        for name, amount in self._pods.pop(uid, _NOTHING).requests.items():
            self._used[name] -= amount

    def beside(self, uid: str) -> Admitted:
        """What all pods but one hold together."""
        mine = self._pods.get(uid, _NOTHING)
        used = {name: amount - mine.requests.get(name, _ZERO) for name, amount in self._used.items()}
        ports = [one.ports for other, one in self._pods.items() if one.ports and other != uid]
        return Admitted(used, frozenset().union(*ports))


def host_ports(spec: Json) -> frozenset[Port]:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    ports = [port for one in containers for port in one.get("ports") or () if port.get("hostPort")]
    return frozenset((port.get("hostIP", ""), port["hostPort"], port.get("protocol", "TCP")) for port in ports)


def refusal(pod: Json, wanted: Admitted, node: Json, others: Admitted) -> tuple[str, str] | None:
    """Reason and message with which a kubelet refuses a pod beside what others hold of its node, or None."""
    room = allocatable(node)
    short = lacking(wanted.requests, others.requests, room)
    if short:
        figures = [_figure(short, amounts.get(short, _ZERO)) for amounts in (wanted.requests, others.requests, room)]
        message = f"Node didn't have enough resource: {short}, requested: {figures[0]}, used: {figures[1]}"
        return f"OutOf{short}", f"Pod was rejected: {message}, capacity: {figures[2]}"
    if not matches_node(pod["spec"], node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if any(_conflict(mine, other) for mine in wanted.ports for other in others.ports):
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
