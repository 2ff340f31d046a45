"""What-if: preemption is played on the copy, and nothing else notices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod, PodStatus
from bayplan.api.workload import PodDisruptionBudget
from bayplan.config.loading import default_config
from bayplan.config.profiles import resolve_profiles
from bayplan.explain.claims.base import Edit
from bayplan.explain.model import WhatIf
from bayplan.explain.whatif.cluster_copy import ClusterObjects
from bayplan.explain.whatif.scenario import AddedNodes, AddedPods, Scenario, ScenarioError, play
from bayplan.observe.time_slices import at_once
from bayplan.plugins.intree import default_registry
from bayplan.testing import near as near_to
from bayplan.testing import node, pod


def owned(made: Pod, kind: str = "ReplicaSet") -> Pod:
    owner = {"kind": kind, "name": "web", "apiVersion": "apps/v1", "uid": "r", "controller": True}
    patched: dict[str, Any] = msgspec.to_builtins(made)
    patched["metadata"]["ownerReferences"] = [owner]
    return msgspec.convert(patched, Pod)


def played(
    *,
    placed: list[tuple[Pod, str]],
    waiting: list[Pod],
    nodes: int = 1,
    scenario: Scenario | None = None,
    others: Sequence[KubeObject] = (),
) -> WhatIf:
    registry = default_registry()
    objects = ClusterObjects(
        nodes=[node(f"n{i}", cpu=2) for i in range(nodes)], placed=placed, others=others, waiting=waiting
    )
    return at_once(play(objects, resolve_profiles(default_config(), registry), registry, scenario or Scenario()))


def test_an_important_pod_takes_the_place_of_others() -> None:
    low = [(pod(f"low-{i}", cpu="1", priority=1), "n0") for i in range(2)]
    answer = played(placed=low, waiting=[pod("high", cpu="2", priority=100)])

    assert [(p.pod, p.node) for p in answer.placed] == [("default/high", "n0")]
    assert [(e.pod, e.node, e.by) for e in answer.evicted] == [
        ("default/low-0", "n0", "default/high"),
        ("default/low-1", "n0", "default/high"),
    ]
    assert answer.verdict == "The pod would be placed, on 1 node, and 2 pods would be evicted."


def test_victims_that_a_controller_makes_again_wait_in_line() -> None:
    low = owned(pod("low", cpu="2", priority=1))
    answer = played(placed=[(low, "n0")], waiting=[pod("high", cpu="2", priority=100)])

    assert [(p.pod, p.origin) for p in answer.pending] == [("default/low", "evicted")]
    assert "Insufficient cpu" in answer.pending[0].message


def test_nobody_is_evicted_for_a_pod_of_the_same_priority() -> None:
    answer = played(placed=[(pod("first", cpu="2"), "n0")], waiting=[pod("second", cpu="2")])

    assert (answer.evicted, answer.pending_count) == ([], 1)
    assert "No preemption victims found" in answer.pending[0].message


def test_a_pod_that_is_held_back_stays_so() -> None:
    answer = played(placed=[], waiting=[pod("gated", gates=["example.com/wait"])])

    assert answer.placed == []
    assert "example.com/wait" in answer.pending[0].message


def test_pods_that_come_after_one_that_preempts_find_its_victims_still_there() -> None:
    """As in a cluster, where pods take their time to end: the second one preempts too, though both would fit."""
    low = [(pod("low-0", cpu="2", priority=50), "n0"), (pod("low-1", cpu="2", priority=1), "n1")]
    waiting = [pod("high", cpu="1", priority=100, node_selector={"kubernetes.io/hostname": "n0"})]
    waiting.append(pod("middle", cpu="1", priority=40))
    answer = played(placed=low, waiting=waiting, nodes=2)

    assert [(p.pod, p.node) for p in answer.placed] == [("default/high", "n0"), ("default/middle", "n1")]
    assert [(e.pod, e.by) for e in answer.evicted] == [
        ("default/low-0", "default/high"),
        ("default/low-1", "default/middle"),
    ]


def test_pods_that_found_no_node_come_again_when_victims_have_left() -> None:
    low = [(pod("low", cpu="2", priority=1), "n0")]
    waiting = [pod("polite", cpu="1", priority=200, preemption_policy="Never"), pod("high", cpu="1", priority=100)]
    answer = played(placed=low, waiting=waiting)

    assert sorted(p.pod for p in answer.placed) == ["default/high", "default/polite"]
    assert answer.pending == [] and answer.evicted_count == 1


def test_pods_that_end_already_leave_as_victims_do() -> None:
    """A pod that preempted before, and waits for its victim, gets the room."""
    ended = pod("low", cpu="2", priority=1)
    metadata = msgspec.structs.replace(ended.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    answer = played(placed=[(msgspec.structs.replace(ended, metadata=metadata), "n0")], waiting=[pod("next", cpu="2")])

    assert [(p.pod, p.node) for p in answer.placed] == [("default/next", "n0")]
    assert (answer.pending, answer.evicted) == ([], [])


def test_pods_of_other_schedulers_are_told_of_and_not_left_out() -> None:
    """Those of a drained node, and those that are added: nobody here places them."""
    theirs = pod("theirs", cpu="1", scheduler="another")
    spec = {"schedulerName": "another", "containers": [{"name": "main", "image": "app:1"}]}
    added = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "added"}, "spec": spec}
    scenario = Scenario(drain=["n0"], add_pods=[AddedPods(pod=added)])
    answer = played(placed=[(theirs, "n0"), (pod("ours", cpu="1"), "n0")], waiting=[], nodes=2, scenario=scenario)

    said = "it is for the scheduler `another`, which is none of ours"
    assert [(p.pod, p.node) for p in answer.placed] == [("default/ours", "n1")]
    assert sorted((p.pod, p.message) for p in answer.pending) == [("default/added", said), ("default/theirs", said)]
    assert answer.verdict == "1 of 3 pods would be placed; 2 would stay pending."


def test_pods_of_a_node_itself_go_nowhere_else() -> None:
    """Those that a kubelet runs from files stay, like those of DaemonSets, as `kubectl drain` leaves them."""
    kept = [(owned(pod(kind.lower(), cpu="100m"), kind), "n0") for kind in ("Node", "DaemonSet")]
    answer = played(placed=kept, waiting=[], nodes=2, scenario=Scenario(drain=["n0"]))

    assert (answer.placed, answer.pending) == ([], [])


@pytest.mark.parametrize(
    ("allowed", "note"),
    [(2, ""), (1, "A drain would wait for disruption budgets: default/web lets 1 of 2 pods leave.")],
)
def test_budgets_that_a_drain_would_wait_for_are_named(allowed: int, note: str) -> None:
    budget = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    running = PodStatus(phase="Running")
    pods = [owned(pod(f"web-{number}", cpu="1", labels={"app": "web"})) for number in range(2)]
    web = [(msgspec.structs.replace(each, status=running), "n0") for each in pods]
    budgets = [msgspec.convert(budget, PodDisruptionBudget)]
    answer = played(placed=web, waiting=[], nodes=2, scenario=Scenario(drain=["n0"]), others=budgets)

    assert (answer.placed_count, answer.note) == (2, note)


def deleting(*names: str) -> Scenario:
    return Scenario(edits=[Edit(kind="deletePod", name=f"default/{name}") for name in names])


@pytest.mark.parametrize(
    ("priority", "went"),
    [(0, {"default/waits": "n0", "default/web": ""}), (10, {"default/web": "n0", "default/waits": ""})],
)
def test_a_deleted_pod_is_made_again_and_waits_behind_those_as_important(priority: int, went: dict[str, str]) -> None:
    web = owned(pod("web", cpu="2", priority=priority))
    answer = played(placed=[(web, "n0")], waiting=[pod("waits", cpu="2")], scenario=deleting("web"))

    assert answer.claim is not None and answer.claim.went == went
    assert [each.origin for each in (*answer.placed, *answer.pending) if each.pod == "default/web"] == ["deleted"]
    assert answer.note == ""


def test_a_deleted_pod_that_nobody_makes_again_is_named() -> None:
    answer = played(placed=[(pod("lone", cpu="2"), "n0")], waiting=[pod("waits", cpu="2")], scenario=deleting("lone"))

    assert answer.verdict == "The pod would be placed, on 1 node."
    assert answer.note == "Nobody makes default/lone again."


def test_a_deleted_pod_of_a_daemon_set_comes_back_to_its_node() -> None:
    """Its room on the other node is of no use to it."""
    agent = owned(pod("agent", cpu="2"), "DaemonSet")
    answer = played(placed=[(agent, "n0")], waiting=[pod("waits", cpu="1")], nodes=2, scenario=deleting("agent"))

    assert answer.claim is not None
    assert answer.claim.went == {"default/waits": "n0", "default/agent": ""}


def test_a_pod_that_its_kubelet_runs_on_cannot_be_deleted() -> None:
    static = owned(pod("static"), "Node")
    with pytest.raises(ScenarioError, match="deleting `default/static` changes nothing: the kubelet of n0 runs it"):
        played(placed=[(static, "n0")], waiting=[], scenario=deleting("static"))


def test_a_drain_names_the_pods_that_it_would_delete_for_good() -> None:
    placed = [(pod("lone", cpu="1"), "n0"), (owned(pod("web", cpu="1")), "n0")]
    answer = played(placed=placed, waiting=[], nodes=2, scenario=Scenario(drain=["n0"]))

    assert answer.note == "A drain would delete default/lone, which nobody makes again: counted as if somebody did."


def test_pods_that_a_scenario_makes_come_after_those_that_wait() -> None:
    """Their creation is now, whatever their documents say."""
    waits = pod("waits", cpu="2")
    waits.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    added: dict[str, Any] = {"metadata": {"name": "added"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    added["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    answer = played(placed=[], waiting=[waits], scenario=Scenario(add_pods=[AddedPods(pod=added)]))

    assert [(each.pod, each.node) for each in (*answer.placed, *answer.pending)] == [
        ("default/waits", "n0"),
        ("default/added", ""),
    ]


def test_added_nodes_get_the_pods_of_daemon_sets() -> None:
    agent = owned(pod("agent", cpu="1"), "DaemonSet")
    scenario = Scenario(add_nodes=[AddedNodes(like="n0", count=2)])
    answer = played(placed=[(agent, "n0")], waiting=[pod(f"w-{n}", cpu="1") for n in range(4)], scenario=scenario)

    assert (answer.placed_count, answer.pending_count) == (3, 1)


def test_the_pods_of_a_removed_node_are_said_to_be_left_out() -> None:
    placed = [(owned(pod("web", cpu="1")), "n0"), (pod("lone", cpu="1"), "n0"), (owned(pod("a"), "DaemonSet"), "n0")]
    scenario = Scenario(edits=[Edit(kind="removeNode", name="n0")])
    answer = played(placed=placed, waiting=[], nodes=2, scenario=scenario)

    assert answer.verdict == "No pod would be waiting."
    assert answer.note == (
        "Pods of removed nodes are left out: nobody makes default/lone again, and controllers would make default/web "
        "again, which a drain places."
    )


def test_a_pod_is_tried_again_when_one_that_it_has_to_be_near_has_found_a_node() -> None:
    """As the event of that brings it back into the queue."""
    near = pod("near", cpu="1", priority=10, affinity=near_to("kubernetes.io/hostname", {"app": "db"}))
    database = pod("database", cpu="1", labels={"app": "db"})
    answer = played(placed=[], waiting=[near, database])

    assert [(each.pod, each.node) for each in answer.placed] == [("default/database", "n0"), ("default/near", "n0")]
    assert answer.pending == []


def test_pods_that_tolerate_a_drain_find_the_pods_there_that_it_leaves_alone() -> None:
    agent = owned(pod("agent", cpu="1500m"), "DaemonSet")
    web = [owned(pod(name, cpu="500m", tolerations=["*"])) for name in ("first", "second")]
    answer = played(placed=[(each, "n0") for each in (agent, *web)], waiting=[], scenario=Scenario(drain=["n0"]))

    assert (answer.placed_count, answer.pending_count) == (1, 1)
