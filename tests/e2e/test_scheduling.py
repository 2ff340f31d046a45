"""The scheduler against a real kube-apiserver: each pod placed once, nothing promised twice, caches true at the end."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.app.live import LiveOptions
from tests.e2e.api_session import PODS, ApiSession, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import keeping_ledger
from tests.e2e.objects import JsonObject, node, pod
from tests.e2e.running import RunSettings, account_for, all_bound, scheduling, settled
from tests.e2e.volume_controller import binding_volumes
from tests.e2e.workload import base, broken_promises, nodes, pods
from tests.waiting import answer, until


async def events_of(api: ApiSession, reason: str, *, count: int = 1, name: str = "") -> list[JsonObject]:
    """Events come behind bindings: wait until there are enough of them."""

    async def enough() -> list[JsonObject] | None:
        found = await api.events(reason=reason, name=name)
        return found if len(found) >= count else None

    return await answer(enough, what=f"{count} events {reason}") or []


async def test_a_thousand_pods_of_ten_shapes_are_each_bound_once(cluster: Cluster) -> None:
    config = cluster.kubeconfig
    node_list = nodes(200)
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(*node_list, *base([n["metadata"]["name"] for n in node_list], 100))
        async with binding_volumes(config), scheduling(config) as live:
            await api.create(*pods(100))
            await all_bound(live, ledger, 1000)
            pod_list = await account_for(live, api)
            scheduled = await events_of(api, "Scheduled", count=1000)
        volumes = await api.items("/api/v1/persistentvolumes")

    assert ledger.moved() == {}
    assert len(pod_list) == 1000
    assert broken_promises(node_list, pod_list, volumes) == []
    assert {event["regarding"]["uid"] for event in scheduled} == {p["metadata"]["uid"] for p in pod_list}
    assert len(scheduled) == 1000


@pytest.mark.usefixtures("programs")
async def test_kubectl_shows_why_a_pod_waits_and_where_others_went(cluster: Cluster) -> None:
    config = cluster.kubeconfig
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(node("small", cpu="1"), node("tiny", cpu="500m"), node("gpu", taints=[taint]))
        async with scheduling(config) as live:
            await api.create(pod("fits", cpu="200m"), pod("huge", cpu="3"))
            await all_bound(live, ledger, 1)
            await events_of(api, "Scheduled")
            await events_of(api, "FailedScheduling")
            await settled(live, api)
            described = await asyncio.to_thread(cluster.kubectl, "describe", "pod", "huge")
            events = await asyncio.to_thread(cluster.kubectl, "get", "events")
            condition = (await api.pod("huge"))["status"]["conditions"][0]

    sentence = (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    assert "Warning  FailedScheduling  " in described.stdout
    assert f"default-scheduler  {sentence}" in described.stdout
    assert "PodScheduled   False" in described.stdout
    assert (condition["reason"], condition["message"]) == ("Unschedulable", sentence)
    assert "Normal    Scheduled          pod/fits   Successfully assigned default/fits to" in events.stdout


async def test_a_preemptor_is_nominated_and_its_victims_spare_the_budget(cluster: Cluster) -> None:
    """Two full nodes; the pods of one are protected by a budget that allows no disruption: the others must go."""
    config = cluster.kubeconfig
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(node("guarded", cpu="2"), node("open", cpu="2"), _class("high", 1000), _class("low", 10))
        budget = await api.call("POST", f"{_POLICY}/poddisruptionbudgets", _budget("web"))
        allowed = {"status": {"disruptionsAllowed": 0, "observedGeneration": budget["metadata"]["generation"]}}
        await api.call("PATCH", f"{_POLICY}/poddisruptionbudgets/web/status", allowed)
        for name, app in (("guarded", "web"), ("open", "batch")):
            selector = {"kubernetes.io/hostname": name}
            graced: JsonObject = {
                "terminationGracePeriodSeconds": 30,
                "priorityClassName": "low",
                "nodeSelector": selector,
            }
            await api.create(*(pod(f"{app}-{i}", cpu="900m", labels={"app": app}, **graced) for i in range(2)))
        async with scheduling(config) as live:
            await all_bound(live, ledger, 4)
            await api.create(pod("urgent", cpu="1500m", priorityClassName="high"))
            await events_of(api, "Preempted", count=2)
            victims = [await api.pod(f"batch-{i}") for i in range(2)]
            nominated = await _nominated(api, "urgent")
            await api.delete_pods("batch-0", "batch-1")
            await all_bound(live, ledger, 5)
            pod_list = await account_for(live, api)
            preempted = await api.events(reason="Preempted")

    by_name = {p["metadata"]["name"]: p for p in pod_list}
    assert nominated["status"]["nominatedNodeName"] == "open"
    assert nominated["status"]["conditions"][0]["reason"] == "Unschedulable"
    assert by_name["urgent"]["spec"]["nodeName"] == "open"
    assert "nominatedNodeName" not in by_name["urgent"]["status"]
    assert set(by_name) == {"web-0", "web-1", "urgent"}
    for victim in victims:
        conditions = {c["type"]: c for c in victim["status"]["conditions"]}
        target = conditions["DisruptionTarget"]
        assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler")
        assert target["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
        assert "deletionTimestamp" in victim["metadata"]
    assert {e["note"] for e in preempted} == {f"Preempted by pod {nominated['metadata']['uid']} on node open"}


_POLICY = "/apis/policy/v1/namespaces/default"


def _class(name: str, value: int) -> JsonObject:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _budget(app: str) -> JsonObject:
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": app}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": spec}


async def _nominated(api: ApiSession, name: str) -> JsonObject:
    async def nominated() -> JsonObject | None:
        found = await api.pod(name)
        return found if found["status"].get("nominatedNodeName") else None

    return await answer(nominated, what=f"a nominated node for {name}") or {}


async def test_pods_of_other_schedulers_take_room_but_are_left_alone(cluster: Cluster) -> None:
    config = cluster.kubeconfig
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(node("only", cpu="1"))
        foreign = pod("foreign", cpu="700m", schedulerName="somebody-else")
        await api.create(foreign, pod("placed", cpu="600m", schedulerName="somebody-else", nodeName="only"))
        async with scheduling(config) as live:
            await api.create(pod("fits", cpu="300m"), pod("waits", cpu="300m"))
            await all_bound(live, ledger, 2)
            await events_of(api, "FailedScheduling")
            pod_list = await account_for(live, api)

    by_name = {p["metadata"]["name"]: p for p in pod_list}
    bound = {name for name, p in by_name.items() if p["spec"].get("nodeName")}
    assert len(bound & {"fits", "waits"}) == 1
    assert "conditions" not in by_name["foreign"]["status"]
    assert "nodeName" not in by_name["foreign"]["spec"]


TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: spreading
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}]
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]
"""


