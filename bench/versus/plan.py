"""The order of a bench, and how long the rest of it will take."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from bench.versus.workload import Workload

RAW, OURS = "raw", "bayplan"
_GUESS_SECONDS = {RAW: 18.0, "kube-scheduler": 32.0, "bayplan": 20.0}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What somebody asked for."""

    schedulers: list[str]
    rounds: int = 3
    sizes: list[int] | None = None
    """Instead of the sizes of the workloads."""
    modes: tuple[str, ...] = ("backlog", "arrival")
    rate: float | None = None
    """Of arrival, for every workload, instead of what the workloads say."""
    kube_scheduler_up_to: int | None = None


@dataclass(frozen=True)
class Step:
    workload: Workload
    nodes: int
    round: int
    what: str
    """A scheduler, or `raw` for the raw binding rate."""
    rate: float = 0.0
    is_asked: bool = False
    """Whether a client asks questions meanwhile."""

    @property
    def title(self) -> str:
        how = f", {self.rate:g}/s arriving" if self.rate else ", asked" if self.is_asked else ""
        return f"{self.workload.name}, {self.nodes:,} nodes{how}, round {self.round + 1}: {self.what}"

    @property
    def kind(self) -> tuple[str, int, str, float, bool]:
        """Steps of one kind take about the same time."""
        return (self.workload.name, self.nodes, self.what, self.rate, self.is_asked)


def steps(workloads: Iterable[Workload], choice: Choice) -> list[Step]:
    """Workload by workload, round by round; the schedulers take turns at going first. Further sizes come last."""
    chosen = [(workload, choice.sizes or workload.sizes) for workload in workloads]
    found: list[Step] = []
    for place in range(max((len(sizes) for _, sizes in chosen), default=0)):
        for workload, sizes in chosen:
            found += _steps_at(workload, sizes[place], choice) if place < len(sizes) else []
    return found


def _steps_at(workload: Workload, nodes: int, choice: Choice) -> list[Step]:
    most = workload.kube_scheduler_up_to if choice.kube_scheduler_up_to is None else choice.kube_scheduler_up_to
    schedulers = [name for name in choice.schedulers if name != "kube-scheduler" or nodes <= most]
    rate = workload.arrival if choice.rate is None else choice.rate
    found = []
    for number in range(choice.rounds if "backlog" in choice.modes else 0):
        found += [Step(workload, nodes, number, what) for what in (RAW, *in_turn(schedulers, number))]
        found += [Step(workload, nodes, number, OURS, is_asked=True)] if workload.asked and OURS in schedulers else []
    for number in range(choice.rounds if rate and "arrival" in choice.modes else 0):
        found += [Step(workload, nodes, number, what, rate) for what in in_turn(schedulers, number)]
    return found


def in_turn(names: list[str], number: int) -> list[str]:
    return names if number % 2 == 0 else names[::-1]


class Pace:
    """Learns how long steps take, to say how long the rest will."""

    def __init__(self) -> None:
        self._taken: list[tuple[Step, float]] = []

    def took(self, step: Step, seconds: float) -> None:
        self._taken.append((step, seconds))

    def left_seconds(self, rest: Iterable[Step]) -> float:
        return sum(self._guess(step) for step in rest)

    def _guess(self, step: Step) -> float:
        """By steps of the same kind, else by steps of the same scheduler, else by experience."""
        same = [seconds for done, seconds in self._taken if done.kind == step.kind]
        alike = [seconds for done, seconds in self._taken if done.what == step.what]
        known = same or alike
        return statistics.mean(known) if known else _GUESS_SECONDS.get(step.what, 20.0)
