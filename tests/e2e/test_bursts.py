"""A thousand pods that wait for a scheduler to come: every decision keeps its reasons, at full rate."""

from __future__ import annotations

import pytest

from tests.e2e.api_session import api_session
from tests.e2e.clusters import Cluster
from tests.e2e.explaining import explaining
from tests.e2e.objects import node, pod
from tests.waiting import until

PODS, NODES = 1_000, 40


@pytest.mark.slow
async def test_every_pod_of_a_burst_keeps_funnel_points_and_runner_up(cluster: Cluster) -> None:
    async with api_session(cluster.kubeconfig) as api:
        tainted = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
        await api.create(*(node(f"node-{i}", cpu="64", **({} if i % 4 else {"taints": tainted})) for i in range(NODES)))
        await api.create(*(pod(f"web-{i}", cpu="100m") for i in range(PODS)))
        async with explaining(cluster) as (live, service):
            recorder = service.recorder
            await until(lambda: recorder.bound_count >= PODS, what="all bound", instead=lambda: live.queue.sizes)
            records = [recorder.of_pod(f"default/web-{i}", most=1)[0] for i in range(PODS)]
            homes = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in await api.pods()}
            sentences = [service.explain_pod(f"default/web-{i}").verdict for i in range(0, PODS, 50)]

    for record in records:
        assert record.outcome == "bound" and record.node == homes[record.pod.partition("/")[2]]
        assert (record.nodes, record.feasible) == (NODES, NODES - NODES // 4)
        assert [step.plugin for step in record.funnel] == ["TaintToleration"]
        assert [step.left for step in record.funnel] == [record.feasible]
        assert sum(points.weighted for points in record.points.values()) == record.total > 0
        second = record.runner_up
        assert second is not None and second.node != record.node
        assert sum(points.weighted for points in second.points.values()) == second.total <= record.total
        assert (record.ties > 1) == (second.total == record.total)
        assert record.tie_break == ("drawn with the seed" if record.ties > 1 else "")
    assert all(" points" in sentence for sentence in sentences)
