"""A crowded cluster with everything that could depend on an order: ties, priorities, spreading, pods that wait."""

from __future__ import annotations

from functools import partial

from bayplan.app.settings import load_settings
from bayplan.sim.engine.simulation import Simulation, SimulationOptions
from bayplan.sim.experiment import Experiment, RunOutcome
from bayplan.testing import node, pod

__all__ = ["Crowd", "run_crowd"]


class Crowd:
    """180 pods in six apps within three minutes."""

    def begin(self, simulation: Simulation) -> None:
        for number in range(180):
            each = pod(
                f"p{number}",
                cpu=f"{500 + 250 * (number % 5)}m",
                memory="1Gi",
                labels={"app": f"a{number % 6}"},
                priority=100 * (number % 3),
            )
            later = partial(simulation.submit, each, duration_seconds=40.0 + 7 * (number % 11))
            simulation.timeline.at(float(number), later)


def run_crowd(*, seed: int) -> RunOutcome:
    nodes = [node(f"n{number}", cpu=4, zone=f"z{number % 3}") for number in range(12)]
    return Experiment(nodes, Crowd(), SimulationOptions(seed=seed)).run(load_settings(None, ()))
