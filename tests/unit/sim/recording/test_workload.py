"""A recording as a workload: the order of what happens is that of the file."""

from __future__ import annotations

from pathlib import Path

from tests.unit.sim.recording.recorded import write_lines

from bayplan.api.meta import KubeObject
from bayplan.api.workload import PriorityClass
from bayplan.app.settings import load_settings
from bayplan.sim.compare import RunPlan
from bayplan.sim.engine.world import WorldListener


class Gone(WorldListener):
    """The names of priority classes in the order in which they went."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def object_changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if isinstance(old, PriorityClass) and new is None:
            self.names.append(old.name)


def test_what_a_later_session_no_longer_finds_goes_in_the_order_in_which_it_came(tmp_path: Path) -> None:
    """And not in that of hashes, which every process has its own of."""
    names = [f"class-{number * 7 % 20}" for number in range(20)]
    first, second = (b'{"format":"bayplan-recording","version":1,"by":"scheduler","time":%d}' % t for t in (1000, 1010))
    node = b'["+",%d,"Node",{"metadata":{"name":"n"}}]'
    classes = [b'["+",1000,"PriorityClass",{"metadata":{"name":"%s"},"value":1}]' % name.encode() for name in names]
    write_lines(tmp_path / "r", first, node % 1000, *classes, b'["r",1001]', second, node % 1010, b'["r",1011]')
    gone = Gone()

    experiment = RunPlan(workload=tmp_path / "r").experiment()
    experiment.run(load_settings(None, ()), prepare=lambda simulation: simulation.listeners.append(gone))

    assert gone.names == names
