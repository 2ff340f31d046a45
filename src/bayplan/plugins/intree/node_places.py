"""Where on the nodes something is reachable, by labels alone: affinity of volumes, topologies of classes, capacity.

All three become the same thing, *places*: a tuple of terms any of which a node must meet, or None for everywhere. The
mask of a tuple is remembered until a label that it mentions changes on some node.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayplan.api.meta import LabelSelector
from bayplan.api.node import NodeSelector
from bayplan.api.node_selectors import NodeRequirement, NodeTerm, compile_node_selector
from bayplan.api.selectors import SelectorError, compile_selector
from bayplan.api.storage import TopologyTerm
from bayplan.cluster.axes import BoolN
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_matching import match_term
from bayplan.cluster.node_table import NodeTable

__all__ = [
    "EVERYWHERE",
    "NOWHERE",
    "PlaceMasks",
    "Places",
    "is_reachable",
    "places_of_affinity",
    "places_of_selector",
    "places_of_topologies",
]

Places = tuple[NodeTerm, ...] | None
EVERYWHERE: Places = None
NOWHERE: Places = ()
_MOST_MASKS = 20_000


def places_of_affinity(selector: NodeSelector | None) -> Places:
    """A volume's required node affinity. Only labels are compared: what it says about node names holds anywhere."""
    if selector is None:
        return EVERYWHERE
    terms = [term for term in compile_node_selector(selector) if term.is_valid and not term.is_empty]
    if any(not term.expressions for term in terms):
        return EVERYWHERE
    return tuple(NodeTerm(term.expressions, ()) for term in terms)


def places_of_topologies(topologies: list[TopologyTerm] | None) -> Places:
    """The allowed topologies of a class; none at all means everywhere, a term that says nothing means nowhere."""
    if not topologies:
        return EVERYWHERE
    found = []
    for term in topologies:
        stated = term.match_label_expressions or ()
        if stated and all(requirement.values for requirement in stated):
            found.append(NodeTerm(tuple(NodeRequirement(r.key, "In", tuple(r.values or ())) for r in stated), ()))
    return tuple(found)


def places_of_selector(selector: LabelSelector | None) -> Places:
    """The nodes that a capacity is about; without a selector it is out of reach."""
    if selector is None:
        return NOWHERE
    try:
        compiled = compile_selector(selector)
    except SelectorError:
        return NOWHERE
    if compiled.is_everything:
        return EVERYWHERE
    stated = (NodeRequirement(r.key, r.operator, tuple(sorted(r.values))) for r in compiled.requirements)
    return (NodeTerm(tuple(stated), ()),)


def is_reachable(places: Places, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is among the places."""
    return places is None or any(term.matches(labels, "") for term in places)


class PlaceMasks:
    """Places as columns over all rows of one table."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._masks: dict[tuple[NodeTerm, ...], tuple[tuple[int, ...], BoolN]] = {}

    def rows(self, places: tuple[NodeTerm, ...]) -> BoolN:
        """Where a node is among the places, one entry a row; shared, so it cannot be written to."""
        stamp = self._stamp(places)
        known = self._masks.get(places)
        if known is not None and known[0] == stamp:
            return known[1]
        if len(self._masks) >= _MOST_MASKS:
            self._masks.clear()
        mask = self._match(places)
        self._masks[places] = stamp, mask
        return mask

    def of(self, places: Places, nodes: NodeColumns) -> BoolN | None:
        """The same for the positions of `nodes`; None for everywhere."""
        if places is None:
            return None
        mask = self.rows(places)
        return mask if nodes.is_all else mask[nodes.rows]

    def _match(self, places: tuple[NodeTerm, ...]) -> BoolN:
        nodes = NodeColumns(self._table)
        mask: BoolN = np.zeros(len(nodes), dtype=np.bool_)
        for term in places:
            mask |= match_term(term, nodes)
        mask.flags.writeable = False
        return mask

    def _stamp(self, places: tuple[NodeTerm, ...]) -> tuple[int, ...]:
        """Versions of the labels that the places mention; a mask holds while they and the number of rows stay."""
        label = self._table.label
        return (self._table.size, *(label(r.key).version for term in places for r in term.expressions))
