"""ScoreByLabel: prefer nodes whose label holds a higher number."""

from __future__ import annotations

import re
from collections.abc import Hashable

from bayplan.framework import CycleState, Depends, EventHint, NodeInfo, Plugin, PluginArgs, PodInfo, normalize_highest

__all__ = ["ScoreByLabel"]

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_LARGEST = (2**63 - 1) // 100
"""Normalising multiplies by 100; larger numbers would overflow 64 bits."""


class ScoreByLabel(Plugin):
    """Score a node by the number in one of its labels.

    *What it does*: reads the label, and scales so that the highest number among the nodes that fit becomes 100.
    *Rejects when*: never.
    *Scores by*: the number; 0 where the label is missing or holds no whole number.
    *Retries on*: nothing; it rejects nothing.
    *Arguments*: labelKey (`score-by-label`).
    *Differs from the original*: where no node has the label all get 0 (one version of the original divided by zero);
    a negative number counts as 0 (the original's was refused by the framework, and the pod with it); numbers beyond
    92,233,720,368,547,758 count as that.
    """

    class Args(PluginArgs):
        label_key: str = "score-by-label"

        def validate(self) -> list[str]:
            return [] if self.label_key else ["labelKey: must not be empty; leave it out for `score-by-label`"]

    depends = Depends.NODE
    normalize = normalize_highest

    def sign(self, pod: PodInfo) -> Hashable:
        return ()  # every pod gets the same answer

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        text = node.labels.get(self.args.label_key, "")
        if not _WHOLE_NUMBER.fullmatch(text):
            return 0
        return min(max(int(text), 0), _LARGEST)

    def events_to_register(self) -> list[EventHint]:
        return []