async def test_several_profiles_of_one_process_decide_each_in_its_way(cluster: Cluster) -> None:
    config = cluster.kubeconfig
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(*(node(f"node-{i}", cpu="4") for i in range(4)))
        async with scheduling(config, RunSettings(config=TWO_PROFILES)) as live:
            await api.create(*(pod(f"pack-{i}", cpu="500m", schedulerName="packing") for i in range(4)))
            await all_bound(live, ledger, 4)
            await settled(live, api)
            await api.create(*(pod(f"spread-{i}", cpu="500m", schedulerName="spreading") for i in range(3)))
            await api.create(pod("nobody", schedulerName="default-scheduler"))
            await all_bound(live, ledger, 7)
            pod_list = await account_for(live, api)
            scheduled = await events_of(api, "Scheduled", count=7)

    where = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in pod_list}
    packed = {where[f"pack-{i}"] for i in range(4)}
    assert len(packed) == 1
    assert len({where[f"spread-{i}"] for i in range(3)} - packed) == 3
    assert where["nobody"] is None
    assert {(e["reportingController"], e["regarding"]["name"].split("-")[0]) for e in scheduled} == {
        ("packing", "pack"),
        ("spreading", "spread"),
    }


async def test_a_gated_pod_waits_for_its_gate_and_a_deleted_one_for_nothing(cluster: Cluster) -> None:
    config = cluster.kubeconfig
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(node("node", cpu="1"))
        async with scheduling(config) as live:
            await api.create(pod("gated", schedulingGates=[{"name": "example.test/wait"}]), pod("huge", cpu="8"))
            await until(lambda: live.queue.sizes.gated == 1, what="one gated pod")
            await until(lambda: live.queue.sizes.unschedulable == 1, what="one unschedulable pod")
            assert (await api.pod("gated"))["status"]["conditions"][0]["reason"] == "SchedulingGated"
            await api.delete_pods("huge")
            await api.call("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": None}})
            await all_bound(live, ledger, 1)
            pod_list = await account_for(live, api)

    assert {p["metadata"]["name"]: p["spec"].get("nodeName") for p in pod_list} == {"gated": "node"}


async def test_a_waiting_pod_is_tried_when_a_node_comes_or_a_pod_leaves(cluster: Cluster) -> None:
    """The flush timers are minutes away: only hints can wake these pods in time."""
    config = cluster.kubeconfig
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(node("first", cpu="1"))
        async with scheduling(config, RunSettings(options=LiveOptions(seed=1))) as live:
            await api.create(pod("a", cpu="800m"))
            await all_bound(live, ledger, 1)
            await api.create(pod("b", cpu="800m"), pod("c", cpu="800m"))
            await until(lambda: live.queue.sizes.unschedulable == 2, what="two waiting pods")
            await api.delete_pods("a")
            await all_bound(live, ledger, 2, seconds=20)
            await api.create(node("second", cpu="1"))
            await all_bound(live, ledger, 3, seconds=20)
            await account_for(live, api)

    assert ledger.moved() == {}
