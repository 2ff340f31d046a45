"""A plugin that refuses, fails or holds pods by a label, for pages about pods that were stopped after the choice."""

from __future__ import annotations

from bayplan.framework import CycleState, Plugin, PodInfo, Status, Unschedulable, Wait


class Licences(Plugin):
    """Lets pods with the label `licence` wait, refuses or fails them."""

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if pod.labels.get("licence") == "broken":
            raise ConnectionError("licences.example.com does not answer")
        return Unschedulable("no licence left") if pod.labels.get("licence") == "none" else None

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return Wait(900) if pod.labels.get("licence") == "manual" else None
