"""GPU sharing: which nodes have room, which device a pod gets, and where that is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.waiting import until

from bayplan.plugins.community.gpu_share import GpuShareBestFit, GpuShareClustering, GpuShareFGD, GpuSharePacking
from bayplan.plugins.community.gpu_share.devices import GpuRequest
from bayplan.plugins.community.gpu_share.policies import packing
from bayplan.testing import Harness, cluster, expect, node, pod

MILLI = "alibabacloud.com/gpu-milli"
INDEX = "alibabacloud.com/gpu-index"


def gpu_node(name: str, gpus: int = 2, cpu: int = 16, **more: Any) -> Any:
    return node(name, cpu=cpu, memory="64Gi", allocatable={MILLI: 1000 * gpus}, **more)


def gpu_pod(name: str, milli: int, cpu: int = 1, **more: Any) -> Any:
    return pod(name, cpu=cpu, requests={MILLI: milli}, **more)


def running(name: str, milli: int, on: str, index: str = "") -> Any:
    annotations = {INDEX: index} if index else {}
    return gpu_pod(name, milli, node=on, annotations=annotations)


def harness(*nodes: Any, plugin: Any = GpuShareBestFit, pods: tuple[Any, ...] = (), **args: Any) -> Harness:
    return Harness(nodes=nodes, pods=pods, plugins=[plugin], args={plugin.name: args})


def test_a_share_needs_room_on_one_device_whatever_the_node_has_in_total() -> None:
    """Two halves are no whole."""
    pods = (running("a", 600, "n1", "0"), running("b", 600, "n1", "1"))

    outcome = harness(gpu_node("n1"), pods=pods).schedule(gpu_pod("new", 700))

    expect(outcome).rejected_because("node(s) had no GPU with enough room", by="GpuShareBestFit")


def test_several_devices_are_given_whole() -> None:
    pods = (running("a", 100, "n1", "1"),)
    several = harness(gpu_node("n1", gpus=3), pods=pods)

    two = gpu_pod("two", 2000)

    expect(several.schedule(two)).scheduled_on("n1")
    assert several.plugin("GpuShareBestFit")._held.by_uid[two.uid] == (0, 2)


def test_more_than_a_device_must_be_whole_devices() -> None:
    outcome = harness(gpu_node("n1")).schedule(gpu_pod("odd", 1500))

    assert "1500 thousandths" in outcome.message


def test_a_share_goes_to_the_device_that_it_fits_best() -> None:
    pods = (running("a", 300, "n1", "1"),)
    sharing = harness(gpu_node("n1"), pods=pods)

    new = gpu_pod("new", 700)

    expect(sharing.schedule(new)).scheduled_on("n1")
    assert sharing.plugin("GpuShareBestFit")._held.by_uid[new.uid] == (1,)


def test_a_pod_that_was_placed_by_others_counts_where_it_fits_best() -> None:
    """Its annotation is missing, so it may be on either device; a whole one is still free."""
    sharing = harness(gpu_node("n1"), pods=(running("foreign", 300, "n1"),))

    expect(sharing.schedule(gpu_pod("whole", 1000))).scheduled_on("n1")
    expect(sharing.schedule(gpu_pod("rest", 700))).scheduled_on("n1")


@pytest.mark.parametrize("index", ["²", "1-²", "9" * 5000, "-", "0-x", "0-1", "0-0"])
def test_what_a_pod_of_others_says_of_its_devices_fails_nobody(index: str) -> None:
    """Whoever may write annotations on a pod can write anything there."""
    sharing = harness(gpu_node("n1"), pods=(running("odd", 300, "n1", index),))

    expect(sharing.schedule(gpu_pod("whole", 1000))).scheduled_on("n1")


def test_a_device_is_free_again_when_its_pod_is_gone() -> None:
    first = gpu_pod("first", 1000)
    sharing = harness(gpu_node("n1", gpus=1))
    sharing.schedule(first)
    sharing.forget(first)

    expect(sharing.schedule(gpu_pod("second", 1000))).scheduled_on("n1")


def test_devices_are_counted_by_an_extended_resource_or_a_label() -> None:
    count = "alibabacloud.com/gpu-count"
    by_resource = node("n1", cpu=8, memory="8Gi", allocatable={count: 1})
    by_label = node("n2", cpu=8, memory="8Gi", labels={count: "2"})
    sharing = Harness(nodes=(by_resource, by_label), plugins=[GpuShareBestFit])

    expect(sharing.schedule(pod("one", requests={count: 1}))).scheduled_on("n1")
    assert [sharing.plugin("GpuShareBestFit")._device_count(info) for info in sharing.cluster.columns()] == [1, 2]


def test_packing_prefers_devices_in_use() -> None:
    pods = (running("a", 300, "n2", "0"),)

    outcome = harness(gpu_node("n1"), gpu_node("n2"), plugin=GpuSharePacking, pods=pods).explain(gpu_pod("new", 500))

    expect(outcome).scheduled_on("n2")


@pytest.mark.parametrize(
    ("request_of_pod", "scores"),
    [
        (GpuRequest(300, 1), [95, 49, 29, 91]),
        (GpuRequest(600, 1), [49, 49, 29, 91]),
        (GpuRequest(1000, 1), [49, 49, 29, 49]),
        (GpuRequest(1000, 2), [48, 48, 29, 48]),
        (GpuRequest(0, 0), [0, 0, 0, 0]),
    ],
)
def test_packing_scores_by_room_on_devices_in_use_then_by_idle_devices_taken(
    request_of_pod: GpuRequest, scores: list[int]
) -> None:
    """A node with a half-used device, one with a full one, an idle one, and one with nearly idle and idle devices."""
    free = np.array([[500, 0, 1000, 900], [1000, 1000, 1000, 1000], [1000, 1000, 1000, 1000], [1000, 0, 1000, 900]])

    assert packing(free, np.array([4, 4, 4, 4]), request_of_pod).tolist() == scores


def test_clustering_prefers_nodes_with_the_same_kind_of_request() -> None:
    pods = (running("share", 300, "n1", "0"), running("whole", 1000, "n2", "0"))
    nodes = (gpu_node("n1", 4), gpu_node("n2", 4))

    expect(harness(*nodes, plugin=GpuShareClustering, pods=pods).explain(gpu_pod("new", 1000))).scheduled_on("n2")
    expect(harness(*nodes, plugin=GpuShareClustering, pods=pods).explain(gpu_pod("new", 200))).scheduled_on("n1")


def test_fgd_keeps_whole_devices_for_pods_that_need_them() -> None:
    typical = [{"cpuMilli": 1000, "gpuMilli": 1000, "gpuCount": 1, "pods": 9}, {"gpuMilli": 300, "gpuCount": 1}]
    pods = (running("a", 300, "n2", "1"),)
    fgd = harness(gpu_node("n1"), gpu_node("n2"), plugin=GpuShareFGD, pods=pods, typicalPods=typical)

    new = gpu_pod("new", 300)

    expect(fgd.schedule(new)).scheduled_on("n2")
    assert fgd.plugin("GpuShareFGD")._held.by_uid[new.uid] == (1,)


def test_fgd_gives_a_share_a_device_with_room_before_it_knows_any_typical_pod() -> None:
    fgd = harness(gpu_node("n1"), plugin=GpuShareFGD, pods=(running("a", 600, "n1", "0"),))
    new = gpu_pod("new", 600)

    expect(fgd.schedule(new)).scheduled_on("n1")
    assert fgd.plugin("GpuShareFGD")._held.by_uid[new.uid] == (1,)


def test_fgd_gives_a_share_a_device_with_room_however_badly_that_scores() -> None:
    """Taking from the one whole device costs all pods that need one: the lowest score that there is."""
    typical = [{"cpuMilli": 100, "gpuMilli": 1000, "gpuCount": 8, "pods": 1}]
    pods = (running("a", 1000, "n1", "0"),)
    fgd = harness(gpu_node("n1", gpus=9), plugin=GpuShareFGD, pods=pods, typicalPods=typical)
    new = gpu_pod("new", 600)

    expect(fgd.schedule(new)).scheduled_on("n1")
    assert fgd.plugin("GpuShareFGD")._held.by_uid[new.uid] == (1,)


def test_the_second_key_decides_between_nodes_of_one_score() -> None:
    nodes = [gpu_node(f"node-{number}") for number in (7, 10, 3)]

    outcome = harness(*nodes, secondKey="NodeNumber").explain(gpu_pod("new", 500))

    expect(outcome).scheduled_on("node-3")
    expect(outcome).scores("GpuShareBestFit", {"node-3": 100})


def test_an_unknown_second_key_is_refused() -> None:
    with pytest.raises(Exception, match="secondKey"):
        harness(gpu_node("n1"), secondKey="Colour")


def test_a_device_that_is_being_written_is_not_given_away_when_plugins_are_replaced() -> None:
    """Another instance, of another profile or after a reload, sees the pod on its node without an annotation."""
    first = gpu_pod("first", 300)
    sharing = harness(gpu_node("n1"), pods=(running("a", 600, "n1", "1"),))
    sharing.schedule(first)
    old = sharing.plugin("GpuShareBestFit")
    new = type(old)(old.args, old.handle)

    assert old._held.by_uid[first.uid] == (1,)
    assert new.devices_of(old.handle.cluster.node("n1")).free == [1000, 100]


async def test_the_chosen_device_is_written_before_the_pod_is_bound() -> None:
    async with cluster(nodes=[gpu_node("n1")], plugins=[GpuShareBestFit]) as local:
        await local.create(gpu_pod("web", 300))

        assert await local.node_of("web") == "n1"
        assert (await local.pod("web"))["metadata"]["annotations"][INDEX] == "0"


async def test_fragmentation_is_a_metric() -> None:
    """A third of the only GPU is left, and nine of ten typical pods want a whole one."""
    typical = "[{gpuMilli: 1000, gpuCount: 1, pods: 9}, {gpuMilli: 300, gpuCount: 1, pods: 1}]"
    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {{multiPoint: {{enabled: [{{name: GpuShareFGD}}]}}}}
  pluginConfig: [{{name: GpuShareFGD, args: {{typicalPods: {typical}}}}}]
"""
    async with cluster(nodes=[gpu_node("n1", gpus=1)], config=config) as local:
        await local.create(gpu_pod("web", 700))
        await local.node_of("web")
        plugin: Any = local.scheduler.profiles["default-scheduler"].framework.plugins["GpuShareFGD"]
        await until(lambda: plugin.idle.value() == 300)

        assert plugin.fragmented.value("lack_gpu") == pytest.approx(270)
