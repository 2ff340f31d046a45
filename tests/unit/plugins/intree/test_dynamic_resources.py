"""DynamicResources, as far as pods without claims see it, and what it says to pods with claims."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.plugins.small_cluster import STATE, SmallCluster, node, raw_scores

from bayplan.framework import SKIP, Code, CycleState, Diagnosis, Status
from bayplan.plugins.intree.dynamic_resources import DynamicResources

CLUSTER = SmallCluster(node("a"), node("b"))
NOBODY = Diagnosis(total_nodes=2)


def test_a_pod_without_claims_is_skipped_and_scores_nothing() -> None:
    plugin, pod = CLUSTER.plugin(DynamicResources), CLUSTER.pod()

    assert not plugin.is_relevant(pod)
    assert plugin.pre_filter(STATE, pod, CLUSTER.columns) is SKIP
    assert raw_scores(plugin, pod, CLUSTER) == {"a": 0, "b": 0}


def test_a_pod_with_claims_stays_pending_with_a_sentence_that_says_why() -> None:
    plugin, pod = CLUSTER.plugin(DynamicResources), CLUSTER.pod(resourceClaims=[{"name": "gpu"}])
    status = plugin.pre_filter(STATE, pod, CLUSTER.columns)

    assert plugin.is_relevant(pod)
    assert plugin.sign(pod) != plugin.sign(CLUSTER.pod())
    assert isinstance(status, Status)
    assert status.code is Code.UNRESOLVABLE
    assert "does not allocate yet" in status.message


def test_a_pod_that_fits_nowhere_is_told_that_no_claim_can_be_freed() -> None:
    state = CycleState()
    state.reached |= {"DynamicResources"}
    status = DynamicResources().post_filter(state, CLUSTER.pod(), NOBODY)

    assert status is not None
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, ("no new claims to deallocate",))


def test_when_an_earlier_plugin_ended_pre_filter_its_state_is_not_found() -> None:
    status = DynamicResources().post_filter(CycleState(), CLUSTER.pod(), NOBODY)

    assert status is not None
    assert (status.code, status.reasons) == (Code.ERROR, ("not found",))


def test_nothing_wakes_a_pod_with_claims() -> None:
    assert DynamicResources().events_to_register() == []


def test_the_arguments_have_the_defaults_of_kube_scheduler() -> None:
    args = msgspec.convert({}, DynamicResources.Args)

    assert (args.filter_timeout, args.binding_timeout) == ("10s", "10m0s")
    assert args.validate() == []


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"filterTimeout": "0s"}, None),
        ({"filterTimeout": "0"}, None),
        ({"filterTimeout": "1h2m3.5s"}, None),
        ({"bindingTimeout": "1s"}, None),
        ({"bindingTimeout": "1500ms"}, None),
        ({"filterTimeout": "-1s"}, "filterTimeout: `-1s` is too short; it must be at least 0s"),
        ({"bindingTimeout": "999ms"}, "bindingTimeout: `999ms` is too short; it must be at least 1s"),
        ({"bindingTimeout": "10"}, "bindingTimeout: `10` is not a duration"),
        ({"bindingTimeout": ""}, "bindingTimeout: `` is not a duration"),
        ({"filterTimeout": "ten seconds"}, "filterTimeout: `ten seconds` is not a duration"),
    ],
)
def test_the_arguments_are_checked(args: dict[str, str], problem: str | None) -> None:
    problems = msgspec.convert(args, DynamicResources.Args).validate()

    assert len(problems) == (problem is not None)
    if problem is not None:
        assert problems[0].startswith(problem)


def test_an_argument_that_does_not_exist_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="filterTimeoutt"):
        msgspec.convert({"filterTimeoutt": "1s"}, DynamicResources.Args)
