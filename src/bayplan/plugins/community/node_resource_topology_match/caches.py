"""What to believe of a node's cells between an update of its topology and the next: three ways.

    PassthroughCache      the object as it is; a pod that was placed a moment ago is not in it yet
    DiscardReservedCache  a node with a placed pod whose binding is not done is not used at all
    OverReserveCache      a placed pod counts against every cell until the object says, by the fingerprint of the pods
                          that it saw, that it knows of the pod

`changed` gathers the names of nodes whose answer changed, for whoever keeps columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from bayplan.framework.objects import Amounts
from bayplan.plugins.community.node_resource_topology_match.topology import NumaTopology

__all__ = ["DiscardReservedCache", "OverReserveCache", "PassthroughCache"]


class PassthroughCache:
    """Also the base of the others."""

    def __init__(self) -> None:
        self.topologies: dict[str, NumaTopology] = {}
        """As last heard."""
        self.changed: set[str] = set()

    def get(self, node: str) -> tuple[NumaTopology | None, bool]:
        """The cells of a node, and whether they can be believed."""
        return self.topologies.get(node), True

    def put(self, node: str, topology: NumaTopology | None) -> None:
        """The object came, changed or went."""
        self.changed.add(node)
        if topology is None:
            self.topologies.pop(node, None)
        else:
            self.topologies[node] = topology

    def reserve(self, node: str, uid: str, amounts: Amounts) -> None:
        """A pod was placed."""

    def unreserve(self, node: str, uid: str) -> None:
        """It was not, after all."""

    def post_bind(self, node: str, uid: str) -> None:
        """It was bound."""

    def mark_foreign(self, node: str) -> None:
        """Somebody else placed a pod there."""

    def mark_over_reserved(self, nodes: Iterable[str]) -> None:
        """A pod did not fit there, perhaps only because too much was reserved."""


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
        """`follows_settings` takes over an object whose kubelet settings changed at once."""
        super().__init__()
        self.generation = 0
        """Grows with every node that was brought up to date."""
        self._believed: dict[str, NumaTopology] = {}
        self._assumed: dict[str, dict[str, Amounts]] = {}
        self._returned: dict[str, dict[str, Mapping[int, Amounts]]] = {}
        """By node and uid, what pods held that went since the object was written, by cell."""
        self._foreign: set[str] = set()
        self._suspect: set[str] = set()
        self._follows_settings = follows_settings

    def get(self, node: str) -> tuple[NumaTopology | None, bool]:
        return self.get_without(node, ()), node not in self._foreign

    def get_without(self, node: str, uids: Collection[str]) -> NumaTopology | None:
        """The cells as if nothing were assumed for these pods."""
        topology = self._believed.get(node)
        returned = self._returned.get(node)
        if topology is not None and returned:
            topology = topology.with_more(returned.values())
        assumed = [amounts for uid, amounts in self._assumed.get(node, {}).items() if uid not in uids]
        return topology.without(_sum(assumed)) if topology is not None and assumed else topology

    def give_back(self, node: str, uid: str, amounts_by_cell: Mapping[int, Amounts]) -> None:
        """A pod that the object counts is gone: what it held is free, though the object does not say so yet."""
        if node in self._believed and uid not in self._returned.setdefault(node, {}):
            self._returned[node][uid] = amounts_by_cell
            self.changed.add(node)

    def believed(self, node: str) -> NumaTopology | None:
        """The object that is reckoned with, as it is."""
        return self._believed.get(node)

    def is_assumed(self, node: str, uid: str) -> bool:
        """Whether the pod came after that object."""
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
        """Nodes whose object should be looked at again."""
        return self._foreign | self._suspect

    def resync(self, pods_on: Callable[[str, NumaTopology], tuple[str, set[str]]]) -> list[str]:
        """Take over the objects of dirty nodes whose agents know the pods that we know; the nodes that were.

        `pods_on` gives, for a node, the fingerprint of the pods there and the uids it stands for. Pods that are not
        among them have not been seen by the agent, so what was assumed for them stays.
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
