"""NodeAffinity matches nodeSelector and node affinity with nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from tests.unit.plugins.small_cluster import STATE, SmallCluster, node, raw_scores, rejected, verdicts

from bayplan.framework import SKIP, ActionType, Code, Depends, Hint, PreFilterResult, Resource, Status
from bayplan.plugins.intree.node_affinity import NodeAffinity

CLUSTER = SmallCluster(
    node("a", labels={"zone": "z1", "gen": "3"}),
    node("b", labels={"zone": "z2", "gen": "10", "disk": "ssd"}),
    node("c", labels={"gen": "old"}),
)
EVERYONE = {"a", "b", "c"}


def want(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*expressions: dict[str, Any], fields: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"matchExpressions": list(expressions), "matchFields": fields or []}


def rules(
    required: list[dict[str, Any]] | None = None, preferred: list[tuple[int, dict[str, Any]]] | None = None
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if required is not None:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": required}
    if preferred is not None:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": preference} for weight, preference in preferred
        ]
    return found


def requiring(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": rules(required=list(terms))}}


def preferring(*terms: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": rules(preferred=list(terms))}}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, EVERYONE),
        ({"nodeSelector": {}}, EVERYONE),
        ({"nodeSelector": {"zone": "z1"}}, {"a"}),
        ({"nodeSelector": {"zone": "z1", "gen": "10"}}, set()),
        ({"nodeSelector": {"zone": "nowhere"}}, set()),
        (requiring(), set()),
        (requiring(term()), set()),
        (requiring(term(want("zone", "In", "z1", "z9"))), {"a"}),
        (requiring(term(want("zone", "NotIn", "z1"))), {"b", "c"}),
        (requiring(term(want("zone", "Exists"))), {"a", "b"}),
        (requiring(term(want("zone", "DoesNotExist"))), {"c"}),
        (requiring(term(want("gen", "Gt", "3"))), {"b"}),
        (requiring(term(want("gen", "Lt", "10"))), {"a"}),
        (requiring(term(want("gen", "Gt", "many"))), set()),
        (requiring(term(want("gen", "Near", "3"))), set()),
        (requiring(term(want("gen", "In"))), set()),
        (requiring(term(want("zone", "Exists"), want("disk", "Exists"))), {"b"}),
        (requiring(term(want("zone", "In", "z1")), term(want("disk", "Exists"))), {"a", "b"}),
        (requiring(term(want("gen", "Gt", "many")), term(want("disk", "Exists"))), {"b"}),
        (requiring(term(), term(want("disk", "Exists"))), {"b"}),
        (requiring(term(fields=[want("metadata.name", "In", "c")])), {"c"}),
        (requiring(term(fields=[want("metadata.name", "NotIn", "c")])), {"a", "b"}),
        (requiring(term(fields=[want("metadata.name", "In", "a", "c")])), set()),
        (requiring(term(fields=[want("metadata.uid", "In", "a")])), set()),
        (requiring(term(want("zone", "Exists"), fields=[want("metadata.name", "In", "c")])), set()),
        ({"nodeSelector": {"zone": "z1"}} | requiring(term(want("disk", "Exists"))), set()),
    ],
)
def test_what_a_pod_requires_decides_where_it_fits(spec: dict[str, Any], fits: set[str]) -> None:
    assert rejected(CLUSTER.plugin(NodeAffinity), CLUSTER.pod(**spec), CLUSTER) == EVERYONE - fits


def test_the_reason_and_code_are_those_of_kube_scheduler() -> None:
    answer = verdicts(CLUSTER.plugin(NodeAffinity), CLUSTER.pod(nodeSelector={"zone": "z1"}), CLUSTER)["b"]

    assert answer.code is Code.UNRESOLVABLE
    assert answer.reasons == ("node(s) didn't match Pod's node affinity/selector",)


def test_pre_filter_is_skipped_when_nothing_is_required() -> None:
    plugin = CLUSTER.plugin(NodeAffinity)
    preferring_only = CLUSTER.pod(**preferring((1, term(want("zone", "Exists")))))

    assert plugin.pre_filter(STATE, CLUSTER.pod(), CLUSTER.columns) is SKIP
    assert plugin.pre_filter(STATE, preferring_only, CLUSTER.columns) is SKIP
    assert plugin.pre_filter(STATE, CLUSTER.pod(nodeSelector={"zone": "z1"}), CLUSTER.columns) is None
    assert plugin.pre_filter(STATE, CLUSTER.pod(**requiring()), CLUSTER.columns) is None
    assert not plugin.is_relevant(CLUSTER.pod())
    assert plugin.is_relevant(preferring_only)


def named(*names: str) -> dict[str, Any]:
    return term(fields=[want("metadata.name", "In", name) for name in names])


@pytest.mark.parametrize(
    ("terms", "nodes"),
    [
        ([named("a")], {"a"}),
        ([named("a"), named("ghost")], {"a", "ghost"}),
        ([named("a"), named("b", "c")], {"a"}),
        ([named("a"), term(want("zone", "Exists"))], None),
        ([term(fields=[want("metadata.name", "NotIn", "a")])], None),
    ],
)
def test_terms_that_all_name_nodes_restrict_the_search(terms: list[dict[str, Any]], nodes: set[str] | None) -> None:
    answer = CLUSTER.plugin(NodeAffinity).pre_filter(STATE, CLUSTER.pod(**requiring(*terms)), CLUSTER.columns)

    assert answer == (None if nodes is None else PreFilterResult(frozenset(nodes)))


def test_names_that_exclude_each_other_end_the_search() -> None:
    answer = CLUSTER.plugin(NodeAffinity).pre_filter(STATE, CLUSTER.pod(**requiring(named("a", "b"))), CLUSTER.columns)

    assert isinstance(answer, Status)
    assert (answer.code, answer.reasons) == (Code.UNRESOLVABLE, ("pod affinity terms conflict",))


def test_the_score_adds_up_the_weights_of_matching_terms() -> None:
    pod = CLUSTER.pod(
        **preferring(
            (10, term(want("zone", "Exists"))),
            (3, term(want("gen", "Gt", "5"))),
            (50, term()),
            (0, term(want("gen", "Exists"))),
            (1, term(fields=[want("metadata.name", "In", "c")])),
        )
    )

    assert raw_scores(CLUSTER.plugin(NodeAffinity), pod, CLUSTER) == {"a": 10, "b": 13, "c": 1}


def test_the_highest_sum_becomes_a_hundred() -> None:
    plugin: Any = NodeAffinity()
    raw = np.array([10, 13, 0], dtype=np.int64)

    assert plugin.normalize(STATE, CLUSTER.pod(), raw).tolist() == [76, 100, 0]


def test_pre_score_is_skipped_without_a_list_of_preferences_and_not_for_an_empty_one() -> None:
    plugin = CLUSTER.plugin(NodeAffinity)

    assert plugin.pre_score(STATE, CLUSTER.pod(nodeSelector={"zone": "z1"}), CLUSTER.columns) is SKIP
    assert plugin.pre_score(STATE, CLUSTER.pod(**requiring(term())), CLUSTER.columns) is SKIP
    assert plugin.pre_score(STATE, CLUSTER.pod(**preferring()), CLUSTER.columns) is None


def test_a_preference_that_does_not_parse_is_an_error() -> None:
    plugin = CLUSTER.plugin(NodeAffinity)
    wrong = plugin.pre_score(
        STATE, CLUSTER.pod(**preferring((1, term()), (5, term(want("gen", "Gt", "x"))))), CLUSTER.columns
    )
    ignored = plugin.pre_score(STATE, CLUSTER.pod(**preferring((0, term(want("gen", "Gt", "x"))))), CLUSTER.columns)

    assert isinstance(wrong, Status)
    assert wrong.code is Code.ERROR
    assert wrong.message == (
        '[1].matchExpressions[0].values[0]: Invalid value: "x": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    )
    assert ignored is None


ENFORCED = rules(required=[term(want("disk", "DoesNotExist"))], preferred=[(7, term(want("gen", "In", "old")))])


def test_enforced_affinity_holds_for_every_pod_and_is_told_apart() -> None:
    plugin = CLUSTER.plugin(NodeAffinity, addedAffinity=ENFORCED)
    answers = verdicts(plugin, CLUSTER.pod(nodeSelector={"gen": "3"}), CLUSTER)

    assert answers["a"].is_success
    assert answers["b"].reasons == ("node(s) didn't match scheduler-enforced node affinity",)
    assert answers["b"].code is Code.UNRESOLVABLE
    assert answers["c"].reasons == ("node(s) didn't match Pod's node affinity/selector",)


def test_enforced_affinity_has_a_say_about_pods_that_ask_for_nothing() -> None:
    plugin = CLUSTER.plugin(NodeAffinity, addedAffinity=ENFORCED)

    assert plugin.is_relevant(CLUSTER.pod())
    assert plugin.pre_filter(STATE, CLUSTER.pod(), CLUSTER.columns) is None
    assert plugin.pre_score(STATE, CLUSTER.pod(), CLUSTER.columns) is None
    assert rejected(plugin, CLUSTER.pod(), CLUSTER) == {"b"}


def test_added_preferences_add_to_those_of_the_pod() -> None:
    plugin = CLUSTER.plugin(NodeAffinity, addedAffinity=ENFORCED)
    pod = CLUSTER.pod(**preferring((2, term(want("gen", "Exists")))))

    assert raw_scores(plugin, pod, CLUSTER) == {"a": 2, "b": 2, "c": 9}


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        (rules(required=[term(want("gen", "Gt", "1"))]), None),
        (rules(required=[term()], preferred=[(1, term())]), None),
        (
            rules(required=[term(), term(want("gen", "Lt", "x"))]),
            "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0]",
        ),
        (
            rules(required=[term(want("gen", "Near", "x"))]),
            "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: a requirement",
        ),
        (
            rules(preferred=[(1, term(fields=[want("metadata.uid", "In", "x")]))]),
            "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]: a requirement",
        ),
    ],
)
def test_the_arguments_are_checked(added: dict[str, Any], problem: str | None) -> None:
    problems = msgspec.convert({"addedAffinity": added}, NodeAffinity.Args).validate()

    assert len(problems) == (problem is not None)
    if problem is not None:
        assert problems[0].startswith(problem)


def test_pods_with_the_same_wishes_share_answers() -> None:
    plugin = CLUSTER.plugin(NodeAffinity)
    wish = requiring(term(want("zone", "Exists")))

    assert plugin.depends is Depends.NODE
    assert plugin.sign(CLUSTER.pod("p", **wish)) == plugin.sign(CLUSTER.pod("q", priority=7, **wish))
    assert plugin.sign(CLUSTER.pod(**wish)) != plugin.sign(CLUSTER.pod())


def test_a_node_wakes_a_pod_when_it_comes_to_match() -> None:
    [(event, hint)] = CLUSTER.plugin(NodeAffinity).events_to_register()
    pod = CLUSTER.pod(nodeSelector={"zone": "z1"})
    right, wrong = node(labels={"zone": "z1"}), node(labels={"zone": "z2"})

    assert (event.resource, event.action) == (Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    assert hint(pod, None, right) is Hint.QUEUE
    assert hint(pod, None, wrong) is Hint.SKIP
    assert hint(pod, wrong, right) is Hint.QUEUE
    assert hint(pod, right, node(labels={"zone": "z1", "new": ""})) is Hint.SKIP
    assert hint(pod, right, wrong) is Hint.SKIP


def test_a_node_that_is_not_allowed_by_the_arguments_wakes_nobody() -> None:
    [(_, hint)] = CLUSTER.plugin(NodeAffinity, addedAffinity=ENFORCED).events_to_register()
    pod = CLUSTER.pod(nodeSelector={"zone": "z1"})
    right, barred = node(labels={"zone": "z1"}), node(labels={"zone": "z1", "disk": "ssd"})

    assert hint(pod, None, barred) is Hint.SKIP
    assert hint(pod, barred, right) is Hint.QUEUE
