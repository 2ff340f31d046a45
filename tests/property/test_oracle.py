"""The engine against the oracle: on random clusters both say the same of every node."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.testing import Harness, Outcome
from bayplan.testing.generate import Cluster, random_cluster, random_pod
from bayplan.testing.oracle import OracleCluster, OracleDecision, oracle_candidates, oracle_choice, oracle_decide
from tests.property.histories import History, scheduler

CLUSTERS_A_SEED = 60


@pytest.mark.parametrize("seed", range(12))
def test_the_engine_says_what_the_oracle_says(seed: int) -> None:
    """Feasible sets with the deciding plugin and reasons, scores by plugin, the best set, victims."""
    rng = Random(seed)
    for number in range(CLUSTERS_A_SEED):
        cluster, pod = random_cluster(rng), random_pod(rng, "new")
        check(cluster, pod, f"seed {seed}, cluster {number}")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(rng=st.randoms(use_true_random=False))
def test_the_engine_says_what_the_oracle_says_on_clusters_that_shrink(rng: Random) -> None:
    """The same through Hypothesis, which finds the smallest cluster on which the two differ."""
    cluster, pod = random_cluster(rng, most_nodes=4, most_pods=5), random_pod(rng, "new")
    check(cluster, pod, "")


@pytest.mark.parametrize("seed", range(4))
def test_after_a_long_history_the_engine_still_says_what_the_oracle_says(seed: int) -> None:
    history = History(2000 + seed, scheduler())
    one = history.schedulers[0]
    for step in range(160):
        history.change()
        pod = history.next_pod()
        (facts,) = history.decide(pod)
        if step % 4 == 0:
            oracle = oracle_decide(history.oracle(), pod)
            assert facts["rejected"] == rejections(oracle, list(history.nodes), only_explicit=True), f"step {step}"
            assert facts["total"] == max(oracle.totals.values(), default=0), f"step {step}"
            assert facts["ties"] == len(oracle.best), f"step {step}"
        if facts["node"] and history.rng.randrange(4):
            history.assume(pod, facts["node"])
    assert one.cache.assumed_count == len(history.assumed)


def check(cluster: Cluster, pod: Pod, where: str) -> None:
    outcome = Harness(nodes=cluster.nodes, pods=[*cluster.pods, *cluster.waiting], objects=cluster.objects).explain(pod)
    objects = OracleCluster.of(cluster.everything)
    oracle = oracle_decide(objects, pod)
    got = {name: (s.plugin, s.code.label, tuple(sorted(s.reasons))) for name, s in outcome.rejections.items()}

    assert outcome.failure is None, f"{where}: {outcome.failure}"
    assert got == rejections(oracle, [node.name for node in cluster.nodes]), where
    assert _present(outcome.scores) == _present(oracle.scores), where
    assert outcome.totals == oracle.totals, where
    assert outcome.best == oracle.best, where
    if not oracle.totals and oracle.refusal is None:
        check_victims(outcome, oracle_choice(oracle_candidates(objects, pod, oracle)), where)


def check_victims(outcome: Outcome, cheapest: list[Any], where: str) -> None:
    choices = {each.node_name: each.keys for each in cheapest}
    if not choices:
        assert outcome.nominated_node == "", where
        return
    assert outcome.nominated_node in choices, where
    assert outcome.victims == choices[outcome.nominated_node], where


def rejections(
    oracle: OracleDecision, names: list[str], *, only_explicit: bool = False
) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """As the engine words it: a pod refused as a whole is refused everywhere, unless only nodes looked at count."""
    refusal = oracle.refusal
    if refusal is not None:
        everywhere = dict.fromkeys(names, (refusal.plugin, refusal.code, refusal.reasons))
        return {} if only_explicit else everywhere
    found = {name: (v.plugin, v.code, tuple(sorted(v.reasons))) for name, v in oracle.rejections.items()}
    return {name: entry for name, entry in found.items() if entry[0] or not only_explicit}


def _present(scores: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """A plugin that skipped and one that gave 0 come to the same."""
    return {name: {plugin: s for plugin, s in entry.items() if s} for name, entry in scores.items()}
