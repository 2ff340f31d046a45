"""PodTopologySpread: skew, domains, inclusion, defaults, and what wakes a pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.api.node import Node
from bayplan.api.pod import Pod, TopologySpreadConstraint
from bayplan.framework import CycleState, Hint
from bayplan.plugins.intree.pod_topology_spread import PodTopologySpread
from bayplan.testing import (
    HOSTNAME,
    ZONE,
    Harness,
    Outcome,
    expect,
    node,
    node_term,
    owned_by,
    pod,
    replica_set,
    replication_controller,
    require_nodes,
    selector,
    service,
    spread,
    stateful_set,
    toleration,
)

NAME = "PodTopologySpread"
SKEWED = "node(s) didn't match pod topology spread constraints"
MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"
WEB = {"app": "web"}


def zones(**names: str) -> list[Node]:
    return [node(name, zone=zone) for name, zone in names.items()]


def web(name: str, on: str = "", **more: Any) -> Pod:
    return pod(name, labels=WEB, node=on, **more)


def running(*names: str) -> list[Pod]:
    """A matching pod on each of these nodes."""
    return [web(f"r{place}", name) for place, name in enumerate(names)]


def decided(constraint: TopologySpreadConstraint, nodes: list[Node], pods: list[Pod], **more: Any) -> Outcome:
    return Harness(nodes=nodes, pods=pods).explain(web("new", spread=[constraint], **more))


# Filter


def test_a_pod_goes_where_the_skew_stays_within_bounds() -> None:
    nodes = zones(a1="a", a2="a", b1="b")
    outcome = decided(spread(ZONE, WEB), nodes, running("a1"))

    expect(outcome).rejected("a1", "a2").rejected_because(SKEWED, on="a1", by=NAME).scheduled_on("b1")
    assert outcome.rejections["a1"].code.label == "Unschedulable"
    expect(decided(spread(ZONE, WEB, max_skew=2), nodes, running("a1"))).rejected()


def test_a_node_without_the_key_can_never_do() -> None:
    outcome = decided(spread(ZONE, WEB), [*zones(a1="a"), node("none")], [])

    expect(outcome).rejected("none").rejected_because(MISSING, on="none")
    assert outcome.rejections["none"].code.label == "UnschedulableAndUnresolvable"


def test_nodes_must_have_the_keys_of_all_constraints_to_be_counted() -> None:
    """The rack of a node without a zone is no domain."""
    nodes = [node("n1", zone="a", labels={"rack": "x"}), node("n2", labels={"rack": "y"})]
    constraints = [spread("rack", WEB), spread(ZONE, WEB, max_skew=9)]
    outcome = Harness(nodes=nodes, pods=running("n1")).explain(web("new", spread=constraints))

    expect(outcome).scheduled_on("n1").rejected_because(MISSING, on="n2")


def test_a_pod_that_does_not_match_itself_adds_nothing() -> None:
    other = pod("new", labels={"app": "db"}, spread=[spread(ZONE, WEB)])
    outcome = Harness(nodes=zones(a1="a", b1="b"), pods=running("a1")).explain(other)

    expect(outcome).rejected()


def test_only_pods_of_the_same_namespace_that_stay_are_counted() -> None:
    pods = [web("leaving", "a1", terminating=True), web("elsewhere", "a1", namespace="other"), pod("db", node="a1")]

    expect(decided(spread(ZONE, WEB), zones(a1="a", b1="b"), pods)).rejected()


def test_an_empty_selector_counts_nobody_but_the_pod_itself() -> None:
    nodes, everything = zones(a1="a", b1="b"), selector()

    expect(decided(spread(ZONE, everything), nodes, running("a1", "a1"))).rejected()
    expect(decided(spread(ZONE, None), nodes, running("a1", "a1"))).rejected()


def test_too_few_domains_count_as_an_empty_one() -> None:
    nodes, pods = zones(a1="a", b1="b"), running("a1", "b1")

    expect(decided(spread(ZONE, WEB, min_domains=2), nodes, pods)).rejected()
    expect(decided(spread(ZONE, WEB, min_domains=3), nodes, pods)).rejected("a1", "b1").pending()


def test_domains_that_the_pod_may_not_use_do_not_count() -> None:
    nodes = zones(a1="a", b1="b", c1="c")
    wanted = require_nodes(node_term(is_in={ZONE: ["a", "b"]}))
    pods = running("a1", "b1")

    expect(decided(spread(ZONE, WEB), nodes, pods, affinity=wanted)).rejected("c1")
    ignoring = spread(ZONE, WEB, node_affinity_policy="Ignore")
    expect(decided(ignoring, nodes, pods, affinity=wanted)).rejected("a1", "b1", "c1")


def test_tainted_nodes_count_unless_taints_are_honoured() -> None:
    nodes = [*zones(a1="a"), node("b1", zone="b", taints=["k:NoSchedule"])]
    pods, honouring = running("a1"), spread(ZONE, WEB, node_taints_policy="Honor")

    expect(decided(spread(ZONE, WEB), nodes, pods)).rejected("a1", "b1")
    expect(decided(honouring, nodes, pods)).rejected("b1")
    expect(decided(honouring, nodes, pods, tolerations=["k"])).rejected("a1").scheduled_on("b1")


def test_match_label_keys_narrow_to_the_pods_own_revision() -> None:
    nodes, pods = zones(a1="a", b1="b"), [pod("old", labels={**WEB, "v": "1"}, node="a1")]

    def revised(version: str) -> Outcome:
        constraint = spread(ZONE, WEB, match_label_keys=["v", "absent"])
        return Harness(nodes=nodes, pods=pods).explain(pod("new", labels={**WEB, "v": version}, spread=[constraint]))

    expect(revised("2")).rejected()
    expect(revised("1")).rejected("a1")


def test_constraints_are_checked_in_order() -> None:
    nodes = [node("n1", zone="a"), node("n2", zone="b", hostname="")]
    constraints = [spread(ZONE, WEB), spread(HOSTNAME, WEB)]
    outcome = Harness(nodes=nodes, pods=running("n1")).explain(web("new", spread=constraints))

    expect(outcome).rejected_because(MISSING, on="n2")


def test_preemption_takes_leaving_pods_out_of_the_counts() -> None:
    nodes = zones(a1="a", b1="b")
    pods = [web("low", "a1", priority=1), pod("big", cpu=4, node="b1", priority=100)]
    outcome = Harness(nodes=nodes, pods=pods).explain(web("new", cpu=1, priority=10, spread=[spread(ZONE, WEB)]))

    expect(outcome).pending().preempts(["low"], on="a1")


# Score


def test_the_fuller_domain_scores_less() -> None:
    outcome = decided(spread(ZONE, WEB, soft=True), zones(a1="a", a2="a", b1="b"), running("a1", "a2"))

    assert expect(outcome).score(NAME, "b1") == 100
    assert expect(outcome).score(NAME, "a1") == expect(outcome).score(NAME, "a2") == 0
    expect(outcome).best("b1")


def test_system_defaults_spread_what_a_service_selects() -> None:
    """Vector A14."""
    nodes = zones(a="z1", b="z1", c="z2", d="z2")
    harness = Harness(nodes=nodes, pods=running("a", "a", "c"), objects=[service("web", WEB)])

    expect(harness.explain(web("new"))).scores(NAME, {"a": 58, "b": 83, "c": 83, "d": 100})


def test_without_anything_that_selects_the_pod_there_are_no_defaults() -> None:
    harness = Harness(nodes=zones(a="z1", b="z2"), pods=running("a"), objects=[service("db", {"app": "db"})])

    expect(harness.explain(web("new"))).skipped(NAME)
    harness.add(service("elsewhere", WEB, namespace="other"), service("all", {}))
    expect(harness.explain(web("new"))).skipped(NAME)


def test_a_service_that_appears_or_goes_is_noticed() -> None:
    harness = Harness(nodes=zones(a="z1", b="z2"), pods=running("a"))
    expect(harness.explain(web("new"))).skipped(NAME)
    harness.add(service("web", WEB))
    expect(harness.explain(web("new"))).scores(NAME, {"b": 100})
    harness.remove(service("web", WEB))
    expect(harness.explain(web("new"))).skipped(NAME)


@pytest.mark.parametrize("make", [replica_set, stateful_set, replication_controller])
def test_controllers_select_too(make: Any) -> None:
    controller = make("web", WEB)
    harness = Harness(nodes=zones(a="z1", b="z2"), pods=running("a"), objects=[controller])
    outcome = harness.explain(web("new", owner=owned_by(controller)))

    assert expect(outcome).score(NAME, "b") > expect(outcome).score(NAME, "a")


def test_a_controller_with_a_selector_nobody_can_read_selects_nothing() -> None:
    broken = replica_set("web", selector(is_in={"app": []}))
    harness = Harness(nodes=zones(a="z1", b="z2"), pods=running("a"), objects=[broken])

    expect(harness.explain(web("new", owner=owned_by(broken)))).scheduled().skipped(NAME)


def test_own_constraints_leave_no_room_for_defaults() -> None:
    harness = Harness(nodes=zones(a="z1", b="z2"), pods=running("a"), objects=[service("web", WEB)])

    expect(harness.explain(web("new", spread=[spread(ZONE, WEB, max_skew=5)]))).skipped(NAME)


def test_listed_defaults_replace_those_of_the_system() -> None:
    constraint = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    args = {NAME: {"defaultingType": "List", "defaultConstraints": [constraint]}}
    harness = Harness(nodes=zones(a="z1", b="z2"), pods=running("a"), objects=[service("web", WEB)], args=args)

    expect(harness.explain(web("new"))).rejected("a").skipped(NAME)


def test_a_node_that_lacks_a_key_scores_nothing_unless_by_system_default() -> None:
    nodes = [*zones(a="z1", b="z2"), node("none")]
    own = decided(spread(ZONE, WEB, soft=True), nodes, running("a"))
    system = Harness(nodes=nodes, pods=running("a"), objects=[service("web", WEB)]).explain(web("new"))

    assert expect(own).score(NAME, "none") == 0
    assert expect(system).score(NAME, "none") == 100


def test_a_node_whose_label_is_empty_shares_a_domain_with_those_that_lack_it() -> None:
    """By system default a node without the label counts as having the value "" ."""
    nodes = [node("empty", labels={ZONE: ""}), node("none"), node("b", zone="b")]
    harness = Harness(nodes=nodes, pods=running("none", "none", "none"), objects=[service("web", WEB)])
    outcome = harness.explain(web("new"))

    assert expect(outcome).score(NAME, "empty") < expect(outcome).score(NAME, "b")


def test_hostname_counts_pods_on_the_node_itself() -> None:
    outcome = decided(spread(HOSTNAME, WEB, soft=True), [node("n1"), node("n2")], running("n1"))

    expect(outcome).scores(NAME, {"n1": 0, "n2": 100})


# Arguments


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"defaultingType": "Never"}, "defaultingType"),
        ({"defaultConstraints": [{"topologyKey": ZONE}]}, "defaultingType must be List"),
        ({"defaultingType": "List", "defaultConstraints": [{"topologyKey": "", "maxSkew": 0}]}, "maxSkew"),
        ({"defaultingType": "List", "defaultConstraints": [{"topologyKey": "", "maxSkew": 0}]}, "topologyKey"),
        (
            {"defaultingType": "List", "defaultConstraints": [{"topologyKey": ZONE, "labelSelector": {}}]},
            "must not define a selector",
        ),
        ({"defaultingType": "List", "defaultConstraints": [{"topologyKey": ZONE}] * 2}, "duplicate"),
        (
            {"defaultingType": "List", "defaultConstraints": [{"topologyKey": ZONE, "whenUnsatisfiable": "Maybe"}]},
            "whenUnsatisfiable",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_named(args: dict[str, Any], says: str) -> None:
    problems = msgspec.convert(args, PodTopologySpread.Args).validate()

    assert any(says in problem for problem in problems)


# Requeueing


@pytest.fixture
def harness() -> Harness:
    return Harness(nodes=zones(a1="a"))


def hint(harness: Harness, kind: str, waiting: Pod, old: Any, new: Any) -> Hint:
    pods, nodes = harness.plugin(NAME).events_to_register()
    registered = (pods if kind == "pod" else nodes).hint
    if kind == "pod":
        old, new = (None if each is None else harness.info(each) for each in (old, new))
    answer: Hint = registered(harness.info(waiting), old, new)
    return answer


WAITING = web("waiting", spread=[spread(ZONE, WEB)])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, web("x", "a1"), Hint.QUEUE),
        (web("x", "a1"), None, Hint.QUEUE),
        (None, pod("x", node="a1"), Hint.SKIP),
        (None, web("x"), Hint.SKIP),
        (web("x", nominated="a1"), None, Hint.QUEUE),
        (None, web("x", "a1", namespace="other"), Hint.SKIP),
        (web("x", "a1"), pod("x", labels={"app": "db"}, node="a1"), Hint.QUEUE),
        (web("x", "a1"), pod("x", labels={**WEB, "more": "yes"}, node="a1"), Hint.SKIP),
        (WAITING, pod("waiting", labels={"app": "db"}, spread=[spread(ZONE, WEB)]), Hint.QUEUE),
        (WAITING, WAITING, Hint.SKIP),
        (None, None, Hint.SKIP),
    ],
)
def test_pods_matter_when_counts_change(harness: Harness, old: Pod | None, new: Pod | None, expected: Hint) -> None:
    assert hint(harness, "pod", WAITING, old, new) is expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", Hint.QUEUE), (None, Hint.SKIP)])
def test_an_own_toleration_matters_when_taints_are_honoured(
    harness: Harness, policy: str | None, expected: Hint
) -> None:
    constraint = spread(ZONE, WEB, node_taints_policy=policy)
    before = web("waiting", spread=[constraint])
    after = web("waiting", spread=[constraint], tolerations=[toleration("k")])

    assert hint(harness, "pod", after, before, after) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, node("n", zone="b"), Hint.QUEUE),
        (None, node("n"), Hint.SKIP),
        (node("n", zone="b"), None, Hint.QUEUE),
        (node("n"), node("n", zone="b"), Hint.QUEUE),
        (node("n", zone="b"), node("n"), Hint.QUEUE),
        (node("n", zone="b"), node("n", zone="c"), Hint.QUEUE),
        (node("n", zone="b"), node("n", zone="b", taints=["k:NoSchedule"]), Hint.QUEUE),
        (node("n", zone="b"), node("n", zone="b", cpu=8), Hint.SKIP),
        (node("n", taints=["k:NoSchedule"]), node("n"), Hint.SKIP),
    ],
)
def test_nodes_matter_when_domains_change(harness: Harness, old: Node | None, new: Node | None, expected: Hint) -> None:
    assert hint(harness, "node", WAITING, old, new) is expected


def test_thousands_of_constraints_on_keys_that_no_node_has_are_not_counted() -> None:
    """A pod may state as many as fit into it; each of them beside all the others would be their square."""
    hard = [spread(f"key-{number}", WEB) for number in range(3000)]
    harness = Harness(nodes=zones(a1="a", b1="b"))
    plugin = harness.plugin(NAME)
    info, state = harness.info(pod("many", labels=WEB, spread=[spread(ZONE, WEB), *hard])), CycleState()

    rules = plugin._rules(info, "DoNotSchedule")
    assert {id(rule.keys) for rule in rules} == {id(rules[0].keys)}
    assert plugin.pre_filter(state, info, harness.cluster.columns()) is None
    assert not plugin._inclusions._known
    expect(harness.explain(info.pod)).rejected("a1", "b1").rejected_because(MISSING, on="a1", by=NAME)

    soft = [spread(f"key-{number}", WEB, soft=True) for number in range(3000)]
    outcome = harness.explain(pod("soft", labels=WEB, spread=[spread(ZONE, WEB, soft=True), *soft]))
    assert {scores[NAME] for scores in outcome.scores.values()} == {0}
    assert not plugin._inclusions._known
