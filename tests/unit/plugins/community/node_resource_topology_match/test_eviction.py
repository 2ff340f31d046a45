"""preemptionMode: in a dry run, what victims hold goes back to the cells that they are on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.plugins.community.node_resource_topology_match.test_placement import written
from tests.unit.plugins.community.node_resource_topology_match.test_plugin import NAME, _guaranteed, _topology, _zone

from bayplan.api.pod import Pod
from bayplan.framework import CycleState
from bayplan.plugins.community.node_resource_topology_match import NodeResourceTopologyMatch
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import TopologyAttribute, Zone
from bayplan.plugins.community.node_resource_topology_match.placement import METADATA_ATTRIBUTE, VECTOR_ATTRIBUTE
from bayplan.testing import Harness, expect, node

OVER_RESERVE = {"cacheResyncPeriodSeconds": 5, "preemptionMode": "Enabled"}
RUNNING = {"first": 0, "second": 1}


def _runs(name: str, **more: Any) -> Pod:
    return _guaranteed(name, cpu=3, memory="1Gi", node="n", phase="Running", priority=1, uid=name, **more)


def _cell(number: int, *, free: int, size: int, text: str = "") -> Zone:
    whole = _zone(number, cpu=free, memory="8Gi")
    resources = [
        msgspec.structs.replace(r, allocatable=size)
        if r.name == "cpu"
        else msgspec.structs.replace(r, allocatable="10Gi")
        for r in whole.resources or ()
    ]
    attributes = [TopologyAttribute(name=VECTOR_ATTRIBUTE, value=text)] if text else None
    return msgspec.structs.replace(whole, resources=resources, attributes=attributes)


def _object(running: dict[str, int] = RUNNING, *, size: int = 4, says: bool = True) -> Any:
    """Two cells of four cpus, of which pods of three cpus leave one each."""
    text = written({("default", name, "main"): cell for name, cell in running.items()})
    vectors = dict(text.vectors) if says else {}
    cells = [_cell(number, free=1, size=size, text=vectors.get(number, "")) for number in (0, 1)]
    return _topology("n", *cells, **({METADATA_ATTRIBUTE: text.metadata} if says else {}))


def _harness(topology: Any, *pods: Pod, **args: Any) -> Harness:
    return Harness(
        nodes=[node("n", cpu=8, memory="64Gi")],
        objects=[topology],
        pods=pods or (_runs("first"), _runs("second")),
        plugins=[NodeResourceTopologyMatch],
        args={NAME: args or OVER_RESERVE},
    )


def _wants(cpu: int = 4) -> Pod:
    return _guaranteed("urgent", cpu=cpu, memory="1Gi", priority=100)


def test_one_victim_is_enough_when_it_is_known_where_it_is() -> None:
    outcome = _harness(_object()).schedule(_wants())

    assert len(outcome.victims) == 1
    assert outcome.nominated_node == "n"


@pytest.mark.parametrize(
    "args",
    [
        {"cacheResyncPeriodSeconds": 5},
        {"preemptionMode": "Enabled"},
        {"preemptionMode": "Enabled", "discardReservedNodes": True},
    ],
)
def test_without_the_mode_or_the_cache_cells_stay_as_they_are(args: dict[str, Any]) -> None:
    outcome = _harness(_object(), **args).schedule(_wants())

    assert not outcome.victims
    expect(outcome).pending()


def test_an_object_that_does_not_say_who_is_where_gives_nothing_back() -> None:
    assert not _harness(_object(says=False)).schedule(_wants()).victims


def test_an_object_that_speaks_of_other_pods_is_not_believed() -> None:
    assert not _harness(_object({"first": 0, "second": 1, "third": 1})).schedule(_wants()).victims


def test_the_victim_on_the_cell_that_then_fits_is_taken() -> None:
    """Both run on cell 0, which has nothing left; cell 1 has one cpu and nobody to send away."""
    topology = _object({"first": 0, "second": 0}, size=7)
    outcome = _harness(topology).schedule(_wants(cpu=7))

    assert set(outcome.victims) == {"default/first", "default/second"}


def test_cells_never_have_more_free_than_there_is() -> None:
    outcome = _harness(_object(size=3)).schedule(_wants(cpu=3))

    assert not outcome.victims


def test_what_was_assumed_for_a_victim_is_given_back_too() -> None:
    """Placed by us, not in the object yet: it counts against every cell, until a dry run takes it away."""
    free = _topology("n", *(_cell(number, free=4, size=4) for number in (0, 1)))
    harness = _harness(free, _guaranteed("elsewhere", cpu=1, node="n", phase="Pending"))
    harness.schedule(_guaranteed("low", cpu=3, memory="1Gi", priority=1, uid="low"))

    expect(harness.schedule(_wants())).preempts(["low"], on="n")


def test_a_victim_that_is_gone_needs_no_second_one() -> None:
    """The object still counts it; what it held is free all the same, until a newer object is taken over."""
    harness = _harness(_object())
    [victim] = harness.schedule(_wants()).victims
    harness.remove(_runs(victim.removeprefix("default/")))

    expect(harness.schedule(_wants())).scheduled_on("n")


def test_a_question_does_not_make_a_node_suspect() -> None:
    harness = _harness(_object(says=False))
    harness.schedule(_wants())
    plugin = harness.plugin(NAME)
    plugin._cache._suspect.clear()
    state, info = CycleState(), harness.info(_wants())
    columns = harness.cluster.columns()
    plugin.pre_filter(state, info, columns)
    plugin.remove_pod(state, info, columns.info(0).pods["first"], columns.info(0))

    assert plugin.filter_nodes(state, info, columns).ids.tolist() == [1]
    assert plugin._cache.dirty == set()
    plugin.add_pod(state, info, columns.info(0).pods["first"], columns.info(0))
    plugin.filter_nodes(state, info, columns)
    assert plugin._cache.dirty == {"n"}
