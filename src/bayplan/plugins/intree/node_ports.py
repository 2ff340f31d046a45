"""NodePorts: a host port can be used by one pod of a node only."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from bayplan.framework import (
    SKIP,
    ActionType,
    ClusterEvent,
    CycleState,
    Depends,
    EventHint,
    Hint,
    HintView,
    NodeColumns,
    NodeInfo,
    Plugin,
    PodInfo,
    Remedy,
    Resource,
    Status,
    Unschedulable,
    Verdicts,
    by_view,
)
from bayplan.framework.columns import BoolN, HostPorts, NodeTable, OverlayColumns
from bayplan.framework.objects import PodPort

__all__ = ["NodePorts"]

_PORTS_TAKEN = Unschedulable("node(s) didn't have free ports for the requested pod ports")
_ANY_ADDRESS = "0.0.0.0"
_PORTS_ALONE = HintView(
    names=lambda pod: (),
    sees=lambda pod: tuple((port.protocol, port.host_port, port.host_ip) for port in pod.shape.host_ports),
)


class NodePorts(Plugin):
    """Leave out nodes on which a wanted host port is taken.

    *What it does*: compares the host ports of the pod's containers and sidecars with those in use. Two ports collide
    when protocol and number are the same, and the addresses are the same or one of them stands for all.
    *Rejects when*: a wanted port collides with one in use on the node.
    *Scores by*: nothing.
    *Retries on*: the deletion of a pod, on a node or nominated to one, that held a colliding port; a node being added.
    *Arguments*: none.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 0
    remedies = (Remedy.HOST_PORTS,)
    depends = Depends.USE
    settles_by_kind = True
    reasons = _PORTS_TAKEN.reasons

    def sign(self, pod: PodInfo) -> Hashable:
        return frozenset((port.protocol or "TCP", port.host_port, port.host_ip) for port in pod.shape.host_ports)

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(pod.shape.host_ports)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        return None if pod.shape.host_ports else SKIP

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        if isinstance(nodes, OverlayColumns) or nodes.table is not self.handle.cluster.nodes:
            return Verdicts.reject(_taken_one_by_one(pod, nodes), _PORTS_TAKEN)
        taken = self._taken_rows(pod, nodes.table)
        return Verdicts.reject(taken if nodes.is_all else taken[nodes.rows], _PORTS_TAKEN)

    def _taken_rows(self, pod: PodInfo, table: NodeTable) -> BoolN:
        """Rows with a collision, from the index of ports in use, which leaves few rows to compare."""
        taken: BoolN = np.zeros(table.size, dtype=np.bool_)
        for port in pod.shape.host_ports:
            rows = self.handle.cluster.port_rows.get((port.protocol or "TCP", port.host_port), ())
            if port.host_ip in ("", _ANY_ADDRESS):
                taken[np.fromiter(rows, dtype=np.intp, count=len(rows))] = True
            else:
                taken[[row for row in rows if _collides(port, table.at(row).ports)]] = True
        return taken

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return _PORTS_TAKEN if _collide(pod, node.ports) else None

    def events_to_register(self) -> list[EventHint]:
        return [
            EventHint(ClusterEvent(Resource.POD, ActionType.DELETE), self._after_pod_deleted),
            EventHint(ClusterEvent(Resource.NODE, ActionType.ADD)),
        ]

    @by_view(_PORTS_ALONE)
    def _after_pod_deleted(self, pod: PodInfo, old: PodInfo, new: PodInfo | None) -> Hint:
        if not old.node_name and not old.nominated_node_name:
            return Hint.SKIP
        held = HostPorts()
        for port in old.shape.host_ports:
            held.add(port.protocol, port.host_port, port.host_ip)
        return Hint.QUEUE if _collide(pod, held) else Hint.SKIP


def _taken_one_by_one(pod: PodInfo, nodes: NodeColumns) -> BoolN:
    """For the few nodes of a dry run, whose ports are not in the index of the cluster."""
    taken: BoolN = np.zeros(len(nodes), dtype=np.bool_)
    for position in np.flatnonzero(nodes.valid).tolist():
        taken[position] = _collide(pod, nodes.info(position).ports)
    return taken


def _collide(pod: PodInfo, used: HostPorts) -> bool:
    return any(_collides(port, used) for port in pod.shape.host_ports)


def _collides(port: PodPort, used: HostPorts) -> bool:
    return used.conflicts(port.protocol, port.host_port, port.host_ip)
