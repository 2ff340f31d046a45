"""Plugins that several tests of decisions want."""

from __future__ import annotations

from typing import Any

from bayplan.framework import (
    CycleState,
    NodeColumns,
    NodeInfo,
    Plugin,
    PodInfo,
    PreFilterResult,
    Status,
    Unschedulable,
)

__all__ = ["preparing"]


def preparing(name: str, answer: Status | PreFilterResult | None, *, rejects: bool = False) -> type[Plugin]:
    """A plugin with this PreFilter; its Filter, if it runs, rejects every node or none."""

    def pre_filter(self: Plugin, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Any:
        return answer

    def filter(self: Plugin, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Unschedulable("asked") if rejects else None

    return type(name, (Plugin,), {"pre_filter": pre_filter, "filter": filter})
