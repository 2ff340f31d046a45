"""What is derived from the source of a plugin, and above all what is not."""

from __future__ import annotations

import functools
import random
import time
from pathlib import Path
from typing import Any

import pytest

from bayplan.framework import Depends, Plugin, PluginArgs, Unschedulable, normalize_highest
from bayplan.framework.reading import reading_of, stated_depends
from bayplan.testing import Harness, node, pod

LIMIT = 3
NAMES = ("a", "b")
SEEN: dict[str, int] = {}
COUNTER = 0


def count_up() -> None:
    global COUNTER  # a name that is given another value
    COUNTER += 1


def share_of(node: Any, most: int) -> int:
    return min(node.allocatable_of("cpu") // 1000, most)


def remembered(method: Any) -> Any:
    @functools.wraps(method)
    def called(*arguments: Any) -> Any:
        SEEN["calls"] = SEEN.get("calls", 0) + 1
        return method(*arguments)

    return called


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


def test_what_is_understood_decides_what_an_answer_depends_on() -> None:
    assert reading_of(Labels(), "filter") == (Depends.NODE, "", 0)
    assert reading_of(Labels(), "score") == (Depends.NODE, "", 0)
    assert reading_of(Requested(), "score").depends is Depends.USE
    assert reading_of(Neighbours(), "score").depends is Depends.ROW


class MutableGlobal(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return SEEN.get(node.name, 0)


class ReboundGlobal(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return COUNTER


class Clocked(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(time.monotonic()) % 100


class Dice(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(random.gauss(50, 1))


class File(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        with open("/etc/hostname") as file:
            return len(file.read())


class Opened(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(Path("/etc/hostname").read_text())


class Cached(Plugin):
    def setup(self) -> None:
        self.seen: dict[str, int] = {}

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.seen.setdefault(node.name, len(self.seen))


class Decorated(Plugin):
    @remembered
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class WithProperty(Plugin):
    @property
    def points(self) -> int:
        return len(SEEN)

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points


class Named(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(pod.name)


class Annotated(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(pod.annotations.get("points", "0"))


class ReadsState(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(state.skip_filter)


class Reflecting(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        points: int = getattr(node, "row")  # noqa: B009 - what is looked up by name is not read
        return points


class Prepared(Plugin):
    def pre_score(self, state: Any, pod: Any, nodes: Any) -> None:
        SEEN["pods"] = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class ChangedArgs(Plugin):
    class Args(PluginArgs):
        points: int = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.args.points

    def post_bind(self, state: Any, pod: Any, node_name: Any) -> None:
        self.args.points += 1


class ListArgs(Plugin):
    class Args(PluginArgs):
        zones: list[str] = []

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(node.labels.get("zone") in self.args.zones)


class InPlace(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        taints = node.taints
        taints += [1]
        return len(taints)


class Shadowing(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len([SEEN.key for SEEN in node.taints]) + len(SEEN)


class OrderOfParts(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(str(pod.spec.node_selector))


class OtherAnnotations(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return sum(len(other.annotations) for other in node.pods.values())


class Overridden(Labels):
    def _bonus(self, node: Any) -> int:
        return len(SEEN)


class Inherited(Labels):
    def setup(self) -> None:
        self._bonus = lambda node: len(SEEN)  # type: ignore[method-assign]  # what a reader must notice


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        (MutableGlobal, "`SEEN` is not a constant"),
        (ReboundGlobal, "more than one place"),
        (Clocked, "`time` is not a constant"),
        (Dice, "random"),
        (File, "with open"),
        (Opened, "Path"),
        (Cached, "self.seen"),
        (Decorated, "reads a variable of the function around it"),
        (WithProperty, "self.points"),
        (Named, "pod.name"),
        (Annotated, "pod.annotations"),
        (ReadsState, "state.skip_filter"),
        (Reflecting, "getattr"),
        (Prepared, "`pre_score` is defined besides `score`"),
        (ChangedArgs, "`post_bind` may give arguments"),
        (ListArgs, "declare it as a tuple"),
        (InPlace, "taints += [1]"),
        (Shadowing, "`SEEN` is not a constant"),
        (OrderOfParts, "pod.spec.node_selector"),
        (OtherAnnotations, "other.annotations"),
        (Overridden, "`SEEN` is not a constant"),
        (Inherited, "replaced on the instance"),
    ],
)
def test_what_is_not_understood_depends_on_everything(plugin: type[Plugin], why: str) -> None:
    found = reading_of(plugin(), "score")

    assert found.depends is Depends.CLUSTER
    assert why in found.obstacle


def test_a_closure_is_not_read() -> None:
    points = [1]

    class Closure(Plugin):
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return points[0]

    assert "`points`" in reading_of(Closure(), "score").obstacle


def test_a_method_that_was_replaced_is_read_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requested, "score", MutableGlobal.score)
    assert reading_of(Requested(), "score").depends is Depends.CLUSTER

    plugin = Neighbours()
    vars(plugin)["score"] = lambda state, pod, node: len(SEEN)
    assert reading_of(plugin, "score").depends is Depends.CLUSTER


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
