"""What happens to nodes: they come and go, fail and are repaired, are drained and come back."""

from __future__ import annotations

from functools import partial
from random import Random

import msgspec

from bayplan.api.node import Node, Taint
from bayplan.api.pod import Pod
from bayplan.api.tolerations import tolerates, with_cordon
from bayplan.sim.engine.simulation import Simulation

__all__ = ["NodeFailures", "drain", "remove_node", "uncordon"]

_replace = msgspec.structs.replace
_UNREACHABLE = "node.kubernetes.io/unreachable"
_EVICT_AGAIN_SECONDS = 5.0
_DRAIN_TIMEOUT_SECONDS = 3600.0
_TAINTS = [Taint(key=_UNREACHABLE, effect="NoSchedule"), Taint(key=_UNREACHABLE, effect="NoExecute")]


class NodeFailures:
    """Random failures of every node, each with times of its own that follow from the seed and its name."""

    def __init__(
        self,
        simulation: Simulation,
        *,
        every_seconds: float,
        repaired_seconds: float,
        pods_lost_seconds: float,
        prefix: str = "",
    ) -> None:
        self._simulation = simulation
        self._every = every_seconds
        self._repaired = repaired_seconds
        self._pods_lost = pods_lost_seconds
        self._prefix = prefix

    def start(self) -> None:
        for name in list(self._simulation.world.nodes):
            if name.startswith(self._prefix):
                self._plan(name, Random(f"{self._simulation.options.seed}/fail/{name}"))

    def _plan(self, name: str, dice: Random) -> None:
        delay = round(dice.expovariate(1.0) * self._every, 3)
        time, until = self._simulation.now + delay, self._simulation.options.until_seconds
        if until is None or time <= until:
            self._simulation.timeline.at(time, lambda: self._fail(name, dice))

    def _fail(self, name: str, dice: Random) -> None:
        simulation, world = self._simulation, self._simulation.world
        node = world.nodes.get(name)
        if node is None:
            return
        kept = [taint for taint in node.spec.taints or () if taint.key != _UNREACHABLE]
        world.put(_replace(node, spec=_replace(node.spec, taints=[*kept, *_TAINTS])))
        if self._pods_lost < self._repaired:
            simulation.timeline.at(simulation.now + self._pods_lost, lambda: _lose_pods(simulation, name))
        simulation.timeline.at(simulation.now + self._repaired, lambda: self._repair(name, dice))

    def _repair(self, name: str, dice: Random) -> None:
        node = self._simulation.world.nodes.get(name)
        if node is not None:
            kept = [taint for taint in node.spec.taints or () if taint.key != _UNREACHABLE]
            self._simulation.world.put(_replace(node, spec=_replace(node.spec, taints=kept or None)))
        self._plan(name, dice)


def drain(simulation: Simulation, name: str) -> None:
    """Cordon a node and evict its pods, save those of DaemonSets and of the kubelet itself, as `kubectl drain
    --timeout=1h` does."""
    node = simulation.world.nodes.get(name)
    if node is None:
        return
    _set_unschedulable(simulation, node, True)
    for pod in _pods_on(simulation, name):
        if not pod.ends_with_its_node:
            _evict(simulation, pod, give_up=simulation.now + _DRAIN_TIMEOUT_SECONDS)


def _evict(simulation: Simulation, pod: Pod, *, give_up: float) -> None:
    """Delete a pod now, or try again while a budget is against it, until the node takes pods again."""
    current = simulation.world.pod(pod.namespace, pod.name)
    node = simulation.world.nodes.get(pod.spec.node_name)
    if current is None or current.uid != pod.uid or node is None or not node.spec.unschedulable:
        return
    if simulation.budgets.permits(current):
        simulation.delete(current, "Drained")
    elif simulation.now + _EVICT_AGAIN_SECONDS <= give_up:
        again = partial(_evict, simulation, pod, give_up=give_up)
        simulation.timeline.at(simulation.now + _EVICT_AGAIN_SECONDS, again)


def uncordon(simulation: Simulation, name: str) -> None:
    node = simulation.world.nodes.get(name)
    if node is not None:
        _set_unschedulable(simulation, node, False)


def remove_node(simulation: Simulation, name: str) -> None:
    """Remove a node with its pods."""
    if name in simulation.world.nodes:
        lost = _pods_on(simulation, name)
        simulation.world.remove_node(name)
        for pod in lost:
            simulation.world.remove_pod(pod, "NodeRemoved")


def _set_unschedulable(simulation: Simulation, node: Node, value: bool) -> None:
    simulation.world.put(with_cordon(node, value))


def _lose_pods(simulation: Simulation, name: str) -> None:
    for pod in _pods_on(simulation, name):
        is_kept = pod.ends_with_its_node and pod.metadata.deletion_timestamp is None
        if not is_kept and not _stays_on_a_lost_node(pod):
            simulation.world.remove_pod(pod, "NodeLost")


def _stays_on_a_lost_node(pod: Pod) -> bool:
    """Whether it tolerates for ever that its node is unreachable."""
    return any(each.toleration_seconds is None and tolerates(each, _TAINTS[1]) for each in pod.spec.tolerations or ())


def _pods_on(simulation: Simulation, name: str) -> list[Pod]:
    """Without those that wait at Permit: they are in the scheduler's cache, and on no node yet."""
    info = simulation.core.cache.cluster.node(name)
    found = [simulation.world.pod(each.namespace, each.name) for each in ([] if info is None else info.pods.values())]
    return [pod for pod in found if pod is not None and pod.spec.node_name == name]
