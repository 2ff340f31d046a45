"""The golden single-pod cases through the path that live decisions take: no scores kept, one feasible node not scored.

`make conformance` compares every verdict and score, which asks for explanations and so leaves the shortest way through
`decide`. Here each case is decided as the scheduler does it, cold and then with what was remembered.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import pytest

from bayplan.api.decode import decode_object
from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.cluster.axes import Rows
from bayplan.config import ResolvedProfile, load_config, resolve_profiles
from bayplan.framework.registry import Registry
from bayplan.loop.decide import Decision
from bayplan.plugins.intree import default_registry
from tests.parity.conformance import GOLDEN, read_cases

SINGLE = sorted(path.name.removesuffix(".jsonl.gz") for path in GOLDEN.glob("*.gz") if "sequence" not in path.name)


@cache
def registry() -> Registry:
    return default_registry()


@cache
def profiles(config: bytes) -> tuple[ResolvedProfile, ...]:
    return resolve_profiles(load_config(config.decode()), registry())


def scheduler_of(case: dict[str, Any]) -> OfflineScheduler:
    objects = [decode_object(item) for item in case["objects"]]
    return OfflineScheduler(profiles(msgspec.json.encode(case["config"])), registry(), objects)


def difference(expected: dict[str, Any], decision: Decision, tied: list[str]) -> str:
    """Where a decision is not the expected one; empty when it is."""
    best = expected["best"]
    if not best:
        # Cases of pods that name their node end before PostFilter.
        full = expected.get("fullMessage")
        is_said = decision.message == full if full else decision.message.startswith(expected["message"])
        nominated = expected.get("preemption", {}).get("nominatedNodes") or [""]
        name = "" if decision.nomination is None else decision.nomination.nominated_node_name or ""
        return "" if is_said and name in nominated else f"{decision.message!r}, nominated {name!r}"
    if decision.node_name not in best:
        return f"chose {decision.node_name!r} instead of {best}"
    if len(tied) > 1 and tied != best:
        return f"{tied} tie instead of {best}"
    total = expected["scores"][decision.node_name]["total"]
    is_scored = decision.feasible_nodes > 1
    return "" if not is_scored or decision.total == total else f"a total of {decision.total} instead of {total}"


@pytest.mark.parametrize("category", SINGLE)
def test_a_live_decision_is_that_of_kube_scheduler(category: str) -> None:
    found: dict[str, list[str]] = {}
    for case in read_cases(GOLDEN / f"{category}.jsonl.gz"):
        scheduler, pod = scheduler_of(case), decode_object(case["pod"])
        assert isinstance(pod, Pod)
        for _ in range(2):
            tied: list[str] = []

            def first_by_name(rows: Rows, scheduler: OfflineScheduler = scheduler, tied: list[str] = tied) -> int:
                by_name = {scheduler.cache.cluster.nodes.at(row).name: row for row in rows.tolist()}
                tied[:] = sorted(by_name)
                return by_name[tied[0]]

            decision = scheduler.decide(scheduler.info(pod), tie_break=first_by_name)
            if problem := difference(case["expect"], decision, tied):
                found.setdefault(case["id"], []).append(problem)

    assert found == {}
