"""NodeResourceTopologyMatch: fragmented nodes are avoided, cells are scored, and columns agree with the plain form."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from bayplan.api.meta import Metadata
from bayplan.api.pod import Pod
from bayplan.config.errors import ConfigError
from bayplan.framework import CycleState
from bayplan.plugins.community.node_resource_topology_match import NodeResourceTopologyMatch
from bayplan.plugins.community.node_resource_topology_match.fingerprint import fingerprint
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import (
    NodeResourceTopology,
    TopologyAttribute,
    TopologyResource,
    Zone,
    ZoneCost,
)
from bayplan.testing import Harness, container, expect, node, pod

NAME = "NodeResourceTopologyMatch"
DEVICE = "example.com/gpu"


def _zone(number: int, costs: dict[int, int] | None = None, **available: Any) -> Zone:
    resources = [
        TopologyResource(name=name.replace("gpu", DEVICE), capacity=amount, allocatable=amount, available=amount)
        for name, amount in available.items()
    ]
    listed = [ZoneCost(name=f"node-{other}", value=cost) for other, cost in (costs or {}).items()]
    return Zone(name=f"node-{number}", type="Node", resources=resources, costs=listed or None)


def _topology(name: str, *zones: Zone, scope: str = "container", policy: str = "single-numa-node", **more: str) -> Any:
    attributes = {"topologyManagerScope": scope, "topologyManagerPolicy": policy, **more}
    return NodeResourceTopology(
        metadata=Metadata(name=name, uid=name),
        zones=list(zones),
        attributes=[TopologyAttribute(name=key, value=value) for key, value in attributes.items()],
    )


def _guaranteed(name: str = "p", cpu: Any = 2, memory: Any = "20Mi", **more: Any) -> Pod:
    amounts = {"cpu": cpu, "memory": memory}
    return pod(name, requests=amounts, limits=amounts, **more)


def _container(name: str, cpu: Any, memory: Any = "1Mi", **more: Any) -> Any:
    amounts = {"cpu": cpu, "memory": memory}
    return container(name, requests=amounts, limits=amounts, **more)


def _harness(*topologies: Any, nodes: Any = None, pods: Any = (), **args: Any) -> Harness:
    names = [each.metadata.name for each in topologies]
    cluster = nodes or [node(name, cpu=64, memory="64Gi", allocatable={DEVICE: 8}) for name in names]
    given = {NAME: args} if args else None
    return Harness(
        nodes=cluster, objects=topologies, pods=pods, plugins=[NodeResourceTopologyMatch], args=given,
        default_plugins=False,
    )  # fmt: skip


HALVES = (_zone(0, cpu=4, memory="8Gi"), _zone(1, cpu=4, memory="8Gi"))


# Filter


def test_a_node_whose_cells_are_too_small_is_avoided_though_its_sum_fits() -> None:
    harness = _harness(_topology("split", *HALVES), _topology("whole", _zone(0, cpu=8, memory="16Gi")))

    outcome = harness.schedule(_guaranteed(cpu=6))
    expect(outcome).rejected_because("cannot align container", on="split", by=NAME).scheduled_on("whole")


def test_nodes_without_an_object_or_with_another_policy_are_let_pass() -> None:
    relaxed = _topology("relaxed", *HALVES, policy="best-effort")
    harness = _harness(relaxed, nodes=[node("relaxed", cpu=64), node("unknown", cpu=64)])

    expect(harness.explain(_guaranteed(cpu=6))).accepted("relaxed", "unknown")


def test_containers_take_from_the_cells_one_after_the_other() -> None:
    harness = _harness(_topology("n", *HALVES))
    two = [_container("a", 3), _container("b", 3)]

    expect(harness.explain(pod("fits", containers=two))).accepted("n")
    expect(harness.explain(pod("not", containers=[*two, _container("c", 2)]))).rejected_because(
        "cannot align container"
    )


def test_init_containers_need_room_but_take_none() -> None:
    harness = _harness(_topology("n", *HALVES))
    fits = pod("fits", init_containers=[_container("i", 4)], containers=[_container("a", 4), _container("b", 4)])
    large = pod("large", init_containers=[_container("i", 5)], containers=[_container("a", 1)])
    sidecar = pod("sidecar", init_containers=[_container("s", 5, sidecar=True)], containers=[_container("a", 1)])

    expect(harness.explain(fits)).accepted("n")
    expect(harness.explain(large)).rejected_because("cannot align init container")
    expect(harness.explain(sidecar)).rejected_because("cannot align sidecar container")


def test_in_the_pod_scope_the_whole_pod_needs_one_cell() -> None:
    harness = _harness(_topology("n", *HALVES, scope="pod"))

    expect(harness.explain(pod("p", containers=[_container("a", 2), _container("b", 2)]))).accepted("n")
    expect(harness.explain(pod("p", containers=[_container("a", 3), _container("b", 2)]))).rejected_because(
        "cannot align pod"
    )


def test_pods_that_are_not_guaranteed_need_a_cell_for_devices_only() -> None:
    zones = (_zone(0, cpu=1, memory="1Gi", gpu=1), _zone(1, cpu=1, memory="1Gi", gpu=3))
    harness = _harness(_topology("n", *zones))

    expect(harness.explain(pod("burst", cpu=8, requests={DEVICE: 3}))).accepted("n")
    expect(harness.explain(pod("many", cpu=1, requests={DEVICE: 4}))).rejected_because("cannot align container")
    expect(harness.explain(pod("idle"))).accepted("n")
    expect(harness.explain(pod("device-only", requests={DEVICE: 4}))).rejected("n")


def test_a_device_that_no_cell_lists_belongs_to_the_node_and_one_the_node_lacks_fits_nowhere() -> None:
    harness = _harness(_topology("n", *HALVES))

    expect(harness.explain(pod("host", requests={DEVICE: 8}))).accepted("n")
    expect(harness.explain(pod("none", requests={"example.com/fpga": 1}))).rejected("n")


def test_cells_may_have_any_number_and_other_zones_do_not_count() -> None:
    zones = (
        _zone(700, cpu=6, memory="8Gi"),
        _zone(2, cpu=4, memory="8Gi"),
        Zone(name="numa-node-0", type="Node", resources=_zone(0, cpu=64, memory="8Gi").resources),
        Zone(name="node-5", type="Socket", resources=_zone(0, cpu=64, memory="8Gi").resources),
    )
    harness = _harness(_topology("n", *zones))

    expect(harness.explain(_guaranteed(cpu=6))).accepted("n")
    expect(harness.explain(_guaranteed(cpu=7))).rejected("n")


def test_a_changed_or_deleted_object_is_seen_at_once() -> None:
    small = _topology("n", *HALVES)
    harness = _harness(small)
    expect(harness.explain(_guaranteed(cpu=6))).rejected("n")

    harness.add(_topology("n", _zone(0, cpu=8, memory="8Gi")))
    expect(harness.explain(_guaranteed(cpu=6))).accepted("n")

    harness.add(small)
    harness.remove(small)
    expect(harness.explain(_guaranteed(cpu=6))).accepted("n")


def test_a_node_that_takes_the_row_of_another_is_not_mistaken_for_it() -> None:
    harness = _harness(_topology("n", *HALVES))
    expect(harness.explain(_guaranteed(cpu=6))).rejected("n")
    harness.remove(node("n"))
    harness.add(node("other", cpu=64))

    expect(harness.explain(_guaranteed(cpu=6))).accepted("other")


# Score


@pytest.mark.parametrize(
    ("strategy", "scores"),
    [
        ("MostAllocated", {"n1": 27, "n2": 70, "n3": 33}),
        ("LeastAllocated", {"n1": 73, "n2": 30, "n3": 66}),
        ("BalancedAllocation", {"n1": 89, "n2": 82, "n3": 100}),
    ],
)
@pytest.mark.parametrize("scope", ["pod", "container"])
def test_the_strategies_score_as_the_original_does(strategy: str, scores: dict[str, int], scope: str) -> None:
    harness = _harness(
        _topology("n1", _zone(0, cpu=4, memory="500Mi"), _zone(1, cpu=4, memory="500Mi"), scope=scope),
        _topology("n2", _zone(0, cpu=2, memory="50Mi"), _zone(1, cpu=2, memory="50Mi"), scope=scope),
        _topology("n3", _zone(0, cpu=6, memory="60Mi"), _zone(1, cpu=6, memory="60Mi"), scope=scope),
        scoringStrategy={"type": strategy},
    )

    expect(harness.explain(_guaranteed())).scores(NAME, scores)


def test_pods_that_are_not_guaranteed_score_100_and_unknown_nodes_0() -> None:
    harness = _harness(_topology("n", *HALVES), nodes=[node("n", cpu=64), node("unknown", cpu=64)])

    expect(harness.explain(pod("burst", cpu=1))).scores(NAME, {"n": 100, "unknown": 100})
    assert expect(harness.explain(_guaranteed())).score(NAME, "unknown") == 0


def test_weights_below_one_count_as_one() -> None:
    zones = (_zone(0, cpu=4, memory="500Mi"),)
    resources = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 0}]
    harness = _harness(_topology("n", *zones), scoringStrategy={"type": "MostAllocated", "resources": resources})

    expect(harness.explain(_guaranteed())).scores(NAME, {"n": (3 * 50 + 4) // 4})


NEAR = {0: 10, 1: 12, 2: 20, 3: 20}


def _quarters(**more: str) -> Any:
    costs = [NEAR, {0: 12, 1: 10, 2: 20, 3: 20}, {0: 20, 1: 20, 2: 10, 3: 12}, {0: 20, 1: 20, 2: 12, 3: 10}]
    return _topology("n", *(_zone(i, costs[i], cpu=4, memory="8Gi") for i in range(4)), policy="restricted", **more)


@pytest.mark.parametrize(("cpu", "score"), [(4, 94), (8, 82), (16, 58), (17, 0)])
@pytest.mark.parametrize("scope", ["pod", "container"])
def test_fewer_and_nearer_cells_score_more(cpu: int, score: int, scope: str) -> None:
    harness = _harness(_quarters(scope=scope), scoringStrategy={"type": "LeastNUMANodes"})

    expect(harness.explain(_guaranteed(cpu=cpu))).scores(NAME, {"n": score})


def test_cells_that_are_far_apart_score_less() -> None:
    costs = [{0: 10, 1: 12, 2: 20}, {0: 12, 1: 10, 2: 20}, {0: 20, 1: 20, 2: 10}]
    zones = [_zone(0, costs[0], cpu=4, memory="8Gi"), _zone(1, costs[1], cpu=0, memory="8Gi")]
    harness = _harness(
        _topology("n", *zones, _zone(2, costs[2], cpu=4, memory="8Gi")), scoringStrategy={"type": "LeastNUMANodes"}
    )

    plugin = harness.plugin(NAME)
    info = harness.info(_guaranteed(cpu=8))
    assert plugin.score(CycleState(), info, harness.cluster.node("n")) == 76


def test_the_largest_spread_of_any_container_counts() -> None:
    harness = _harness(_quarters(), scoringStrategy={"type": "LeastNUMANodes"})
    containers = [_container("a", 4), _container("b", 8)]

    assert expect(harness.explain(pod("p", containers=containers))).score(NAME, "n") == 82


# Caches


def test_a_node_with_a_reservation_under_way_is_not_used_when_reserved_nodes_are_discarded() -> None:
    harness = _harness(_topology("n", *HALVES), discardReservedNodes=True)
    first = _guaranteed("first")
    expect(harness.schedule(first)).scheduled_on("n")
    expect(harness.explain(_guaranteed("second"))).rejected_because("invalid node topology data")

    harness.plugin(NAME).post_bind(CycleState(), harness.info(first), "n")
    expect(harness.explain(_guaranteed("second"))).accepted("n")


def test_a_reserved_pod_counts_against_every_cell_until_it_is_undone() -> None:
    harness = _harness(_topology("n", *HALVES), cacheResyncPeriodSeconds=5)
    first = _guaranteed("first", cpu=3)
    expect(harness.schedule(first)).scheduled_on("n")
    expect(harness.explain(_guaranteed("second", cpu=2))).rejected_because("cannot align container")

    harness.forget(first)
    expect(harness.explain(_guaranteed("second", cpu=2))).accepted("n")


def _with_print(print_text: str, *zones: Zone, method: str = "all") -> Any:
    return _topology(
        "n", *zones, nodeTopologyPodsFingerprint=print_text, nodeTopologyPodsFingerprintMethod=method
    )  # fmt: skip


def test_a_node_is_brought_up_to_date_when_its_agent_knows_the_pods() -> None:
    harness = _harness(_with_print(fingerprint([]), *HALVES), cacheResyncPeriodSeconds=5)
    first = _guaranteed("first", cpu=3, uid="u1")
    harness.schedule(first)
    expect(harness.explain(_guaranteed("second", cpu=4))).rejected("n")
    harness.add(_guaranteed("first", cpu=3, uid="u1", node="n", phase="Running"))
    plugin = harness.plugin(NAME)
    plugin._resync()
    expect(harness.explain(_guaranteed("second", cpu=4))).rejected("n")

    zones = (_zone(0, cpu=1, memory="8Gi"), _zone(1, cpu=4, memory="8Gi"))
    harness.add(_with_print(fingerprint([("default", "first")]), *zones))
    expect(harness.explain(_guaranteed("second", cpu=4))).rejected("n")
    plugin._resync()
    expect(harness.explain(_guaranteed("second", cpu=4))).accepted("n")
    assert plugin._cache.generation == 1


def test_what_was_assumed_for_a_pod_that_the_agent_has_not_seen_stays() -> None:
    harness = _harness(_with_print(fingerprint([]), *HALVES), cacheResyncPeriodSeconds=5)
    harness.schedule(_guaranteed("first", cpu=3))
    expect(harness.explain(_guaranteed("second", cpu=4))).rejected("n")
    harness.plugin(NAME)._resync()

    assert harness.plugin(NAME)._cache.generation == 1
    expect(harness.explain(_guaranteed("second", cpu=4))).rejected("n")


def test_foreign_pods_make_a_node_unreliable_until_its_agent_has_seen_them() -> None:
    harness = _harness(_with_print(fingerprint([]), *HALVES), cacheResyncPeriodSeconds=5)
    expect(harness.explain(_guaranteed())).accepted("n")
    harness.add(_guaranteed("foreign", node="n", phase="Running", scheduler="another"))
    expect(harness.explain(_guaranteed())).rejected_because("invalid node topology data")

    harness.add(_with_print(fingerprint([("default", "foreign")]), *HALVES))
    harness.plugin(NAME)._resync()
    expect(harness.explain(_guaranteed())).accepted("n")


@pytest.mark.parametrize(
    ("detect", "foreign", "is_trusted"),
    [
        ("None", _guaranteed("f", node="n", phase="Running", scheduler="x"), True),
        ("OnlyExclusiveResources", pod("f", cpu=1, node="n", phase="Running", scheduler="x"), True),
        ("OnlyExclusiveResources", _guaranteed("f", cpu=1, node="n", phase="Running", scheduler="x"), False),
        ("All", _guaranteed("f", node="n", phase="Pending", scheduler="x"), True),
        ("All", pod("f", node="n", phase="Running", scheduler="x"), False),
    ],
)
def test_which_foreign_pods_count(detect: str, foreign: Pod, is_trusted: bool) -> None:
    harness = _harness(_topology("n", *HALVES), cacheResyncPeriodSeconds=5, cache={"foreignPodsDetect": detect})
    harness.add(foreign)

    outcome = harness.explain(_guaranteed())
    if is_trusted:
        expect(outcome).accepted("n")
    else:
        expect(outcome).rejected("n")


def test_only_exclusive_pods_are_in_the_fingerprint_where_the_object_says_so() -> None:
    pods = [_guaranteed("whole", cpu=1, node="n", phase="Running"), pod("shared", cpu=1, node="n", phase="Running")]
    harness = _harness(
        _with_print("", *HALVES, method="with-exclusive-resources"), pods=pods, cacheResyncPeriodSeconds=5
    )
    plugin = harness.plugin(NAME)
    topology = plugin._cache.topologies["n"]

    assert plugin._pods_on("n", topology)[0] == fingerprint([("default", "whole")])
    both = fingerprint([("default", "whole"), ("default", "shared")])
    assert plugin._pods_on("n", topology._replace(fingerprint_method="all"))[0] == both


def test_changed_settings_are_taken_over_at_once() -> None:
    harness = _harness(_topology("n", *HALVES), cacheResyncPeriodSeconds=5)
    expect(harness.explain(_guaranteed(cpu=6))).rejected("n")

    harness.add(_topology("n", *HALVES, policy="none"))
    expect(harness.explain(_guaranteed(cpu=6))).accepted("n")


# Columns and the plain form


def _random_topology(rng: Random, name: str) -> Any:
    zones = []
    for number in rng.sample(range(6), rng.randint(0, 3)):
        listed = {"cpu": rng.randint(0, 6), "memory": f"{rng.randint(0, 6)}Gi", "gpu": rng.randint(0, 3)}
        zones.append(_zone(number, **{key: value for key, value in listed.items() if rng.random() < 0.85}))
    policy = rng.choice(["single-numa-node", "single-numa-node", "none"])
    return _topology(name, *zones, scope=rng.choice(["pod", "container"]), policy=policy)


def _random_pod(rng: Random, name: str) -> Pod:
    def one(kind: str) -> Any:
        amounts: dict[str, Any] = {"cpu": rng.choice([1, 2, "1500m", 4]), "memory": f"{rng.randint(1, 5)}Gi"}
        if rng.random() < 0.4:
            amounts[DEVICE] = rng.randint(0, 2)
        limits = {key: amounts[key] for key in ("cpu", "memory")} if rng.random() < 0.7 else None
        return container(kind, requests=amounts, limits=limits, sidecar=kind.startswith("i") and rng.random() < 0.3)

    inits = [one(f"i{i}") for i in range(rng.randint(0, 2))]
    return pod(name, init_containers=inits, containers=[one(f"c{i}") for i in range(rng.randint(1, 3))])


@pytest.mark.parametrize("strategy", ["MostAllocated", "LeastAllocated", "BalancedAllocation", "LeastNUMANodes"])
@pytest.mark.parametrize("seed", range(6))
def test_columns_agree_with_the_plain_form(seed: int, strategy: str) -> None:
    rng = Random(seed)
    names = [f"n{i}" for i in range(20)]
    topologies = [_random_topology(rng, name) for name in names if rng.random() < 0.9]
    nodes = [
        node(name, cpu=64, memory="64Gi", allocatable={DEVICE: 8} if rng.random() < 0.8 else None) for name in names
    ]
    harness = _harness(*topologies, nodes=nodes, scoringStrategy={"type": strategy})
    plugin, columns, state = harness.plugin(NAME), harness.cluster.columns(), CycleState()
    for number in range(15):
        info = harness.info(_random_pod(rng, f"p{number}"))
        verdicts = plugin.filter_nodes(state, info, columns)
        plain = [plugin.filter(state, info, columns.info(i)) for i in range(len(columns))]
        assert [verdicts.status(int(i)) if i else None for i in verdicts.ids] == plain
        scores = [plugin.score(state, info, columns.info(i)) for i in range(len(columns))]
        assert plugin.score_nodes(state, info, columns).tolist() == scores
        some = columns.take(np.array([3, 1, 17], dtype=np.intp))
        assert plugin.filter_nodes(state, info, some).ids.tolist() == verdicts.ids[[3, 1, 17]].tolist()


# Arguments


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"scoringStrategy": {"type": "Random"}}, "scoringStrategy.type: invalid ScoringStrategyType"),
        ({"preemptionMode": "Sometimes"}, "preemptionMode: invalid PreemptionMode"),
        ({"cache": {"resyncMethod": "x"}}, "cache.resyncMethod: must be one of Autodetect, All"),
        ({"cacheResyncPeriodSeconds": -1}, "cacheResyncPeriodSeconds: must not be negative"),
    ],
)
def test_wrong_arguments_are_refused(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _harness(_topology("n", *HALVES), **args)

    assert problem in str(caught.value)
