"""DefaultPreemption once more: on every node that is merely full, who would have to leave, and where it costs least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.workload import PodDisruptionBudget
from bayplan.testing.oracle.cluster import UNSCHEDULABLE, OracleCluster
from bayplan.testing.oracle.decision import OracleDecision, OracleTrial
from bayplan.testing.oracle.matching import matches_labels

__all__ = ["OracleVictims", "oracle_candidates", "oracle_choice"]


@dataclass(frozen=True)
class OracleVictims:
    node_name: str
    pods: tuple[Pod, ...]
    """Most important first."""
    violations: int

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(pod.key for pod in self.pods)


def oracle_candidates(cluster: OracleCluster, pod: Pod, decision: OracleDecision) -> list[OracleVictims]:
    """Every node on which evicting pods of lower priority would let the pod in."""
    found = []
    for node in cluster.nodes:
        verdict = decision.rejections.get(node.name)
        if verdict is not None and verdict.code == UNSCHEDULABLE:
            victims = _victims(OracleTrial.of(cluster, pod), pod, node)
            if victims is not None and victims.pods:
                found.append(victims)
    return found


def _victims(trial: OracleTrial, pod: Pod, node: Node) -> OracleVictims | None:
    budgets = [b for b in trial.cluster.of_kind(PodDisruptionBudget) if isinstance(b, PodDisruptionBudget)]
    lower = sorted((p for p in trial.cluster.pods_on(node) if p.priority < pod.priority), key=_importance)
    for other in lower:
        trial.remove(other, node)
    if not lower or trial.verdict_with_nominated(node) is not None:
        return None
    breaking = _breaking(lower, budgets)
    victims: list[Pod] = []
    violations = 0
    for other in [p for p in lower if p.uid in breaking] + [p for p in lower if p.uid not in breaking]:
        trial.add(other, node)
        if trial.verdict_with_nominated(node) is not None:
            trial.remove(other, node)
            victims.append(other)
            violations += other.uid in breaking
    return OracleVictims(node.name, tuple(sorted(victims, key=_importance)), violations)


def _importance(pod: Pod) -> tuple[int, float]:
    return -pod.priority, _started(pod)


def _started(pod: Pod) -> float:
    """A pod that has not started counts as starting now, after all others."""
    text = pod.status.start_time
    return datetime.fromisoformat(text).timestamp() if text else float("inf")


def _breaking(pods: Sequence[Pod], budgets: list[PodDisruptionBudget]) -> set[str]:
    """Who would break a budget if all of them were evicted, most important first."""
    left = [budget.status.disruptions_allowed for budget in budgets]
    found: set[str] = set()
    for pod in pods:
        for place, budget in enumerate(budgets):
            selector = budget.spec.selector
            is_empty = selector is None or not (selector.match_labels or selector.match_expressions)
            if is_empty or budget.namespace != pod.namespace or not pod.labels:
                continue
            if matches_labels(selector, pod.labels) and pod.name not in (budget.status.disrupted_pods or {}):
                left[place] -= 1
                if left[place] < 0:
                    found.add(pod.uid)
    return found


def oracle_choice(candidates: list[OracleVictims]) -> list[OracleVictims]:
    """The candidates that tie after every criterion was applied in turn."""
    for cost in (_violations, _highest, _sum, _number, _latest):
        if candidates:
            lowest = min(cost(each) for each in candidates)
            candidates = [each for each in candidates if cost(each) == lowest]
    return candidates


def _violations(victims: OracleVictims) -> float:
    return victims.violations


def _highest(victims: OracleVictims) -> float:
    return victims.pods[0].priority


def _sum(victims: OracleVictims) -> float:
    return sum(pod.priority + 2**31 for pod in victims.pods)


def _number(victims: OracleVictims) -> float:
    return len(victims.pods)


def _latest(victims: OracleVictims) -> float:
    """Of the most important victims the one that started first; the later that was, the cheaper."""
    highest = victims.pods[0].priority
    return -min(_started(pod) for pod in victims.pods if pod.priority == highest)
