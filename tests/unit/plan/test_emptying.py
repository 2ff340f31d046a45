"""Moves that the scheduler has decided one by one, budgets, and what they are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bayplan.api.decode import InputError
from bayplan.api.meta import KubeObject, LabelSelector, Metadata, OwnerReference
from bayplan.api.pod import Pod, PodCondition, PodStatus
from bayplan.api.workload import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from bayplan.app.settings import load_settings
from bayplan.plan.commands import kubectl_commands
from bayplan.plan.emptying import DefragTerms, MovePlan, plan_defrag, plan_drain
from bayplan.plan.moves import MovableCluster
from bayplan.sim.engine.node_events import drain
from bayplan.sim.engine.simulation import Simulation
from bayplan.sim.workloads.loading import read_cluster
from bayplan.testing import near, node, pod

HOSTNAME = "kubernetes.io/hostname"
UNREADY = PodCondition(type="Ready", status="False")
FRAGMENTED = Path(__file__).parents[3] / "examples" / "plan" / "fragmented.yaml"


def movable(*objects: KubeObject) -> MovableCluster:
    return MovableCluster(objects, load_settings(None, ()))


def owned(name: str, on: str, *, kind: str = "ReplicaSet", **fields: Any) -> Pod:
    owner = OwnerReference(api_version="apps/v1", kind=kind, name="web", uid="web", controller=True)
    return pod(name, node=on, owner=owner, **fields)


def budget(name: str, allowed: int, **labels: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=Metadata(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def fragmented() -> MovableCluster:
    return movable(*read_cluster([FRAGMENTED]))


def test_each_move_is_decided_on_the_state_that_those_before_leave() -> None:
    """Two pods of 3 cpu and two nodes with room for one each: the second cannot follow the first."""
    cluster = movable(
        node("n1", cpu=8),
        node("n2", cpu=4),
        node("n3", cpu=4),
        owned("a", "n1", cpu=3),
        owned("b", "n1", cpu=3),
    )

    plan = plan_drain(cluster, ["n1"])

    assert [(move.pod, move.source) for move in plan.moves] == [("default/a", "n1"), ("default/b", "n1")]
    assert {move.target for move in plan.moves} == {"n2", "n3"}
    assert [move.feasible_nodes for move in plan.moves] == [2, 1]
    assert (plan.stuck, plan.emptied) == ([], ["n1"])


def test_a_drain_names_the_pods_that_have_no_other_place() -> None:
    cluster = movable(node("n1", cpu=8), node("n2", cpu=4), owned("a", "n1", cpu=3), owned("b", "n1", cpu=3))

    plan = plan_drain(cluster, ["n1"])

    assert [move.pod for move in plan.moves] == ["default/a"]
    assert [(each.pod, each.reason) for each in plan.stuck] == [
        ("default/b", "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.")
    ]
    assert (plan.verdict, plan.emptied) == ("1 of 2 pods cannot be moved off 1 node.", [])


def test_two_drained_nodes_do_not_receive_each_others_pods() -> None:
    cluster = movable(node("n1"), node("n2"), node("n3"), owned("a", "n1"), owned("b", "n2"))

    plan = plan_drain(cluster, ["n1", "n2"])

    assert [move.target for move in plan.moves] == ["n3", "n3"]
    assert kubectl_commands(plan)[:2] == ["kubectl cordon n1", "kubectl cordon n2"]


def test_pods_of_daemon_sets_end_with_their_node_and_pods_of_nobody_stay() -> None:
    def plan(force: bool) -> MovePlan:
        agent = owned("agent", "n1", kind="DaemonSet")
        return plan_drain(movable(node("n1"), node("n2"), agent, pod("single", node="n1")), ["n1"], force=force)

    assert [each.pod for each in plan(force=False).stuck] == ["default/single"]
    assert "it has no controller" in plan(force=False).stuck[0].reason
    assert [move.pod for move in plan(force=True).moves] == ["default/single"]


def test_a_budget_makes_evictions_wait_for_replacements_and_one_of_nothing_forbids_them() -> None:
    pods = [owned(f"web-{number}", "n1", labels={"app": "web"}, cpu=0.1) for number in range(5)]

    plan = plan_drain(movable(node("n1"), node("n2"), budget("web", 2, app="web"), *pods), ["n1"])
    refused = plan_drain(movable(node("n1"), node("n2"), budget("web", 0, app="web"), *pods), ["n1"])
    doubled = movable(node("n1"), node("n2"), budget("web", 2, app="web"), budget("all", 2), *pods)

    assert [bool(move.after) for move in plan.moves] == [False, False, True, False, True]
    waiting = "kubectl wait pdb web -n default --for='jsonpath={.status.disruptionsAllowed}=2' --timeout=15m"
    assert kubectl_commands(plan).count(waiting) == 2
    assert {each.reason for each in refused.stuck} == {"PodDisruptionBudget default/web allows no disruption"}
    assert "two budgets: default/web, default/all" in plan_drain(doubled, ["n1"]).stuck[0].reason


def test_a_pod_is_moved_after_the_one_that_it_has_to_be_near() -> None:
    """The more important pod would come first, but its replacement can only be where that of the other is."""
    near_cache = near(HOSTNAME, {"app": "cache"})
    cluster = movable(
        node("n1"),
        node("n2"),
        node("n3"),
        owned("web", "n1", priority=9, affinity=near_cache),
        owned("cache", "n2", labels={"app": "cache"}),
    )

    plan = plan_drain(cluster, ["n1", "n2"])

    assert [(move.pod, move.target) for move in plan.moves] == [("default/cache", "n3"), ("default/web", "n3")]
    assert (plan.stuck, plan.emptied) == ([], ["n1", "n2"])


def test_a_node_is_emptied_in_an_order_in_which_pods_find_those_that_they_need() -> None:
    pods = [
        owned("web", "n1", cpu=2, affinity=near(HOSTNAME, {"app": "cache"})),
        owned("cache", "n1", cpu=1, labels={"app": "cache"}),
        owned("large", "n2", cpu=6),
    ]
    plan = plan_defrag(movable(node("n1", cpu=4), node("n2", cpu=10), *pods))

    assert [move.pod for move in plan.moves] == ["default/cache", "default/web"]
    assert plan.emptied == ["n1"]


def test_pods_that_need_each_other_are_evicted_together() -> None:
    """None of the replacements finds a place as long as one of them is on the cordoned node."""
    labels = {"app": "db"}
    pods = [owned(f"db-{number}", "n1", cpu=1, labels=labels, affinity=near(HOSTNAME, labels)) for number in range(3)]
    alone = owned("alone", "n1", cpu=9)

    plan = plan_drain(movable(node("n1", cpu=12), node("n2"), *pods), ["n1"])
    beside = plan_drain(movable(node("n1", cpu=12), node("n2"), alone, *pods), ["n1"])
    guarded = plan_drain(movable(node("n1", cpu=12), node("n2"), budget("db", 2, **labels), *pods), ["n1"])

    keys = [f"default/db-{number}" for number in range(3)]
    assert [move.pod for move in plan.moves] == keys
    assert [move.with_those for move in plan.moves] == [keys[1:], keys[2:], []]
    assert [move.pod for move in beside.moves] == keys
    assert [each.pod for each in beside.stuck] == ["default/alone"]
    assert (guarded.moves, [each.pod for each in guarded.stuck]) == ([], keys)


def test_pods_that_are_not_ready_go_where_their_budget_does_not_need_them() -> None:
    """The rules of the eviction API: by `AlwaysAllow`, or where as many are healthy as should be."""

    def stays(given: PodDisruptionBudget, **status: Any) -> list[str]:
        broken = owned("web-1", "n1", labels={"app": "web"})
        broken.status = PodStatus(**{"phase": "Running", "conditions": [UNREADY]} | status)
        plan = plan_drain(movable(node("n1"), node("n2"), given, broken), ["n1"])
        assert not any(move.after for move in plan.moves)
        return [each.reason for each in plan.stuck]

    exhausted, always = budget("web", 0, app="web"), budget("web", 0, app="web")
    always.spec.unhealthy_pod_eviction_policy = "AlwaysAllow"
    whole, short = budget("web", 0, app="web"), budget("web", 0, app="web")
    whole.status.current_healthy = whole.status.desired_healthy = 2
    short.status.current_healthy, short.status.desired_healthy = 1, 2
    refused = ["PodDisruptionBudget default/web allows no disruption"]

    assert [stays(each) for each in (exhausted, always, whole, short)] == [refused, [], [], refused]
    assert stays(always, conditions=None) == refused
    assert stays(exhausted, phase="Pending") == []
    assert stays(budget("other", 0, app="other")) == []


def test_an_unready_pod_uses_up_no_disruption() -> None:
    given = budget("web", 1, app="web")
    given.status.current_healthy, given.status.desired_healthy = 2, 1
    pods = [owned(f"web-{number}", "n1", labels={"app": "web"}) for number in range(3)]
    pods[0].status = PodStatus(phase="Running", conditions=[UNREADY])

    plan = plan_drain(movable(node("n1"), node("n2"), given, *pods), ["n1"])

    assert [bool(move.after) for move in plan.moves] == [False, False, True]


def test_a_node_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="no node `n9`"):
        plan_drain(movable(node("n1")), ["n9"])


def test_a_pod_that_is_there_twice_is_refused() -> None:
    with pytest.raises(InputError, match="`default/a` is in the cluster twice"):
        movable(node("n1"), owned("a", "n1"), owned("a", "n1"))


def test_the_same_drain_simulated_binds_every_replacement() -> None:
    """What the plan says of a drain holds in the engine that runs the whole scheduler."""
    nodes = [node(f"n{number}", cpu=10) for number in range(1, 5)]
    pods = [owned(f"p{number}", f"n{1 + number % 4}", cpu=1 + number % 3) for number in range(12)]
    plan = plan_drain(movable(*nodes, *pods), ["n1"])

    simulation = Simulation(load_settings(None, ()))
    simulation.load([*nodes, *pods])
    leaving = [each for each in pods if each.spec.node_name == "n1"]
    drain(simulation, "n1")
    for number, each in enumerate(leaving):
        twin = pod(f"twin-{number}", cpu=each.spec.containers[0].resources.requests["cpu"])
        simulation.timeline.at(2.0, lambda twin=twin: simulation.submit(twin))
    simulation.run()

    assert len(plan.moves) == len(leaving)
    bound = [each for each in simulation.world.pods.values() if each.name.startswith("twin-")]
    assert [bool(each.spec.node_name) for each in bound] == [True] * len(leaving)


# Defragmentation


def test_nodes_are_emptied_and_no_pod_is_moved_twice() -> None:
    plan = plan_defrag(fragmented())

    assert plan.emptied == ["node-2", "node-3"]
    assert [move.pod for move in plan.moves] == ["web/search-1", "web/search-2"]
    assert not {move.target for move in plan.moves} & set(plan.emptied)
    assert (plan.gain, plan.price) == (pytest.approx(2 * 0.40 * 720), pytest.approx(0.2))
    assert kubectl_commands(plan)[0] == "kubectl cordon node-2"
    assert kubectl_commands(plan)[2] == "kubectl cordon node-3"


def test_it_ends_when_the_gain_is_below_the_price() -> None:
    """node-1 has two pods: 576 for two moves of 300 each would be a loss."""
    cheap = plan_defrag(fragmented(), DefragTerms(move_price=200.0))
    dear = plan_defrag(fragmented(), DefragTerms(move_price=300.0))

    assert (len(cheap.moves), len(dear.moves)) == (2, 0)
    assert dear.stopped == "emptying node-2 would cost as much as it is worth, or more"


def test_a_plan_has_at_most_as_many_moves_as_are_wanted() -> None:
    plan = plan_defrag(fragmented(), DefragTerms(most_moves=1))

    assert len(plan.moves) == 1
    assert "--most-moves" in plan.stopped


def test_a_node_whose_pods_do_not_all_fit_elsewhere_stays_as_it_is() -> None:
    """n2 is tried first and has room for one of the two pods of 3; the move of the first is taken back."""
    cluster = movable(
        node("n1", cpu=7), node("n2", cpu=6), owned("a", "n1", cpu=4), owned("b", "n2", cpu=3), owned("c", "n2", cpu=3)
    )
    before = {each.name: each.requested_of("cpu") for each in cluster.nodes()}

    plan = plan_defrag(cluster)

    assert (plan.moves, plan.emptied) == ([], [])
    assert {each.pod for each in plan.stuck} == {"default/a", "default/c"}
    assert {each.name: each.requested_of("cpu") for each in cluster.nodes()} == before


def test_empty_nodes_are_cordoned_first() -> None:
    plan = plan_defrag(movable(node("n1"), node("n2"), node("n3"), owned("a", "n1", cpu=1), owned("b", "n2", cpu=1)))

    assert (plan.cordon, plan.empty_before) == (["n3"], ["n3"])
    assert [(move.source, move.target) for move in plan.moves] == [("n1", "n2")]


def test_the_bound_says_how_far_the_plan_is_from_the_best() -> None:
    plan = plan_defrag(fragmented(), DefragTerms(wants_bound=True))

    assert plan.bound is not None
    assert (plan.bound.price, plan.bound.nodes, plan.bound.is_best) == (pytest.approx(0.80), 2, True)
    assert plan.price_per_hour == pytest.approx(0.80)
