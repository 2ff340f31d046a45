"""What is derived from the source of a plugin, and above all what is not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from bayplan.framework import Depends, Plugin, PluginArgs, Unschedulable, normalize_highest
from bayplan.framework.reading import reading_of, stated_depends
from bayplan.testing import Harness, node, pod

LIMIT = 3
NAMES = ("a", "b")


def share_of(node: Any, most: int) -> int:
    return min(node.allocatable_of("cpu") // 1000, most)


class Labels(Plugin):
    """Reads arguments, labels of both, constants, a helper, and rejects."""

    class Args(PluginArgs):
        key: str = "zone"
        wanted: tuple[str, ...] = ("a",)

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        if any(taint.key == "broken" for taint in node.taints):
            return Unschedulable("broken")
        for name in NAMES:
            if pod.labels.get(name, "") and not node.labels.get(name):
                return Unschedulable(f"no {name}")
        return None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        points = 0
        if node.labels.get(self.args.key) in self.args.wanted:
            points += 50
        try:
            points += int(node.annotations["points"])
        except (KeyError, ValueError):
            points += LIMIT
        return points + self._bonus(node) + share_of(node, 10) + len(pod.spec.containers or ())

    def _bonus(self, node: Any) -> int:
        return 10 if node.unschedulable else 0

    normalize = normalize_highest


class Requested(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return max(0, 100 - len(node.pods)) if node.free("cpu") > 1000 else 0


class Neighbours(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return min(100, sum(1 for other in node.pods.values() if other.labels.get("app") == pod.labels.get("app")))


def derived(plugin: Plugin | type[Plugin], method: str) -> Depends:
    """What was derived, without an obstacle and without a part that costs speed."""
    found = reading_of(plugin, method)
    assert (found.obstacle, found.parts) == ("", ())
    return found.depends


def test_what_is_understood_decides_what_an_answer_depends_on() -> None:
    assert derived(Labels(), "filter") is Depends.NODE
    assert derived(Labels(), "score") is Depends.NODE
    assert reading_of(Requested(), "score").depends is Depends.USE
    assert reading_of(Neighbours(), "score").depends is Depends.ROW


class Settled(Plugin):
    """Constants of the class, attributes that `setup` sets, lists and dicts of arguments, local collections."""

    FACTOR = 3

    class Args(PluginArgs):
        zones: list[str] = []
        points: dict[str, int] = {}
        groups: dict[str, list[str]] = {}

        def validate(self) -> list[str]:
            return ["zones: too many"] if len(self.zones) > 9 else []

    def setup(self) -> None:
        self.wanted = frozenset(self.args.zones)
        self.table = {zone: len(zone) for zone in self.args.zones}

    def score(self, state: Any, pod: Any, node: Any) -> int:
        zone = node.labels.get("zone", "")
        found = [taint.key for taint in node.taints]
        counts: dict[str, int] = {}
        for key in found:
            counts[key] = counts.get(key, 0) + 1
        found.append("last")
        if (first := min(found, key=lambda each: len(each), default="")) and zone in self.args.zones:
            return math.floor(len(first) / 2) + self._weight(zone, most=self.FACTOR)
        return self.table.get(zone, 0) + self.args.points.get(zone, 0) + (1 if zone in self.wanted else 0)

    @staticmethod
    def _weight(zone: str, most: int) -> int:
        return min(len(zone), most)

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        state.put("seen", sorted(self.args.zones))


class FurtherSettled(Settled):
    def setup(self) -> None:
        super().setup()
        self.more: int = 2

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        number = self.more
        for _ in range(9):
            number = number + len(self.args.groups.get(node.name, ()))
        return Unschedulable("small") if node.node.status.capacity is None else None


def test_attributes_that_keep_their_values_are_read() -> None:
    assert derived(Settled(), "score") is Depends.NODE
    assert derived(Settled, "score") is Depends.NODE
    assert derived(FurtherSettled(), "score") is Depends.NODE
    assert derived(FurtherSettled(), "filter") is Depends.NODE


def test_the_expressions_that_cost_speed_are_named() -> None:
    assert [part[:2] for part in reading_of(Requested(), "score").parts] == [
        (Depends.USE, "node.free('cpu')"),
        (Depends.USE, "len(node.pods)"),
    ]
    assert [part[:2] for part in reading_of(Neighbours(), "score").parts] == [(Depends.ROW, "node.pods.values()")]


def test_a_file_that_was_changed_since_is_not_read(tmp_path: Path) -> None:
    source = "from bayplan.framework import Plugin\n\nclass Mine(Plugin):\n    def score(self, state, pod, node):\n"
    file = tmp_path / "mine.py"
    file.write_text(f"{source}        return len(pod.name)\n")
    plugin = Harness(nodes=["n"], plugins=[file]).plugin("Mine")
    file.write_text(f"{source}        return len(node.name)\n")

    assert "not what runs" in reading_of(plugin, "score").obstacle


def test_what_the_author_states_wins() -> None:
    class Stated(Labels):
        score_depends = Depends.ROW

    assert stated_depends(Stated(), "score") is Depends.ROW
    assert stated_depends(Stated(), "filter") is None
    assert stated_depends(type("Whole", (Labels,), {"depends": Depends.CLUSTER}), "filter") is Depends.CLUSTER


class Failing(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(node.labels["points"])


def test_a_score_that_fails_for_a_node_that_is_rejected_does_no_harm() -> None:
    nodes = [node("a", labels={"points": "1"}), node("b", labels={"points": "9"}), node("c", taints=["x=y:NoSchedule"])]
    harness = Harness(nodes=nodes, plugins=[Failing])

    assert harness.schedule(pod("p")).node_name == "b"
    assert harness.complaints == []
    harness.add(node("d", labels={"points": "x"}))
    assert not harness.schedule(pod("q")).is_scheduled
    assert len(harness.complaints) == 1
