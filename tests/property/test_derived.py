"""Plugins made of random source decide the same whether what they depend on is derived or not."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bayplan.framework import Depends, Plugin
from bayplan.framework.reading import Reading, reading_of
from bayplan.framework.registry import Registry
from bayplan.framework.runtime import node_calls
from bayplan.testing import Harness, node, node_term, pod, require_nodes

NUMBERS = {
    Depends.NODE: (
        'len(node.labels.get("zone", ""))',
        'int(node.labels["rank"])',
        'int(node.annotations.get("points", "7"))',
        "len(node.taints)",
        'node.allocatable_of("cpu") // 1000',
        'node.allocatable_of("example.com/seat")',
        'len(pod.labels.get("app", ""))',
        "len(str(pod.labels))",
        "len(pod.spec.containers or ())",
        "len(pod.spec.tolerations or ())",
        'len([1 for each in pod.spec.containers or () if each.image == "app:2"])',
        '(3 if "zone" in (pod.spec.node_selector or {}) else 1)',
        "(5 if pod.spec.affinity else 2)",
        "pod.priority",
        "self.args.base",
        'self.args.points.get(node.labels.get("zone", ""), 1)',
        "self._twice(len(node.name))",
        'self._longest(node, other="zone")',
        "self._tried(node)",
        "self._counted(node, pod)",
        "self.seats",
        'self.table.get(node.labels.get("rank"), 3)',
        "self.FACTOR",
        "self.BASE",
        "math.floor(node.allowed_pods / 7)",
        "max((len(taint.key) for taint in node.taints), default=2)",
        'len(f"{node.name}-{node.labels.get(chr_a)}")',
        "sum(sorted((len(key) for key in node.labels), key=lambda each: -each)[:2])",
        "(size if (size := len(node.labels)) > 1 else 0)",
        "len({**node.labels, **node.annotations})",
        "LIMIT",
        "outside(node)",
    ),
    Depends.USE: (
        "len(node.pods)",
        'node.free("cpu") // 500',
        'node.requested_of("memory") // 2**28',
        "node.nonzero_cpu // 100",
        "(2 if node.pods else 9)",
        'self._used(node, "cpu")',
    ),
    Depends.ROW: (
        "sum(len(other.labels) for other in node.pods.values())",
        'sum(1 for other in node.pods.values() if other.labels.get("app") == pod.labels.get("app"))',
        "len([other.name for other in node.pods.values() if other.priority >= pod.priority])",
        "self._neighbours(node, pod)",
        "sum(len(uid) for uid in node.pods)",
    ),
    Depends.CLUSTER: (
        "len(pod.name)",
        "len(SEEN)",
        "len(vars(self))",
        "self.count",
        "self.shared",
        "self.names.get(node.name, 0)",
        "COUNTER",
        "self._through(pod)",
        "len(pod.annotations)",
        "self._cached(node)",
        "len(self.handle.cluster.nodes)",
        "moving(node)",
    ),
}
"""Expressions by what they depend on; the last are not understood, and most change from decision to decision."""
LEVELS = tuple(NUMBERS)
HEAD = """
import math

from bayplan.framework import Plugin, PluginArgs, Unschedulable, normalize_highest, normalize_range
LIMIT = 4
SEEN = {}
COUNTER = 0
chr_a = "zone"


def outside(node):
    if any(taint.effect == "PreferNoSchedule" for taint in node.taints):
        return 1
    return 5


def moving(node):
    return outside(node) + len(SEEN)


class Between(Plugin):
    BASE = 3

    def _neighbours(self, node, pod):
        best = 0
        for other in node.pods.values():
            if other.namespace == pod.namespace:
                best = max(best, len(other.labels.get("app", "")))
        return best


class Mine(Between):
    FACTOR = 6
    shared = 0

    class Args(PluginArgs):
        base: int = 5
        points: dict[str, int] = {}

    def setup(self):
        self.seats = len(self.args.points) + 2
        self.table = {str(number): number * 2 for number in range(5)}
        self.count = 0
        self.names = {}
        self.cache = {}

    def reserve(self, state, pod, node_name):
        global COUNTER
        COUNTER += 1
        self.count += 1
        Mine.shared += 1
        self.names[node_name] = self.names.get(node_name, 0) + 1
        SEEN[pod.name] = node_name

    def _twice(self, number):
        return 2 * number

    def _through(self, one):
        return self._twice(len(one.uid))

    def _cached(self, node):
        return self.cache.setdefault(node.name, len(self.cache))

    def _used(self, node, resource):
        return node.requested_of(resource) * 10 // max(node.allocatable_of(resource), 1)

    def _tried(self, node):
        points = 1 if node.unschedulable else 2
        try:
            points += int(node.labels["rank"])
        except (KeyError, ValueError):
            points += len(node.name)
        return points

    def _counted(self, node, pod):
        counts = {}
        for key, value in node.labels.items():
            counts[value] = counts.get(value, 0) + 1
            counts[key] = 0
            counts[key] += 1
        return sum(counts.values()) + len(pod.labels)

    @staticmethod
    def _longest(node, other):
        words = [taint.key for taint in node.taints]
        words.append(node.labels.get(other, ""))
        return len(max(words, key=lambda word: len(word)))
