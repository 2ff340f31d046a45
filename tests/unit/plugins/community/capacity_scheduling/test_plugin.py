"""CapacityScheduling: who is kept out by quotas, and who has to leave for them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bayplan.api.meta import Metadata
from bayplan.api.pod import Pod
from bayplan.framework import CycleState, Diagnosis, Hint, Unresolvable, Unschedulable
from bayplan.plugins.community.capacity_scheduling import CapacityScheduling
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota, ElasticQuotaSpec
from bayplan.testing import Harness, expect, node, pdb, pod
from bayplan.testing.contract import check_plugin

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
                "postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]},
            }
        }
    ],
}


def _quota(namespace: str, *, name: str = "quota", minimum: Any = None, most: Any = None) -> ElasticQuota:
    metadata = Metadata(name=name, namespace=namespace, uid=f"{namespace}/{name}")
    return ElasticQuota(metadata=metadata, spec=ElasticQuotaSpec(min=minimum, max=most))


def _pod(name: str, namespace: str, cpu: Any = 1, **more: Any) -> Pod:
    return pod(name, namespace=namespace, cpu=cpu, **more)


def _running(namespace: str, count: int, *, on: str = "n1", cpu: Any = 1, **more: Any) -> list[Pod]:
    return [_pod(f"{namespace}-{i}", namespace, cpu, node=on, **more) for i in range(count)]


def _harness(*objects: Any, pods: Any = (), nodes: Any = None) -> Harness:
    return Harness(nodes=nodes or [node("n1", cpu=8)], pods=pods, objects=objects, config=CONFIG)


LENDING = (_quota("a", minimum={"cpu": 4}, most={"cpu": 8}), _quota("b", minimum={"cpu": 4}, most={"cpu": 8}))


# PreFilter


def test_a_namespace_without_a_quota_is_not_looked_at() -> None:
    expect(_harness(*LENDING, pods=_running("a", 4)).schedule(_pod("p", "free"))).scheduled_on("n1")


def test_a_namespace_may_borrow_what_nobody_uses() -> None:
    expect(_harness(*LENDING, pods=_running("a", 5)).schedule(_pod("p", "a"))).scheduled_on("n1")


def test_the_maximum_is_the_end() -> None:
    harness = _harness(*LENDING, pods=_running("a", 8), nodes=[node("n1", cpu=20)])

    expect(harness.schedule(_pod("p", "a"))).message_says(
        "Pod a/p is rejected in PreFilter because ElasticQuota a is more than Max"
    )


def test_all_together_get_no_more_than_is_guaranteed_to_all() -> None:
    harness = _harness(*LENDING, pods=[*_running("a", 5), *_running("b", 3)], nodes=[node("n1", cpu=20)])

    expect(harness.schedule(_pod("p", "a"))).message_says(
        "Pod a/p is rejected in PreFilter because total ElasticQuota used is more than min"
    )


def test_what_a_quota_does_not_name_is_not_limited() -> None:
    """The original takes a resource that `max` leaves out for one of which nothing is allowed."""
    harness = _harness(_quota("a", minimum={"cpu": 4}, most={"cpu": 4}))

    expect(harness.schedule(_pod("p", "a", memory="1Gi"))).scheduled_on("n1")


def test_a_resource_that_another_quota_guarantees_is_borrowed() -> None:
    quotas = (_quota("a", minimum={"cpu": 4}), _quota("b", minimum={"cpu": 4, "memory": "1Gi"}))
    harness = _harness(*quotas)

    expect(harness.schedule(_pod("p", "a", memory="1Gi"))).scheduled_on("n1")
    expect(harness.schedule(_pod("q", "a", memory="1Mi"))).message_says("total ElasticQuota used is more than min")


def test_the_number_of_pods_is_limited_too() -> None:
    harness = _harness(_quota("a", minimum={"cpu": 8}, most={"pods": 1}))
    expect(harness.schedule(_pod("p", "a"))).scheduled_on("n1")

    expect(harness.schedule(_pod("q", "a"))).message_says("ElasticQuota a is more than Max")


def test_a_pod_that_asks_for_nothing_of_it_is_not_kept_out_by_an_exceeded_resource() -> None:
    harness = _harness(_quota("a", minimum={"cpu": 1}, most={"cpu": 1}), pods=_running("a", 2))

    expect(harness.schedule(pod("p", namespace="a"))).scheduled_on("n1")


def test_extended_resources_are_counted() -> None:
    gpu = "example.com/gpu"
    harness = _harness(_quota("a", minimum={"cpu": 8, gpu: 2}, most={gpu: 2}), nodes=[node("n1", allocatable={gpu: 8})])
    expect(harness.schedule(_pod("p", "a", requests={gpu: 2}))).scheduled_on("n1")

    expect(harness.schedule(_pod("q", "a", requests={gpu: 1}))).message_says("more than Max")


def test_the_first_quota_of_a_namespace_counts() -> None:
    harness = _harness(_quota("a", name="z", most={"cpu": 0}), _quota("a", name="a", minimum={"cpu": 4}))

    expect(harness.schedule(_pod("p", "a"))).scheduled_on("n1")


def test_nominated_pods_keep_their_share() -> None:
    promised = _pod("promised", "b", 4, nominated="n1")
    harness = _harness(*LENDING, pods=[*_running("a", 4), promised], nodes=[node("n1", cpu=20)])

    expect(harness.schedule(_pod("p", "a"))).message_says("total ElasticQuota used is more than min")


@pytest.mark.parametrize(("priority", "fits"), [(0, False), (-1, True)])
def test_nominated_pods_of_the_same_namespace_count_when_they_are_not_less_important(priority: int, fits: bool) -> None:
    promised = _pod("promised", "a", 8, nominated="n1", priority=priority)
    harness = _harness(*LENDING, pods=[promised], nodes=[node("n1", cpu=20)])
    outcome = harness.schedule(_pod("p", "a"))

    if fits:
        expect(outcome).scheduled_on("n1")
    else:
        expect(outcome).message_says("ElasticQuota a is more than Max")


def test_usage_follows_pods_and_quotas_as_they_change() -> None:
    harness = _harness(*LENDING, nodes=[node("n1", cpu=20)])
    running = _running("a", 8)
    harness.add(*running)
    expect(harness.explain(_pod("p", "a"))).pending()

    harness.remove(running[0])
    expect(harness.explain(_pod("p", "a"))).accepted("n1")

    harness.add(_quota("a", minimum={"cpu": 4}, most={"cpu": 7}))
    expect(harness.explain(_pod("p", "a"))).pending()

    harness.remove(_quota("a"))
    expect(harness.explain(_pod("p", "a"))).accepted("n1")


# PostFilter


def test_what_was_lent_is_taken_back_whatever_the_priority() -> None:
    borrowers = _running("a", 6, priority=100)
    harness = _harness(*LENDING, pods=[*borrowers, *_running("b", 2)])

    outcome = harness.schedule(_pod("p", "b", 2))
    assert len(outcome.victims) == 2
    assert all(victim.startswith("a/") for victim in outcome.victims)


def test_no_more_is_taken_back_than_was_lent() -> None:
    """Namespace a is one over its min; the pod needs two: evicting within the min of a is not an option."""
    harness = _harness(*LENDING, pods=[*_running("a", 5), *_running("b", 2)], nodes=[node("n1", cpu=7)])

    outcome = harness.schedule(_pod("p", "b", 2))
    expect(outcome).pending()
    assert outcome.victims == ()


def test_a_namespace_within_its_min_loses_nobody() -> None:
    quotas = (*LENDING, _quota("c", minimum={"cpu": 4}))
    pods = [*_running("a", 6), *_running("c", 4, priority=-10)]
    harness = _harness(*quotas, pods=pods, nodes=[node("n1", cpu=10)])

    outcome = harness.schedule(_pod("p", "b"))
    assert [victim.split("/")[0] for victim in outcome.victims] == ["a"]


def test_the_least_important_borrowers_go() -> None:
    pods = [_pod(f"a-{i}", "a", node="n1", priority=i) for i in range(6)] + _running("b", 2)
    harness = _harness(*LENDING, pods=pods)

    expect(harness.schedule(_pod("p", "b"))).preempts(["a/a-0"], on="n1")


def test_a_borrower_evicts_only_less_important_pods_of_its_own_namespace() -> None:
    pods = [*_running("a", 4, priority=-5), *_running("b", 4, priority=-10)]
    harness = _harness(*LENDING, pods=pods)

    outcome = harness.schedule(_pod("p", "a"))
    assert [victim.split("/")[0] for victim in outcome.victims] == ["a"]

    equal = _harness(*LENDING, pods=[*_running("a", 4), *_running("b", 4, priority=-10)])
    expect(equal.schedule(_pod("p", "a"))).message_says("No victims found on node n1 for preemptor pod p")


def test_a_pod_without_a_quota_evicts_only_less_important_pods_without_one() -> None:
    pods = [*_running("a", 4, priority=-5), *_running("free", 4, priority=-5)]
    harness = _harness(*LENDING, pods=pods)

    outcome = harness.schedule(_pod("p", "other"))
    assert [victim.split("/")[0] for victim in outcome.victims] == ["free"]


def test_quotas_that_stay_exceeded_after_all_victims_left_end_it() -> None:
    """The borrowers on this node are too few: the others are elsewhere, and one node is all that is looked at."""
    nodes = [node("n1", cpu=2), node("n2", cpu=8)]
    pods = [*_running("a", 1, on="n1", cpu=1), *_running("far", 0)]
    pods += [_pod(f"far-{i}", "a", node="n2") for i in range(7)]
    harness = _harness(*LENDING, pods=pods, nodes=nodes)

    outcome = harness.schedule(_pod("p", "b", 2, node_selector={"kubernetes.io/hostname": "n1"}))
    expect(outcome).message_says("global quota max exceeded")


def test_budgets_are_spared_where_that_is_possible() -> None:
    guarded = [_pod(f"a-{i}", "a", node="n1", labels={"app": "guarded"}) for i in range(3)]
    plain = [_pod(f"a-{i}", "a", node="n1", priority=5) for i in range(3, 6)]
    budget = pdb("budget", {"app": "guarded"}, namespace="a", allowed=0)
    harness = _harness(*LENDING, budget, pods=[*guarded, *plain, *_running("b", 2)])

    outcome = harness.schedule(_pod("p", "b"))
    assert outcome.nominated_node == "n1"
    assert len(outcome.victims) == 1


def test_a_pod_that_never_preempts_says_so() -> None:
    harness = _harness(*LENDING, pods=_running("a", 8))

    expect(harness.schedule(_pod("p", "b", preemption_policy="Never"))).message_says(
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_nobody_is_evicted_twice_for_the_same_pod() -> None:
    """While its victims are being evicted. A question, in which nobody is evicted, may be asked again."""
    harness, started = _harness(*LENDING, pods=_running("a", 8)), list[Any]()
    assert [bool(harness.explain(_pod("p", "b")).victims) for _ in range(2)] == [True, True]
    plugin = harness.plugin("CapacityScheduling")
    plugin._handle = dataclasses.replace(plugin.handle, start_task=lambda name, work: started.append(work))
    assert harness.schedule(_pod("p", "b")).victims

    expect(harness.schedule(_pod("p", "b"))).message_says("waiting for the preemption for this pod to be finished")
    assert len(started) == 1
    started[0].close()


@pytest.mark.parametrize(
    ("leaving", "refuses"),
    [
        (_pod("x", "b", node="n1", terminating=True, priority=-1), True),
        (_pod("x", "b", node="n1", terminating=True), False),
        (_pod("x", "a", node="n1", terminating=True, priority=50), True),
        (_pod("x", "free", node="n1", terminating=True, priority=-1), False),
    ],
)
def test_while_a_victim_is_leaving_the_nominated_node_no_other_is_looked_for(leaving: Pod, refuses: bool) -> None:
    harness = _harness(*LENDING, pods=[*_running("a", 5), leaving])
    plugin: CapacityScheduling = harness.plugin("CapacityScheduling")
    info, state = harness.info(_pod("p", "b", nominated="n1")), CycleState()
    plugin.pre_filter(state, info, harness.cluster.columns())
    diagnosis = Diagnosis(total_nodes=1, absent=Unschedulable("Insufficient cpu"))

    refusal = plugin._ineligible(state, info, diagnosis)
    assert str(refusal).count("not eligible due to a terminating pod on the nominated node.") == refuses
    assert (refusal is None) != refuses
    assert plugin._ineligible(state, info, Diagnosis(total_nodes=1, absent=Unresolvable("gone"))) is None


def test_a_pod_without_a_quota_waits_for_a_less_important_one_without_one() -> None:
    leaving = _pod("x", "free", node="n1", terminating=True, priority=-1)
    harness = _harness(*LENDING, pods=[leaving])
    plugin: CapacityScheduling = harness.plugin("CapacityScheduling")
    info, state = harness.info(_pod("p", "other", nominated="n1")), CycleState()
    plugin.pre_filter(state, info, harness.cluster.columns())

    full = Diagnosis(total_nodes=1, absent=Unschedulable("full"))
    assert "terminating" in str(plugin._ineligible(state, info, full))
    assert "cycleState" in str(plugin._ineligible(CycleState(), info, Diagnosis(total_nodes=1)))


# Events and contract


def test_deleted_pods_wake_others_only_if_a_quota_feels_them() -> None:
    harness = _harness(*LENDING)
    plugin: CapacityScheduling = harness.plugin("CapacityScheduling")
    waiting = harness.info(_pod("p", "a"))

    assert plugin._after_pod_deleted(waiting, harness.info(_pod("x", "b", node="n1")), None) is Hint.QUEUE
    assert plugin._after_pod_deleted(waiting, harness.info(_pod("x", "free", node="n1")), None) is Hint.SKIP


def test_the_plugin_keeps_the_contract() -> None:
    check_plugin(CapacityScheduling, objects=LENDING, pods=(_pod("p", "a"),))
