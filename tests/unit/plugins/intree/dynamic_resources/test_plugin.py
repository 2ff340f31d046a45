"""`plugin`: what DynamicResources answers at each extension point, and what wakes a pod that it refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    allocated,
    alternative,
    claim,
    device,
    device_class,
    evaluate,
    first_of,
    node,
    pod,
    request,
    result,
    slice_of,
)

from bayplan.api.decode import decode_object
from bayplan.api.devices import ResourceClaim
from bayplan.api.pod import Pod
from bayplan.framework import SKIP, Code, CycleState, Diagnosis, Hint, NodeColumns, PodInfo
from bayplan.plugins.intree.dynamic_resources import DynamicResources
from bayplan.testing import Harness

NOBODY = Diagnosis(total_nodes=2)


def harness(*objects: dict[str, Any]) -> Harness:
    return Harness(objects=[decode_object(each) for each in (node(), device_class(), *objects)])


def info(cluster: Harness, document: dict[str, Any]) -> PodInfo:
    return cluster.scheduler.info(msgspec.convert(document, Pod))


def plugin_of(cluster: Harness) -> Any:
    return cluster.plugin("DynamicResources")


def test_a_pod_without_claims_is_skipped() -> None:
    cluster = harness()
    plugin, plain = plugin_of(cluster), info(cluster, pod())

    assert not plugin.is_relevant(plain)
    assert plugin.pre_filter(CycleState(), plain, cluster.cluster.columns()) is SKIP


def test_when_an_earlier_plugin_ended_pre_filter_its_state_is_not_found() -> None:
    cluster = harness()
    status = plugin_of(cluster).post_filter(CycleState(), info(cluster, pod()), NOBODY)

    assert (status.code, status.reasons) == (Code.ERROR, ("not found",))


def test_a_pod_is_held_back_until_its_claims_exist() -> None:
    waiting = harness()
    status = plugin_of(waiting).pre_enqueue(info(waiting, pod("c")))

    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, ('could not find ResourceClaim "default/c"',))
    ready = harness(claim("c", request()))
    assert plugin_of(ready).pre_enqueue(info(ready, pod("c"))) is None


def test_a_pod_with_claims_is_held_back_where_the_api_server_knows_none() -> None:
    old = harness()
    old.cluster.devices.is_served = False
    status = plugin_of(old).pre_enqueue(info(old, pod("c")))

    assert "the API server does not serve resource.k8s.io/v1" in status.message
    assert plugin_of(old).pre_enqueue(info(old, pod())) is None


def test_points_are_given_for_the_alternatives_that_are_listed_first() -> None:
    listed = first_of("x", alternative("two", count=2), alternative("one", count=1))
    slices = [slice_of(device("a"), device("b"), pool="n"), slice_of(device("a"), pool="m", node="m")]
    outcome = evaluate(*slices, node("n"), node("m"), claim("c", listed))
    points = {name: scores["DynamicResources"] for name, scores in outcome["scores"].items()}

    assert points == {"n": 200, "m": 174}


def test_an_allocated_alternative_counts_beside_claims_that_are_to_be_allocated() -> None:
    listed = first_of("x", alternative("two", count=2), alternative("one", count=1))
    held = claim("held", listed, status=allocated(result("a", request="x/one"), node=None, users=["other"]))
    shared = slice_of(device("a"), device("b"), allNodes=True)
    nodes = [node("n"), node("m")]

    alone = evaluate(shared, *nodes, held, target=pod("held"))
    assert {scores.get("DynamicResources", 0) for scores in alone["scores"].values()} == {0}
    both = evaluate(shared, *nodes, held, claim("c", request()), target=pod("held", "c"))
    assert {scores["DynamicResources"] for scores in both["scores"].values()} == {200}


def reserved(*objects: dict[str, Any], target: dict[str, Any]) -> tuple[Harness, CycleState, PodInfo]:
    cluster = harness(*objects)
    wanted = info(cluster, target)
    decision = cluster.scheduler.decide(wanted)
    assert plugin_of(cluster).reserve(decision.state, wanted, decision.node_name) is None
    return cluster, decision.state, wanted


def test_reserved_devices_are_taken_until_they_are_given_back() -> None:
    both = (slice_of(device("a")), claim("c", request()), claim("d", request()))
    cluster, state, first = reserved(*both, target=pod("c"))
    second = info(cluster, pod("d"))

    assert "cannot allocate all claims" in cluster.scheduler.decide(second).message
    plugin_of(cluster).unreserve(state, first, "n")
    assert cluster.scheduler.decide(second).node_name == "n"


def test_a_claim_that_is_being_allocated_for_another_pod_is_waited_for() -> None:
    cluster, _, _ = reserved(slice_of(device("a")), claim("c", request()), target=pod("c"))
    decision = cluster.scheduler.decide(info(cluster, pod("c")))

    assert "resource claim default/c is in the process of being allocated" in decision.message


def claim_of(document: dict[str, Any]) -> ResourceClaim:
    return msgspec.convert(document, ResourceClaim)


MINE, OTHER = claim("c", request()), claim("other", request(), status=allocated(result("a")))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, MINE, Hint.QUEUE, id="the pod's claim was made"),
        pytest.param(MINE, MINE, Hint.SKIP, id="nothing changed"),
        pytest.param(MINE, claim("c", request(), status=allocated(result("a"))), Hint.QUEUE, id="it was allocated"),
        pytest.param(None, OTHER, Hint.SKIP, id="a claim of others"),
        pytest.param(OTHER, claim("other", request()), Hint.QUEUE, id="others gave devices back"),
    ],
)
def test_changes_of_claims_that_can_help_wake_the_pod(
    old: dict[str, Any] | None, new: dict[str, Any], expected: Hint
) -> None:
    cluster = harness(MINE)
    hints = {each.event.resource: each.hint for each in plugin_of(cluster).events_to_register()}
    hint = hints["ResourceClaim"]

    assert hint is not None
    assert hint(info(cluster, pod("c")), claim_of(old) if old else None, claim_of(new)) is expected


def test_a_pod_whose_claim_is_missing_is_not_woken() -> None:
    cluster = harness()
    hints = {each.event.resource: each.hint for each in plugin_of(cluster).events_to_register()}
    hint = hints["ResourceClaim"]

    assert hint is not None
    assert hint(info(cluster, pod("c")), claim_of(OTHER), claim_of(claim("other", request()))) is Hint.SKIP


def test_the_arguments_have_the_defaults_of_kube_scheduler() -> None:
    args = msgspec.convert({}, DynamicResources.Args)

    assert (args.filter_timeout, args.binding_timeout) == ("10s", "10m0s")
    assert args.validate() == []


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"filterTimeout": "0s"}, None),
        ({"filterTimeout": "1h2m3.5s"}, None),
        ({"bindingTimeout": "1500ms"}, None),
        ({"filterTimeout": "-1s"}, "filterTimeout: `-1s` is too short; it must be at least 0s"),
        ({"bindingTimeout": "999ms"}, "bindingTimeout: `999ms` is too short; it must be at least 1s"),
        ({"bindingTimeout": "10"}, "bindingTimeout: `10` is not a duration"),
        ({"filterTimeout": "ten seconds"}, "filterTimeout: `ten seconds` is not a duration"),
    ],
)
def test_the_arguments_are_checked(args: dict[str, str], problem: str | None) -> None:
    problems = msgspec.convert(args, DynamicResources.Args).validate()

    assert len(problems) == (problem is not None)
    assert problem is None or problems[0].startswith(problem)


class HurryingClock:
    """Every look at it is a minute later."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += 60.0
        return self._now

    def now(self) -> float:
        return self._now


