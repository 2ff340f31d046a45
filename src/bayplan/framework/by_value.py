"""Scores that depend on one label of a node, said once for each of its values.

Three zones are three numbers, however many nodes there are: normalised in plain Python and spread over the nodes once,
at the end, they take a fraction of the time of thousands. A plugin that can answer so defines, besides `score_nodes`,

    score_by_value(state, pod, nodes) -> ByValue | None     None where it cannot, or where there are too many values
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MOST_VALUES", "ByValue"]

MOST_VALUES = 32
"""With more of them than that, arrays are as fast."""


class ByValue(NamedTuple):
    """One entry a value id, and one more at the end for nodes without the label."""

    key: str
    """The label."""
    scores: list[int]
    """As the plugin gave them."""
    normalized: list[int]
    """0 to 100, over the values that some of the nodes have."""
