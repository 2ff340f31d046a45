"""Terms of running pods: many of them cost pods that they do not tell apart no more than one of these."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bayplan.api.pod import Affinity, Pod
from bayplan.cluster.affinity_terms import PodTerm
from bayplan.cluster.term_index import TermGroup
from bayplan.framework import CycleState
from bayplan.testing import HOSTNAME, ZONE, Harness, apart, expect, namespace, near, node, pod, selector

NAME = "InterPodAffinity"
NODES = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("none")]


def drawing(count: int, on: str = "a1", **more: Any) -> Pod:
    """A pod that would rather be near every pod whose app is none of many."""
    terms = [
        near(ZONE, selector(not_in={"app": [f"x{number}"]}), weight=1, namespace_selector=selector())
        for number in range(count)
    ]
    return pod("draws", node=on, affinity=terms, **more)


def scores(harness: Harness, made: Pod) -> dict[str, int]:
    plugin, state, info, nodes = harness.plugin(NAME), CycleState(), harness.info(made), harness.cluster.columns()
    if (status := plugin.pre_score(state, info, nodes)) is not None:
        assert status.is_skip
        return dict.fromkeys(nodes.names, 0)
    return dict(zip(nodes.names, plugin.score_nodes(state, info, nodes).tolist(), strict=True))


def test_pods_with_labels_of_their_own_are_compared_with_terms_once(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness(nodes=NODES, pods=[drawing(50)])
    compared = []
    matches = PodTerm.matches

    def counting(term: PodTerm, *arguments: Any) -> bool:
        compared.append(term)
        return matches(term, *arguments)

    monkeypatch.setattr(PodTerm, "matches", counting)

    for number in range(20):
        assert scores(harness, pod(f"p{number}", labels={"app": "web", "index": str(number)}))["a1"] == 50
    assert len(compared) == 50
    assert scores(harness, pod("named", labels={"app": "x7"}))["a1"] == 49
    assert len(compared) == 100


def test_a_term_that_names_another_label_later_tells_pods_apart_that_were_alike() -> None:
    harness = Harness(nodes=NODES, pods=[drawing(6)])
    seventh, eighth = (pod(f"p{number}", labels={"app": "web", "index": number}) for number in ("7", "8"))
    assert scores(harness, seventh)["a1"] == scores(harness, eighth)["a1"] == 6

    late = pod("late", node="a1", affinity=near(ZONE, {"index": "7"}, weight=10))
    harness.scheduler.cache.add_pod(late)

    assert (scores(harness, seventh)["a1"], scores(harness, eighth)["a1"]) == (16, 6)
    harness.scheduler.cache.remove_pod(late.uid)
    assert (scores(harness, seventh)["a1"], scores(harness, eighth)["a1"]) == (6, 6)


def test_terms_on_few_rows_have_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column takes memory for every node of the cluster, and there may be ten thousand terms."""
    keeps = [
        apart("no/such-key", selector(not_in={"app": [f"x{number}"]}), namespace_selector=selector())
        for number in range(50)
    ]
    harness = Harness(nodes=NODES, pods=[drawing(50), pod("keeps", node="a1", affinity=keeps)])
    made = []
    column = TermGroup.column

    def counting(group: TermGroup, capacity: int) -> Any:
        made.append(group)
        return column(group, capacity)

    monkeypatch.setattr(TermGroup, "column", counting)
    outcome = harness.explain(pod("new", labels={"app": "web"}))

    expect(outcome).rejected()
    assert set(outcome.scores) == {"a1", "a2", "b1", "none"}
    assert made == []


@pytest.mark.parametrize("seed", range(4))
def test_many_terms_on_many_rows_count_as_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [node(f"n{number}", zone=rng.choice("abc") if number % 7 else None) for number in range(40)]
    harness = Harness(nodes=nodes)
    right: dict[str, dict[str, int]] = {HOSTNAME: {}, ZONE: {}}
    for number in range(60):
        key, weight, on = rng.choice((HOSTNAME, ZONE)), rng.randrange(1, 9), rng.choice(nodes)
        wide = number % 3 == 0
        away = rng.random() < 0.4
        term: Affinity = (apart if away else near)(
            key, {"app": "web"} if wide else {"app": f"x{number}"}, weight=weight
        )
        for copy in range(rng.choice((1, 1, 30))):
            place = on if copy == 0 else rng.choice(nodes)
            harness.scheduler.cache.add_pod(pod(f"r{number}-{copy}", node=place.name, affinity=term))
            if wide and (value := place.labels.get(key)) is not None:
                right[key][value] = right[key].get(value, 0) + (-weight if away else weight)

    expected = {
        each.name: sum(by_value.get(each.labels.get(key, ""), 0) for key, by_value in right.items()) for each in nodes
    }
    assert scores(harness, pod("new", labels={"app": "web"})) == expected


def test_terms_whose_selectors_mean_many_namespaces_follow_them() -> None:
    harness = Harness(
        nodes=NODES,
        pods=[pod("db", namespace="n7", labels={"app": "db"}, node="a1")],
        objects=[namespace(f"n{number}", labels={"name": f"n{number}"}) for number in range(300)],
    )
    wanted = selector(exists=["name"], not_in={"name": ["n9"]})
    made = pod("new", affinity=near(ZONE, {"app": "db"}, namespace_selector=wanted))
    expect(harness.explain(made)).rejected("b1", "none")

    harness.add(namespace("n7"))

    expect(harness.explain(made)).pending()