"""
SEEDS = range(48)


def number(draw: random.Random, level: Depends, depth: int = 2) -> str:
    """An expression that depends on no more than `level`."""
    if depth == 0 or draw.random() < 0.3:
        return draw.choice(NUMBERS[draw.choice([each for each in LEVELS if each <= level])])
    form = draw.choice(
        ("({a} + {b})", "({a} * {b} % 31)", "abs({a} - {b})", "({a} if {a} > {b} else {b})", "max({a}, {b})")
    )
    return form.format(a=number(draw, level, depth - 1), b=number(draw, level, depth - 1))


def source(draw: random.Random, level: Depends) -> str:
    """A plugin whose `score` depends on `level`, and whose filter, if it has one, on any."""
    lines = [HEAD]
    if draw.random() < 0.7:
        lines += [
            "    def filter(self, state, pod, node):",
            f"        if {number(draw, draw.choice(LEVELS))} % 5 == {draw.randrange(5)}:",
            '            return Unschedulable(f"no {node.name}")',
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


def some_node(draw: random.Random, number: int) -> Any:
    labels = {"zone": draw.choice(("a", "bb", "ccc")), "rank": str(draw.randrange(9))}
    if draw.random() < 0.1:
        labels.pop("rank")
    return node(
        f"n{number}",
        cpu=draw.choice((4, 8)),
        labels=labels,
        annotations={"points": str(draw.randrange(30))} if draw.random() < 0.5 else {},
        taints=["x=y:PreferNoSchedule"] if draw.random() < 0.3 else [],
        allocatable={"example.com/seat": draw.choice((1, 3))} if draw.random() < 0.3 else {},
    )


def some_pod(draw: random.Random, name: str, **fixed: Any) -> Any:
    labels = [("app", draw.choice(("web", "db"))), ("tier", draw.choice(("x", "yy")))]
    draw.shuffle(labels)
    return pod(
        name,
        cpu=draw.choice(("100m", "500m", "500m", "2500m")),
        labels=dict(labels),
        annotations={"note": name} if draw.random() < 0.3 else {},
        image=draw.choice(("app:1", "app:2")),
        priority=draw.choice((0, 3, 3, 100)),
        node_selector={"zone": "a"} if draw.random() < 0.1 else None,
        **fixed,
    )


def change(draw: random.Random, harness: Harness, placed: list[Any]) -> None:
    """Something that happens between two decisions."""
    what = draw.random()
    if what < 0.4:
        harness.add(some_node(draw, draw.randrange(9)))
    elif what < 0.5 and len(harness.cluster.nodes) > 3:
        harness.remove(node(f"n{draw.randrange(9)}"))
    elif placed:
        gone = placed.pop(draw.randrange(len(placed)))
        harness.remove(gone)
        if what < 0.75:
            # The same pod again, with other labels.
            again = some_pod(draw, gone.name, node=gone.spec.node_name)
            harness.add(again)
            placed.append(again)


def history(draw: random.Random, file: Path) -> tuple[list[Any], Plugin]:
    """What happens to a stream of pods on a small cluster that changes under way."""
    nodes = [some_node(draw, number) for number in range(8)]
    harness = Harness(nodes=nodes, plugins=[file], args={"Mine": {"points": {"a": 4}}})
    told: list[Any] = []
    placed: list[Any] = []
    for step in range(32):
        fixed: dict[str, Any] = {}
        if draw.random() < 0.15:
            fixed["affinity"] = require_nodes(node_term(name=f"n{draw.randrange(8)}"))
        each = some_pod(draw, f"p{step}", **fixed)
        outcome = harness.schedule(each)
        told.append((outcome.node_name, outcome.message, outcome.totals, outcome.rejections))
        told.append((outcome.nominated_node, outcome.victims))
        if outcome.node_name:
            placed.append(pod(each.name, labels=each.labels, cpu="100m", node=str(outcome.node_name)))
        for victim in [running for running in placed if running.key in outcome.victims]:
            harness.remove(victim)
            placed.remove(victim)
        if draw.random() < 0.4:
            change(draw, harness, placed)
    return told, harness.plugin("Mine")


def plugin_of(seed: int, folder: Path) -> Path:
    file = folder / "mine.py"
    file.write_text(source(random.Random(seed), LEVELS[seed % len(LEVELS)]))
    return file


@pytest.mark.parametrize("seed", SEEDS)
def test_derived_and_undeclared_decide_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = plugin_of(seed, tmp_path)
    derived, plugin = history(random.Random(seed), file)
    monkeypatch.setattr(node_calls, "reading_of", lambda plugin, method: Reading(Depends.CLUSTER))
    undeclared, _ = history(random.Random(seed), file)

    assert reading_of(plugin, "score").depends is LEVELS[seed % len(LEVELS)]
    assert derived == undeclared


def test_the_generated_plugins_are_of_every_kind(tmp_path: Path) -> None:
    """What is derived of `filter` and of `score`: each kind has a real share of both."""
    found: dict[str, Counter[Depends]] = {"filter": Counter(), "score": Counter()}
    for seed in SEEDS:
        (*_, mine) = Registry().load(str(plugin_of(seed, tmp_path)))
        plugin = mine()
        for method, counted in found.items():
            if method == "score" or "def filter" in (tmp_path / "mine.py").read_text():
                counted[reading_of(plugin, method).depends] += 1

    assert set(found["score"].values()) == {len(SEEDS) // len(LEVELS)}
    assert set(found["filter"]) == set(LEVELS)
    assert min(found["filter"].values()) >= 4


def test_the_histories_notice_what_is_derived_too_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With everything taken to depend on nodes alone, decisions of most of the other plugins differ."""
    seeds = [seed for seed in SEEDS[:16] if LEVELS[seed % len(LEVELS)] is not Depends.NODE]
    told = {}
    for depends in (Depends.NODE, Depends.CLUSTER):
        monkeypatch.setattr(node_calls, "reading_of", lambda plugin, method, depends=depends: Reading(depends))
        told[depends] = [history(random.Random(seed), plugin_of(seed, tmp_path))[0] for seed in seeds]

    differing = [one != other for one, other in zip(*told.values(), strict=True)]
    assert sum(differing) > len(seeds) / 2
