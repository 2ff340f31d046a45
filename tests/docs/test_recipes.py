"""Each recipe is short, loads as it is printed, keeps the contract, and does what its heading promises."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayplan.framework.registry import Registry
from bayplan.testing import Harness, cluster, expect, node, pod
from bayplan.testing.contract import check_plugin
from tests.docs.markdown import ROOT, blocks

RECIPES = {block.title: block.text for block in blocks(ROOT / "docs" / "recipes.md") if block.language == "python"}
GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
Load = Callable[[str], Any]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def loaded(name: str) -> Any:
        (tmp_path / name).write_text(RECIPES[name])
        (plugin,) = Registry(use_installed=False).load(str(tmp_path / name))
        return plugin

    return loaded


def harness(plugin: Any, nodes: list[Any], pods: list[Any] | None = None, **args: Any) -> Harness:
    given = {plugin.name: args} if args else {}
    return Harness(nodes=nodes, pods=pods or [], plugins=[plugin], args=given, weights={plugin.name: 100})


def test_there_are_twelve_of_ten_to_thirty_lines() -> None:
    lengths = {name: len([line for line in text.splitlines() if line.strip()]) for name, text in RECIPES.items()}

    assert len(lengths) == 12
    assert {name: length for name, length in lengths.items() if not 10 <= length <= 30} == {}


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "stamp_rack.py"])
def test_every_recipe_keeps_the_contract(load: Load, name: str) -> None:
    check_plugin(load(name))


def test_gpus_are_packed(load: Load) -> None:
    nodes = [node("empty", allocatable={GPU: 8}), node("used", allocatable={GPU: 8})]
    made = harness(load("pack_gpus.py"), nodes, [pod("a", node="used", requests={GPU: 4})])

    outcome = made.schedule(pod("b", requests={GPU: 1}))

    expect(outcome).scores("PackGpus", {"empty": 0, "used": 50}).scheduled_on("used")


def test_nodes_with_gpus_are_kept_for_pods_that_need_them(load: Load) -> None:
    made = harness(load("only_gpu_pods.py"), [node("gpu", allocatable={GPU: 8}), node("plain")])

    expect(made.schedule(pod("web"))).scheduled_on("plain")
    expect(made.schedule(pod("train", requests={GPU: 1}))).scheduled_on("gpu")


def test_teams_are_spread(load: Load) -> None:
    made = harness(load("spread_by_team.py"), ["n1", "n2"], [pod("a", node="n1", labels={"team": "red"})])

    expect(made.schedule(pod("b", labels={"team": "red"}))).scheduled_on("n2")


def test_the_cheapest_node_is_filled_first(load: Load) -> None:
    nodes = [node("dear", labels={"price-per-hour": "90"}), node("cheap", labels={"price-per-hour": "7"}), "unknown"]

    expect(harness(load("cheapest.py"), nodes).schedule(pod("a"))).scheduled_on("cheap")


def test_batch_goes_to_spot_nodes_and_the_rest_elsewhere(load: Load) -> None:
    made = harness(load("spot_for_batch.py"), [node("spot", labels={"capacity-type": "spot"}), "steady"])

    expect(made.schedule(pod("batch"))).scheduled_on("spot")
    expect(made.schedule(pod("shop", priority=1000))).scheduled_on("steady")


def test_licences_run_out(load: Load) -> None:
    made = harness(load("licences.py"), [node("n1", labels={"licences": "1"})])
    needs = {"needs-licence": "true"}

    expect(made.schedule(pod("a", labels=needs))).scheduled_on("n1")
    expect(made.schedule(pod("b", labels=needs))).rejected_because("node(s) had no licence left", on="n1")
    expect(made.schedule(pod("c"))).scheduled_on("n1")


def test_nodes_before_maintenance_get_nothing(load: Load) -> None:
    soon, later = str(int(time.time()) + 600), str(int(time.time()) + 36_000)
    nodes = [node("soon", annotations={"maintenance-at": soon}), node("later", annotations={"maintenance-at": later})]

    outcome = harness(load("maintenance.py"), nodes).schedule(pod("a"))

    expect(outcome).rejected_because("node(s) were about to be maintained", on="soon").scheduled_on("later")


def test_pods_go_to_their_data(load: Load) -> None:
    nodes = ["far", node("near", labels={"dataset/maps": "zone"}), node("here", labels={"dataset/maps": "local"})]

    outcome = harness(load("near_the_data.py"), nodes).schedule(pod("a", labels={"dataset": "maps"}))

    expect(outcome).scores("NearTheData", {"far": 0, "near": 50, "here": 100}).scheduled_on("here")


def test_quiet_and_noise_are_kept_apart_both_ways(load: Load) -> None:
    noisy, critical = {"noisy": "true"}, {"latency": "critical"}
    made = harness(load("quiet.py"), ["n1", "n2"], [pod("drum", node="n1", labels=noisy)])

    expect(made.schedule(pod("call", labels=critical))).scheduled_on("n2")
    expect(made.schedule(pod("horn", labels=noisy))).scheduled_on("n1")


def test_a_zone_takes_so_many(load: Load) -> None:
    nodes = [node("a1", labels={ZONE: "a"}), node("a2", labels={ZONE: "a"})]
    made = harness(load("zone_limit.py"), nodes, most=2)
    app = {"app": "web"}

    for name in ("one", "two"):
        expect(made.schedule(pod(name, labels=app))).scheduled()
    expect(made.schedule(pod("three", labels=app))).rejected("a1", "a2").pending()


def test_a_team_gets_so_many(load: Load) -> None:
    made = harness(load("team_quota.py"), ["n1"], most={"red": 1})
    first = pod("one", labels={"team": "red"})

    expect(made.schedule(first)).scheduled()
    expect(made.schedule(pod("two", labels={"team": "red"}))).message_says("team red has 1 pods and may have 1")
    expect(made.schedule(pod("other", labels={"team": "blue"}))).scheduled()
    made.forget(first)
    expect(made.schedule(pod("two", labels={"team": "red"}))).scheduled()


async def test_the_rack_is_written_into_the_pod(load: Load) -> None:
    async with cluster(nodes=[node("n1", labels={"rack": "r7"})], plugins=[load("stamp_rack.py")]) as local:
        await local.create(pod("web"))
        await local.node_of("web", within=60)

        assert (await local.pod("web"))["metadata"]["annotations"]["rack"] == "r7"
