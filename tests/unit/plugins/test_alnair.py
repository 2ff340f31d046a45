"""The Alnair pair: packing, spreading, and nodes with and without GPUs."""

from __future__ import annotations

import pytest

from bayplan.plugins.community.alnair_cost_saving import AlnairCostSaving
from bayplan.plugins.community.alnair_high_performance import AlnairHighPerformance
from bayplan.testing import Harness, container, expect, node, pod

MEMORY = "alnair/vgpu-memory"


def _gpu_node(name: str, *, physical: str = "1", virtual: str = "16,16", spelling: str = "virtual") -> object:
    prefix = "ai.centaurus.io"
    counts = {f"{prefix}/physical-gpu-count": physical, f"{prefix}/{spelling}-gpu-count": virtual}
    return node(name, allocatable={MEMORY: 16}, annotations=counts)


def _gpu_pod(name: str, memory: int, *, on: str = "") -> object:
    return pod(name, requests={MEMORY: memory}, limits={MEMORY: memory}, node=on)


def _harness(plugin: type, *nodes: object, pods: tuple[object, ...] = ()) -> Harness:
    return Harness(nodes=nodes, pods=pods, plugins=[plugin], default_plugins=False)  # type: ignore[arg-type]


def test_cost_saving_packs_and_high_performance_spreads() -> None:
    nodes = (_gpu_node("busy"), _gpu_node("idle"))
    running = (_gpu_pod("running", 4, on="busy"),)

    packed = _harness(AlnairCostSaving, *nodes, pods=running).schedule(_gpu_pod("new", 2))  # type: ignore[arg-type]
    spread = _harness(AlnairHighPerformance, *nodes, pods=running).schedule(_gpu_pod("new", 2))  # type: ignore[arg-type]

    expect(packed).scores("alnaircostsaving", {"busy": 100, "idle": 0}).scheduled_on("busy")
    expect(spread).scores("alnairhighperformance", {"busy": 0, "idle": 100}).scheduled_on("idle")


def test_equal_nodes_all_score_100() -> None:
    harness = _harness(AlnairCostSaving, _gpu_node("a"), _gpu_node("b"))

    expect(harness.explain(pod("web"))).scores("alnaircostsaving", {"a": 100, "b": 100})


def test_a_container_without_a_limit_makes_its_node_count_as_empty() -> None:
    running = pod("mixed", node="busy", containers=[container("gpu", limits={MEMORY: 4}), container("log")])
    harness = _harness(AlnairCostSaving, _gpu_node("busy"), _gpu_node("idle"), pods=(running,))

    expect(harness.explain(pod("web"))).scores("alnaircostsaving", {"busy": 100, "idle": 100})


@pytest.mark.parametrize("count", ["", "many", "-1", "3"])
def test_a_gpu_that_is_too_small_or_not_counted_is_refused(count: str) -> None:
    harness = _harness(AlnairCostSaving, _gpu_node("n1", virtual=count))

    expect(harness.schedule(_gpu_pod("new", 4))).rejected_because("Node:n1", on="n1")  # type: ignore[arg-type]


def test_the_device_plugins_spelling_of_the_count_is_read() -> None:
    harness = _harness(AlnairCostSaving, _gpu_node("n1", spelling="vitual"))

    expect(harness.schedule(_gpu_pod("new", 4))).scheduled_on("n1")  # type: ignore[arg-type]


def test_pods_without_gpus_pass_cost_saving_and_need_a_gpu_node_in_high_performance() -> None:
    expect(_harness(AlnairCostSaving, node("plain")).schedule(pod("web"))).scheduled_on("plain")
    expect(_harness(AlnairHighPerformance, node("plain")).schedule(pod("web"))).rejected("plain")
