"""ScoreByNameLength: a score computed from a node's name."""

from __future__ import annotations

from collections.abc import Hashable

from bayplan.framework import CycleState, Depends, EventHint, NodeInfo, Plugin, PodInfo

__all__ = ["ScoreByNameLength"]


class ScoreByNameLength(Plugin):
    """Score a node by the letters of its name.

    *What it does*: adds up the bytes of the name and keeps the last digit, so `k8s-node02` gets 3. The name of the
    plugin is its author's; the length of the name plays no part.
    *Rejects when*: never.
    *Scores by*: sum of the name's bytes modulo 10, as it is: 0 to 9.
    *Retries on*: nothing; it rejects nothing.
    *Arguments*: none.
    *Differs from the original*: nowhere.
    """

    depends = Depends.NODE

    def sign(self, pod: PodInfo) -> Hashable:
        return ()  # every pod gets the same answer

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return sum(node.name.encode()) % 10

    def events_to_register(self) -> list[EventHint]:
        return []
