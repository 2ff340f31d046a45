"""Plugins made of random source decide the same whether what they depend on is derived or not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bayplan.framework import Depends, Plugin
from bayplan.framework.reading import Reading, reading_of
from bayplan.framework.runtime import node_calls
from bayplan.testing import Harness, node, pod

NUMBERS = {
    Depends.NODE: (
        'len(node.labels.get("zone", ""))',
        'int(node.labels["rank"])',
        'int(node.annotations.get("points", "7"))',
        "len(node.taints)",
        'node.allocatable_of("cpu") // 1000',
        'len(pod.labels.get("app", ""))',
        "len(pod.spec.containers or ())",
        "pod.priority",
        "self.args.base",
        'self.args.points.get(node.labels.get("zone", ""), 1)',
        "self._twice(len(node.name))",
        'self._longest(node, other="zone")',
        "self.seats",
        'self.table.get(node.labels.get("rank"), 3)',
        "self.FACTOR",
        "math.floor(node.allowed_pods / 7)",
        "max((len(taint.key) for taint in node.taints), default=2)",
        "LIMIT",
    ),
    Depends.USE: ("len(node.pods)", 'node.free("cpu") // 500', 'node.requested_of("memory") // 2**28'),
    Depends.ROW: (
        "sum(len(other.labels) for other in node.pods.values())",
        'sum(1 for other in node.pods.values() if other.labels.get("app") == pod.labels.get("app"))',
    ),
    Depends.CLUSTER: ("len(pod.name)", "len(SEEN)", "len(vars(self))", "self.count"),
}
"""Expressions by what they depend on; the last are not understood."""
LEVELS = tuple(NUMBERS)
HEAD = """
import math

from bayplan.framework import Plugin, PluginArgs, Unschedulable, normalize_highest, normalize_range
LIMIT = 4
SEEN = {}

class Mine(Plugin):
    FACTOR = 6

    class Args(PluginArgs):
        base: int = 5
        points: dict[str, int] = {}

    def setup(self):
        self.seats = len(self.args.points) + 2
        self.table = {str(number): number * 2 for number in range(5)}
        self.count = 0

    def post_bind(self, state, pod, node_name):
        self.count += 1

    def _twice(self, number):
        return 2 * number

    @staticmethod
    def _longest(node, other):
        words = [taint.key for taint in node.taints]
        words.append(node.labels.get(other, ""))
        return len(max(words, key=lambda word: len(word)))
"""


def number(draw: random.Random, level: Depends, depth: int = 2) -> str:
    """An expression that depends on no more than `level`."""
    if depth == 0 or draw.random() < 0.3:
        return draw.choice(NUMBERS[draw.choice([each for each in LEVELS if each <= level])])
    form = draw.choice(
        ("({a} + {b})", "({a} * {b} % 31)", "abs({a} - {b})", "({a} if {a} > {b} else {b})", "max({a}, {b})")
    )
    return form.format(a=number(draw, level, depth - 1), b=number(draw, level, depth - 1))


def source(draw: random.Random, level: Depends) -> str:
    """A plugin whose `score` depends on `level`, and its filter, if it has one, on no more."""
    lines = [HEAD]
    if draw.random() < 0.7:
        lines += [
            "    def filter(self, state, pod, node):",
            f"        if {number(draw, level)} % 5 == {draw.randrange(5)}:",
            '            return Unschedulable("no")',
            "        return None",
        ]
    lines += [
        "    def score(self, state, pod, node):",
        f"        points = {draw.choice(NUMBERS[level])} * 0 + 1",
        "        found = 0",
        f"        for taint in node.taints:\n            found += {number(draw, level, 1)}",
        f"        if {number(draw, level, 1)} > {draw.randrange(9)}:\n            return {number(draw, level)} % 101",
        f"        return (points + found + {number(draw, level)}) % {draw.choice((101, 101, 101, 140))}",
    ]
    if draw.random() < 0.4:
        lines.append(f"    normalize = {draw.choice(('normalize_highest', 'normalize_range'))}")
    return "\n".join(lines) + "\n"


def history(draw: random.Random, file: Path) -> tuple[list[tuple[str, str]], Plugin]:
    """What happens to a stream of pods on a small cluster that changes under way."""
    labels = [{"zone": draw.choice(("a", "bb")), "rank": str(draw.randrange(9))} for _ in range(9)]
    labels[0].pop("rank")
    nodes = [
        node(f"n{number}", cpu=4, labels=each, taints=["x=y:PreferNoSchedule"] if draw.random() < 0.3 else [])
        for number, each in enumerate(labels)
    ]
    args = {"Mine": {"points": {"a": 4}}}
    harness = Harness(nodes=nodes[draw.randrange(2) :], plugins=[file], args=args)
    told = []
    for step in range(25):
        labels = {"app": draw.choice(("web", "db"))}
        each = pod(f"p{step}", cpu=draw.choice(("100m", "500m")), labels=labels, priority=draw.choice((0, 3)))
        outcome = harness.schedule(each)
        told.append((outcome.node_name, outcome.message))
        if step % 6 == 5:
            harness.add(node(f"n{draw.randrange(9)}", cpu=8, labels={"zone": "ccc", "rank": str(draw.randrange(9))}))
    return told, harness.plugin("Mine")


@pytest.mark.parametrize("seed", range(32))
def test_derived_and_undeclared_decide_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    level = LEVELS[seed % len(LEVELS)]
    file = tmp_path / "mine.py"
    file.write_text(source(random.Random(seed), level))
    derived, plugin = history(random.Random(seed), file)
    monkeypatch.setattr(node_calls, "reading_of", lambda plugin, method: Reading(Depends.CLUSTER))
    undeclared, _ = history(random.Random(seed), file)

    assert reading_of(plugin, "score").depends is level
    assert derived == undeclared
