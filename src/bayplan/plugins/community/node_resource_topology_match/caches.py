"""The topology of a node between two updates of its object, in three variants.

    PassthroughCache      the object as it is, without pods that were placed after it was written
    DiscardReservedCache  a node is not used while a pod placed on it is not bound yet
    OverReserveCache      a placed pod counts against every cell until the object, by the fingerprint of the pods that
                          its agent saw, includes the pod

`changed` collects the names of nodes whose answer changed, for the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from bayplan.framework.objects import Amounts
from bayplan.plugins.community.node_resource_topology_match.topology import NumaTopology

__all__ = ["DiscardReservedCache", "OverReserveCache", "PassthroughCache"]


class PassthroughCache:
    """The base of the others."""

    def __init__(self) -> None:
        self.topologies: dict[str, NumaTopology] = {}
        """As last reported."""
        self.changed: set[str] = set()

    def get(self, node: str) -> tuple[NumaTopology | None, bool]:
        """The cells of a node, and whether they are reliable."""
        return self.topologies.get(node), True

    def put(self, node: str, topology: NumaTopology | None) -> None:
        """Apply an added, changed or removed object."""
        self.changed.add(node)
        if topology is None:
            self.topologies.pop(node, None)
        else:
            self.topologies[node] = topology

    def reserve(self, node: str, uid: str, amounts: Amounts) -> None:
        """Count a pod that was assumed on the node."""

    def unreserve(self, node: str, uid: str) -> None:
        """Undo `reserve`."""

    def post_bind(self, node: str, uid: str) -> None:
        """Note that the pod was bound."""

    def mark_foreign(self, node: str) -> None:
        """Note that another scheduler placed a pod on the node."""

    def mark_over_reserved(self, nodes: Iterable[str]) -> None:
        """Note nodes that a pod did not fit on, possibly only because too much was reserved."""


class DiscardReservedCache(PassthroughCache):
    def __init__(self) -> None:
        super().__init__()
        self._reserved: dict[str, set[str]] = {}

    def get(self, node: str) -> tuple[NumaTopology | None, bool]:
        return self.topologies.get(node), not self._reserved.get(node)

    def reserve(self, node: str, uid: str, amounts: Amounts) -> None:
        self._reserved.setdefault(node, set()).add(uid)
        self.changed.add(node)

    def unreserve(self, node: str, uid: str) -> None:
        left = self._reserved.get(node, set())
        left.discard(uid)
        if not left:
            self._reserved.pop(node, None)
        self.changed.add(node)

    def post_bind(self, node: str, uid: str) -> None:
        self.unreserve(node, uid)


class OverReserveCache(PassthroughCache):
    def __init__(self, *, follows_settings: bool) -> None:
        """`follows_settings`: an object whose kubelet settings changed is applied at once."""
        super().__init__()
        self.generation = 0
        """Increases with every node that was updated."""
        self._believed: dict[str, NumaTopology] = {}
        self._assumed: dict[str, dict[str, Amounts]] = {}
        self._returned: dict[str, dict[str, Mapping[int, Amounts]]] = {}
        """By node and uid, what pods held, by cell, that were removed after the object was written."""
        self._foreign: set[str] = set()
        self._suspect: set[str] = set()
        self._follows_settings = follows_settings

    def get(self, node: str) -> tuple[NumaTopology | None, bool]:
        return self.get_without(node, ()), node not in self._foreign

    def get_without(self, node: str, uids: Collection[str]) -> NumaTopology | None:
        """The cells without the reservations of these pods."""
        topology = self._believed.get(node)
        returned = self._returned.get(node)
        if topology is not None and returned:
            topology = topology.with_more(returned.values())
        assumed = [amounts for uid, amounts in self._assumed.get(node, {}).items() if uid not in uids]
        return topology.without(_sum(assumed)) if topology is not None and assumed else topology

    def give_back(self, node: str, uid: str, amounts_by_cell: Mapping[int, Amounts]) -> None:
        """Free what a removed pod held, which the object still counts."""
        if node in self._believed and uid not in self._returned.setdefault(node, {}):
            self._returned[node][uid] = amounts_by_cell
            self.changed.add(node)

    def believed(self, node: str) -> NumaTopology | None:
        """The object in use."""
        return self._believed.get(node)

    def is_assumed(self, node: str, uid: str) -> bool:
        """Whether the pod was placed after that object was written."""
        return uid in self._assumed.get(node, ())

    def put(self, node: str, topology: NumaTopology | None) -> None:
        super().put(node, topology)
        believed = self._believed.get(node)
        if topology is None:
            for kept in (self._believed, self._assumed, self._returned):
                kept.pop(node, None)
            self._foreign.discard(node)
            self._suspect.discard(node)
        elif believed is None or (self._follows_settings and believed.settings != topology.settings):
            self._believed[node] = topology
            self._returned.pop(node, None)

    def reserve(self, node: str, uid: str, amounts: Amounts) -> None:
        if node in self._believed:
            self._assumed.setdefault(node, {})[uid] = amounts
            self.changed.add(node)

    def unreserve(self, node: str, uid: str) -> None:
        if self._assumed.get(node, {}).pop(uid, None) is not None:
            self.changed.add(node)

    def mark_foreign(self, node: str) -> None:
        if node in self._believed and node not in self._foreign:
            self._foreign.add(node)
            self.changed.add(node)

    def mark_over_reserved(self, nodes: Iterable[str]) -> None:
        self._suspect.update(node for node in nodes if node in self._believed)

    @property
    def dirty(self) -> set[str]:
        """Nodes whose object should be checked again."""
        return self._foreign | self._suspect

    def resync(self, pods_on: Callable[[str, NumaTopology], tuple[str, set[str]]]) -> list[str]:
        """Apply the objects of dirty nodes whose agents know the same pods as the scheduler. Returns these nodes.

        `pods_on` gives, for a node, the fingerprint of the pods there and the uids it covers. Other pods are unknown to
        the agent, so their reservations stay.
        """
        done = []
        for node in sorted(self.dirty):
            topology = self.topologies.get(node)
            if topology is None or not topology.fingerprint:
                continue
            print_here, seen = pods_on(node, topology)
            if print_here == topology.fingerprint:
                self._believe(node, topology, seen)
                done.append(node)
        return done

    def _believe(self, node: str, topology: NumaTopology, seen: set[str]) -> None:
        self._believed[node] = topology
        self._returned.pop(node, None)
        left = {uid: amounts for uid, amounts in self._assumed.get(node, {}).items() if uid not in seen}
        if left:
            self._assumed[node] = left
        else:
            self._assumed.pop(node, None)
        self._foreign.discard(node)
        self._suspect.discard(node)
        self.changed.add(node)
        self.generation += 1


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount
    return total
