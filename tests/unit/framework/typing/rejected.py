"""Five mistakes that `mypy --strict` reports. A line that must be reported ends with the error's code."""

from __future__ import annotations

from bayplan.framework import CycleState, NodeInfo, Plugin, PluginArgs, PodInfo, Status


class ZoneArgs(PluginArgs):
    zone: str = ""


class WrongParameter(Plugin[ZoneArgs]):
    def filter(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:  # expected: override
        return None


class WrongFilterAnswer(Plugin[ZoneArgs]):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> bool:  # expected: override
        return False


class WrongScoreAnswer(Plugin[ZoneArgs]):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return "much"  # expected: return-value


class MisspeltArgument(Plugin[ZoneArgs]):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return len(self.args.zoen)  # expected: attr-defined


class BindWithoutAsync(Plugin[ZoneArgs]):
    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:  # expected: override
        return None
