"""InterPodAffinity: near, apart, kept away, drawn; namespaces; and what wakes a pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.api.meta import LabelSelector
from bayplan.api.node import Node
from bayplan.api.pod import Affinity, Pod
from bayplan.framework import CycleState, Hint
from bayplan.plugins.intree.inter_pod_affinity import InterPodAffinity
from bayplan.plugins.intree.inter_pod_affinity.counts import PairCounts
from bayplan.testing import HOSTNAME, ZONE, Harness, Outcome, apart, expect, namespace, near, node, pod, selector

NAME = "InterPodAffinity"
NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_APART = "node(s) didn't match pod anti-affinity rules"
KEPT_AWAY = "node(s) didn't satisfy existing pods anti-affinity rules"
DB, WEB = {"app": "db"}, {"app": "web"}
NODES = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("none")]


def decided(made: Pod, *running: Pod, objects: Any = (), args: Any = None, nodes: Any = NODES) -> Outcome:
    return Harness(nodes=nodes, pods=running, objects=objects, args={NAME: args} if args else None).explain(made)


def db(on: str, **more: Any) -> Pod:
    return pod(f"db-{on}", labels=DB, node=on, **more)


# Required affinity


def test_a_pod_goes_to_the_domain_of_its_partner() -> None:
    outcome = decided(pod("new", affinity=near(ZONE, DB)), db("a1"))

    expect(outcome).rejected("b1", "none").rejected_because(NOT_NEAR, on="b1", by=NAME)
    assert outcome.rejections["b1"].code.label == "UnschedulableAndUnresolvable"


def test_a_leaving_partner_is_still_a_partner() -> None:
    expect(decided(pod("new", affinity=near(ZONE, DB)), db("a1", terminating=True))).rejected("b1", "none")


def test_one_pod_must_meet_all_terms() -> None:
    """Two pods that meet one term each are no partner."""
    terms = [near(ZONE, DB), near(ZONE, {"tier": "x"})]
    half = [db("a1"), pod("x", labels={"tier": "x"}, node="a1")]
    whole = pod("both", labels={**DB, "tier": "x"}, node="b1")

    expect(decided(pod("new", affinity=terms), *half)).pending()
    expect(decided(pod("new", affinity=terms), *half, whole)).rejected("a1", "a2", "none")


def test_the_first_of_a_group_may_start_anywhere_with_the_keys() -> None:
    expect(decided(pod("new", labels=DB, affinity=near(ZONE, DB)))).rejected("none")
    expect(decided(pod("new", labels=WEB, affinity=near(ZONE, DB)))).pending()


def test_the_first_of_a_group_is_not_first_when_partners_are_out_of_reach() -> None:
    expect(decided(pod("new", labels=DB, affinity=near(ZONE, DB)), db("b1", namespace="other"))).rejected("none")
    expect(decided(pod("new", labels=DB, affinity=near(ZONE, DB)), db("b1"))).rejected("a1", "a2", "none")
    # a partner on a node without the key stands in no domain, so the group has not started
    expect(decided(pod("new", labels=DB, affinity=near(ZONE, DB)), db("none"))).rejected("none")


def test_every_key_must_be_there() -> None:
    terms = [near(ZONE, DB), near("rack", DB)]
    expect(decided(pod("new", labels=DB, affinity=terms))).pending().rejected_because(NOT_NEAR, on="a1")


# Required anti-affinity, from either side


def test_a_pod_stays_out_of_the_domain_of_what_it_avoids() -> None:
    outcome = decided(pod("new", affinity=apart(ZONE, DB)), db("a1"))

    expect(outcome).rejected("a1", "a2").rejected_because(NOT_APART, on="a2", by=NAME)
    assert outcome.rejections["a1"].code.label == "Unschedulable"


def test_a_running_pod_keeps_others_away() -> None:
    guard = pod("guard", node="a1", affinity=apart(ZONE, WEB))

    expect(decided(pod("new", labels=WEB), guard)).rejected("a1", "a2").rejected_because(KEPT_AWAY, on="a1", by=NAME)
    expect(decided(pod("new", labels=DB), guard)).rejected()


def test_a_guard_on_a_node_without_the_key_keeps_nobody_away() -> None:
    guard = pod("guard", node="none", affinity=apart(ZONE, WEB))

    expect(decided(pod("new", labels=WEB), guard)).rejected()


def test_reasons_come_in_order_near_apart_kept_away() -> None:
    guard = pod("guard", labels=DB, node="a1", affinity=apart(HOSTNAME, WEB))
    both = pod("new", labels=WEB, affinity=[near("rack", DB), apart(HOSTNAME, DB)])
    avoiding = pod("new", labels=WEB, affinity=apart(HOSTNAME, DB))

    expect(decided(both, guard)).rejected_because(NOT_NEAR, on="a1")
    expect(decided(avoiding, guard)).rejected_because(NOT_APART, on="a1")


def test_terms_that_do_not_parse_refuse_the_pod() -> None:
    broken = msgspec.convert({"matchExpressions": [{"key": "app", "operator": "Near"}]}, LabelSelector)

    expect(decided(pod("new", affinity=near(ZONE, broken)))).pending().message_says("parsing pod: ")


def test_running_pods_with_terms_that_do_not_parse_are_passed_over() -> None:
    broken = msgspec.convert({"matchExpressions": [{"key": "app", "operator": "Near"}]}, LabelSelector)
    odd = pod("odd", labels=DB, node="a1", affinity=[apart(ZONE, broken), near(ZONE, WEB, weight=9)])

    expect(decided(pod("new", labels=WEB), odd)).rejected().scores(NAME, {"a1": 100, "b1": 0})


# Namespaces


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (apart(ZONE, DB), set()),
        (apart(ZONE, DB, namespaces=["other"]), {"a1", "a2"}),
        (apart(ZONE, DB, namespaces=["third"]), set()),
        (apart(ZONE, DB, namespace_selector=selector()), {"a1", "a2"}),
        (apart(ZONE, DB, namespace_selector=selector({"team": "x"})), {"a1", "a2"}),
        (apart(ZONE, DB, namespace_selector=selector({"team": "y"})), set()),
        (apart(ZONE, DB, namespace_selector=selector(not_in={"team": ["x"]})), {"a1", "a2"}),
        (apart(ZONE, DB, namespace_selector=selector(absent=["team"])), {"a1", "a2"}),
    ],
)
def test_terms_of_the_incoming_pod_reach_into_namespaces(rule: Affinity, expected: set[str]) -> None:
    """A selector that accepts a namespace without labels means every namespace, as kube-scheduler has it."""
    other = namespace("other", labels={"team": "x"})
    outcome = decided(pod("new", affinity=rule), db("a1", namespace="other"), objects=[other])

    assert set(outcome.rejections) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (apart(ZONE, WEB), set()),
        (apart(ZONE, WEB, namespaces=["default"]), {"a1", "a2"}),
        (apart(ZONE, WEB, namespace_selector=selector()), {"a1", "a2"}),
        (apart(ZONE, WEB, namespace_selector=selector({"team": "x"})), {"a1", "a2"}),
        (apart(ZONE, WEB, namespace_selector=selector(not_in={"team": ["x"]})), set()),
    ],
)
def test_terms_of_running_pods_look_at_the_labels_of_the_incoming_pods_namespace(
    rule: Affinity, expected: set[str]
) -> None:
    guard = pod("guard", namespace="other", node="a1", affinity=rule)
    outcome = decided(pod("new", labels=WEB), guard, objects=[namespace("default", labels={"team": "x"})])

    assert set(outcome.rejections) == expected


def test_a_namespace_that_changes_its_labels_is_noticed() -> None:
    guard = pod(
        "guard", namespace="other", node="a1", affinity=apart(ZONE, WEB, namespace_selector=selector({"t": "x"}))
    )
    harness = Harness(nodes=NODES, pods=[guard], objects=[namespace("default")])
    expect(harness.explain(pod("new", labels=WEB))).rejected()
    harness.add(namespace("default", labels={"t": "x"}))
    expect(harness.explain(pod("new", labels=WEB))).rejected("a1", "a2")
    harness.remove(namespace("default"))
    expect(harness.explain(pod("new", labels=WEB))).rejected()


# Dry runs


def test_evicting_a_guard_lets_the_pod_in() -> None:
    guard = pod("guard", labels=DB, node="a1", priority=1, affinity=apart(HOSTNAME, WEB))
    outcome = decided(pod("new", labels=WEB, priority=5), guard, nodes=[node("a1")])

    expect(outcome).preempts(["guard"], on="a1")


def test_evicting_what_is_avoided_lets_the_pod_in() -> None:
    outcome = decided(pod("new", priority=5, affinity=apart(HOSTNAME, DB)), db("a1", priority=1), nodes=[node("a1")])

    expect(outcome).preempts(["db-a1"], on="a1")


def test_evicting_the_only_partner_does_not_help() -> None:
    crowded = [db("a1", cpu=4, priority=1)]
    outcome = decided(pod("new", cpu=2, priority=5, affinity=near(HOSTNAME, DB)), *crowded, nodes=[node("a1")])

    expect(outcome).pending()
    assert outcome.nominated_node == ""


# Scores


def test_preferences_of_the_incoming_pod_draw_and_repel() -> None:
    rules = [near(ZONE, DB, weight=10), apart(HOSTNAME, DB, weight=4)]
    outcome = decided(pod("new", affinity=rules), db("a1"))

    expect(outcome).scores(NAME, {"a1": 60, "a2": 100, "b1": 0, "none": 0})


def test_preferences_of_running_pods_count_too() -> None:
    fan = pod("fan", node="b1", affinity=near(ZONE, WEB, weight=7))
    foe = pod("foe", node="a1", affinity=apart(HOSTNAME, WEB, weight=7))

    expect(decided(pod("new", labels=WEB), fan)).scores(NAME, {"a1": 0, "b1": 100})
    expect(decided(pod("new", labels=WEB), foe)).scores(NAME, {"a1": 0, "a2": 100, "none": 100})


def test_required_affinity_of_running_pods_draws_by_its_own_weight() -> None:
    fixed = pod("fixed", labels=WEB, node="b1", affinity=near(ZONE, WEB))

    expect(decided(pod("new", labels=WEB), fixed)).scores(NAME, {"b1": 100, "a1": 0})
    expect(decided(pod("new", labels=WEB), fixed, args={"hardPodAffinityWeight": 0})).skipped(NAME)


def test_preferences_of_running_pods_can_be_ignored_by_pods_that_have_none() -> None:
    fan, args = pod("fan", node="b1", affinity=near(ZONE, WEB, weight=7)), {"ignorePreferredTermsOfExistingPods": True}

    expect(decided(pod("new", labels=WEB), fan, args=args)).skipped(NAME)
    choosy = pod("new", labels=WEB, affinity=near(ZONE, DB, weight=1))
    expect(decided(choosy, fan, args=args)).scores(NAME, {"b1": 100})


def test_nothing_to_say_is_skipped() -> None:
    expect(decided(pod("new"), db("a1"))).skipped(NAME)
    expect(decided(pod("new", affinity=near(ZONE, WEB, weight=3)), db("a1"))).skipped(NAME)


@pytest.mark.parametrize("weight", [-1, 101])
def test_the_weight_has_bounds(weight: int) -> None:
    problems = InterPodAffinity.Args(hard_pod_affinity_weight=weight).validate()

    assert "hardPodAffinityWeight" in problems[0]


# Requeueing


@pytest.fixture
def harness() -> Harness:
    return Harness(nodes=NODES)


def hint(harness: Harness, kind: str, waiting: Pod, old: Any, new: Any) -> Hint:
    pods, nodes = harness.plugin(NAME).events_to_register()
    registered = (pods if kind == "pod" else nodes).hint
    if kind == "pod":
        old, new = (None if each is None else harness.info(each) for each in (old, new))
    answer: Hint = registered(harness.info(waiting), old, new)
    return answer


SEEKS = pod("waiting", labels=WEB, affinity=near(ZONE, DB))
AVOIDS = pod("waiting", labels=WEB, affinity=apart(ZONE, DB))
PLAIN = pod("waiting", labels=WEB)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        (SEEKS, None, db("a1"), Hint.QUEUE),
        (SEEKS, None, pod("x", labels=DB), Hint.SKIP),
        (SEEKS, None, pod("x", node="a1"), Hint.SKIP),
        (SEEKS, pod("x", node="a1"), pod("x", labels=DB, node="a1"), Hint.QUEUE),
        (SEEKS, pod("x", labels=DB, node="a1"), pod("x", node="a1"), Hint.SKIP),
        (SEEKS, db("a1"), None, Hint.SKIP),
        (AVOIDS, db("a1"), None, Hint.QUEUE),
        (AVOIDS, pod("x", labels=DB, nominated="a1"), None, Hint.QUEUE),
        (AVOIDS, pod("x", labels=DB, node="a1"), pod("x", node="a1"), Hint.QUEUE),
        (AVOIDS, pod("x", node="a1"), pod("x", labels=DB, node="a1"), Hint.SKIP),
        (AVOIDS, None, db("a1"), Hint.SKIP),
        (PLAIN, pod("guard", node="a1", affinity=apart(ZONE, WEB)), None, Hint.QUEUE),
        (PLAIN, pod("guard", node="a1", affinity=apart(ZONE, DB)), None, Hint.SKIP),
        (PLAIN, pod("guard", node="a1"), None, Hint.SKIP),
        (SEEKS, SEEKS, SEEKS, Hint.QUEUE),
        (SEEKS, None, None, Hint.SKIP),
    ],
)
def test_pods_matter_when_a_rule_is_newly_met(
    harness: Harness, waiting: Pod, old: Pod | None, new: Pod | None, expected: Hint
) -> None:
    assert hint(harness, "pod", waiting, old, new) is expected


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        (SEEKS, None, node("n", zone="c"), Hint.QUEUE),
        (SEEKS, None, node("n"), Hint.SKIP),
        (SEEKS, node("n"), node("n", zone="c"), Hint.QUEUE),
        (SEEKS, node("n", zone="a"), node("n", zone="c"), Hint.QUEUE),
        (SEEKS, node("n", zone="a"), node("n", zone="a", cpu=9), Hint.SKIP),
        (SEEKS, node("n", zone="a"), node("n"), Hint.SKIP),
        (AVOIDS, None, node("n"), Hint.QUEUE),
        (AVOIDS, node("n", zone="a"), node("n"), Hint.QUEUE),
        (AVOIDS, node("n", zone="a"), node("n", zone="c"), Hint.QUEUE),
        (AVOIDS, node("n"), node("n", zone="a"), Hint.SKIP),
        (PLAIN, None, node("n", zone="c"), Hint.SKIP),
    ],
)
def test_nodes_matter_when_their_topology_changes(
    harness: Harness, waiting: Pod, old: Node | None, new: Node | None, expected: Hint
) -> None:
    assert hint(harness, "node", waiting, old, new) is expected


def test_terms_of_running_pods_are_summed_once_for_pods_of_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of terms in one namespace cost the plain pods of others nothing; what changes counts at once."""
    harness = Harness(nodes=NODES)
    cache, plugin = harness.scheduler.cache, harness.plugin(NAME)
    for number in range(5):
        cache.add_pod(pod(f"draws-{number}", node="a1", affinity=near(ZONE, WEB, weight=number + 1)))
    added: list[int] = []
    add_rows = PairCounts.add_rows

    def counting(self: PairCounts, key: str, amounts: Any) -> None:
        added.append(len(amounts))
        add_rows(self, key, amounts)

    monkeypatch.setattr(PairCounts, "add_rows", counting)

    def scores() -> dict[str, int]:
        added.clear()
        state, info, nodes = CycleState(), harness.info(pod("new", labels=WEB)), harness.cluster.columns()
        plugin.pre_score(state, info, nodes)
        return dict(zip(nodes.names, plugin.score_nodes(state, info, nodes).tolist(), strict=True))

    first = scores()
    assert (first["a1"], first["b1"], added) == (15, 0, [1])
    assert (scores(), added) == (first, [])
    cache.add_pod(pod("plain", node="b1"))
    assert (scores(), added) == (first, [])

    cache.add_pod(pod("draws-more", node="b1", affinity=near(ZONE, WEB, weight=7)))
    assert (scores()["b1"], added) == (7, [2])
    cache.add_node(node("none", zone="b"))
    assert scores()["none"] == 7
    cache.remove_pod("uid-default-draws-more")
    assert scores()["b1"] == 0
