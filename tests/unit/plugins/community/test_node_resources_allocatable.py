"""NodeResourcesAllocatable: nodes by size, in whole numbers."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.config.errors import ConfigError
from bayplan.framework.normalize import normalize_range
from bayplan.plugins.community.node_resources_allocatable import NodeResourcesAllocatable, normalize_whole_range
from bayplan.testing import Harness, expect, node, pod
from bayplan.testing.contract import check_plugin

NAME = "NodeResourcesAllocatable"
GROWING = (
    node("n1", cpu="1000m", memory="1000Mi"),
    node("n2", cpu="2000m", memory="2000Mi"),
    node("n3", cpu="3000m", memory="3000Mi"),
)


def _harness(*nodes: Any, remember: bool = True, pods: tuple[Any, ...] = (), **args: Any) -> Harness:
    return Harness(
        nodes=nodes,
        pods=pods,
        plugins=[NodeResourcesAllocatable],
        args={NAME: args},
        default_plugins=False,
        remember=remember,
    )


def _weights(**weights: int) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def test_least_prefers_the_smallest_node_and_most_the_largest() -> None:
    least, most = _harness(*GROWING), _harness(*GROWING, mode="Most")

    expect(least.explain(pod("web"))).scores(NAME, {"n1": 100, "n2": 50, "n3": 0})
    expect(most.explain(pod("web"))).scores(NAME, {"n1": 0, "n2": 50, "n3": 100})


@pytest.mark.parametrize("mode", ["Least", "Most"])
def test_nodes_of_one_size_score_nothing(mode: str) -> None:
    nodes = (node("n1", cpu=4, memory="10Gi"), node("n2", cpu=4, memory="10Gi"))

    expect(_harness(*nodes, mode=mode).explain(pod("web"))).scores(NAME, {"n1": 0, "n2": 0})


def test_neither_the_pods_requests_nor_what_runs_on_a_node_count() -> None:
    harness = _harness(*GROWING, pods=(pod("running", cpu="900m", node="n1"),))

    expect(harness.explain(pod("large", cpu="100m"))).scores(NAME, {"n1": 100, "n2": 50, "n3": 0})


def test_a_thousandth_of_a_cpu_weighs_as_much_as_a_mebibyte() -> None:
    nodes = (node("cpu", cpu="2000m", memory="1000Mi"), node("memory", cpu="1000m", memory="1999Mi"))

    expect(_harness(*nodes).explain(pod("web"))).scores(NAME, {"cpu": 0, "memory": 100})


def test_extended_resources_count_and_unknown_names_do_not() -> None:
    nodes = (node("n1", allocatable={"example.com/gpu": 2}), node("n2", allocatable={"example.com/gpu": 6}), node("n3"))
    gpus = _harness(*nodes, mode="Most", resources=[{"name": "example.com/gpu", "weight": 1}])
    nonsense = _harness(*nodes, mode="Most", resources=[{"name": "pods", "weight": 5}])

    expect(gpus.explain(pod("web"))).scores(NAME, {"n1": 33, "n2": 100, "n3": 0})
    expect(nonsense.explain(pod("web"))).scores(NAME, {"n1": 0, "n2": 0, "n3": 0})


def test_the_last_weight_of_a_resource_named_twice_counts_and_no_resources_mean_the_default_ones() -> None:
    twice = _harness(*GROWING, resources=[*_weights(cpu=7), *_weights(cpu=1)])
    none = _harness(*GROWING, resources=[])

    assert twice.plugin(NAME)._total_weight == 1
    expect(none.explain(pod("web"))).scores(NAME, {"n1": 100, "n2": 50, "n3": 0})


def test_products_beyond_63_bits_are_exact() -> None:
    """The original's sum overflows, and prefers the wrong node."""
    heavy = _harness(*GROWING, mode="Most", resources=_weights(memory=2**62, cpu=2**61))

    expect(heavy.explain(pod("web"))).scores(NAME, {"n1": 0, "n2": 50, "n3": 100})


def test_a_range_beyond_63_bits_is_stretched_exactly() -> None:
    nodes = (node("n1", memory=0), node("n2", memory=2**61), node("n3", memory=2**62))

    harness = _harness(*nodes, mode="Most", resources=_weights(memory=1))
    expect(harness.explain(pod("web"))).scores(NAME, {"n1": 0, "n2": 50, "n3": 100})


def test_a_node_that_changes_is_scored_anew() -> None:
    harness = _harness(*GROWING)
    expect(harness.explain(pod("web"))).scores(NAME, {"n1": 100, "n2": 50, "n3": 0})

    harness.add(node("n1", cpu="5000m", memory="5000Mi"))
    expect(harness.explain(pod("web"))).scores(NAME, {"n1": 0, "n2": 100, "n3": 66})


def test_negative_raw_scores_need_no_second_look() -> None:
    """Least gives raw scores below zero; taking them for a mistake would cost every decision."""
    harness = _harness(*GROWING)
    harness.schedule(pod("web"))

    framework = harness.framework()
    assert not framework.plan(harness.info(pod("web"))).evaluation.is_suspect
    assert normalize_range.takes_negative
    assert normalize_whole_range.takes_negative


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            {"resources": _weights(cpu=0)},
            "resources[0].weight: resource weight of cpu should be a positive value, got :0",
        ),
        (
            {"resources": [*_weights(cpu=1), *_weights(memory=-3)]},
            "resources[1].weight: resource weight of memory should be a positive value, got :-3",
        ),
        ({"mode": "Middle"}, "mode: invalid support ModeType"),
    ],
)
def test_wrong_arguments_are_refused_with_their_path(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _harness(*GROWING, **args)

    assert problem in str(caught.value)


def test_the_plugin_keeps_the_contract() -> None:
    check_plugin(NodeResourcesAllocatable)
