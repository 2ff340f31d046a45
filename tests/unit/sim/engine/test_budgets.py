"""Drains in a simulation wait for disruption budgets, whose status follows the pods."""

from __future__ import annotations

from functools import partial

import pytest
from tests.unit.sim.engine.test_simulation import Diary, simulation

from bayplan.api.pod import Pod, PodCondition
from bayplan.api.workload import PodDisruptionBudget
from bayplan.sim.engine.controllers import Deployment, PodTemplate
from bayplan.sim.engine.node_events import drain, uncordon
from bayplan.sim.engine.simulation import Simulation
from bayplan.testing import node, pod
from bayplan.testing.build_objects import pdb

LABELS = {"app": "web"}


def deployment(made: Simulation, replicas: int) -> None:
    template = PodTemplate(pod=pod("web", labels=LABELS), draw_seconds=lambda: None)
    Deployment(made, "web", template, replicas=replicas).start()


def drained(made: Simulation, *, at: float, name: str = "n1") -> None:
    made.timeline.at(at, partial(drain, made, name))


def deletions(diary: Diary) -> list[float]:
    return [time for time, _, where in diary.lines if where == "Deleted"]


def budget_of(made: Simulation) -> PodDisruptionBudget:
    found = made.world.find(PodDisruptionBudget, "web", "default")
    assert found is not None
    return found


def test_a_drain_evicts_as_many_at_once_as_the_budget_allows() -> None:
    """Two of four may be missing; replacements wait until the second node comes."""
    made, diary = simulation(node("n1", cpu=8), pdb("web", LABELS, max_unavailable=2))
    deployment(made, 4)
    drained(made, at=10.0)
    made.timeline.at(60.0, lambda: made.world.put(node("n2", cpu=8)))
    made.run()

    assert deletions(diary) == [11.0, 11.0, 66.0, 66.0]
    assert {each.spec.node_name for each in made.world.pods.values()} == {"n2"}
    assert budget_of(made).status.disruptions_allowed == 2


@pytest.mark.parametrize(("most", "allowed"), [("50%", 2), ("51%", 3), (0, 0)])
def test_percentages_are_of_all_pods_and_rounded_up(most: int | str, allowed: int) -> None:
    made, _ = simulation(node("n1", cpu=8), pdb("web", LABELS, max_unavailable=most))
    deployment(made, 4)
    made.run()

    assert budget_of(made).status.disruptions_allowed == allowed


def test_a_drain_gives_up_after_an_hour_and_when_the_node_takes_pods_again() -> None:
    made, diary = simulation(node("n1", cpu=8), node("n2", cpu=8), pdb("web", LABELS, min_available="100%"))
    deployment(made, 2)
    drained(made, at=10.0)
    drained(made, at=10.0, name="n2")
    made.timeline.at(30.0, partial(uncordon, made, "n2"))
    made.run()

    assert deletions(diary) == []
    assert 3600.0 <= made.now <= 3700.0


def test_pods_with_two_budgets_stay_as_the_eviction_api_refuses_them() -> None:
    budgets = [pdb(name, LABELS, min_available=0) for name in ("web", "other")]
    made, diary = simulation(node("n1", cpu=8), *budgets)
    deployment(made, 1)
    drained(made, at=10.0)
    made.run()

    assert deletions(diary) == []


def test_pods_of_a_loaded_cluster_count() -> None:
    pods: list[Pod] = [pod(f"web-{number}", labels=LABELS, node="n1") for number in range(3)]
    made, _ = simulation(node("n1", cpu=8), *pods, pdb("web", LABELS, min_available=2))

    assert budget_of(made).status.disruptions_allowed == 1


def test_a_budget_that_states_nothing_keeps_its_status_and_a_deleted_one_counts_no_more() -> None:
    made, diary = simulation(node("n1", cpu=8), node("n2", cpu=8), pdb("web", LABELS))
    deployment(made, 1)
    made.timeline.at(12.0, lambda: made.world.remove(budget_of(made)))
    drained(made, at=10.0)
    drained(made, at=10.0, name="n2")
    made.run()

    assert deletions(diary) == [16.0]


@pytest.mark.parametrize(("policy", "ready", "goes"), [("AlwaysAllow", 0, True), (None, 0, False), (None, 1, True)])
def test_pods_that_are_not_ready_go_where_the_budget_does_not_need_them(
    policy: str | None, ready: int, goes: bool
) -> None:
    """The only pods that are ready are as many as the budget wants, or fewer."""
    broken = pod("broken", labels=LABELS, node="n1")
    broken.status.conditions = [PodCondition(type="Ready", status="False")]
    others: list[Pod] = [pod(f"web-{number}", labels=LABELS, node="n2") for number in range(ready)]
    budget = pdb("web", LABELS, min_available=1)
    budget.spec.unhealthy_pod_eviction_policy = policy
    made, diary = simulation(node("n1"), node("n2"), broken, *others, budget)
    drained(made, at=10.0)
    made.run()

    assert budget_of(made).status.disruptions_allowed == 0
    assert deletions(diary) == ([11.0] if goes else [])


def test_pods_of_a_dump_that_do_not_run_yet_are_not_guarded() -> None:
    """With two budgets, or one that allows nothing."""
    starting = pod("starting", labels=LABELS, node="n1", phase="Pending")
    budgets = [pdb(name, LABELS, min_available=1) for name in ("web", "other")]
    made, diary = simulation(node("n1"), starting, *budgets)
    drained(made, at=10.0)
    made.run()

    assert deletions(diary) == [11.0]
