"""Small plugins of every kind, and a framework of some of them over a cache that changes at random."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from bayplan.cache import Cache
from bayplan.framework import (
    Depends,
    Error,
    Plugin,
    Status,
    Unresolvable,
    Unschedulable,
    Verdicts,
    normalize_highest,
    normalize_lowest,
    normalize_range,
)
from bayplan.framework.points import ExtensionPoint, extends
from bayplan.framework.runtime.framework import Framework
from bayplan.testing.build import node, pod

FULL = Unschedulable("full")
WRONG_ZONE = Unresolvable("wrong zone")
NAMES = [f"n{number}" for number in range(24)]
ZONE = "topology.kubernetes.io/zone"


class Room(Plugin):
    """Both forms; looks at pods."""

    depends = Depends.ROW
    most = 4

    def sign(self, pod: Any) -> int:
        return 0

    def filter_nodes(self, state: Any, pod: Any, nodes: Any) -> Verdicts:
        return Verdicts.reject(nodes.pod_count >= self.most, FULL)

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return FULL if len(node.pods) >= self.most else None


class RoomOneByOne(Plugin):
    """The same, one node at a time only."""

    depends = Depends.ROW

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return Unschedulable(f"has {len(node.pods)}") if len(node.pods) >= 3 else None


class Glancing(Room):
    """Mostly tells at a glance that every node has room."""

    name = "Glancing"
    most = 9

    def setup(self) -> None:
        self.columns = 0

    def accepts_all(self, pod: Any, nodes: Any) -> bool:
        table = nodes.table
        return len(table) % 5 != 0 and bool((table.pod_count[: table.size] < self.most).all())

    def filter_nodes(self, state: Any, pod: Any, nodes: Any) -> Verdicts:
        self.columns += 1
        return super().filter_nodes(state, pod, nodes)


class Zones(Plugin):
    """Looks at the node object; numbers its statuses as it pleases."""

    depends = Depends.NODE

    def filter_nodes(self, state: Any, pod: Any, nodes: Any) -> Verdicts:
        wrong = nodes.matching({ZONE: "c"})
        if nodes.is_all:
            return Verdicts.reject(wrong, WRONG_ZONE)
        return Verdicts.of(wrong * 2, [FULL, FULL, WRONG_ZONE])


class Emptier(Plugin):
    score_depends = Depends.ROW

    def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.maximum(100 - 7 * nodes.pod_count, 0)

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return max(100 - 7 * len(node.pods), 0)


class ByZone(Plugin):
    """Normalised, and the same on every node until zones differ."""

    score_depends = Depends.NODE
    normalize = normalize_highest

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return {"a": 10, "b": 3}.get(node.labels.get(ZONE, ""), 1)


class ByPods(Plugin):
    """Normalised and moving with pods."""

    score_depends = Depends.ROW
    normalize = normalize_range

    def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
        return nodes.pod_count * 5


class ByNodes(Plugin):
    """Depends on all nodes together."""

    score_depends = Depends.NODES
    normalize = normalize_lowest

    def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.full(len(nodes), len(nodes.table), dtype=np.int64) + nodes.matching({ZONE: "a"})


class Crowd(Plugin):
    """Looks at what is used alone; notes the rows that it is asked about."""

    depends = Depends.USE

    def setup(self) -> None:
        self.asked: list[int] = []

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        self.asked.append(node.row)
        return FULL if len(node.pods) >= 6 else None

    def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.minimum(nodes.pod_count * 9, 100)


class Reds(Plugin):
    """Looks at the labels of the pods that are there."""

    depends = Depends.ROW

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return FULL if self.score(state, pod, node) > 40 else None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        count: int = sum(other.labels.get("colour") == "red" for other in node.pods.values())
        return min(20 * count, 100)


class FailingPreScore(Plugin):
    depends = Depends.NODE

    def pre_score(self, state: Any, pod: Any, nodes: Any) -> Status | None:
        return Error("cannot read the map")

    def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.zeros(len(nodes), dtype=np.int64)


class ErrorColumn(Plugin):
    """Says Error about one node, in a column and not by raising."""

    depends = Depends.NODE

    def filter_nodes(self, state: Any, pod: Any, nodes: Any) -> Verdicts:
        return Verdicts.reject(nodes.matching({ZONE: "b"}), Error("lost its mind"))


class OutOfRange(Plugin):
    depends = Depends.ROW

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 101 if len(node.pods) == 2 else 50


def framework_of(
    cache: Cache, *kinds: type[Plugin], remember: bool = True, weights: dict[str, int] | None = None
) -> Any:
    plugins = {kind.name: kind() for kind in kinds}
    filters = [k.name for k in kinds if extends(k, ExtensionPoint.FILTER)]
    scores = [k.name for k in kinds if extends(k, ExtensionPoint.SCORE)]
    points = {
        ExtensionPoint.FILTER: filters,
        ExtensionPoint.PRE_SCORE: [k.name for k in kinds if extends(k, ExtensionPoint.PRE_SCORE)],
        ExtensionPoint.SCORE: scores,
    }
    return Framework(
        profile_name="toys",
        cluster=cache.cluster,
        plugins=plugins,
        points=points,
        weights=weights or {},
        complain=lambda plugin, point, exception: None,
        remember=remember,
    )


class Changes:
    """A cluster that changes step by step: mostly pods, now and then nodes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cache = Cache()
        self._step = 0
        for name in NAMES[:16]:
            self.cache.add_node(node(name, zone=self.rng.choice("ab")))

    def step(self) -> None:
        for _ in range(self.rng.choice((0, 1, 1, 1, 2, 3, 7, 30))):
            self._change()

    def _change(self) -> None:
        rng, cache = self.rng, self.cache
        self._step += 1
        placed = list(cache.pods())
        if rng.random() < 0.04:
            cache.remove_node(rng.choice(NAMES))
        elif rng.random() < 0.1:
            cache.add_node(node(rng.choice(NAMES), zone=rng.choice("abc")))
        elif placed and rng.random() < 0.3:
            one = rng.choice(placed)
            cache.add_pod(pod(one.name, node=one.node_name, labels={"colour": rng.choice(("red", "blue"))}))
        elif placed and rng.random() < 0.5:
            cache.remove_pod(rng.choice(placed).uid)
        else:
            cache.add_pod(pod(f"p{self._step}", node=rng.choice(NAMES[:18])))
