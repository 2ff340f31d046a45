"""Deployments as their controller keeps them: rollouts that find no room, and pods that end meanwhile."""

from __future__ import annotations

from tests.unit.sim.engine.test_simulation import Diary, simulation

from bayplan.sim.engine.controllers import Deployment, PodTemplate
from bayplan.sim.engine.simulation import Simulation
from bayplan.testing import node, pod


def deployment(made: Simulation, replicas: int, *, surge: int = 1) -> Deployment:
    template = PodTemplate(pod=pod("web", cpu=1), draw_seconds=lambda: None)
    found = Deployment(made, "web", template, replicas=replicas, surge=surge)
    found.start()
    return found


def gone(diary: Diary) -> list[str]:
    return [name for _, name, where in diary.lines if where in ("Deleted", "RolledOut")]


def test_rollouts_without_room_do_not_pile_up() -> None:
    """Each withdraws the pod of the one before, which never ran; the pods that run stay."""
    made, diary = simulation(node("n1", cpu=2))
    web = deployment(made, 2)
    for number in range(1, 6):
        made.timeline.at(3600.0 * number, web.roll_out)
    made.run()

    assert sorted(each.name for each in made.world.pods.values()) == ["web-0-1", "web-0-2", "web-5-7"]
    assert gone(diary) == ["web-1-3", "web-2-4", "web-3-5", "web-4-6"]


def test_a_rollout_that_found_no_room_goes_on_when_a_node_comes() -> None:
    made, diary = simulation(node("n1", cpu=2))
    web = deployment(made, 2)
    made.timeline.at(10.0, web.roll_out)
    made.timeline.at(20.0, web.roll_out)
    made.timeline.at(1000.0, lambda: made.world.put(node("n2", cpu=1)))
    made.run()

    assert {each.name.split("-")[1] for each in made.world.pods.values()} == {"2"}
    assert len(made.world.pods) == 2
    assert set(gone(diary)) == {"web-0-1", "web-0-2", "web-1-3"}


def test_a_rollout_in_the_middle_of_another_never_exceeds_the_surge() -> None:
    made, _ = simulation(node("n1", cpu=100), shutdown_seconds=0.0)
    web = deployment(made, 6, surge=2)
    most = 0

    def count() -> None:
        nonlocal most
        most = max(most, len(made.world.pods))

    for number in range(40):
        made.timeline.at(10.0 + number / 1000, count)
    made.timeline.at(10.0, web.roll_out)
    made.timeline.at(10.003, web.roll_out)
    made.run()

    assert most == 8
    assert {each.name.split("-")[1] for each in made.world.pods.values()} == {"2"}
    assert len(made.world.pods) == 6
