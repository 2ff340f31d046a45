"""Plugins made of random source decide the same whether what they depend on is derived or not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bayplan.framework import Depends
from bayplan.framework.reading import Reading
from bayplan.framework.runtime import node_calls
from bayplan.testing import Harness, node, pod

NUMBERS = (
    'len(node.labels.get("zone", ""))',
    'int(node.labels["rank"])',
    'int(node.annotations.get("points", "7"))',
    "len(node.taints)",
    "len(node.pods)",
    'node.free("cpu") // 500',
    'node.requested_of("memory") // 2**28',
    'node.allocatable_of("cpu") // 1000',
    'len(pod.labels.get("app", ""))',
    "len(pod.spec.containers or ())",
    "pod.priority",
    "self.args.base",
    "self._twice(len(node.name))",
    "sum(len(other.labels) for other in node.pods.values())",
    'sum(1 for other in node.pods.values() if other.labels.get("app") == pod.labels.get("app"))',
    "LIMIT",
)
NOT_UNDERSTOOD = ("len(pod.name)", "len(SEEN)", "len(vars(self))")
HEAD = """
from bayplan.framework import Plugin, PluginArgs, Unschedulable, normalize_highest, normalize_range
LIMIT = 4
SEEN = {}

class Mine(Plugin):
    class Args(PluginArgs):
        base: int = 5

    def _twice(self, number):
        return 2 * number
"""


def number(draw: random.Random, depth: int = 2) -> str:
    if depth == 0 or draw.random() < 0.3:
        return draw.choice(NUMBERS if draw.random() < 0.95 else NOT_UNDERSTOOD)
    form = draw.choice(
        ("({a} + {b})", "({a} * {b} % 31)", "abs({a} - {b})", "({a} if {a} > {b} else {b})", "max({a}, {b})")
    )
    return form.format(a=number(draw, depth - 1), b=number(draw, depth - 1))


def source(draw: random.Random) -> str:
    lines = [HEAD]
    if draw.random() < 0.7:
        lines += [
            "    def filter(self, state, pod, node):",
            f"        if {number(draw)} % 5 == {draw.randrange(5)}:",
            '            return Unschedulable("no")',
            "        return None",
        ]
    lines += [
        "    def score(self, state, pod, node):",
        "        points = 0",
        f"        for taint in node.taints:\n            points += {number(draw, 1)}",
        f"        if {number(draw, 1)} > {draw.randrange(9)}:\n            return {number(draw)} % 101",
        f"        return (points + {number(draw)}) % {draw.choice((101, 101, 101, 140))}",
    ]
    if draw.random() < 0.4:
        lines.append(f"    normalize = {draw.choice(('normalize_highest', 'normalize_range'))}")
    return "\n".join(lines) + "\n"


def history(draw: random.Random, file: Path) -> list[tuple[str, str]]:
    """What happens to a stream of pods on a small cluster that changes under way."""
    labels = [{"zone": draw.choice(("a", "bb")), "rank": str(draw.randrange(9))} for _ in range(9)]
    labels[0].pop("rank")
    nodes = [
        node(f"n{number}", cpu=4, labels=each, taints=["x=y:PreferNoSchedule"] if draw.random() < 0.3 else [])
        for number, each in enumerate(labels)
    ]
    harness = Harness(nodes=nodes[draw.randrange(2) :], plugins=[file])
    told = []
    for step in range(25):
        labels = {"app": draw.choice(("web", "db"))}
        each = pod(f"p{step}", cpu=draw.choice(("100m", "500m")), labels=labels, priority=draw.choice((0, 3)))
        outcome = harness.schedule(each)
        told.append((outcome.node_name, outcome.message))
        if step % 6 == 5:
            harness.add(node(f"n{draw.randrange(9)}", cpu=8, labels={"zone": "ccc", "rank": str(draw.randrange(9))}))
    return told


@pytest.mark.parametrize("seed", range(30))
def test_derived_and_undeclared_decide_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source(random.Random(seed)))
    derived = history(random.Random(seed), file)
    monkeypatch.setattr(node_calls, "reading_of", lambda plugin, method: Reading(Depends.CLUSTER))

    assert derived == history(random.Random(seed), file)