@pytest.mark.parametrize(
    ("timeout", "expected"),
    [("10s", "node n: timed out trying to allocate devices"), ("0s", None), ("1h", None)],
)
def test_a_search_that_takes_too_long_is_an_error(timeout: str, expected: str | None) -> None:
    cluster = harness(slice_of(device("a"), device("b")), claim("c", request(count=2)))
    handle = replace(plugin_of(cluster).handle, clock=HurryingClock())
    plugin = DynamicResources(DynamicResources.Args(filter_timeout=timeout), handle)
    state, target = CycleState(), info(cluster, pod("c"))
    columns = NodeColumns(handle.cluster.nodes, np.array([0], dtype=np.intp))

    assert plugin.pre_filter(state, target, columns) is None
    verdicts = plugin.filter_nodes(state, target, columns)
    if expected is None:
        assert not verdicts.ids.any()
    else:
        status = verdicts.status(int(verdicts.ids[0]))
        assert (status.code, status.message) == (Code.ERROR, expected)


def test_pods_that_name_claims_of_their_own_share_a_shape_and_get_devices_of_their_own() -> None:
    cluster = harness(slice_of(device("a"), device("b")), claim("c", request()), claim("d", request()))
    first, second = info(cluster, pod("c")), info(cluster, pod("d"))

    assert first.shape is second.shape
    for each, name in ((first, "c"), (second, "d")):
        decision = cluster.scheduler.decide(each)
        assert plugin_of(cluster).reserve(decision.state, each, decision.node_name) is None
        assert plugin_of(cluster).handle.cluster.devices.in_flight(f"uid-{name}") is not None
    use = plugin_of(cluster).handle.cluster.devices.use
    assert {device_id[2] for device_id in use.dedicated} == {"a", "b"}


def test_a_pod_without_claims_has_another_shape() -> None:
    cluster = harness(claim("c", request()))

    assert info(cluster, pod("c")).shape is not info(cluster, pod()).shape
