"""Whether the targets of a workload are met: each is one comparison of two medians."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.versus.records import Growth

Medians = dict[str, float]
GROWTH_LIMIT = 8.0
"""Cost of a decision with 15,000 nodes, in costs with 500."""
BOUND_PODS_LIMIT = 1.2
"""Cost of a decision with 150,000 bound pods, in costs with none."""


@dataclass(frozen=True)
class Verdict:
    name: str
    value: float
    target: float
    is_met: bool
    text: str
    cell: str = ""
    """For a table: the value, what is asked, and bold when that is missed."""

    def __str__(self) -> str:
        return f"{'met' if self.is_met else 'MISSED'}: {self.text}"


def _times(value: float) -> str:
    return f"{value:.2f} times" if value < 10 else f"{value:.0f} times"


@dataclass(frozen=True)
class _Rule:
    what: str
    of: Callable[[Medians, Medians, float], float | None]
    is_least: bool = False
    mode: str = ""
    is_share: bool = False

    def say(self, value: float) -> str:
        return f"{value:.0%}" if self.is_share else _times(value)

    def cell(self, value: float, target: float, is_met: bool) -> str:
        shown, asked = self.say(value).removesuffix(" times"), f"{target:.0%}" if self.is_share else f"{target:g}"
        limit = f"({'≥' if self.is_least else '≤'} {asked})"
        return f"{shown} met {limit}" if is_met else f"**{shown} missed** {limit}"


def _over(name: str) -> Callable[[Medians, Medians, float], float | None]:
    def ratio(theirs: Medians, ours: Medians, raw: float) -> float | None:
        if not theirs or (name.endswith("per_1000") and not theirs["pods_per_second"]):
            return None
        return ours[name] / theirs[name] if theirs[name] and ours[name] else None

    return ratio


_RULES = {
    "ratio": _Rule("kube-scheduler's pods/s", _over("pods_per_second"), is_least=True, mode="backlog"),
    "ofRaw": _Rule(
        "of the raw binding rate",
        lambda theirs, ours, raw: ours["pods_per_second"] / raw if raw else None,
        is_least=True,
        mode="backlog",
        is_share=True,
    ),
    "decision": _Rule("kube-scheduler's time per decision", _over("decision_ms"), mode="backlog"),
    "cpu": _Rule("kube-scheduler's CPU from the start of the process", _over("cpu_life_per_1000"), mode="backlog"),
    "cpuBinding": _Rule("kube-scheduler's CPU from first to last bind", _over("cpu_window_per_1000"), mode="backlog"),
    "memory": _Rule("kube-scheduler's peak memory", _over("peak_mib")),
    "p99": _Rule("kube-scheduler's p99 latency", _over("p99_ms"), mode="arrival"),
}

TARGET_NAMES = tuple(_RULES)


def verdicts(targets: Mapping[str, float], mode: str, theirs: Medians, ours: Medians, raw: float) -> list[Verdict]:
    """Those targets that can be judged: a target of 0 asks for nothing, and a ratio needs both sides."""
    found = []
    for name, rule in _RULES.items():
        target = targets.get(name, 0.0)
        value = rule.of(theirs, ours, raw) if target and ours and mode.startswith(rule.mode) else None
        if value is not None:
            is_met = value >= target if rule.is_least else value <= target
            limit = f"{'at least' if rule.is_least else 'at most'} {rule.say(target)}"
            text = f"{rule.say(value)} {rule.what} ({limit})"
            found.append(Verdict(name, value, target, is_met, text, rule.cell(value, target, is_met)))
    return found


def growth_verdicts(growth: list[Growth]) -> list[Verdict]:
    """How decisions grow with nodes, by workload, and with bound pods."""
    found = []
    for workload in dict.fromkeys(each.workload for each in growth):
        here = [each for each in growth if each.workload == workload]
        found += _grown(f"{workload}, {{}} to {{}} nodes", [(g.nodes, g.decision_us) for g in here], GROWTH_LIMIT)
        pods = [(g.bound_pods, g.decision_us) for g in here]
        if len({g.nodes for g in here}) == 1:
            found += _grown(f"{workload}, {{}} to {{}} bound pods", pods, BOUND_PODS_LIMIT)
    return found


def _grown(what: str, costs: list[tuple[int, float]], limit: float) -> list[Verdict]:
    (least, before), (most, after) = min(costs), max(costs)
    if least == most or not before:
        return []
    value = after / before
    text = f"{what.format(f'{least:,}', f'{most:,}')}: a decision costs {_times(value)} as much (at most {limit:g})"
    return [Verdict("growth", value, limit, value <= limit, text)]
