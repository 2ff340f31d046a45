"""SchedulingGates holds a pod back while it names gates."""

from __future__ import annotations

from tests.unit.plugins.small_cluster import SmallCluster

from bayplan.framework import ActionType, Code, Hint, Resource
from bayplan.plugins.intree.scheduling_gates import SchedulingGates

PLUGIN = SchedulingGates()
CLUSTER = SmallCluster()


def test_a_pod_without_gates_enters_the_queue() -> None:
    assert PLUGIN.pre_enqueue(CLUSTER.pod()) is None
    assert PLUGIN.pre_enqueue(CLUSTER.pod(schedulingGates=[])) is None


def test_a_gated_pod_waits_and_the_gates_are_named() -> None:
    status = PLUGIN.pre_enqueue(CLUSTER.pod(schedulingGates=[{"name": "quota"}, {"name": "example.com/ready"}]))

    assert status is not None
    assert status.code is Code.UNRESOLVABLE
    assert status.reasons == ("waiting for scheduling gates: [quota example.com/ready]",)


def test_only_its_own_last_gate_wakes_a_pod() -> None:
    [(event, hint)] = PLUGIN.events_to_register()
    gated, opened = CLUSTER.pod("p", schedulingGates=[{"name": "g"}]), CLUSTER.pod("p")

    assert (event.resource, event.action) == (Resource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    assert hint is not None
    assert hint(gated, gated, opened) is Hint.QUEUE
    assert hint(gated, CLUSTER.pod("other"), CLUSTER.pod("other")) is Hint.SKIP
